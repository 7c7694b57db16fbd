"""A world with known truth: tasks, a prior, and sources with known tables.

A world samples votes together with the labels that they are about, hands its exact parameters to inference, and gives
exact population sums for any row of a plan. Estimators are tested against it: exact sums in, exact parameters out.

Joint tables of several sources are taken apart along an elimination order of their edges: every source given
its label and the votes of its parents. The product of the parts is the table again, which is checked.
`blocks_of` is the inverse: the blocks of a world in which a fitted model is true, to simulate from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import numpy as np

from dugong.contract import typed
from dugong.exceptions import GraphError, PriorError, TaskError
from dugong.graph import Dependency, SourceGraph, eliminate, temporal
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Parameters, Temporal
from dugong.priors import Prior
from dugong.sums import MomentRow, Moments, Plan
from dugong.tasks import Element, Resolution, SpanTable, describe
from dugong.types import Count, FloatArray, IntArray
from dugong.votes import SourceInfo, Votes
from dugong.worlds.blocks import AnyBlock, Block, CrossedBlock, FullBlock, TemporalBlock
from dugong.worlds.population import population_moments, true_accuracies
from dugong.worlds.sampling import Lengths, Truth, draw_labels, draw_lengths, draw_votes

SpanLaw = Callable[[IntArray, np.random.Generator], Mapping[str, SpanTable]]

# Blocks of one source are factors under another name: they share all fields but their names.
_FACTORS: dict[type, Any] = {TemporalBlock: Temporal, FullBlock: FullTable, CrossedBlock: Crossed}
_BLOCKS: dict[type, Any] = {factor: block for block, factor in _FACTORS.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """Tasks, prior and sources of which everything is known.

    Attributes
    ----------
    prior : law of the labels
    blocks : tuple of Block, TemporalBlock, CrossedBlock, FullBlock
        The sources and their tables, independent of each other given the labels.
    lengths : int or a law ``(n_sequences, rng) -> lengths``
        Elements of a sequence where `sample` is given none.
    resolutions : resolutions without a source, of which the truth is wanted all the same
    class_names : tuple of str, optional
    spans : law ``(lengths, rng) -> {name: SpanTable}``, optional
        Where the given pieces of sequences lie; such as `Shots(mean=8)`.
    """

    prior: Prior
    blocks: tuple[AnyBlock, ...]
    lengths: Lengths = 5
    resolutions: tuple[Resolution, ...] = ()
    class_names: tuple[str, ...] | None = None
    spans: SpanLaw | None = None
    name: str = "world"
    _places: Mapping[str, AnyBlock] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))
        names = [name for block in self.blocks for name in block.names]
        if len(set(names)) < len(names) or not names:
            raise GraphError(f"a world needs sources with different names; found {names}.")
        object.__setattr__(self, "_places", {name: block for block in self.blocks for name in block.names})
        found = dict.fromkeys([Element(), *(b.resolution for b in self.blocks), *self.resolutions])
        object.__setattr__(self, "resolutions", tuple(found))
        _check_sizes(self)
        _check_parents(self)

    @property
    def n_classes(self) -> int:
        """Classes of the elements."""
        return self.prior.n_classes

    @property
    def sources(self) -> tuple[SourceInfo, ...]:
        """Names and resolutions of the sources, block after block."""
        return tuple(SourceInfo(name=n, resolution=b.resolution) for b in self.blocks for n in b.names)

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(info.name for info in self.sources)

    @property
    def dependencies(self) -> list[Dependency]:
        """What a user who knows the world would declare: dependent pairs and self-dependent sources."""
        declared: list[Dependency] = []
        for block in self.blocks:
            if isinstance(block, Block):
                declared += block.edges or ()
            elif isinstance(block, TemporalBlock):
                declared.append(temporal(block.name, lag=block.lag))
            elif isinstance(block, CrossedBlock):
                declared.append((block.name, block.parent))
        return declared

    def block(self, source: str) -> AnyBlock:
        """The block of a source."""
        if source not in self._places:
            raise GraphError(f"there is no source {source!r} in this world; known are {list(self._places)}.")
        return self._places[source]

    @typed(TaskError)
    def sample(
        self,
        n_sequences: Count,
        lengths: Lengths | None = None,
        rng: np.random.Generator | int = 0,
        spans: Mapping[str, SpanTable] | None = None,
    ) -> tuple[Votes, Truth]:
        """Draw sequences: their votes and their true labels at every resolution.

        Parameters
        ----------
        n_sequences : int
        lengths : int, array or law, optional
            The world's own by default.
        rng : Generator or seed
        spans : mapping of name to SpanTable, optional
            Drawn from the world's own law by default.
        """
        generator = np.random.default_rng(rng)
        drawn = draw_lengths(self.lengths if lengths is None else lengths, n_sequences, generator)
        if spans is None:
            spans = {} if self.spans is None else self.spans(drawn, generator)
        labels = draw_labels(self.prior, self.resolutions, drawn, spans, generator, self.class_names)
        columns = draw_votes(self.blocks, labels, generator)
        votes = Votes(
            sources=self.sources,
            columns=tuple(columns[name] for name in self.source_names),
            lengths=drawn,
            n_classes=self.n_classes,
            class_names=self.class_names,
            spans=spans,
        )
        return votes, labels

    def parameters(self) -> Parameters:
        """The exact law of the votes given the labels, one factor per source."""
        factors: list[Factor] = []
        for block in self.blocks:
            if isinstance(block, Block):
                factors += conditionals(block)
                continue
            options = {one.name: getattr(block, one.name) for one in fields(block) if one.name != "name"}
            if isinstance(block, CrossedBlock):
                options["parent_resolution"] = self.block(block.parent).resolution
            factors.append(_FACTORS[type(block)](source=block.name, **options))
        return Parameters(n_classes=self.n_classes, factors=tuple(factors))

    def accuracies(self, length: int = 5) -> dict[str, FloatArray]:
        """True P(vote | label) by source, (K, C), averaged over the tasks of a sequence of `length` elements.

        Only sources that look beyond their own task (temporal, crossed, full, by position) depend on `length`.
        """
        return true_accuracies(self, length)

    def population(
        self,
        rows: Plan | Iterable[MomentRow],
        lengths: IntArray | list[int] | int | None = None,
        counts: FloatArray | IntArray | None = None,
        spans: Mapping[str, SpanTable] | None = None,
    ) -> Moments:
        """Exact sums of a plan: what counting votes gives on average, for `counts` sequences of each length.

        Label patterns are enumerated, so sequences must be short wherever a source looks beyond its own task.
        """
        plan = rows if isinstance(rows, Plan) else Plan.of(rows)
        if lengths is None:
            if not isinstance(self.lengths, int):
                raise PriorError("the population of a world with random lengths needs lengths=.")
            lengths = self.lengths
        return population_moments(self, plan, np.atleast_1d(np.asarray(lengths, dtype=np.int64)), counts, spans)


def _check_sizes(world: World) -> None:
    for block in world.blocks:
        expected = world.n_classes if isinstance(block.resolution, Element) else 2
        if block.n_classes != expected or block.n_columns != expected + 1:
            raise GraphError(
                f"sources that vote on {describe(block.resolution)} need tables for {expected} classes and "
                f"{expected + 1} vote columns (abstain last); {block.names[0]!r} has {block.n_classes} and "
                f"{block.n_columns}."
            )


def _check_parents(world: World) -> None:
    earlier: set[str] = set()
    for block in world.blocks:
        if isinstance(block, CrossedBlock) and block.parent not in earlier:
            raise GraphError(
                f"{block.name!r} depends on {block.parent!r}, which must be a source of an earlier block; "
                f"earlier are {sorted(earlier)}."
            )
        earlier.update(block.names)


# --- tables as factors for inference, and back -----------------------------------------------------------------------
def blocks_of(parameters: Parameters) -> tuple[AnyBlock, ...]:
    """Factors as blocks: sources that depend on each other on the same task are put together again."""
    blocks: list[AnyBlock] = []
    for factor in parameters.factors:
        if isinstance(factor, Conditional):
            blocks = _joined(blocks, factor)
            continue
        kind = _BLOCKS[type(factor)]
        options = {one.name: getattr(factor, one.name) for one in fields(kind) if one.name != "name"}
        blocks.append(kind(name=factor.source, **options))
    return tuple(blocks)


def conditionals(block: Block) -> list[Factor]:
    """P(vote | label, votes of the parents) for every source of a block, in elimination order."""
    order = eliminate(SourceGraph.of(block.names, block.edges or ()))
    factors = [_conditional(block, name, order.parents[name]) for name in order.order]
    _check_product(block, factors)
    return list(factors)


def _conditional(block: Block, name: str, parents: tuple[str, ...]) -> Conditional:
    joint = block.marginal((*parents, name))
    alone = block.marginal((name,))
    given = joint.sum(axis=-1, keepdims=True)
    # Votes of the parents that never occur leave the vote to its marginal law.
    spare = alone.reshape(*alone.shape[:2], *(1,) * len(parents), alone.shape[-1])
    table = np.where(given > 0, joint / np.where(given > 0, given, 1), spare)
    return Conditional(
        source=name,
        resolution=block.resolution,
        table=table if block.by_position else table[0],
        parents=parents,
        marginal=(alone if block.by_position else alone[0]) if parents else None,
        by_position=block.by_position,
    )


def _check_product(block: Block, factors: list[Conditional]) -> None:
    parts = [((*f.parents, f.source), f.table if block.by_position else f.table[np.newaxis]) for f in factors]
    if np.abs(_product(parts, block.names) - block.tables()).max() > 1e-9:
        raise GraphError(
            f"the joint table of {', '.join(block.names)} has dependencies that its edges {block.edges} do not "
            "name.\n  Leave out edges= to allow all of them."
        )


def _product(parts: list[tuple[tuple[str, ...], FloatArray]], names: tuple[str, ...]) -> FloatArray:
    """Product of tables (positions, K, votes of some sources), (positions, K, votes of all `names`)."""
    # The last position goes on where another table has more.
    longest = max(len(table) for _, table in parts)
    tables = [np.concatenate([one, np.repeat(one[-1:], longest - len(one), axis=0)]) for _, one in parts]
    letters = {name: chr(ord("c") + place) for place, name in enumerate(names)}
    terms = ["ab" + "".join(letters[name] for name in own) for own in (*(own for own, _ in parts), names)]
    return np.asarray(np.einsum(f"{','.join(terms[:-1])}->{terms[-1]}", *tables))


def _joined(blocks: list[AnyBlock], factor: Conditional) -> list[AnyBlock]:
    """Add a source to the block that its parents have made; blocks that it connects become one."""
    touched = [block for block in blocks if set(block.names) & set(factor.parents)]
    names = (*(name for block in touched for name in block.names), factor.source)
    parts = [(block.names, cast("Block", block).tables()) for block in touched]
    own = factor.table if factor.by_position else factor.table[np.newaxis]
    joint = _product([*parts, ((*factor.parents, factor.source), own)], names)
    by_position = len(joint) > 1
    edges = (*(e for b in touched for e in cast("Block", b).edges or ()), *((p, factor.source) for p in factor.parents))
    made = Block(
        names=names,
        table=joint if by_position else joint[0],
        resolution=factor.resolution,
        by_position=by_position,
        edges=edges,
    )
    return [*(block for block in blocks if block not in touched), made]
