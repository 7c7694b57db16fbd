"""Sources while they are typed: what they do is shown, and whatever they do, the next try works."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from dugong.studio.editing import SourceFile
from studio_client import SOURCES, Client, Running, unpacked, write_small_project

HEAD = "@dg.source\ndef high(value):\n"
FINE = HEAD + "    return 1 if value > 0.5 else -1\n"


def test_a_try_shows_votes_and_labels_and_writes_nothing(client: Client, project: Path) -> None:
    before = (project.parent / "sources.py").read_bytes()
    with client.socket() as live:
        same = live.attempt(client.get("/api/sources/high")["text"])
        other = live.attempt(FINE.replace("0.5", "0.9"))
    assert same["ok"]
    assert (same["summary"]["changed"], same["summary"]["flipped"], same["summary"]["sequences"]) == (0, 0, 11)
    assert other["summary"]["changed"] > 0
    votes = dg.Votes.read(project.parent / "output" / "votes.parquet")
    model = dg.LabelModel.load(project.parent / "output" / "model.json")
    shown = unpacked(same["probability"][0][0]["mean"]) / 65535
    rows = votes.layout("element").rows(votes.sequence_ids.tolist().index("s00"))
    np.testing.assert_allclose(shown, model.predict_proba(votes)[rows, 1], rtol=0, atol=1e-5)
    assert not np.array_equal(unpacked(other["vote"]["code"]), unpacked(same["vote"]["code"]))
    assert (project.parent / "sources.py").read_bytes() == before


def test_only_the_last_of_several_tries_is_answered(client: Client) -> None:
    with client.socket() as live:
        for number in range(1, 30):
            live.send(op="try", n=number, source="high", text=FINE, sequence="s00")
        answers = [live.until("tried")["n"]]
        while answers[-1] != 29:
            answers.append(live.until("tried")["n"])
    assert answers == sorted(answers)
    assert len(answers) < 29


def test_a_source_that_raises_shows_its_line(client: Client) -> None:
    with client.socket() as live:
        answer = live.attempt(HEAD + "    print('look', value > 0)\n    return 1 / 0\n")
    assert answer["ok"]
    first = answer["trouble"][0]
    assert first["text"] == "ZeroDivisionError: division by zero"
    assert "return 1 / 0" in first["trace"]
    line = client.get("/api/sources/high")["line"]
    assert f"line {line + 3}, in high" in first["trace"]
    assert "dugong" not in first["trace"]
    assert "look" in answer["printed"]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("    return 7\n", "data", "must return"),
        ("    return (\n", "syntax", "never closed"),
        ("    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n", "lost", "started anew"),
        ("    import ctypes\n    ctypes.string_at(0)\n", "lost", "crashed"),
    ],
)
def test_what_stops_a_source_is_said_and_the_next_try_works(client: Client, body: str, kind: str, words: str) -> None:
    with client.socket() as live:
        answer = live.attempt(HEAD + body)
        assert (answer["ok"], answer["error"]["kind"]) == (False, kind)
        assert words in answer["error"]["text"]
        assert live.attempt(FINE)["ok"]


@pytest.mark.parametrize(
    "body",
    [
        "    raise SystemExit(3)\n",
        "    import sys\n    sys.exit()\n",
        "    import os\n    os._exit(1)\n",
        "    raise MemoryError\n",
        "    raise StopIteration\n",
    ],
)
def test_a_source_that_wants_to_leave_is_a_fault(client: Client, body: str) -> None:
    with client.socket() as live:
        answer = live.attempt(HEAD + body)
        assert answer["ok"] or answer["error"]["kind"] == "data"
        assert answer["trouble"] if answer["ok"] else answer["error"]["text"]
        assert live.attempt(FINE)["ok"]


def test_an_endless_loop_ends_at_the_limit(client: Client) -> None:
    with client.socket() as live:
        live.send(op="limit", seconds=0.5)
        begin = time.monotonic()
        answer = live.attempt(HEAD + "    while True:\n        pass\n")
        assert time.monotonic() - begin < 10
        assert answer["error"]["kind"] == "lost"
        assert "longer than 0.5 s" in answer["error"]["text"]
        live.send(op="limit", seconds=20)
        assert live.attempt(FINE)["ok"]
        assert [one["state"] for one in live.events if one["op"] == "worker"] == ["starting", "ready"]


def test_a_source_that_eats_memory_is_stopped(client: Client) -> None:
    with client.socket() as live:
        answer = live.attempt(HEAD + "    bytearray(10**12)\n    return 1\n")
        assert answer["trouble"][0]["text"] == "MemoryError"
        assert live.attempt(FINE)["ok"]


def test_prints_do_not_grow_without_end(client: Client) -> None:
    with client.socket() as live:
        answer = live.attempt(HEAD + "    print('x' * 10_000)\n    return 1\n")
    assert len(answer["printed"]) < 25_000
    assert "characters more" in answer["printed"]


def test_a_new_source_votes_but_the_model_does_not_know_it(client: Client) -> None:
    with client.socket() as live:
        answer = live.attempt(FINE.replace("high", "fresh"), source="fresh")
    assert answer["ok"]
    assert answer["probability"] is None
    assert "new" in answer["why"]
    assert answer["vote"] is not None


def test_a_source_that_gives_scores_is_tried_with_its_scores(tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "small")
    soft = "@dg.source(soft=True)\ndef high(value):\n    return min(max(value, 0.01), 0.99)\n"
    text = SOURCES.replace(SourceFile.read(project.parent / "sources.py").functions()["high"].text, soft)
    (project.parent / "sources.py").write_text(text)
    running = Running(project, tmp_path)
    try:
        client = running.enter()
        assert client.fitted()["run"]["state"] == "idle"
        with client.socket() as live:
            same, other = live.attempt(soft), live.attempt(soft.replace("value,", "1 - value,"))
            hard = live.attempt(FINE)
        assert same["summary"]["flipped"] == 0
        assert other["summary"]["flipped"] > 0
        assert "scores" in hard["why"]
    finally:
        running.kill()


def test_messages_that_are_no_messages(client: Client) -> None:
    with client.socket() as live:
        for text in (
            "",
            "{",
            "[1]",
            "null",
            '{"op": "limit", "seconds": NaN}',
            '{"op": "try"}',
            '{"op": "try", "source": 1}',
            '{"op": "limit"}',
        ):
            live.socket.send(text)
            assert live.until("error")["error"]["kind"] == "bad"
        live.send(op="ping")
        assert live.until("pong")
        assert live.attempt("@dg.source\ndef high(v):\n    return '\ud800'\n")["ok"] is False
        assert live.attempt(FINE, sequence="nope")["error"]["kind"] == "missing"
