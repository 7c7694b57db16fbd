"""A label model from shards: the one fit, with passes over a folder in place of passes over memory.

In: a label model and a folder of votes. Out: the fitted model. Whatever adds up (moments, class balance, every E-step)
is summed over shards and holds one of them at a time. Only the search for dependencies (``"learn"``) needs votes at
once: it reads whole sequences that a hash of their ids chooses from all shards, and `diagnostics_` says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import metadata
from itertools import count
from operator import methodcaller
from os import PathLike
from typing import Any, BinaryIO, Generic, TypeVar

import numpy as np
import pyarrow.csv
import pyarrow.parquet

from dugong.archives import open_archive, write_archive
from dugong.codec import decode, encode
from dugong.engines import Engine, Serial, reduce_sums
from dugong.engines.protocol import FAN_IN
from dugong.exceptions import GraphError, LabelError
from dugong.fit.passes import Contents, InMemory, LabelSums
from dugong.fit.result import Note
from dugong.labels import Labels
from dugong.law import ExpectedCounts, Law
from dugong.model import LabelModel
from dugong.paths import Place, locked, place_of
from dugong.progress import FitProgress, fit_progress
from dugong.shards.folder import (
    SAMPLE,
    Shard,
    State,
    VoteShards,
    check_memory,
    digest_file,
    digest_of,
    drop_others,
    drop_unfinished,
    read_sample,
    read_state,
    refuse_others,
    sample_within,
    settle,
    unfinished,
    write_stamped,
)
from dugong.sums import Moments, Plan, groups
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes

# --- sums of single shards that stay on disk: what was counted once is not counted again -----------------------------
# Every answer is a file with a stamp that names the bytes of the votes and the question, so that a fit continues after
# a crash, and counts only what is new when shards are added.
_SUFFIX = ".npz"


SumT = TypeVar("SumT")


@dataclass(frozen=True, slots=True, kw_only=True)
class SumsFile(Generic[SumT]):
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
    """

    function: Callable[[Shard], SumT]
    question: str
    form: SumsFile[SumT]
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


@contextlib.contextmanager
def keeping(folder: Place, shards: tuple[Shard, ...]) -> Iterator[None]:
    """Lock the folder of the sums, and remove the sums of shards that are gone."""
    names = {shard.name for shard in shards}
    with locked(folder):
        drop_unfinished(folder)
        sums = {file.name for file in folder.glob(f"*{_SUFFIX}")}
        wanted = {name for name in sums if name.removesuffix(_SUFFIX).rpartition(".")[0] in names}
        drop_others(folder, wanted, f"*{_SUFFIX}")
        yield


# --- forms ---------------------------------------------------------------------------------------------------------
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


def _write_plain(sums: Any, handle: BinaryIO) -> None:
    write_archive(handle, sums, {})


def _read_plain(kind: type[SumT], path: Place) -> SumT:
    with open_archive(path) as stored:
        return decode(kind, stored.header)


CONTENTS: SumsFile[Contents] = SumsFile(name="contents", write=_write_plain, read=partial(_read_plain, Contents))
BALANCE: SumsFile[LabelSums] = SumsFile(name="balance", write=_write_plain, read=partial(_read_plain, LabelSums))
MOMENTS = SumsFile(name="moments", write=Moments.write, read=Moments.load)


def _ask(
    question: Callable[[InMemory], SumT], members: frozenset[str] | None, options: Mapping[str, Any], shard: Shard
) -> SumT:
    """A shard's part of a sum: what `InMemory` answers when it holds this shard alone."""
    return question(InMemory(votes=_only(shard.read(), members), **options))


def _only(votes: Votes, members: frozenset[str] | None) -> Votes:
    """The sequences with these ids; all of them if there are no groups."""
    if members is None:
        return votes
    return votes[np.array([str(one) in members for one in votes.sequence_ids.tolist()], dtype=np.bool_)]


@dataclass(frozen=True, kw_only=True, eq=False)
class OverShards:
    """`Passes` over all shards; the same sums for any engine, to the last bit.

    Attributes
    ----------
    n_sample : elements of a sample, about
    folder : where sums of single shards are kept, if anywhere
    groups : the group of every sequence by its id, if there are groups
    group : the one that these passes are over; None for all
    """

    shards: VoteShards
    engine: Engine = field(default_factory=Serial)
    n_sample: int = SAMPLE
    n_threads: int | None = None
    folder: Place | None = None
    progress: FitProgress | None = None
    evidence: Int8Array | None = None
    rereadable: bool = True
    groups: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    _steps: count[int] = field(default_factory=count)

    @cached_property
    def votes(self) -> Votes:
        """The shortest and the longest sequence."""
        return self.shards.specimen()

    @property
    def n_elements(self) -> int:
        """Elements for the sizes of groups: rounded, so that a shard more does not change the groups of all others."""
        return groups.SAMPLE << max(0, (self.shards.n_elements // groups.SAMPLE).bit_length() - 1)

    def contents(self) -> Contents:
        """What the votes of all shards are like."""
        return self._contents

    @cached_property
    def _contents(self) -> Contents:
        return self._sum(methodcaller("contents"), CONTENTS, {})

    def moments(self, plan: Plan) -> Moments:
        """The moments of all shards."""
        return self._sum(methodcaller("moments", plan), MOMENTS, {"plan": plan.rows})

    def balance(self, law: Law) -> LabelSums:
        """The class balance of all shards."""
        return self._sum(methodcaller("balance", law), BALANCE, law.to_dict())

    def counts(self, law: Law, *, apart: bool = False) -> ExpectedCounts:
        """The expected counts of all shards."""
        # Each E-step asks another question, in the same order whenever the fit is repeated: its number names its file.
        form = SumsFile(name=f"counts{next(self._steps) or ''}", write=_write_counts, read=_read_counts)
        return self._sum(methodcaller("counts", law, apart=apart), form, {**law.to_dict(), "apart": apart})

    def sample(self) -> InMemory:
        """Whole sequences, chosen from all shards by a hash of their ids."""
        votes, shards = _only(read_sample(self.shards, self.n_sample), self._members), self.shards
        notes: tuple[Note, ...] = ()
        if votes.n_sequences < shards.n_sequences:
            text = (
                f"learned on {votes.n_sequences:,} of {shards.n_sequences:,} sequences ({votes.n_elements:,} of "
                f"{shards.n_elements:,} elements), chosen by a hash of their ids; with given dependencies, all of them "
                "are counted"
            )
            notes = (Note(kind="sample", text=text, size=votes.n_elements / shards.n_elements),)
        return InMemory(votes=votes, n_threads=self.n_threads, notes=notes)

    def parts(self) -> dict[str, OverShards]:
        """Passes over the sequences of every group in all shards."""
        return {name: replace(self, group=name) for name in sorted(set(self.groups.values()))}

    @property
    def _members(self) -> frozenset[str] | None:
        own = (one for one, name in self.groups.items() if name == self.group)
        return None if self.group is None else frozenset(own)

    def _sum(self, question: Callable[[InMemory], SumT], form: SumsFile[SumT], asked: dict[str, Any]) -> SumT:
        total, tell = len(self.shards), self.progress
        members = self._members
        options = {"n_elements": self.n_elements, "n_threads": self.n_threads}
        ask: Callable[[Shard], SumT] = partial(_ask, question, members, options)
        if self.folder is not None:
            about = {"dugong": metadata.version("dugong-ws"), "sums": form.name, "groups": self.n_elements}
            about |= encode(asked) if members is None else {**encode(asked), "members": sorted(members)}
            ask = Kept(function=ask, question=digest_of(about), form=form, folder=self.folder)
        return reduce_sums(
            self.engine,
            ask,
            self.shards.shards,
            describe=str,
            progress=None if tell is None else lambda runs: tell(form.name, min(runs * FAN_IN, total), total),
        )


def fit_shards(
    model: LabelModel,
    shards: VoteShards,
    *,
    engine: Engine | None = None,
    sample: int = SAMPLE,
    keep: str | PathLike[str] | None = None,
    memory: str | int | None = None,
    groups: Mapping[str, str] | None = None,
    progress: bool | FitProgress | None = None,
) -> LabelModel:
    """Fit a model to votes that need not fit into memory.

    Parameters
    ----------
    model : LabelModel
        Is fitted in place, as `LabelModel.fit` does it.
    shards : VoteShards
    engine : Engine, optional
        Where shards are counted; this process by default.
    sample : int
        Elements that dependencies are learned on, about; whole sequences are taken.
    keep : folder, optional
        Where the sums of every shard are kept: a fit that died continues, and when shards are added, only those are
        counted. Workers write into it themselves. The fitted model is the same with it and without.
    memory : bytes, or a size such as "2GB", optional
        The largest shard must fit into it, and the sample becomes smaller if need be.
    groups : mapping of sequence id to group, for ``sharing="group"``
    progress : as in `LabelModel.fit`; what is summed counts shards, optional
    """
    check_memory(shards, memory)
    if model.sharing not in ("tied", "group") and shards.specimen().spans:
        raise GraphError(
            f"sharing={model.sharing!r} with spans needs all votes at once.\n"
            '  Use sharing="tied", or votes in one file.'
        )
    folder = None if keep is None else place_of(keep).absolute()
    lock = contextlib.nullcontext() if folder is None else keeping(folder, shards.shards)
    with lock, fit_progress(progress) as tell:
        data = OverShards(
            shards=shards,
            engine=engine or Serial(),
            n_sample=sample_within(shards, memory, sample),
            n_threads=model.n_threads,
            folder=folder,
            groups={str(one): str(name) for one, name in (groups or {}).items()},
            progress=tell,
        )
        return model._fit(data)  # noqa: SLF001  (our own)


# --- Labels shard by shard: one file of labels for every file of votes, each whole or not there -----------------------
# In: a fitted model and a folder of votes. Out: a folder of labels with the same file names. A shard whose labels are
# there already, from the same model and the same votes, is left as it is: after a crash the same call continues.
@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledShards:
    """A folder of labels; iterate over it for one `Labels` after the other.

    Attributes
    ----------
    n_rows : labels of all shards
    n_done, n_kept : shards that were labelled now, and that were there already
    """

    folder: Place
    n_rows: int
    n_done: int
    n_kept: int

    def __iter__(self) -> Iterator[Labels]:
        return map(Labels.read, sorted(self.folder.glob("*.parquet"), key=str))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Label:
    """From a shard to its file of labels: its rows, and whether it was there already."""

    model: LabelModel
    digest: str
    folder: Place
    resolutions: tuple[str, ...] | None
    suffix: str
    restart: bool
    groups: Mapping[str, str]

    def __call__(self, shard: Shard) -> tuple[int, bool]:
        path = self.folder / f"{shard.name}{self.suffix}"
        wanted: State = {
            "model": self.digest,
            "votes": digest_file(shard.path),
            "resolutions": None if self.resolutions is None else list(self.resolutions),
        }
        groups = None
        if self.groups:
            names = [str(one) for one in shard.read().sequence_ids.tolist()]
            groups = wanted["groups"] = [self.groups.get(one, "") for one in names]
        state = None if self.restart else read_state(path)
        if state is not None and state == wanted | {"rows": state.get("rows")} and isinstance(state["rows"], int):
            settle(path, state)
            return state["rows"], True
        table = self.model.labels(shard.read(), self.resolutions, groups).table
        write = pyarrow.csv.write_csv if self.suffix == ".csv" else pyarrow.parquet.write_table
        write_stamped(path, partial(write, table), {**wanted, "rows": table.num_rows})
        return table.num_rows, False


def label_shards(
    model: LabelModel,
    shards: VoteShards,
    folder: str | PathLike[str],
    *,
    resolutions: Iterable[str] | None = None,
    engine: Engine | None = None,
    suffix: str = ".parquet",
    restart: bool = False,
    groups: Mapping[str, str] | None = None,
    memory: str | int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LabelledShards:
    """Write the labels of every shard.

    Parameters
    ----------
    model, shards : a fitted model and votes
    folder : where the labels go; one file per shard, under the same name
    resolutions : names, optional
        All resolutions of the votes by default.
    engine : Engine, optional
        Where shards are labelled; this process by default. Workers write into `folder` themselves.
    suffix : ".parquet" or ".csv"
    restart : bool
        Label all shards anew.
    groups : mapping of sequence id to group, for a model with tables by group
    memory : bytes, or a size such as "2GB", optional
        The largest shard must fit into it.
    progress : function of (shards done, shards in all), optional
    """
    if suffix not in (".parquet", ".csv"):
        raise LabelError(f"labels are written as .parquet or .csv; found {suffix!r}.")
    check_memory(shards, memory)
    place = place_of(folder).absolute()
    if place in (shards.folder, shards.folder.absolute()):
        raise LabelError(f"labels need a folder of their own; {folder} holds the votes.")
    step = _Label(
        model=model,
        digest=model.law_.fingerprint,
        folder=place,
        resolutions=None if resolutions is None else tuple(resolutions),
        suffix=suffix,
        restart=restart,
        groups={str(one): str(name) for one, name in (groups or {}).items()},
    )
    n_rows = n_kept = 0
    names = {f"{shard.name}{suffix}" for shard in shards.shards}
    with unfinished(place):
        refuse_others(place / name for name in sorted(names))
        drop_others(place, names)
        for number, (rows, was_kept) in enumerate((engine or Serial()).map(step, shards.shards, describe=str), start=1):
            n_rows, n_kept = n_rows + rows, n_kept + was_kept
            if progress is not None:
                progress(number, len(shards))
    return LabelledShards(folder=place_of(folder), n_rows=n_rows, n_done=len(shards) - n_kept, n_kept=n_kept)
