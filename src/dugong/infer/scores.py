"""Scores as evidence: one more factor beside that of the vote, P(how sure | label, vote).

In: votes with scores, parameters, and gradings. Out: votes with one more column for every soft source, and parameters
with one more factor. Every engine then reads scores as it reads votes: windows, paths and samples need nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dugong.law.grading import Grading
from dugong.law.parameters import Conditional, Factor, Parameters
from dugong.types import MISSING, FloatArray
from dugong.votes import SourceInfo, Votes, replace_unchecked


def with_scores(votes: Votes, parameters: Parameters, soft: Iterable[Grading]) -> tuple[Votes, Parameters]:
    """The same with scores as further sources, whose parents are the votes that they belong to."""
    found = [one for one in soft if one.source in votes.scores]
    if not found:
        return votes, parameters
    infos, columns, factors, last = [], [], [], 0
    for one in found:
        # Codes above the classes and abstain, which every table has: places that no grade uses cost nothing.
        shift, name = one.n_classes + 1, f"{one.source} (how sure)"
        cells = one.cells(votes.scores[one.source], votes.column(one.source))
        infos.append(SourceInfo(name=name, resolution=one.resolution))
        columns.append(np.where(cells < 0, MISSING, cells + shift).astype(np.int8))
        table = _wide(one.table, parameters[one.source].n_columns, shift)
        factors.append(Conditional(source=name, resolution=one.resolution, table=table, parents=(one.source,)))
        last = max(last, table.shape[-1])
    # The codebook says that there are codes beyond the classes; its members are asked of nobody.
    graded = replace_unchecked(
        votes,
        sources=(*votes.sources, *infos),
        columns=(*votes.columns, *columns),
        partial={**votes.partial, last: votes.classes[:1]},
        scores={},
    )
    return graded, replace(parameters, factors=(*parameters.factors, *factors))


def silenced(parameters: Parameters) -> Parameters:
    """Parameters under which votes say nothing, and only their scores are left."""
    factors: list[Factor] = [
        Conditional(
            source=one.source,
            resolution=one.resolution,
            table=np.full((one.n_classes, one.n_columns), 1 / one.n_columns),
            weight=0.0,
        )
        for one in parameters.factors
    ]
    return replace(parameters, factors=tuple(factors))


def _wide(table: FloatArray, n_columns: int, shift: int) -> FloatArray:
    """P(code | label, vote) for every vote of the parent: what is no vote for a class has no grade."""
    n_classes, _, cells = table.shape
    wide = np.zeros((n_classes, n_columns, shift + cells))
    wide[:, :, shift:] = 1 / cells
    wide[:, :n_classes, shift:] = table
    return wide
