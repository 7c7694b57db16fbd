"""kill -9 of the studio and of its processes at any moment: what was confirmed is kept, and no file is half-written.

`make chaos-studio` does it twenty times (DUGONG_STORMS=20); the tests do it three times.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dugong as dg
from dugong.cli.corrections import Journal
from studio_client import SOURCES, Client, Running, write_small_project

STORMS = int(os.environ.get("DUGONG_STORMS", "3"))


@dataclass
class Said:
    """What was sent to a studio, and what it confirmed."""

    texts: list[str] = field(default_factory=lambda: [SOURCES])
    saved: int = 0
    kept: set[str] = field(default_factory=set)
    undone: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)


def work(client: Client, said: Said, over: threading.Event, rng: random.Random) -> None:
    """Edit and correct until the studio is gone."""
    with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
        while not over.is_set():
            if rng.random() < 0.4:
                edit(client, said, rng)
            elif rng.random() < 0.2 and said.kept - said.undone:
                one = rng.choice(sorted(said.kept - said.undone - said.doubtful) or [""])
                said.doubtful.add(one)  # until it is confirmed, both are right
                if client.json("DELETE", "/api/gold", {"correction": one})[0] == 200:
                    said.undone.add(one)
            else:
                start = rng.randrange(29)
                mark = {"sequence": f"s{rng.randrange(12):02d}", "start": start, "end": start + 1, "label": "+1"}
                status, plain = client.json("PUT", "/api/gold", mark)
                if status == 200:
                    said.kept.add(plain["correction"]["id"])


def edit(client: Client, said: Said, rng: random.Random) -> None:
    old = client.get("/api/sources/high")
    text = f"@dg.source\ndef high(value):\n    return 1 if value > {rng.random():.6f} else -1\n"
    said.texts.append(said.texts[said.saved].replace(old["text"], text))
    status, _ = client.json(
        "PUT", "/api/sources/high", {"text": text, "digest": old["digest"], "fit": rng.random() < 0.5}
    )
    if status == 200:
        said.saved = len(said.texts) - 1


def check(project: Path, said: Said) -> None:
    """Everything that was confirmed is there, and the file of sources is one of those that were sent, as a whole."""
    text = (project.parent / "sources.py").read_text(encoding="utf-8")
    assert text in said.texts[said.saved :], "sources.py is none of the texts since the last that was confirmed"
    said.texts, said.saved = [text], 0
    holding = {one.id for one in Journal(project.parent / "corrections.jsonl").holding()}
    assert said.kept - said.undone - said.doubtful <= holding
    assert not said.undone & holding
    said.doubtful = set()
    said.kept = holding
    said.undone = set()


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def gone(pids: list[int]) -> bool:
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_nothing_that_was_confirmed_is_lost(tmp_path: Path) -> None:
    project, rng, said = write_small_project(tmp_path / "small"), random.Random(19), Said()
    for storm in range(STORMS):
        running = Running(project, tmp_path)
        client = running.enter()
        if storm % 2 == 0:
            client.fitted()
        over = threading.Event()
        worker = threading.Thread(target=work, args=(client, said, over, random.Random(storm)))
        worker.start()
        for _ in range(2):  # the studio outlives its processes
            time.sleep(rng.uniform(0.05, 0.5))
            for pid in children(running.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            assert client.get("/api/project")["project"]
        time.sleep(rng.uniform(0.0, 0.8))
        orphans = children(running.process.pid)
        running.kill()
        over.set()
        worker.join()
        assert gone(orphans)
        check(project, said)
    running = Running(project, tmp_path)
    client = running.enter()
    assert client.fitted()["run"]["state"] == "idle"
    assert client.get("/api/gold")["n"] == len(said.kept) > 0
    running.kill()
    votes = dg.Votes.read(project.parent / "output" / "votes.parquet")
    assert votes.n_sequences == 12
