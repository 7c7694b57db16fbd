"""Bad input, each with a message that says what must hold, what was found, and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from dugong.exceptions import DugongError, LabelError, TaskError, VoteError
from dugong.tasks import Sequence, Spans, TimeAxis, Window
from dugong.votes import Votes, labels_from_classes

GOOD = np.array([[1, -1], [0, 1], [-1, 0]])


def long(**changes):
    table = {"sequence": ["a", "a"], "source": ["x", "y"], "start": [0, 1], "end": [2, 3], "vote": [1, -1]}
    return {name: column for name, column in {**table, **changes}.items() if column is not None}


CASES = {
    "a vote outside the coding": (
        lambda: Votes.from_dense(np.array([[1, 0], [0, -1], [1, 2], [3, 0]]), [4], ["blur", "motion"]),
        r"votes must be -1, 0 or \+1; found 2 other values, the first at row 2, source 'motion' \(value 2\)\.\n"
        r"  If 0 means a class here, use Votes\.from_classes\(\.\.\., abstain=-1\)\.",
    ),
    "a vote outside the coding, flat": (
        lambda: Votes.from_tasks({"a": np.array([1, 7], dtype=np.int8)}, [2]),
        r"votes must be -1, 0 or \+1; found 1 other values, the first at row 1, source 'a' \(value 7\)",
    ),
    "a vote outside the coding, far outside": (
        lambda: Votes.from_tasks({"a": [1, 300]}, [2]),
        r"votes must be -1, 0 or \+1; found 1 other values.*\(value 300\)",
    ),
    "a class outside the coding": (
        lambda: Votes.from_classes([[0], [5], [-2]], 5, lengths=[3]),
        "votes must be a class from 0 to 4, or -1 for abstain; found 2 other values, the first at row 1",
    ),
    "MeTaL with Snorkel's abstain": (lambda: Votes.from_metal([[-1], [1]], [2]), r"from_classes\(\.\.\., abstain=-1\)"),
    "ambiguous coding": (
        lambda: Votes.from_dense([[0, 1], [1, 0]], [2]),
        r"ambiguous: they hold only 0 and 1(.|\n)*from_classes\(\.\.\., n_classes=2\)(.|\n)*coding='paper'",
    ),
    "ambiguous booleans": (lambda: Votes.from_dense(np.array([[True], [True]]), [2]), "ambiguous"),
    "ambiguous long form": (
        lambda: Votes.from_long(long(vote=[0, 1])),
        r"ambiguous(.|\n)*classes=\[0, 1\]; if 0 means abstain, pass abstain=0",
    ),
    "an unknown coding": (
        lambda: Votes.from_dense(GOOD, [3], coding="snorkel"),
        "'paper' or left out; found 'snorkel'",
    ),
    "no lengths": (
        lambda: Votes.from_dense(GOOD),
        r"needs lengths.*found shape \(3, 2\) and no lengths\.\n  Pass lengths=\[\.\.\.\]; .*lengths=\[3\]",
    ),
    "no lengths, flat": (lambda: Votes.from_tasks({"a": [1]}), "flat votes need lengths"),
    "lengths that do not add up": (
        lambda: Votes.from_dense(GOOD, [1, 1]),
        "lengths must add up to the number of rows; found 2 lengths that add up to 2 for 3 rows",
    ),
    "lengths that do not add up, flat": (
        lambda: Votes.from_tasks({"a": [1, 0], "w": [1, 1]}, [2], resolutions={"w": Window(2)}),
        "source 'w' votes on window2 .* which has 1 tasks for the given lengths; found 2 votes",
    ),
    "lengths of a list": (
        lambda: Votes.from_dense([GOOD, GOOD], [3, 2]),
        r"found \[3, 2\] for arrays of \[3, 3\] rows",
    ),
    "lengths of a block": (lambda: Votes.from_dense(GOOD[None], [4]), "n numbers of at most T"),
    "negative lengths": (lambda: Votes.from_dense(GOOD, [4, -1]), "must not be negative; found -1 for sequence 1"),
    "fractional lengths": (lambda: Votes.from_dense(GOOD, [1.5, 1.5]), "whole numbers of elements"),
    "one length": (lambda: Votes.from_dense(GOOD, 3), "one number per sequence; found 3"),
    "duplicate source names": (
        lambda: Votes.from_dense(GOOD, [3], ["blur", "blur"]),
        "source names must be unique; found 'blur' more than once.\n  Rename one of them",
    ),
    "a source without a name": (lambda: Votes.from_dense(GOOD, [3], ["blur", ""]), "a source must have a name"),
    "a number for a name": (lambda: Votes.from_dense(GOOD, [3], range(2)), "sources= must be a list"),
    "too few source names": (lambda: Votes.from_dense(GOOD, [3], ["blur"]), "1 source names for 2 columns"),
    "duplicate ids": (lambda: Votes.from_dense(GOOD, [2, 1], ids=[4, 4]), "ids must be unique; found 4 more than once"),
    "too few ids": (lambda: Votes.from_dense(GOOD, [2, 1], ids=["a"]), "1 sequence ids for 2 sequences"),
    "mixed ids": (
        lambda: Votes.from_dense(GOOD, [2, 1], ids=np.array(["a", 2], dtype=object)),
        "strings or of integers",
    ),
    "votes outside every sequence": (
        lambda: Votes.from_long(long(end=[2, 9]), {"a": 4}),
        r"inside their sequence.*found 1 rows that do not, the first at row 1: \[1, 9\) in sequence 'a' of 4 elements",
    ),
    "votes before a sequence": (lambda: Votes.from_long(long(start=[-1, 1])), r"at row 0: \[-1, 2\) in sequence 'a'"),
    "votes that end before they start": (lambda: Votes.from_long(long(end=[0, 3])), r"at row 0: \[0, 0\)"),
    "votes in an unknown sequence": (
        lambda: Votes.from_long(long(), {"b": 4}),
        "votes must lie in a known sequence; found 1 unknown, the first 'a'.\n  Known are those that lengths= lists",
    ),
    "votes of an unknown source": (
        lambda: Votes.from_long(long(), sources=["x"]),
        "known source; found 1 unknown.*'y'",
    ),
    "two different votes on one element": (
        lambda: Votes.from_long(long(source=["x", "x"])),
        r"source 'x' must not vote twice and differently on one task.*at row 0: \[0, 2\) in sequence 'a' overlaps",
    ),
    "a row that is no task": (
        lambda: Votes.from_long(long(), resolutions={"y": Window(2)}),
        r"rows of source 'y' must be exactly one task of window2 .*at row 1: \[1, 3\) in sequence 'a'\.\n"
        r"  The nearest task is \[2, 3\)",
    ),
    "overlapping spans": (
        lambda: Votes.from_tasks(
            {"a": [1, 1]}, [4], resolutions={"a": Spans("shot")}, spans={"shot": [[(0, 3), (2, 4)]]}
        ),
        r"'shot' must be sorted and must not overlap; found 1 .*sequence 0: \[2, 4\) begins before 3",
    ),
    "no spans": (
        lambda: Votes.from_tasks({"a": [1, 1]}, [4], resolutions={"a": Spans("shot")}),
        r"needs its spans\.\n  Pass spans=",
    ),
    "empty data": (lambda: Votes.from_dense([]), "found nothing"),
    "no sequences": (
        lambda: Votes.from_dense(np.zeros((0, 4, 2))),
        "at least one sequence; found none.\n  Check the loader",
    ),
    "no rows": (lambda: Votes.from_long({k: [] for k in long()}), "at least one row; found none"),
    "no sources": (lambda: Votes.from_tasks({}, [3]), "at least one source; found none"),
    "no columns": (lambda: Votes.from_dense(np.zeros((3, 0)), [3]), "at least one source; found none"),
    "NaN": (
        lambda: Votes.from_dense(np.array([[1, 0], [np.nan, 1], [0, np.nan]]), [3]),
        r"must not be NaN; found 2, the first at row 1, source 's0'\.\n  .*pass missing=float\('nan'\)",
    ),
    "NaN in the long form": (
        lambda: Votes.from_long(long(start=[0, np.nan])),
        "'start' must hold finite numbers; found 1",
    ),
    "NaN as a long vote": (
        lambda: Votes.from_long(long(vote=[1.0, np.nan])),
        r"other values, the first at row 1 \(value nan\)",
    ),
    "null in the long form": (
        lambda: Votes.from_long(long(vote=[1, None])),
        "'vote' must not have nulls; found 1, the first at row 1.\n  Where a source abstains, leave the row out",
    ),
    "probabilities": (
        lambda: Votes.from_dense([[0.5], [1.0]], [2]),
        r"found 1 other values.*\(value 0\.5\)\.\n  Probabilities are no votes: compare them with a threshold first",
    ),
    "infinity": (lambda: Votes.from_dense([[np.inf], [1.0]], [2]), r"found 1 other values.*\(value inf\)"),
    "strings": (lambda: Votes.from_dense([["yes"], ["no"]], [2]), r"must be numbers(.|\n)*from_long\(\.\.\., classes="),
    "ragged rows": (lambda: Votes.from_dense([[1, 0], [1]], [2]), "must be rectangular"),
    "different sources per sequence": (lambda: Votes.from_dense([GOOD, GOOD[:, :1]]), r"same sources; found \[1, 2\]"),
    "one dimension": (lambda: Votes.from_dense([1, 0, -1], [3]), r"found shape \(3,\)"),
    "two dimensions per source": (lambda: Votes.from_tasks({"a": GOOD}, [3]), r"one flat array.*found shape \(3, 2\)"),
    "an absent column": (lambda: Votes.from_long(long(vote=None)), r"found 'sequence'.*\n  Missing: 'vote'"),
    "an unknown column": (
        lambda: Votes.from_long({**long(), "confidence": [0.1, 0.2]}),
        r"\n  Unknown column: 'confidence'\. Rename it, drop it, or pass ignore=\['confidence'\]",
    ),
    "columns of different lengths": (lambda: Votes.from_long(long(vote=[1])), "equally long"),
    "a column of several types": (lambda: Votes.from_long(long(vote=[1, "a"])), "one type of value"),
    "no table": (lambda: Votes.from_long(3), "pandas, polars or arrow table or a dictionary of columns; found int"),
    "text for a number": (lambda: Votes.from_long(long(start=["0", "1"])), "'start' must hold numbers; found string"),
    "fractions of elements": (
        lambda: Votes.from_long(long(start=[0.0, 1.5])),
        r"'start' must hold whole elements; found 1 fractions.* row 1 \(1\.5\)\.\n  .*unit='second' and rate=",
    ),
    "seconds without a rate": (
        lambda: Votes.from_long(long(), unit="second"),
        "never guessed; found unit='second' without one.\n  Pass rate= .* or timestamps=",
    ),
    "rate and timestamps": (lambda: Votes.from_long(long(), rate=1, timestamps={"a": [0.0]}), "found both"),
    "an unknown unit": (
        lambda: Votes.from_long(long(), unit="minute"),
        "unit must be 'element' or 'second'; found 'minute'",
    ),
    "names without classes": (lambda: Votes.from_long(long(vote=["cat", "dog"])), "pass classes=.* such as 'cat'"),
    "an unknown name": (
        lambda: Votes.from_long(long(vote=["cat", "cow"]), classes=["dog", "cat"]),
        r"source 'y' must be one of 'dog', 'cat'; found 1 other values, the first at row 1 \(value 'cow'\)",
    ),
    "repeated classes": (lambda: Votes.from_long(long(), classes=["cat", "cat"]), "different from each other"),
    "classes against their number": (
        lambda: Votes.from_long(long(), n_classes=2, classes="abc"),
        "3 classes and n_classes=2",
    ),
    "an abstain value that is a class": (
        lambda: Votes.from_long(long(), abstain=1),
        "must not have another meaning; found 1",
    ),
    "an abstain code that is a class": (
        lambda: Votes.from_classes(GOOD, 2, abstain=0, lengths=[3]),
        "must not be a class",
    ),
    "a missing code that is a class": (
        lambda: Votes.from_classes(GOOD, 2, missing=1, lengths=[3]),
        "already means something",
    ),
    "a partial code that is a class": (
        lambda: Votes.from_classes(GOOD, 3, partial={1: (0, 1)}, lengths=[3]),
        "code 1 of an underspecified vote already has a meaning",
    ),
    "a partial vote for everything": (
        lambda: Votes.from_classes(GOOD, 3, partial={8: (0, 1, 2)}, lengths=[3]),
        "stand for some, not all, of the classes",
    ),
    "a partial vote in the long form": (
        lambda: Votes.from_long(long(), n_classes=3, partial={5: (1, 9)}),
        "value of its own and stand for some of the classes",
    ),
    "an unknown background": (
        lambda: Votes.from_classes(GOOD, 3, background=3, lengths=[3]),
        "background must be a class index",
    ),
    "an unknown long background": (
        lambda: Votes.from_long(long(), background=5),
        "background must be one of the classes -1, 1",
    ),
    "no number of classes": (lambda: Votes.from_classes(GOOD, lengths=[3]), "Pass n_classes="),
    "too many classes": (
        lambda: Votes.from_classes(GOOD, 101, lengths=[3]),
        "n_classes= must be a number from 2 to 100 or None; found 101",
    ),
    "too few class names": (
        lambda: Votes.from_classes(GOOD, 3, classes=["a", "b"], lengths=[3]),
        r"3 different class names; found \['a', 'b'\]",
    ),
    "a window without its class": (
        lambda: Votes.from_tasks({"w": [1]}, [3], resolutions={"w": Sequence()}, classes=["W", "N", "R"]),
        "must say which class counts: of= one of 'W', 'N', 'R'; found None",
    ),
    "a window about the negative class": (
        lambda: Votes.from_tasks({"w": [1]}, [3], resolutions={"w": Sequence(of=-1)}),
        "with two classes, a task is about the positive one",
    ),
    "a resolution of nobody": (
        lambda: Votes.from_tasks({"a": [1]}, [1], resolutions={"b": Sequence()}),
        "resolutions= names the unknown source 'b'; known are 'a'",
    ),
    "a clock of other sequences": (
        lambda: Votes.from_dense(GOOD, [3], time=TimeAxis.from_rate(1.0, n_sequences=2)),
        "time axis has 2 sequences; there are 1",
    ),
    "timestamps of other elements": (
        lambda: Votes.from_dense(GOOD, [3], time=TimeAxis.from_timestamps([[0.0, 1.0]])),
        "one timestamp per element; sequence 0 has 2 for 3 elements",
    ),
    "lengths of unknown sequences": (
        lambda: Votes.from_long(long(), [3, 4]),
        "2 lengths for 1 sequences; pass a mapping",
    ),
    "an absent length": (
        lambda: Votes.from_long(long(), {"b": 3}, ids=["a"]),
        "lengths must be given for every sequence.*'a'",
    ),
    "no rows of FlyingSquid": (lambda: Votes.from_flyingsquid(np.zeros((0, 6)), n_tasks=2), "at least one sequence"),
    "FlyingSquid's width": (lambda: Votes.from_flyingsquid(GOOD, n_tasks=4), r"found shape \(3, 2\) and n_tasks=4"),
    "an unknown source": (lambda: Votes.from_dense(GOOD, [3]).column("blur"), "no source 'blur'.*known are 's0', 's1'"),
    "an unknown kind of file": (lambda: Votes.read("votes.csv"), r"\.parquet or \.npz files; found 'votes\.csv'"),
    "gold of another length": (lambda: Votes.from_dense(GOOD, [3]).summary([1]), r"3 in all; found \(1,\)"),
    "gold outside the coding": (
        lambda: Votes.from_dense(GOOD, [3]).summary([1, 2, -1]),
        r"one of \(-1, 1\), or 0 where unknown; found 1 other(.|\n)*labels_from_classes",
    ),
    "ambiguous gold": (
        lambda: Votes.from_dense(GOOD, [3]).buckets("s0", [1, 0, 1]),
        "coding of these labels is ambiguous",
    ),
    "gold of another resolution": (
        lambda: Votes.from_tasks({"a": [1, 1], "w": [1]}, [2], resolutions={"w": Sequence()}).summary(
            {"sequence": [1]}
        ),
        "labels of element must be given",
    ),
    "class labels outside": (
        lambda: labels_from_classes([0, 3], 3),
        "from 0 to 2, or -1 where unknown; found 1 other values",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case):
    make, message = CASES[case]
    with pytest.raises((VoteError, TaskError, LabelError), match=message) as caught:
        make()
    assert isinstance(caught.value, DugongError)
    assert isinstance(caught.value, ValueError)


def test_a_source_that_never_votes_is_allowed_and_remarked():
    votes = Votes.from_dense([[1, 0], [-1, 0]], [2], ["blur", "motion"])
    remarks = [str(problem) for problem in votes.summary().problems]
    assert remarks == ["source 'motion' never votes; it has no influence and may be left out."]
    assert remarks[0] in str(votes.summary())


def test_bare_arrays_are_no_votes():
    with pytest.raises(TypeError):
        Votes(GOOD)
