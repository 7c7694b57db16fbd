"""A label model from shards: sums where sums are enough, a bounded sample where they are not.

In: a label model and a folder of votes. Out: the fitted model. With two classes, a given prior, given dependencies
and a closed-form estimator, every shard is counted by itself and the moments add up; where there is little data, the
class balance of the sample and every exact E/M step take a pass. Anything else (``"learn"``, EM, more classes) needs
its votes in memory: it is learned on whole sequences that a hash of their ids chooses from all shards, and
`diagnostics_` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any

from dugong.codec import encode
from dugong.engines import Engine, Serial, reduce_sums
from dugong.engines.reduce import FAN_IN
from dugong.exceptions import GraphError
from dugong.fit.balance import LabelSums, count_by_group, sum_labels
from dugong.fit.result import Estimate, Note
from dugong.law.parameters import Parameters
from dugong.law.results import ExpectedCounts
from dugong.model import LabelModel
from dugong.paths import Place, place_of
from dugong.priors import Prior
from dugong.shards.folder import Shard, VoteShards
from dugong.shards.kept import BALANCE, COUNTS, MOMENTS, Form, SumT, keeping, kept
from dugong.shards.memory import check_memory, sample_within
from dugong.shards.sampling import SAMPLE, read_sample
from dugong.sums import Moments, Plan, assign_groups, count, groups

ShardProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """From a shard to its moments."""

    plan: Plan
    n_elements: int

    def __call__(self, shard: Shard) -> Moments:
        votes = shard.read()
        return count(votes, self.plan, assign_groups(votes, n_elements=self.n_elements))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SumLabels:
    """From a shard to its class balance."""

    parameters: Parameters
    prior: Prior
    n_elements: int
    n_threads: int | None

    def __call__(self, shard: Shard) -> LabelSums:
        votes = shard.read()
        grouping = assign_groups(votes, n_elements=self.n_elements)
        return sum_labels(votes, self.parameters, self.prior, grouping, self.n_threads)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Expect:
    """From a shard to its expected counts."""

    parameters: Parameters
    prior: Prior
    n_elements: int
    n_threads: int | None

    def __call__(self, shard: Shard) -> ExpectedCounts:
        votes = shard.read()
        grouping = assign_groups(votes, n_elements=self.n_elements)
        return count_by_group(votes, self.parameters, self.prior, grouping, self.n_threads)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passes:
    """Passes over all shards; the same sums for any engine, to the last bit."""

    shards: VoteShards
    engine: Engine
    prior: Prior | None = None
    n_threads: int | None = None
    folder: Place | None = None
    progress: ShardProgress | None = None

    @property
    def n_elements(self) -> int:
        """Elements for the sizes of groups: rounded, so that a shard more does not change the groups of all others."""
        return groups.SAMPLE << max(0, (self.shards.n_elements // groups.SAMPLE).bit_length() - 1)

    def moments(self, plan: Plan) -> Moments:
        step = _Count(plan=plan, n_elements=self.n_elements)
        return self._sum(step, MOMENTS, {"plan": [asdict(row) for row in plan.rows]})

    def balance(self, estimate: Estimate) -> LabelSums:
        return self._sum(_SumLabels(**self._under(estimate)), BALANCE, self._belief(estimate))

    def counts(self, estimate: Estimate, step: int) -> ExpectedCounts:
        return self._sum(_Expect(**self._under(estimate)), COUNTS[step], self._belief(estimate))

    def _under(self, estimate: Estimate) -> dict[str, Any]:
        given = {"parameters": estimate.parameters, "prior": self.prior}
        return {**given, "n_elements": self.n_elements, "n_threads": self.n_threads}

    def _belief(self, estimate: Estimate) -> dict[str, object]:
        assert self.prior is not None
        return {"parameters": estimate.parameters.to_dict(), "prior": self.prior.to_dict()}

    def _sum(self, step: Callable[[Shard], SumT], form: Form[SumT], question: dict[str, object]) -> SumT:
        total, tell = len(self.shards), self.progress
        return reduce_sums(
            self.engine,
            kept(step, self.folder, form, {"groups": self.n_elements, **encode(question)}),
            self.shards.shards,
            describe=str,
            progress=None if tell is None else lambda runs: tell(form.name, min(runs * FAN_IN, total), total),
        )


def count_shards(shards: VoteShards, plan: Plan, engine: Engine | None = None) -> Moments:
    """The moments of all shards together; the same for any engine, to the last bit."""
    return _Passes(shards=shards, engine=engine or Serial()).moments(plan)


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
        Elements that what cannot be added up is learned on, about; whole sequences are taken.
    keep : folder, optional
        Where the sums of every shard are kept: a fit that died continues, and when shards are added, only those are
        counted. Workers write into it themselves. The fitted model is the same with it and without.
    memory : bytes, or a size such as "2GB", optional
        The largest shard must fit into it, and the sample becomes smaller if need be.
    progress : function of (what is summed, shards done, shards in all), optional
    """
    check_memory(shards, memory)
    specimen = shards.specimen()
    if not model.streamable(specimen):
        return _fit_sample(model, shards, sample_within(shards, memory, sample))
    if model.sharing != "tied" and specimen.spans:
        raise GraphError(
            f"sharing={model.sharing!r} with spans needs all votes at once.\n"
            '  Use sharing="tied", or votes in one file.'
        )
    folder = None if keep is None else place_of(keep).absolute()
    assert isinstance(model.prior, Prior)
    passes = _Passes(
        shards=shards,
        engine=engine or Serial(),
        prior=model.prior,
        n_threads=model.n_threads,
        folder=folder,
        progress=progress,
    )
    with keeping(folder, shards.shards):
        return model.fit_moments(passes.moments(model.plan(specimen)), specimen, passes)


def _fit_sample(model: LabelModel, shards: VoteShards, n_elements: int) -> LabelModel:
    votes = read_sample(shards, n_elements)
    model.fit(votes)
    if votes.n_sequences < shards.n_sequences:
        text = (
            f"learned on {votes.n_sequences:,} of {shards.n_sequences:,} sequences ({votes.n_elements:,} of "
            f"{shards.n_elements:,} elements), chosen by a hash of their ids; with two classes, a given prior and "
            "given dependencies, all of them are counted"
        )
        note = Note(kind="sample", text=text, size=votes.n_elements / shards.n_elements)
        model.diagnostics_ = replace(model.diagnostics_, notes=(*model.diagnostics_.notes, note))
    return model
