"""The journal of corrections: what is confirmed is kept, the last word counts, and `run` fits with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dugong as dg
from command_line import Command
from dugong.cli.corrections import FILE, Correction, Journal, corrected
from dugong.cli.gold import read_gold
from dugong.exceptions import LabelError
from dugong.votes import Votes
from studio_client import write_small_project

VOTES = Votes.from_dense(np.zeros((2, 6, 1), dtype=np.int8))


def mark(start: int, end: int, label: str | None = "+1", **more: Any) -> Correction:
    given = {"id": f"{start}-{end}-{label}", "sequence": "0", "who": "me", "when": "now", "batch": "b", "length": 6}
    return Correction(**{**given, "start": start, "end": end, "label": label, **more})  # type: ignore[arg-type]


def test_later_corrections_win_and_undo_brings_the_earlier_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / FILE)
    journal.add([mark(0, 4, batch="1")])
    journal.add([mark(2, 6, "-1", batch="2")])
    journal.add([mark(3, 4, None, batch="3")])
    assert journal.labels(VOTES)[:6].tolist() == [1, 1, -1, 0, -1, -1]
    assert journal.undo() == mark(3, 4, None, batch="3")
    assert journal.undo(mark(2, 6, "-1").id) is not None
    assert journal.labels(VOTES)[:6].tolist() == [1, 1, 1, 1, 0, 0]
    assert journal.undo() is not None
    assert journal.undo() is None
    assert not journal.labels(VOTES).any()


def test_what_was_added_together_is_undone_together(tmp_path: Path) -> None:
    journal = Journal(tmp_path / FILE)
    journal.add([mark(0, 1), mark(1, 2)])
    journal.undo()
    assert Journal(tmp_path / FILE).holding() == []


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 5), st.integers(1, 6), st.sampled_from(["+1", "-1", None])).filter(
            lambda one: one[0] < one[1]
        ),
        st.just("undo"),
    ),
    max_size=8,
)


@given(ACTIONS)
def test_the_journal_is_what_a_list_of_states_is(tmp_path_factory: pytest.TempPathFactory, actions: list[Any]) -> None:
    file = tmp_path_factory.mktemp("journal") / FILE
    journal, states = Journal(file), [np.zeros(6, dtype=np.int8)]
    for number, action in enumerate(actions):
        if action == "undo":
            journal.undo()
            states = states[:-1] or states
            continue
        start, end, label = action
        journal.add([mark(start, end, label, id=str(number), batch=str(number))])
        new = states[-1].copy()
        new[start:end] = {"+1": 1, "-1": -1, None: 0}[label]
        states.append(new)
    assert journal.labels(VOTES)[:6].tolist() == states[-1].tolist()
    assert Journal(file).labels(VOTES).tolist() == journal.labels(VOTES).tolist()


@pytest.mark.parametrize("left", [1, 20, 60])
def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path, left: int) -> None:
    file = tmp_path / FILE
    Journal(file).add([mark(0, 2, batch="1")])
    whole = file.read_bytes()
    Journal(file).add([mark(2, 4, batch="2")])
    file.write_bytes(file.read_bytes()[: len(whole) + left])
    journal = Journal(file)
    assert [one.start for one in journal.holding()] == [0]
    journal.add([mark(4, 6, batch="3")])
    assert [one.start for one in Journal(file).holding()] == [0, 4]


@pytest.mark.parametrize("line", ["[1]", '{"marks": [{"id": "x"}]}', '{"marks": 3}'])
def test_a_line_that_is_no_correction_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(line + "\n")
    with pytest.raises(LabelError, match=FILE):
        Journal(tmp_path / FILE)


@pytest.mark.parametrize(
    ("change", "words"), [({"length": 7}, "had 7 elements"), ({"label": "cat"}, "'cat'"), ({"end": 9}, "9")]
)
def test_corrections_that_do_not_fit_the_data_are_an_error(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    journal = Journal(tmp_path / FILE)
    journal.add([mark(0, 2, **change) if "end" not in change else mark(0, 9)])
    with pytest.raises(LabelError, match=words):
        journal.labels(VOTES)


def test_corrections_lie_over_train_gold(tmp_path: Path) -> None:
    known = np.array([1] * 3 + [0] * 9, dtype=np.int8)
    assert corrected(tmp_path, VOTES, known) is known
    Journal(tmp_path / FILE).add([mark(2, 4, "-1"), mark(0, 1, None, sequence="1"), mark(0, 1, sequence="gone")])
    found = corrected(tmp_path, VOTES, known)
    assert found is not None
    assert found.tolist() == [1, 1, -1, -1] + [0] * 8
    assert known.tolist() == [1] * 3 + [0] * 9
    assert read_gold(tmp_path / FILE, VOTES).tolist() == [0, 0, -1, -1] + [0] * 8


def test_run_reads_them(cli: Command, tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "small")
    assert cli("run", str(project)).code == 0
    before = dg.Labels.read(project.parent / "output" / "labels.parquet")
    Journal(project.parent / FILE).add([mark(0, 30, "+1", sequence="s03", length=30)])
    outcome = cli("run", str(project), "--json")
    assert outcome.code == 0
    now = dg.Labels.read(project.parent / "output" / "labels.parquet")
    after, first = (list(one.probabilities().values())[-1] for one in (now, before))
    assert not np.allclose(after, first, rtol=0, atol=1e-6)
    assert cli("check", str(project)).code == 0
    refused = cli("run", str(project), "--shard-size", "5")
    assert refused.code == 2
    assert "corrections" in refused.err
