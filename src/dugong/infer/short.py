"""The short engine: all label patterns of sequences of a few elements.

In: prepared votes on sequences so short that their patterns are few. Out: marginals and expected counts (see `runs`),
exact whatever overlaps or depends on what. Patterns grow element by element, and a task is weighed as soon as its last
element is there; a kernel does so for a tile of sequences at a time, in vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dugong.infer import _kernels as kernels
from dugong.infer.blocks import report_impossible
from dugong.infer.factors import Channel
from dugong.infer.patterns import LabelPatterns, chain_law, channel_codes, link_labels
from dugong.infer.prepare import Prepared, VotesBlock
from dugong.infer.runs import BlockAnswer
from dugong.priors.chain import positive_class
from dugong.tasks import Element, Layout, Resolution
from dugong.types import FloatArray, IntArray
from dugong.votes import Votes

MOST_PATTERNS = 32
_BLOCK = 1 << 13  # elements whose votes stay in the second-level cache, and in memory that was touched before


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShortEngine:
    """Votes on short sequences."""

    prepared: Prepared
    block_size: int = _BLOCK
    exact: bool = True
    _known: dict[int, kernels.Grown] = field(init=False, default_factory=dict)

    @staticmethod
    def fits(votes: Votes, resolutions: tuple[Resolution, ...]) -> bool:
        """Whether all sequences have few patterns, and none has spans of its own."""
        longest = int(votes.lengths.max(initial=0))
        return (
            longest * np.log(votes.n_classes) <= np.log(MOST_PATTERNS)
            and all(votes.layout(one).spans is None for one in resolutions)
            and all(isinstance(one, Element) or one.link != "joint" for one in resolutions)
        )

    def smooth(self, block: VotesBlock, begin: int, *, counting: bool) -> BlockAnswer:
        """Posterior of all tasks; pairs of labels too, if counting."""
        codes, lengths, n_classes = self.prepared.codes, block.layouts[0].lengths, self.prepared.n_classes
        begins = np.stack(codes.begins(block.layouts))
        found = np.empty_like(block.emissions.values)
        pairs, logs = np.zeros((len(lengths), n_classes, n_classes)), np.zeros(len(lengths))
        for length in np.flatnonzero(np.bincount(lengths)).tolist():
            own = np.flatnonzero(lengths == length)
            if length:
                alike = len(own) == len(lengths)
                tables = begins if alike else begins[:, own], found, counting
                pairs[own], logs[own] = self._weigh(block, begin, length, own, tables)
        return BlockAnswer(parts=codes.pieces(found, block.layouts), transitions=pairs, log_likelihood=logs)

    def _weigh(
        self, block: VotesBlock, begin: int, length: int, own: IntArray, into: tuple[IntArray, FloatArray, bool]
    ) -> tuple[FloatArray, FloatArray]:
        """Write the posterior of all tasks of sequences of one length; expected pairs of labels and log-likelihoods."""
        codes, n_classes = self.prepared.codes, self.prepared.n_classes
        begins, found, counting = into
        if length not in self._known:  # blocks hold sequences of the same few lengths
            self._known[length] = self._patterns(length)
        patterns = self._known[length]
        n_rows = 2 * len(patterns.law) + max(*codes.widths, n_classes) + n_classes**2 + 2
        room, firsts = np.empty(n_rows * kernels.LANES), np.empty((len(begins), kernels.LANES), dtype=np.int64)
        pairs, logs = np.empty((len(own), n_classes, n_classes)), np.empty(len(own))
        for logarithms in (True,) if block.emissions.powers is not None else (False, True):
            values = block.emissions.logs() if logarithms else block.emissions.values
            if logarithms:
                with np.errstate(divide="ignore"):
                    patterns = patterns._replace(law=np.log(patterns.law), logs=True)
            failed = kernels.weigh_patterns(values, begins, patterns, counting, firsts, room, found, pairs, logs)
            if failed < 0:
                return pairs, logs
        report_impossible(self.prepared.votes, begin + int(own[failed]))
        raise AssertionError

    def _patterns(self, length: int) -> kernels.Grown:
        prepared, codes = self.prepared, self.prepared.codes
        positive = tuple(
            0 if isinstance(one, Element) else positive_class(one, prepared.n_classes, prepared.votes.class_names)
            for one in prepared.resolutions
        )
        sites, seen = _list_sites(prepared.n_classes, codes.channels, prepared.resolutions, positive, length)
        elements = np.indices((prepared.n_classes,) * length).reshape(length, -1)
        return kernels.Grown(
            widths=np.array(codes.widths),
            sites=sites,
            codes=seen,
            law=chain_law(prepared.chain, elements),
            n_classes=prepared.n_classes,
            length=length,
            logs=False,
        )


@lru_cache(maxsize=32)
def _list_sites(
    n_classes: int,
    channels: tuple[Channel, ...],
    resolutions: tuple[Resolution, ...],
    positive: tuple[int, ...],
    length: int,
) -> tuple[IntArray, IntArray]:
    """The sites of sequences of one length, and what is seen there; see `Grown`."""
    layouts = {one: Layout.of(one, np.array([length])) for one in resolutions}
    sites, codes = [], []
    for n_elements in range(1, length + 1):
        grid = np.indices((n_classes,) * n_elements).reshape(n_elements, -1)
        labels = {
            one: grid.T if isinstance(one, Element) else link_labels(layouts[one], 0, grid, wanted)
            for one, wanted in zip(resolutions, positive, strict=True)
        }
        patterns = LabelPatterns(labels=labels, log_prior=np.zeros(grid.shape[1]))
        for place, channel in enumerate(channels):
            if isinstance(channel.resolution, Element) and not channel.lag and channel.parent is None:
                continue
            for task, last in enumerate(_last(layouts, channel.resolution, channel.parent)):
                if last == n_elements:
                    n_labels = n_classes if isinstance(channel.resolution, Element) else 2
                    code = channel_codes(channel, n_labels, patterns, layouts, 0, task)
                    sites.append((n_elements, place, task))
                    codes.append(np.resize(code, n_classes**length))
    table = np.array(codes, dtype=np.int64).reshape(len(sites), -1)
    return np.array(sites, dtype=np.int64).reshape(-1, 3), table


def _last(layouts: dict[Resolution, Layout], resolution: Resolution, parent: Resolution | None) -> list[int]:
    """How many elements must be there before what a channel sees of every task is known."""
    starts, stops = layouts[resolution].bounds()
    if parent is None:
        return list(map(int, stops))
    outer = list(zip(*layouts[parent].bounds(), strict=True))
    return [
        max([int(stop), *(int(end) for begin, end in outer if begin <= start < end)])
        for start, stop in zip(starts, stops, strict=True)
    ]
