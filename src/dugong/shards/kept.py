"""Sums of single shards that stay on disk: what was counted once is not counted again.

In: a function from a shard to something that adds up, and a folder. Out: the same function, which first looks whether
the folder has its answer already. Every answer is a file with a stamp that names the bytes of the votes and the
question, so that a fit continues after a crash, and counts only what is new when shards are added.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, BinaryIO, Generic, Protocol, Self, TypeVar

from dugong.archives import open_archive, write_archive
from dugong.codec import decode
from dugong.fit.passes import Contents, LabelSums
from dugong.law.results import ExpectedCounts
from dugong.paths import Place, locked
from dugong.shards.folder import Shard
from dugong.shards.stamps import (
    State,
    digest_file,
    digest_of,
    drop_others,
    drop_unfinished,
    read_state,
    settle,
    write_stamped,
)
from dugong.sums import Moments
from dugong.tasks import Resolution
from dugong.types import AnyArray, FloatArray

_SUFFIX = ".npz"


class Summable(Protocol):
    """What adds up."""

    def __add__(self, other: Self, /) -> Self: ...


SumT = TypeVar("SumT", bound=Summable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[SumT]):
    """How sums of one kind are kept in files."""

    name: str
    write: Callable[[SumT, BinaryIO], None]
    read: Callable[[Place], SumT]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kept(Generic[SumT]):
    """A function of a shard whose answers are kept.

    Attributes
    ----------
    function : from a shard to its sums
    question : digest of all that decides about the answer beside the votes
    form : Form
    folder : Place
    """

    function: Callable[[Shard], SumT]
    question: str
    form: Form[SumT]
    folder: Place

    def __call__(self, shard: Shard) -> SumT:
        """The sums of a shard, counted now or before."""
        path = self.folder / f"{shard.name}.{self.form.name}{_SUFFIX}"
        state: State = {"question": self.question, "votes": digest_file(shard.path)}
        if read_state(path) == state:
            settle(path, state)
            return self.form.read(path)
        found = self.function(shard)
        write_stamped(path, lambda handle: self.form.write(found, handle), state)
        return found


def kept(
    function: Callable[[Shard], SumT], folder: Place | None, form: Form[SumT], question: Mapping[str, Any]
) -> Callable[[Shard], SumT]:
    """The function with a memory in a folder; without a folder, the function itself."""
    if folder is None:
        return function
    asked = digest_of({"dugong": metadata.version("dugong-ws"), "form": form.name, **question})
    return Kept(function=function, question=asked, form=form, folder=folder)


@contextlib.contextmanager
def keeping(folder: Place | None, shards: tuple[Shard, ...]) -> Iterator[None]:
    """Lock the folder of the sums, if there is one, and remove the sums of shards that are gone."""
    if folder is None:
        yield
        return
    names = {shard.name for shard in shards}
    with locked(folder):
        drop_unfinished(folder)
        sums = {file.name for file in folder.glob(f"*{_SUFFIX}")}
        wanted = {name for name in sums if name.removesuffix(_SUFFIX).rpartition(".")[0] in names}
        drop_others(folder, wanted, f"*{_SUFFIX}")
        yield


# --- forms ---------------------------------------------------------------------------------------------------------
def _write_balance(sums: LabelSums, handle: BinaryIO) -> None:
    arrays: dict[str, AnyArray] = {f"sums{place}": array for place, array in enumerate(sums.sums.values())}
    arrays |= {f"counts{place}": sums.counts[where] for place, where in enumerate(sums.sums)}
    write_archive(handle, tuple(sums.sums), arrays)


def _read_balance(path: Place) -> LabelSums:
    with open_archive(path) as stored:
        places = decode(tuple[Resolution, ...], stored.header)
        return LabelSums(
            sums={where: stored.read(f"sums{place}") for place, where in enumerate(places)},
            counts={where: stored.read(f"counts{place}") for place, where in enumerate(places)},
        )


def _write_counts(counts: ExpectedCounts, handle: BinaryIO) -> None:
    names = [[source, name] for source, tables in counts.factors.items() for name in tables]
    arrays = {f"table{place}": counts.factors[source][name] for place, (source, name) in enumerate(names)}
    arrays |= {"initial": counts.initial, "transitions": counts.transitions, "log_likelihood": counts.log_likelihood}
    write_archive(handle, names, arrays)


def _read_counts(path: Place) -> ExpectedCounts:
    with open_archive(path) as stored:
        factors: dict[str, dict[str, FloatArray]] = {}
        for place, (source, name) in enumerate(decode(tuple[tuple[str, str], ...], stored.header)):
            factors.setdefault(source, {})[name] = stored.read(f"table{place}", "f")
        rest = {name: stored.read(name, "f") for name in ("initial", "transitions", "log_likelihood")}
        return ExpectedCounts(factors=factors, **rest)


def _write_contents(contents: Contents, handle: BinaryIO) -> None:
    write_archive(handle, contents, {})


def _read_contents(path: Place) -> Contents:
    with open_archive(path) as stored:
        return decode(Contents, stored.header)


CONTENTS = Form(name="contents", write=_write_contents, read=_read_contents)
MOMENTS = Form(name="moments", write=Moments.write, read=Moments.load)
BALANCE = Form(name="balance", write=_write_balance, read=_read_balance)


def counts_form(step: int) -> Form[ExpectedCounts]:
    """The form of the expected counts of an E-step, by its number."""
    return Form(name=f"counts{step or ''}", write=_write_counts, read=_read_counts)
