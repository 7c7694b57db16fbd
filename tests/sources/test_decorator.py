"""The source decorator: what it keeps, what it refuses, and how a source travels."""

from __future__ import annotations

import functools
import inspect
import json
import pickle
from types import SimpleNamespace

import cloudpickle
import pytest

from dugong.exceptions import SourceError
from dugong.graph import temporal
from dugong.sources import Source, declared_dependencies, source, sources_in
from dugong.tasks import Element, Sequence, Window


def shout(sequence):
    return [element.upper() for element in sequence]


@source
def bare(element):
    """Vote for letters."""
    return 1 if element.isalpha() else 0


@source(resolution=Window(size=3, link="any"), name="renamed", shares="text", pre=[shout], depends_on=["bare", 1])
def full(window):
    return 1 if "A" in window.elements else 0


def test_without_arguments_all_defaults_hold():
    assert bare == Source(function=bare.function, name="bare", resolution=Element())
    assert bare("a") == 1
    assert bare("1") == 0


def test_with_arguments_everything_is_kept():
    assert (full.name, full.shares, full.pre, full.vectorized) == ("renamed", "text", (shout,), False)
    assert full.resolution == Window(size=3, link="any")
    assert full.depends_on == (("bare", 0), ("renamed", 1))
    assert full.info.resolution == full.resolution


def test_a_source_looks_like_its_function():
    assert list(inspect.signature(bare).parameters) == ["element"]
    assert inspect.unwrap(bare).__doc__ == "Vote for letters."


def test_a_source_is_frozen():
    with pytest.raises(AttributeError):
        bare.name = "other"


def test_a_source_of_an_importable_module_is_pickled_by_name(tmp_path, monkeypatch):
    (tmp_path / "letters_module.py").write_text(
        "from dugong.sources import source\n@source\ndef vowel(letter):\n    return 1 if letter in 'aeiou' else -1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import letters_module

    again = pickle.loads(pickle.dumps(letters_module.vowel))  # noqa: S301 (our own bytes)
    assert again is letters_module.vowel


def test_a_local_source_travels_by_value():
    border = 3

    @source(name="above", shares="numbers")
    def above(number):
        return 1 if number > border else -1

    again = pickle.loads(cloudpickle.dumps(above))  # noqa: S301 (our own bytes)
    assert (again.name, again.shares, again(4), again(2)) == ("above", "numbers", 1, -1)


def test_lambdas_need_a_name():
    assert source(name="one")(lambda _: 1)(0) == 1
    with pytest.raises(SourceError, match="a source needs a name"):
        source(lambda _: 1)
    with pytest.raises(SourceError, match="a source needs a name"):
        source(functools.partial(max, 1))


def test_what_is_no_function_is_refused():
    with pytest.raises(SourceError, match=r"decorates a function; found 'name'"):
        source("name")
    with pytest.raises(SourceError, match="is a source already"):
        source(bare)


def test_generators_and_coroutines_are_refused():
    def several(element):
        yield 1

    async def later(element):
        return 1

    for function in (several, later):
        with pytest.raises(SourceError, match="must return its vote"):
            source(function)


def test_a_class_for_a_resolution_is_explained():
    with pytest.raises(SourceError, match=r"call it: Sequence\(\.\.\.\)"):
        source(resolution=Sequence, name="x")(len)
    with pytest.raises(SourceError, match="must be Element"):
        source(resolution="element", name="x")(len)


def test_pre_must_hold_functions():
    with pytest.raises(SourceError, match=r"pre= of source 'x' must hold functions.*found 'faces'"):
        source(pre=["faces"], name="x")(len)
    assert source(pre=shout, name="x")(len).pre == (shout,)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), ()),
        ("other", (("other", 0),)),
        (["other", "third", "other"], (("other", 0), ("third", 0))),
        (("other", "third"), (("other", 0), ("third", 0))),
        (2, (("me", 2),)),
        (("me", 2), (("me", 2),)),
        ([bare, 1], (("bare", 0), ("me", 1))),
        (temporal("me", lag=3), (("me", 3),)),
    ],
)
def test_dependencies_become_names_and_lags(given, expected):
    made = source(name="me", depends_on=given)(len)
    assert made.depends_on == expected
    assert json.loads(json.dumps(made.depends_on)) == [list(one) for one in expected]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3.5, "must hold names of sources"),
        ("me", "only depend on its own earlier votes"),
        (0, "the lag must be at least 1; found 0"),
        (("other", 1), "names 'other' with lag 1"),
    ],
)
def test_wrong_dependencies_are_explained(given, words):
    with pytest.raises(SourceError, match=words):
        source(name="me", depends_on=given)(len)


def test_declared_dependencies_lists_each_pair_once():
    first = source(name="first", depends_on=["second", 1])(len)
    second = source(name="second", depends_on="first")(len)
    assert declared_dependencies([first, second]) == (("first", "second", 0), ("first", "first", 1))


def test_sources_in_a_module_come_in_order_and_once():
    module = SimpleNamespace(one=full, helper=shout, two=bare, alias=full)
    assert sources_in(module) == (full, bare)
