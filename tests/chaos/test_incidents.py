"""Crashes and mishaps of real runs, each in a process of its own; `make chaos` kills far more often."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.kills import DUGONG, THESIS, Verb, content, lay_thesis, thesis_untouched, verbs, write_project
from command_line import Command


def applying(folder: Path, jobs: int = 1) -> Verb:
    return verbs(write_project(folder), folder, jobs=jobs, shard_size=12)[0]


def wait_for(process: subprocess.Popen[bytes], seen: Callable[[], object]) -> None:
    """Wait until something is seen, or the process has ended."""
    while process.poll() is None and not seen():
        time.sleep(0.02)


def test_after_a_full_disk_and_a_kill_every_byte_is_that_of_a_calm_run(tmp_path: Path, cli: Command) -> None:
    verb, calm = applying(tmp_path / "full"), applying(tmp_path / "calm")
    lay_thesis(tmp_path / "full")
    small = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    with verb.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600, small))) as process:
        said = process.communicate()[1].decode()
    assert process.returncode == 1, said
    assert "there is no room for" in said
    assert "Traceback" not in said
    verb.kill(2, 0.0, group=True)
    assert verb.hits in ([2], [3])
    verb.run()
    lay_thesis(tmp_path / "calm")
    assert cli(*calm.words[len(DUGONG) :]).code == 0
    assert content(tmp_path / "full") == content(tmp_path / "calm")
    assert thesis_untouched(tmp_path / "full")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where not even root may write")
def test_a_place_where_nobody_may_write(tmp_path: Path, cli: Command) -> None:
    ended = cli("apply", write_project(tmp_path), "-o", "/proc/self/votes", "--shard-size", 12)
    assert ended.code == 1
    *_, fault, remedy = ended.err.splitlines()
    assert fault.startswith("error: ")
    assert remedy == "  Name a place that is there and that you may use."


def test_a_folder_that_is_taken_away_is_said_or_made_again(tmp_path: Path, cli: Command) -> None:
    verb = applying(tmp_path)
    with verb.start() as process:
        wait_for(process, verb.files)
        shutil.rmtree(verb.output, ignore_errors=True)
        said = process.communicate()[1].decode()
    assert process.returncode in (0, 1), said
    assert "Traceback" not in said
    assert cli(*verb.words[len(DUGONG) :]).code == 0
    assert len(verb.files()) == 4


def test_of_two_runs_at_once_the_second_is_refused_and_the_first_undisturbed(tmp_path: Path) -> None:
    lay_thesis(tmp_path)
    run = verbs(write_project(tmp_path), tmp_path, jobs=1, shard_size=12)[3]
    with run.start() as first:
        wait_for(first, run.files)
        first.send_signal(signal.SIGSTOP)  # lest it has done its work before the other begins
        assert first.poll() is None
        second = subprocess.run(run.words, capture_output=True, text=True, check=False)
        first.send_signal(signal.SIGCONT)
        said = first.communicate()[1].decode()
    assert first.returncode == 0, said
    assert (second.returncode, second.stdout) == (1, "")
    busy = "out is in use by another run or by a studio: wait until that has ended, or choose another folder."
    assert second.stderr.splitlines()[-1].endswith(busy)
    assert "Traceback" not in second.stderr
    assert {file.relative_to(run.output).parts[0] for file in run.files()} == {"votes", "labels", "model.parts"}
    assert all((run.output / name).read_bytes() == data for name, data in THESIS.items())


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_a_worker_that_is_killed_is_named_and_nothing_hangs(tmp_path: Path) -> None:
    """One of two workers gets SIGKILL, as from a system without memory."""
    verb = applying(tmp_path, jobs=2)
    with verb.start() as process:
        children = Path(f"/proc/{process.pid}/task").glob("*/children")
        wait_for(process, verb.files)
        workers = [int(one) for file in children for one in file.read_text().split()]
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 1, said
    assert "Traceback" not in said
    assert "signal SIGKILL while it worked on sequence 'v" in said
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert 0 < len(verb.files()) < 4
