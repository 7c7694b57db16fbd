# ruff: noqa: ARG005  (all calls get a model)
"""What does not belong where it is given is one error in words, at the door."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dugong as dg
from command_line import Command
from dugong.codec import parse_toml
from dugong.exceptions import DugongError, FileError, GraphError, LabelError, PriorError, TaskError, VoteError
from dugong.paths import PlaceError
from dugong.worlds import lopsided
from fuzz import calls
from fuzz.material import PRIOR, votes

TABLE = [[0.8, 0.2, 0.0], [0.2, 0.8, 0.0]]


def fit(**settings: Any) -> dg.LabelModel:
    return dg.LabelModel(**{"prior": PRIOR, "dependencies": (), **settings}).fit(votes())


def of_squid(**options: Any) -> dg.Votes:
    return dg.Votes.from_flyingsquid(np.ones((4, 6), dtype=int), n_tasks=2, **options)


def of_segments(model: dg.LabelModel, **options: Any) -> dg.Votes:
    return dg.Votes.from_segments(model.labels(votes()).segments(), **options)


@pytest.fixture(scope="module")
def model() -> dg.LabelModel:
    return fit()


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"accuracies": {"unknown": TABLE}}, DugongError, "no source 'unknown'"),
        ({"accuracies": {"s0": "x"}}, GraphError, "accuracies= must be a mapping to an array or None"),
        ({"prior": None}, GraphError, "prior= must be Prior or text; found None"),
        ({"prior": dg.priors.Uniform(n_classes=3)}, PriorError, "about the classes of the votes, 2; it is about 3"),
        ({"sharing": {"unknown": "task"}}, VoteError, "no source 'unknown'"),
        ({"sharing": {"s0": "alone"}}, GraphError, "sharing= must be"),
        ({"n_threads": 0}, GraphError, "n_threads= must be a number from 1 to inf or None; found 0"),
        ({"seed": "x"}, GraphError, "seed= must be"),
        ({"dependencies": 3}, GraphError, "dependencies= must be a list.*; found 3"),
        ({"dependencies": [dg.temporal("s0", lag=12)]}, TaskError, "at most 4096 states per element"),
        ({"dependencies": [dg.temporal("s0", lag=40)]}, TaskError, "at most 4096 states per element"),
        *(
            ({"dependencies": [dg.temporal("s0", lag=lag)], **more}, DugongError, "at most 4096 states per element")
            for lag in (16, 22)
            for more in ({"prior": "learn"}, *({"estimator": one} for one in ("centred", "paper", "em")))
        ),
    ],
)
def test_settings(settings: dict[str, Any], kind: type[DugongError], message: str) -> None:
    with pytest.raises(kind, match=message):
        fit(**settings).predict_proba(votes())


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda m: m.sample(votes(), -1), LabelError, "n_draws= must be a number from 0 to inf; found -1"),
        (lambda m: m.predict(votes(), threshold=None), LabelError, "threshold= must be .* from 0 to 1; found None"),
        (lambda m: m.predict(votes(), threshold=np.nan), LabelError, "threshold= must be a number from 0 to 1"),
        (lambda m: m.predict_proba([[1, 0]]), VoteError, "votes must be a dugong.Votes value"),
        (lambda m: m.predict_proba(votes(), 3), LabelError, "resolution= must be text or Element or Window"),
        (lambda m: m.labels(votes(), []), LabelError, "at least one resolution"),
        (lambda m: m.score(votes(), np.full(300, np.nan)), LabelError, "found 300 other values, the first nan"),
        (lambda m: m.score(votes(), ["a"] * 300), LabelError, "found 300 other values, the first a"),
        (lambda m: m.score(votes(), [0, 1] * 150), LabelError, "hold only 0 and 1"),
        (lambda m: m.score(votes(), np.ones(300), coding=np.ones(3)), LabelError, "must be 'own' or 'given'; found"),
        (lambda m: dg.metrics.evaluate([1, -1], [1, -1], classes=3), LabelError, "classes must name at least two"),
        (lambda m: dg.loaders.npy_folder("1" * 600), PlaceError, "no name in it longer than 255 bytes"),
        (lambda m: dg.Window(size=float("nan")), TaskError, "found nan"),
        (lambda m: lopsided().sample(-1), TaskError, "n_sequences= must be a number from 0 to inf; found -1"),
        (lambda m: dg.Window(size=3, name=3), TaskError, "name of a window is text"),
        (lambda m: dg.temporal("s0", lag="1"), GraphError, "lag= must be a whole number; found '1'"),
        (lambda m: dg.priors.Markov(positive="x", stay=0.5), PriorError, "positive= must be a number or None"),
        (lambda m: dg.Votes.concat([votes(), 3]), VoteError, "votes must be a dugong.Votes value.*found int"),
        (lambda m: votes()[10**30], VoteError, "sequences are chosen by place"),
        (lambda m: dg.Votes.read(3), VoteError, "path= must be text or a path; found 3"),
        (lambda m: dg.Votes.read("x" * 5000 + ".npz"), DugongError, "no name in it longer than 255 bytes"),
        (lambda m: dg.Votes.read("a\0.npz"), DugongError, "without NUL"),
        (lambda m: dg.priors.Markov(initial=[0.5, 0.5], transition=""), PriorError, "must be tables of numbers; found"),
        (lambda m: of_squid(classes=iter((1, 2))), VoteError, "the name of a class must be text; found 1"),
        (lambda m: of_segments(m, lengths=-np.inf), VoteError, "lengths must be whole numbers of elements"),
        (lambda m: of_segments(m, timestamps={"s0": 1}), VoteError, "a list of seconds by sequence; found no list for"),
        (lambda m: m.set_params(colour=1), DugongError, "no setting 'colour'"),
    ],
)  # fmt: skip
def test_calls(
    model: dg.LabelModel, call: Callable[[dg.LabelModel], Any], kind: type[DugongError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call(model)


class AbsentError(Exception):
    """A door that reads a file which is not there."""


def _open(door: Callable[..., Any], given: dict[str, Any]) -> None:
    try:
        door(**given)
    except DugongError as error:
        if any(words in str(error) for words in ("there is no file", "is not a folder", "No such file")):
            raise AbsentError from error
        raise


def test_every_door_of_the_fuzz_suite_takes_what_belongs_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for door, given in calls.doors():
        with contextlib.suppress(AbsentError):
            _open(door, given)


# --- ids, names, words ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad", ["a\0", "\ud800"])
def test_ids_that_files_cannot_hold_are_refused(bad: str) -> None:
    dense = np.ones((2, 3, 1), dtype=np.int8) * [[[1]], [[-1]]]
    with pytest.raises(VoteError, match="a sequence id must be text without"):
        dg.Votes.from_dense(dense, ids=[bad, "b"])
    with pytest.raises(VoteError, match="a sequence id must be text without"):
        dg.apply([calls.plus], {bad: [1], "b": [2]}, progress=False)


def test_names_that_files_cannot_hold_are_refused() -> None:
    with pytest.raises(VoteError, match="the name of a source must be text without"):
        dg.Votes.from_dense(np.ones((2, 3, 1), dtype=np.int8), sources=["\ud800"])


@pytest.mark.parametrize("word", ["\ud800", "a\0b"])
def test_words_of_the_command_line_that_name_no_file(cli: Command, word: str) -> None:
    found = cli("check", word)
    assert found.code == 2
    assert "a word of the command must be" in found.err


def test_a_mark_before_the_first_letter_of_toml_is_no_fault() -> None:
    assert parse_toml("\ufeffoutput = 'out'\r\n".encode()) == {"output": "out"}


def test_deep_toml_is_refused_at_once() -> None:
    for text in ("a" + ".a" * 100_000 + " = 1", "a = " + "[" * 100_000):
        with pytest.raises(FileError, match="levels deep"):
            parse_toml(text.encode())


# --- gold ----------------------------------------------------------------------------------------------------------
def gold_of(path: Path, *, cli: Command) -> str:
    votes().write(path.parent / "votes.npz")
    found = cli("fit", path.parent / "votes.npz", "-o", path.parent / "model.json", "--gold", path)
    assert found.code == 1, found.err
    return found.err


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("gold.npy", b"\x93NUMPY\x01\x00v\x00{'descr': ", "no header that can be read"),
        ("gold.npy", b"nothing", "no header that can be read"),
        ("gold.csv", b"sequence,start,end,label,label\n0,0,1,1,1\n", "'label' more than once"),
        ("gold.csv", "sequence,start,end,l\xe4bel\n0,0,1,1\n".encode("latin-1"), "damaged, or of another kind"),
        ("gold.parquet", b"PAR1", "damaged, or of another kind"),
    ],
)
def test_damaged_gold(tmp_path: Path, cli: Command, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    said = gold_of(tmp_path / name, cli=cli)
    assert message in said
    assert f"{name} cannot be" in said


def test_gold_that_claims_much_or_holds_objects(tmp_path: Path, cli: Command) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    assert "objects, which allow_pickle=False refuses" in gold_of(tmp_path / "objects.npy", cli=cli)
    head = b"{'descr': '|i1', 'fortran_order': False, 'shape': (1000000000000,), }"
    (tmp_path / "large.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    assert "1,000,000,000,000 bytes; found 0" in gold_of(tmp_path / "large.npy", cli=cli)
    pq.write_table(pa.table({"sequence": ["0"], "start": [0], "end": [1], "label": [{"a": 1}]}), tmp_path / "g.parquet")
    assert "'label' must hold class values or names" in gold_of(tmp_path / "g.parquet", cli=cli)


# --- sizes ---------------------------------------------------------------------------------------------------------
def test_archives_are_read_only_if_packed_as_we_pack_them(tmp_path: Path) -> None:
    votes().write(tmp_path / "votes.npz")
    with (
        zipfile.ZipFile(tmp_path / "votes.npz") as plain,
        zipfile.ZipFile(tmp_path / "other.npz", "w", zipfile.ZIP_LZMA) as other,
    ):
        for name in plain.namelist():
            other.writestr(name, plain.read(name))
    with pytest.raises(VoteError, match="packed in a way that Dugong does not write"):
        dg.Votes.read(tmp_path / "other.npz")


def test_hints_are_found_where_a_function_travels_without_its_module() -> None:
    import types

    from dugong.contract import typed

    alone = types.FunctionType(_with_hints.__code__, {"__builtins__": __builtins__}, "alone")
    alone.__annotations__ = dict(_with_hints.__annotations__)
    alone.__module__ = __name__
    checked = typed(VoteError)(alone)
    assert checked("x", None) == "x"
    with pytest.raises(VoteError, match="path= must be text"):
        checked(3, None)


def _with_hints(path: str | Path, other: Unknown[int] | None) -> Any:  # type: ignore[name-defined]  # noqa: F821
    return path
