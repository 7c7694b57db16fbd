"""The endpoints over the wire: what is shown is what the run wrote, and what is changed is on disk."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import dugong as dg
from dugong.cli.corrections import Journal
from studio_client import Client, Running, unpacked, write_small_project


@pytest.fixture
def votes(client: Client, project: Path) -> dg.Votes:
    return dg.Votes.read(project.parent / "output" / "votes.parquet")


@pytest.fixture
def model(client: Client, project: Path) -> dg.LabelModel:
    return dg.LabelModel.load(project.parent / "output" / "model.json")


def source(client: Client, name: str = "high") -> Any:
    return client.get(f"/api/sources/{name}")


# --- looking -------------------------------------------------------------------------------------------------------
def test_the_project_says_what_there_is(client: Client) -> None:
    plain = client.get("/api/project")
    assert plain["n_sequences"] == 12
    assert [one["name"] for one in plain["lanes"]] == ["element", "window5"]
    assert [one["name"] for one in plain["sources"]] == ["high", "low", "some"]
    assert client.get("/api/sequences/s00")["kind"] == "signals"
    assert [one["name"] for one in plain["classes"]] == ["-1", "+1"]
    assert {"elan", "label-studio"} <= {one["name"] for one in plain["formats"]}


def test_the_queue_is_sorted_filtered_and_paged(client: Client) -> None:
    first = client.get("/api/sequences?sort=entropy&size=5")
    assert first["total"] == 12
    doubts = [one["uncertainty"] for one in first["sequences"]]
    assert doubts == sorted(doubts, reverse=True)
    rest = client.get("/api/sequences?sort=entropy&size=5&page=1")["sequences"]
    assert not {one["id"] for one in rest} & {one["id"] for one in first["sequences"]}
    for sort in client.get("/api/project")["sorts"]:
        found = client.get(f"/api/sequences?sort={sort['name']}")["sequences"]
        back = client.get(f"/api/sequences?sort=-{sort['name']}")["sequences"]
        assert [one["id"] for one in found] == [one["id"] for one in back][::-1]
    assert [one["id"] for one in client.get("/api/sequences?sort=name&q=S1")["sequences"]] == ["s10", "s11"]
    assert client.json("GET", "/api/sequences?sort=evil")[0] == 400
    assert client.json("GET", "/api/sequences?page=abc")[0] == 400


def test_tracks_are_what_the_model_says(client: Client, votes: dg.Votes, model: dg.LabelModel) -> None:
    place = votes.sequence_ids.tolist().index("s04")
    plain = client.get("/api/sequences/s04/tracks?px=500")
    lane = plain["lanes"][0]
    rows = votes.layout("element").rows(place)
    shown = unpacked(lane["probability"][0]["mean"]) / 65535
    np.testing.assert_allclose(shown, model.predict_proba(votes)[rows, 1], rtol=0, atol=1e-5)
    decoded = np.where(model.decode(votes)[rows] > 0, 1, 0)
    assert unpacked(lane["decoded"]).tolist() == decoded.tolist()
    given = dict(zip(plain["votes"][0]["codes"], (-1, 1, 0), strict=False))
    codes = [given[plain["votes"][0]["codes"][code]] for code in unpacked(plain["votes"][0]["code"])]
    assert codes == votes.column("high")[rows].tolist()
    windows = plain["lanes"][1]
    assert (windows["start"], windows["stride"], windows["size"], windows["n"]) == (0, 5, 5, 6)
    assert unpacked(plain["signals"][0]["min"]).shape == (30,)


def test_a_part_of_a_track(client: Client) -> None:
    whole = client.get("/api/sequences/s04/tracks?px=500")["lanes"][0]
    part = client.get("/api/sequences/s04/tracks?from=7&to=12&px=500")["lanes"][0]
    assert (part["first"], part["n"]) == (7, 5)
    assert unpacked(part["labels"]).tolist() == unpacked(whole["labels"])[7:12].tolist()
    assert client.get("/api/sequences/s04/tracks?from=900&to=1000")["lanes"][0]["n"] == 0


def test_a_sequence_and_its_neighbours(client: Client) -> None:
    plain = client.get("/api/sequences/s04")
    assert (plain["previous"], plain["next"], plain["length"]) == ("s03", "s05", 30)
    assert client.json("GET", "/api/sequences/none")[0] == 404
    assert client.json("GET", "/api/sequences/none/tracks")[0] == 404


def test_an_explanation_adds_up(client: Client, votes: dg.Votes, model: dg.LabelModel) -> None:
    plain = client.get("/api/explain/s04/3")
    total = (
        plain["prior"] + sum(one["log_odds"] for one in plain["own_votes"]) + plain["neighbours"] + plain["averaging"]
    )
    assert total == pytest.approx(plain["log_odds"], abs=1e-4)
    place = votes.sequence_ids.tolist().index("s04")
    row = votes.layout("element").rows(place).start + 3
    assert plain["probability"] == pytest.approx(model.predict_proba(votes)[row, 1], abs=1e-5)
    assert client.get("/api/explain/s04/2?resolution=window5")["start"] == 10
    assert client.json("GET", "/api/explain/s04/99")[0] == 404
    assert client.json("GET", "/api/explain/s04/0?resolution=nope")[0] == 422


def test_the_model_page(client: Client) -> None:
    plain = client.get("/api/model")
    assert plain["prior"]["learned"] is False
    assert [one["name"] for one in plain["sources"]] == ["high", "low", "some"]
    status, headers, content = client.raw("GET", "/api/report")
    assert status == 200
    assert b"<html" in content
    assert headers["content-security-policy"].startswith("sandbox")


# --- correcting ----------------------------------------------------------------------------------------------------
def test_a_correction_is_on_disk_when_the_page_hears_of_it(client: Client, project: Path) -> None:
    mark = {"sequence": "s02", "start": 3, "end": 9, "label": "+1", "shown": {"label": "-1", "probability": 0.3}}
    status, plain = client.json("PUT", "/api/gold", mark)
    assert status == 200
    kept = Journal(project.parent / "corrections.jsonl").holding()
    assert kept[-1].id == plain["correction"]["id"]
    assert kept[-1].shown == mark["shown"]
    assert kept[-1].who == client.get("/api/project")["who"]
    assert client.get("/api/project")["stale"]
    lane = client.get("/api/sequences/s02/tracks")["lanes"][0]
    assert unpacked(lane["gold"])[2:10].tolist() == [255, 1, 1, 1, 1, 1, 1, 255]
    assert unpacked(lane["corrected"]).sum() == 6
    assert client.get("/api/sequences?corrected=yes")["total"] == 1
    status, after = client.json("DELETE", "/api/gold", {"correction": kept[-1].id})
    assert status == 200
    assert client.json("DELETE", "/api/gold", {})[0] == 404
    # Every answer says what holds now, and which of two answers is the newer one.
    assert ([one["id"] for one in plain["corrections"]], after["corrections"]) == ([kept[-1].id], [])
    last = client.get("/api/gold?sequence=s02")
    assert (last["corrections"], last["version"]) == ([], after["version"])
    assert last["version"] == client.get("/api/sequences/s02")["gold"]["version"] > plain["version"]
    assert Journal(project.parent / "corrections.jsonl").version == last["version"]


def test_after_a_fit_the_page_shows_what_the_run_has_written(client: Client, project: Path) -> None:
    mark = {"sequence": "s07", "start": 0, "end": 12, "label": "+1"}
    assert client.json("PUT", "/api/gold", mark)[0] == 200
    fit = client.fitted()["fit"]
    assert client.json("POST", "/api/fit", {})[0] == 202
    assert client.fitted(fit + 1)["stale"] is False
    labels = dg.Labels.read(project.parent / "output" / "labels.parquet")
    written = list(labels.probabilities().values())[-1]
    shown = [client.get(f"/api/sequences/s{n:02d}/tracks?signals=0")["lanes"][0]["probability"][0] for n in range(12)]
    flat = np.concatenate([unpacked(one["mean"]) for one in shown]) / 65535
    np.testing.assert_allclose(flat, written, rtol=0, atol=1e-5)
    assert flat[7 * 30 : 7 * 30 + 12].min() == 1.0  # known labels are certain
    assert client.get("/api/explain/s07/3")["note"]
    with client.socket() as live:
        same = live.attempt(source(client)["text"], sequence="s07")
    assert same["summary"]["flipped"] == 0
    assert client.json("DELETE", "/api/gold", {})[0] == 200


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": "nope"},
        {"sequence": 3},
        {"start": -1},
        {"end": 31},
        {"start": 5, "end": 5},
        {"start": True},
        {"start": 1.5},
        {"label": "cat"},
        {"label": 1},
    ],
)
def test_wrong_corrections_are_refused(client: Client, project: Path, change: dict[str, Any]) -> None:
    good = {"sequence": "s02", "start": 3, "end": 9, "label": "+1"}
    before = Journal(project.parent / "corrections.jsonl").holding()
    assert client.json("PUT", "/api/gold", good | change)[0] in (400, 404)
    assert Journal(project.parent / "corrections.jsonl").holding() == before


def test_what_was_shown_may_be_anything(client: Client, project: Path) -> None:
    mark = {"sequence": "s02", "start": 3, "end": 9, "label": "+1", "shown": {"label": "\ud800 \u0000 ü", "x": [None]}}
    status, plain = client.json("PUT", "/api/gold", mark)
    assert (status, plain["correction"]["shown"]) == (200, mark["shown"])
    assert client.get("/api/gold")["corrections"][-1]["shown"] == mark["shown"]
    assert Journal(project.parent / "corrections.jsonl").holding()[-1].shown == mark["shown"]
    assert client.json("DELETE", "/api/gold", {})[0] == 200


def test_bodies_that_are_no_json_or_too_large(client: Client) -> None:
    for body in (b'{"shown": NaN}', b"", b"[1]", b"{", b"\xff", b"[" * 100_000):
        assert client.raw("PUT", "/api/gold", body)[0] == 400
    assert client.raw("PUT", "/api/gold", b" " * 300_000)[0] == 413


# --- editing -------------------------------------------------------------------------------------------------------
def test_saving_writes_one_function_and_runs(client: Client, project: Path) -> None:
    file = project.parent / "sources.py"
    old, text = source(client), file.read_text()
    fit = client.fitted()["fit"]
    new = old["text"].replace("LIMIT else", "0.55 else")
    with client.socket() as live:
        status, plain = client.json("PUT", "/api/sources/high", {"text": new, "digest": old["digest"]})
        assert status == 200
        assert file.read_text() == text.replace(old["text"], new)
        assert live.until("sources")["digest"] == plain["digest"]
        assert live.until("fit")["fit"] == fit + 1
    assert client.fitted(fit + 1)["stale"] is False
    votes = dg.Votes.read(project.parent / "output" / "votes.parquet")
    raw = [value for one in _sequences(project).values() for value in one]
    assert votes.column("high").tolist() == [1 if value > 0.55 else -1 for value in raw]
    assert {one["kind"] for one in source(client)["flips"]} >= {"vote"}
    assert client.get("/api/model")["flipped"] >= 0


def _sequences(project: Path) -> dict[str, list[float]]:
    space: dict[str, Any] = {}
    exec((project.parent / "loader.py").read_text(), space)
    return dict(space["sequences"]())


def test_of_two_pages_that_save_at_once_one_is_told(tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "small")
    running = Running(project, tmp_path)
    client = running.enter()

    def save(name: str, text: str, digest: str) -> int:
        return client.json("PUT", f"/api/sources/{name}", {"text": text, "digest": digest, "fit": False})[0]

    try:
        for number in range(6):
            digest = source(client)["digest"]
            texts = [f"@dg.source\ndef {name}(value):\n    return 0 * {number}\n" for name in ("high", "low")]
            with ThreadPoolExecutor(2) as pool:
                told = list(pool.map(save, ("high", "low"), texts, (digest, digest)))
            assert sorted(told) == [200, 409]
            kept = (project.parent / "sources.py").read_text()
            assert [text.strip() in kept for text in texts] == [status == 200 for status in told]
    finally:
        running.kill()


HANGING = """

import time
from pathlib import Path

from dugong.sources import Deferred

HANG = Path(__file__).parent / "hang"


def read(values):
    while HANG.exists():
        time.sleep(0.05)
    return values


def later():
    return {name: Deferred(read, values) for name, values in sequences().items()}
"""


def test_a_loader_that_hangs_leaves_the_rest_of_the_page_alone(tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "small")
    loader = project.parent / "loader.py"
    loader.write_text(loader.read_text() + HANGING)
    project.write_text(project.read_text().replace("loader:sequences", "loader:later"))
    running = Running(project, tmp_path)
    client = running.enter()
    try:
        client.fitted()
        hang = project.parent / "hang"
        hang.touch()
        with ThreadPoolExecutor(60) as pool:  # more than the server has threads
            raw = [pool.submit(client.json, "GET", f"/api/sequences/s{number % 12:02d}/tracks") for number in range(60)]
            time.sleep(1.0)
            assert not all(one.done() for one in raw)
            begun = time.monotonic()
            assert client.json("GET", "/api/gold")[0] == 200
            assert client.json("GET", "/api/project")[0] == 200
            assert time.monotonic() - begun < 20  # they would wait for the loader, which hangs as long as we like
            hang.unlink()
            assert {one.result()[0] for one in raw} == {200}
    finally:
        running.kill()


def test_a_file_that_was_changed_elsewhere_is_a_conflict(client: Client, project: Path) -> None:
    file = project.parent / "sources.py"
    old = source(client)
    with client.socket() as live:
        live.send(op="ping")
        live.until("pong")
        new = file.with_suffix(".new")  # put in its place at once: half a file would be seen too
        new.write_text(file.read_text().replace("value < 0.4", "value < 0.41"))
        new.replace(file)
        assert live.until("sources")["changed"] == ["low"]
    plain = {"text": old["text"] + "    # mine\n", "digest": old["digest"]}
    status, answer = client.json("PUT", "/api/sources/high", plain)
    assert (status, answer["error"]["kind"]) == (409, "changed")
    assert answer["error"]["current"]["digest"] == source(client)["digest"]
    assert "# mine" not in file.read_text()


@pytest.mark.parametrize("text", ["def high(:\n", "x = 1\n", "@dg.source\ndef low(value):\n    return 1\n"])
def test_what_cannot_be_saved_is_not_written(client: Client, project: Path, text: str) -> None:
    before = (project.parent / "sources.py").read_bytes()
    status, plain = client.json("PUT", "/api/sources/high", {"text": text, "digest": source(client)["digest"]})
    assert (status, plain["error"]["kind"]) == (422, "syntax")
    assert (project.parent / "sources.py").read_bytes() == before


def test_a_source_that_raises_fails_the_run_and_keeps_what_was_shown(client: Client, project: Path) -> None:
    file = project.parent / "sources.py"
    text, old, fit = file.read_text(), source(client, "low"), client.fitted()["fit"]
    broken = "@dg.source\ndef low(value):\n    return 1 / 0\n"
    assert client.json("PUT", "/api/sources/low", {"text": broken, "digest": old["digest"]})[0] == 200
    plain = client.fitted(fit + 1)
    assert plain["run"]["state"] == "failed"
    assert "ZeroDivisionError" in plain["run"]["error"]["text"]
    assert plain["fit"] == fit
    assert client.get("/api/sequences")["total"] == 12
    file.write_text(text)
    assert client.json("POST", "/api/fit", {})[0] == 202
    while client.get("/api/project")["run"]["state"] == "running":
        time.sleep(0.05)
    assert client.get("/api/project")["run"]["state"] == "idle"


# --- out and in ----------------------------------------------------------------------------------------------------
def test_export_and_import_again(client: Client, project: Path) -> None:
    status, plain = client.json("POST", "/api/export/elan", {"rate": 2.0})
    assert status == 200, plain
    assert all((Path(plain["folder"]) / name).is_file() for name in plain["files"])
    _, headers, content = client.raw("GET", plain["download"])
    assert "attachment" in headers["content-disposition"]
    assert content[:2] == b"PK"
    notes = Path(plain["folder"]) / "notes.txt"
    notes.write_text("mine")
    assert client.json("POST", "/api/export/elan", {"rate": 2.0})[1]["files"] == plain["files"]
    assert notes.read_text() == "mine"
    assert client.json("POST", "/api/export/elan", {})[0] == 422  # seconds need a rate
    assert client.json("POST", "/api/export/nope", {})[0] == 404
    table = "sequence,start,end,label\ns01,2,6,+1\ns01,6,9,-1\n"
    status, plain = client.json_bytes("POST", "/api/import?name=mine.csv", table.encode())
    assert (status, plain["n"], plain["sequences"]) == (200, 2, ["s01"])
    assert client.json("DELETE", "/api/gold", {})[1]["n"] == 0


def test_what_is_corrected_is_exported_before_the_next_fit(client: Client) -> None:
    def length_marked() -> float:
        _, plain = client.json("POST", "/api/export/csv", {})
        rows = dg.formats.read(Path(plain["folder"]) / plain["files"][0]).select(sequences=["s03"])
        return sum(float(stop - start) for start, stop in zip(rows.start, rows.end, strict=True))

    before, mark = length_marked(), {"sequence": "s03", "start": 0, "end": 30, "label": "+1"}
    assert before < 30
    assert client.json("PUT", "/api/gold", mark)[0] == 200
    assert length_marked() == 30
    assert client.json("DELETE", "/api/gold", {})[0] == 200
    assert length_marked() == before


# --- two at once ---------------------------------------------------------------------------------------------------
def test_neither_run_nor_a_second_studio_may_touch_an_open_project(client: Client, project: Path) -> None:
    for verb in (["run", str(project)], ["studio", str(project), "--no-browser"]):
        command = [sys.executable, "-m", "dugong", *verb]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert found.returncode == 1
        assert "in use by another run or by a studio" in found.stderr


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "small")
    running = Running(project, tmp_path)
    client = running.enter()
    client.fitted()
    workers = _children(running.process.pid)
    assert workers
    with client.socket():
        code, said = running.interrupt()
    assert code == 0
    assert "ended" in said
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert not (tmp_path / "small" / "output" / ".dugong.lock").exists()
    assert not list(tmp_path.rglob("*.part"))


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True)
    return [int(word) for word in found.stdout.split()]


# --- hostile words -------------------------------------------------------------------------------------------------
NAMES = ["<img src=x onerror=alert(1)>", "../../etc/passwd", "a/b?c#d", "x" * 300, "'\";--", "\u202e evil"]


def test_hostile_names_and_traces_stay_words(tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "small")
    names = json.dumps(NAMES)
    loader = project.parent / "loader.py"
    text = loader.read_text().replace('f"s{number:02d}"', f"({names} + [str(n) for n in range(99)])[number]")
    loader.write_text(text)
    running = Running(project, tmp_path)
    try:
        client = running.enter()
        client.fitted()
        assert {one["id"] for one in client.get("/api/sequences")["sequences"]} >= set(NAMES)
        for name in NAMES:
            plain = client.get(f"/api/sequences/{quote(name, safe='')}")
            assert plain["id"] == name
            assert client.get(f"/api/sequences/{quote(name, safe='')}/tracks")["id"] == name
            assert client.raw("GET", f"/media/{quote(name, safe='')}")[0] == 404
        raising = "@dg.source\ndef high(value):\n    raise ValueError('<script>alert(1)</script>')\n"
        with client.socket() as live:
            answer = live.attempt(raising, sequence=NAMES[0])
        assert "<script>" in answer["trouble"][0]["text"]
        _, headers, _ = client.raw("GET", "/api/project")
        assert headers["content-type"] == "application/json"
    finally:
        running.kill()


def test_without_a_project_samples_are_offered(tmp_path: Path) -> None:
    running = Running(None, tmp_path)
    try:
        client = running.enter()
        plain = client.get("/api/project")
        assert plain["project"] is None
        assert [one["kind"] for one in plain["samples"]] == ["sensor", "video", "audio", "text"]
        assert client.json("GET", "/api/sequences")[0] == 503
        assert client.json("POST", "/api/project", {"sample": "nope"})[0] == 400
        status, plain = client.json("POST", "/api/project", {"sample": "text"})
        assert status == 200
        client.fitted()
        assert (tmp_path / "text-sample" / "sources.py").is_file()
        assert client.json("POST", "/api/project", {"sample": "sensor"})[0] == 409
        name = client.get("/api/sequences")["sequences"][0]["id"]
        assert client.get(f"/api/sequences/{name}")["kind"] == "tokens"
        assert client.get(f"/api/sequences/{name}/tracks")["tokens"]["words"]
    finally:
        running.kill()
