"""Three classes, windows about one of them, spans, an empty sequence, a fault: every page has numbers for JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import Command
from dugong.cli.project import read_project
from dugong.studio import pages
from dugong.studio.bench import Bench, TriedError
from dugong.studio.live import others, preview
from dugong.studio.snapshot import Snapshot, conflicts, load_snapshot
from dugong.studio.tracks import MarkedLabels, RawTracks, SequenceTracks, Stretch
from dugong.votes import Votes
from studio_client import unpacked, write_three_classes


@pytest.fixture
def project(cli: Command, tmp_path: Path) -> Path:
    write_three_classes(tmp_path)
    outcome = cli("run", str(tmp_path / "project.toml"))
    assert outcome.code == 0, outcome.err
    return tmp_path / "project.toml"


def test_every_page(project: Path) -> None:
    found = read_project(project)
    first = load_snapshot(found, 1, {}, None)
    snapshot = load_snapshot(found, 2, {}, first)
    plain: list[object] = [
        pages.queue(snapshot, pages.Wanted(sort=sort, label="B", source="half_b"), {"3": 1}) for sort in pages.SORTS
    ]
    plain += [pages.source_rows(snapshot), pages.model_page(snapshot)]
    plain += [pages.source_details(snapshot, name) for name in snapshot.votes.source_names]
    for resolution in snapshot.lanes:
        plain.append(pages.explanation(snapshot, 3, 1, resolution))
    for place in (0, 40):
        length = int(snapshot.votes.lengths[place])
        known = MarkedLabels(snapshot, place, np.zeros(length, dtype=np.int8))
        cut = SequenceTracks(snapshot, place).cut(Stretch(begin=0, end=length, px=50), known)
        assert [one["name"] for one in cut["lanes"]] == [one.name for one in snapshot.lanes]
        assert len(cut["lanes"][0]["probability"]) == 3
        plain.append(cut)
    json.dumps(plain, allow_nan=False)
    trouble = pages.source_details(snapshot, "by_letter")["trouble"]
    assert trouble[0]["text"] == "ValueError: <b>boom</b>"
    assert trouble[0]["stop"] == trouble[0]["start"] + 1


def test_a_try(project: Path) -> None:
    bench, snapshot = Bench(lambda _: None), load_snapshot(read_project(project), 1, {}, None)
    assert list(bench.open(str(project))) == list(map(str, range(41)))
    names = others(snapshot, "0", 10)
    tracks, stretch = SequenceTracks(snapshot, 0), Stretch(begin=0, end=50, px=50)
    same = "@dg.source\ndef third(word):\n    return 'O' if len(word) < 2 else 'B' if len(word) > 2 else 'A'\n"
    plain = preview(snapshot, bench.attempt("third", same, 16, names), tracks, stretch)
    assert (plain["summary"]["changed"], plain["summary"]["flipped"]) == (0, 0)
    law = snapshot.material.elements[snapshot.elements(0)]
    shown = np.stack([unpacked(one["mean"]) for one in plain["probability"][0]], axis=1) / 65535
    np.testing.assert_allclose(shown, law, rtol=0, atol=1e-5)
    other = preview(snapshot, bench.attempt("third", same.replace("'O'", "'B'"), 16, names), tracks, stretch)
    assert other["summary"]["changed"] > 0
    json.dumps([plain, other], allow_nan=False)
    with pytest.raises(TriedError, match="no source"):
        bench.attempt("third", "def third(word):\n    return 1\n", 16, names)
    with pytest.raises(TriedError, match="NameError") as error:
        bench.attempt("third", "@nothing\ndef third(word):\n    return 1\n", 16, names)
    assert "line 17" in (error.value.trace or "")
    assert RawTracks(bench.raw("0")).cut(stretch)["tokens"]["words"]


def test_conflicts_are_those_of_a_loop(project: Path) -> None:
    votes = load_snapshot(read_project(project), 1, {}, None).votes
    found = conflicts(votes)
    elements = np.stack(
        [column for one, column in zip(votes.sources, votes.columns, strict=True) if one.resolution.kind == "element"]
    )
    for place, column in enumerate(elements.T):
        said = {int(one) for one in column if one in (1, 2, 3)}
        denied = set()
        for of, name in ((2, "some_a"), (3, "half_b")):
            starts, stops = votes.layout(votes.sources[votes.index(name)].resolution).flat_bounds()
            inside = (starts <= place) & (place < stops)
            if (votes.column(name)[inside] == -1).any():
                denied.add(of)
        assert found[place] == (len(said) > 1 or bool(said & denied))


def test_an_unknown_fit_before_changes_nothing(project: Path) -> None:
    snapshot: Snapshot = load_snapshot(read_project(project), 1, {}, None)
    assert np.isnan(snapshot.change).all()
    assert isinstance(snapshot.votes, Votes)
    assert not snapshot.changed.any()
