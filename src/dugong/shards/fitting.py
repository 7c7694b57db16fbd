"""A label model from shards: the one fit, with passes over a folder in place of passes over memory.

In: a label model and a folder of votes. Out: the fitted model. Whatever adds up (moments, class balance, every E-step)
is summed over shards and holds one of them at a time. Only the search for dependencies (``"learn"``) needs votes at
once: it reads whole sequences that a hash of their ids chooses from all shards, and `diagnostics_` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import count
from operator import methodcaller
from os import PathLike
from typing import Any, Generic

from dugong.codec import encode
from dugong.engines import Engine, Serial, reduce_sums
from dugong.engines.protocol import FAN_IN
from dugong.exceptions import GraphError
from dugong.fit.passes import Contents, InMemory, LabelSums
from dugong.fit.result import Note
from dugong.law.law import Law
from dugong.law.results import ExpectedCounts
from dugong.model import LabelModel
from dugong.paths import Place, place_of
from dugong.shards.folder import Shard, VoteShards
from dugong.shards.kept import BALANCE, CONTENTS, MOMENTS, Form, SumT, counts_form, keeping, kept
from dugong.shards.memory import check_memory, sample_within
from dugong.shards.sampling import SAMPLE, read_sample
from dugong.sums import Moments, Plan, groups
from dugong.types import Int8Array
from dugong.votes import Votes

ShardProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ask(Generic[SumT]):
    """From a shard to its part of a sum: what `InMemory` answers when it holds this shard alone."""

    question: Callable[[InMemory], SumT]
    n_elements: int
    n_threads: int | None

    def __call__(self, shard: Shard) -> SumT:
        return self.question(InMemory(votes=shard.read(), n_elements=self.n_elements, n_threads=self.n_threads))


@dataclass(frozen=True, kw_only=True, eq=False)
class OverShards:
    """`Passes` over all shards; the same sums for any engine, to the last bit.

    Attributes
    ----------
    n_sample : elements of a sample, about
    folder : where sums of single shards are kept, if anywhere
    """

    shards: VoteShards
    engine: Engine = field(default_factory=Serial)
    n_sample: int = SAMPLE
    n_threads: int | None = None
    folder: Place | None = None
    progress: ShardProgress | None = None
    evidence: Int8Array | None = None
    rereadable: bool = True
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
        return self._sum(methodcaller("moments", plan), MOMENTS, {"plan": [asdict(row) for row in plan.rows]})

    def balance(self, law: Law) -> LabelSums:
        """The class balance of all shards."""
        return self._sum(methodcaller("balance", law), BALANCE, law.to_dict())

    def counts(self, law: Law, *, apart: bool = False) -> ExpectedCounts:
        """The expected counts of all shards."""
        # Each E-step asks another question, in the same order whenever the fit is repeated: its number names its file.
        return self._sum(
            methodcaller("counts", law, apart=apart), counts_form(next(self._steps)), {**law.to_dict(), "apart": apart}
        )

    def sample(self) -> InMemory:
        """Whole sequences, chosen from all shards by a hash of their ids."""
        votes, shards = read_sample(self.shards, self.n_sample), self.shards
        notes: tuple[Note, ...] = ()
        if votes.n_sequences < shards.n_sequences:
            text = (
                f"learned on {votes.n_sequences:,} of {shards.n_sequences:,} sequences ({votes.n_elements:,} of "
                f"{shards.n_elements:,} elements), chosen by a hash of their ids; with given dependencies, all of them "
                "are counted"
            )
            notes = (Note(kind="sample", text=text, size=votes.n_elements / shards.n_elements),)
        return InMemory(votes=votes, n_threads=self.n_threads, notes=notes)

    def _sum(self, question: Callable[[InMemory], SumT], form: Form[SumT], asked: dict[str, Any]) -> SumT:
        total, tell = len(self.shards), self.progress
        ask = _Ask(question=question, n_elements=self.n_elements, n_threads=self.n_threads)
        return reduce_sums(
            self.engine,
            kept(ask, self.folder, form, {"groups": self.n_elements, **encode(asked)}),
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
    progress: ShardProgress | None = None,
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
    progress : function of (what is summed, shards done, shards in all), optional
    """
    check_memory(shards, memory)
    if model.sharing != "tied" and shards.specimen().spans:
        raise GraphError(
            f"sharing={model.sharing!r} with spans needs all votes at once.\n"
            '  Use sharing="tied", or votes in one file.'
        )
    folder = None if keep is None else place_of(keep).absolute()
    data = OverShards(
        shards=shards,
        engine=engine or Serial(),
        n_sample=sample_within(shards, memory, sample),
        n_threads=model.n_threads,
        folder=folder,
        progress=progress,
    )
    with keeping(folder, shards.shards):
        return model._fit(data)  # noqa: SLF001  (our own)
