"""The digest of a source changes with what it computes, and with nothing else."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from types import ModuleType

import pytest

import dugong as dg
from dugong.shards.code import digest_source

PLAIN = """
import re
import dugong as dg

LIMIT = 0.5
WORDS = {"goal", "corner", "foul"}
PATTERN = re.compile("a+")

def helper(x):
    return x > LIMIT

class Detector:
    def __init__(self, low):
        self.low = low
    def see(self, x):
        return x > self.low

DETECTOR = Detector(3)

def prepare(xs):
    return [x + 1 for x in xs]

@dg.source(pre=[prepare])
def loud(x):
    return 1 if helper(x) or x in WORDS or DETECTOR.see(x) or PATTERN.match(str(x)) else 0
"""


def digest(code: str) -> str:
    module = ModuleType("users_module")
    exec(compile(textwrap.dedent(code), "users_module", "exec"), module.__dict__)
    return digest_source(module.loud)


def test_the_same_code_has_the_same_digest() -> None:
    assert digest(PLAIN) == digest(PLAIN)


@pytest.mark.parametrize(
    "change", [("\nLIMIT", "\n\n# a remark\nUNUSED = 1\nLIMIT"), ("def helper", "\n\n\ndef helper")]
)
def test_comments_lines_and_unused_names_do_not_count(change: tuple[str, str]) -> None:
    assert PLAIN.count(change[0]) == 1
    assert digest(PLAIN.replace(*change)) == digest(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 0.5", "LIMIT = 0.6"),
        ("x > LIMIT", "x >= LIMIT"),
        ('"foul"', '"free kick"'),
        ("Detector(3)", "Detector(4)"),
        ("x > self.low", "x < self.low"),
        ("x + 1", "x + 2"),
        ('"a+"', '"b+"'),
        ("pre=[prepare]", "pre=[prepare, prepare]"),
        ("pre=[prepare]", "resolution=dg.Window(size=3)"),
        ("return 1 if", "return -1 if"),
    ],
)
def test_whatever_decides_about_votes_counts(old: str, new: str) -> None:
    assert PLAIN.count(old) >= 1
    assert digest(PLAIN.replace(old, new)) != digest(PLAIN)


def test_closures_and_recursion() -> None:
    code = """
    import dugong as dg
    def make(limit):
        @dg.source
        def loud(x):
            def inner(y):
                return y > limit
            return 1 if inner(x) or (x > 9 and loud(x - 1)) else 0
        return loud
    loud = make(2)
    """
    assert digest(code) == digest(code)
    assert digest(code) != digest(re.sub("make\\(2\\)", "make(3)", code))


def test_the_digest_is_the_same_in_another_process() -> None:
    import subprocess
    import sys

    script = (
        "import dugong as dg\nfrom dugong.shards.code import digest_source\n" + PLAIN + "\nprint(digest_source(loud))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


def test_a_slotted_dataclass_counts_by_its_fields_whether_they_are_set_or_not() -> None:
    @dataclass(slots=True)
    class Limits:
        low: float
        model: object = field(init=False)

    def source(limits: Limits):
        return dg.source(lambda x: 1 if x > limits.low else -1, name="above")

    assert digest_source(source(Limits(0.5))) == digest_source(source(Limits(0.5)))
    assert digest_source(source(Limits(0.5))) != digest_source(source(Limits(0.6)))
