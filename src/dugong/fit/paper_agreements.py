"""The agreements-to-products system of the paper, M l = q, over all independent pairs of sources.

In: counts of vote pairs. Out: E[a] = E[vote * label] of every source, given that it votes. A pair of
sources that are independent given the labels has ``E[vote * vote'] = E[a] E[a'] E[y y']``; on one task y^2
= 1 and the prior is not needed, across tasks it supplies E[y y']. Logarithms make this linear (Algorithm
1); signs follow.

Differs from the paper: means are taken given that both sources vote, because (1 + E[a]) / 2 is no
probability when a can be 0 (docs/differences.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dugong.exceptions import GraphError
from dugong.fit.result import Note
from dugong.fit.solve import Equations, solve_logs
from dugong.graph import determined
from dugong.graph.design import Design, valid_pair
from dugong.sums import Laws, Moments, Row, Slot
from dugong.types import BoolArray, FloatArray, IntArray

SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agreements:
    """Solved E[a] of every source (or group of sources), one entry per position, and how they came about."""

    values: Mapping[str, FloatArray]
    equations: Equations
    origins: tuple[Row, ...]
    residuals: FloatArray
    condition: Mapping[str, float]
    signs: Mapping[str, str]
    notes: tuple[Note, ...]


@dataclass(slots=True, kw_only=True)
class _System:
    """The unknowns while stages solve them: ``value[places[key][position]]``."""

    places: dict[str, IntArray]
    value: FloatArray
    known: BoolArray

    def at(self, key: str, positions: IntArray) -> IntArray:
        """Unknowns of a source at some positions; one with a single table has the same everywhere."""
        own = self.places[key]
        return np.asarray(own[np.minimum(positions, len(own) - 1)])


def find_agreements(
    design: Design,
    moments: Moments,
    laws: Laws,
    *,
    signs: str = "group",
    accuracies: Mapping[str, FloatArray] | None = None,
) -> Agreements:
    """Solve for E[a] of every source that is not pinned: same-task rows first, others where those do not suffice."""
    if signs not in ("group", "positive"):
        raise GraphError(f'signs must be "group" or "positive"; found {signs!r}.')
    system = _unknowns(design, moments)
    _pin(system, design, laws, accuracies or {})
    pinned, condition, rows = system.known.copy(), {}, list[Row]()
    stages = {"same task": design.same, "across resolutions": design.across, "across time": design.lagged}
    for stage, extra in stages.items():
        rows += extra
        equations, origins = _equations(design, moments, laws, system, rows)
        settled = _settled(equations, system.known)
        open_now = settled & ~system.known
        if not open_now.any():
            continue
        member = settled | system.known
        chosen = equations.only(member[equations.left] & member[equations.right])
        system.value, condition[stage] = solve_logs(chosen, system.value, open_now)
        _choose_signs(chosen, system, open_now)
        system.known = system.known | open_now
    notes = _undetermined(system)
    if signs == "positive":
        notes += _force_positive(system, pinned)
    values = {key: system.value[places] for key, places in system.places.items()}
    predicted = equations.scale * system.value[equations.left] * system.value[equations.right]
    spread = np.sqrt(np.where(equations.variance > 0, equations.variance, np.inf))
    return Agreements(
        values=values,
        equations=equations,
        origins=tuple(origins),
        residuals=(equations.value - predicted) / spread,
        condition=condition,
        signs={key: f"{'+' if v.sum() >= 0 else '-'} (rule {signs!r})" for key, v in values.items()},
        notes=tuple(notes),
    )


def mean_product(table: FloatArray, axes: Iterable[int]) -> tuple[float, float]:
    """Mean of the product of the votes on some axes over the anchors where all of them vote, and their number."""
    chosen = sorted(axes)
    rest = tuple(axis for axis in range(table.ndim) if axis not in chosen)
    cells = table.sum(axis=rest)[(slice(0, 2),) * len(chosen)]
    total = float(cells.sum())
    for _ in chosen:
        cells = np.tensordot(SIGNS, cells, axes=(0, 0))
    return (float(cells) / total if total > 0 else 0.0), total


def _unknowns(design: Design, moments: Moments) -> _System:
    places: dict[str, IntArray] = {}
    size = 0
    for info in design.sources:
        key, level = design.key(info.name), design.levels[info.name]
        if key in places or level == "full":
            continue
        single = moments.table(Row(slots=(Slot(info.name),), by_position=level == "task"))
        places[key] = size + np.arange(len(single) if level == "task" else 1)
        size += len(places[key])
    return _System(places=places, value=np.zeros(size), known=np.zeros(size, dtype=np.bool_))


def _pin(system: _System, design: Design, laws: Laws, accuracies: Mapping[str, FloatArray]) -> None:
    for name, table in accuracies.items():
        if design.levels[name] == "full":
            continue
        mean = laws.mean(design.info(name).resolution, by_position=design.levels[name] == "task")
        places = system.places[design.key(name)]
        mean = mean[: len(places)]
        law = np.broadcast_to(np.asarray(table, dtype=np.float64), (len(mean), *np.shape(table)[-2:]))
        chance = np.stack([(1 - mean) / 2, (1 + mean) / 2], axis=1)
        agreement = np.einsum("pw,w,pwz,z->p", chance, SIGNS, law[..., :2], SIGNS)
        voting = np.einsum("pw,pwz->p", chance, law[..., :2])
        system.value[places] = agreement / np.where(voting > 0, voting, 1.0)
        system.known[places] = True


def _equations(
    design: Design, moments: Moments, laws: Laws, system: _System, rows: Iterable[Row]
) -> tuple[Equations, list[Row]]:
    parts: list[tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]] = []
    origins: list[Row] = []
    for row in rows:
        if not valid_pair(design.independence, row, design.levels):
            continue
        table = moments.table(row) if row.by_position else moments.table(row)[np.newaxis]
        found = [mean_product(one, (0, 1)) for one in table]
        value, total = (np.array(column) for column in zip(*found, strict=True))
        if not total.any():
            continue
        hidden = laws.pair(row, moments.resolution(row.sources[0]), moments.resolution(row.sources[1]))
        scale = (hidden.covariance + hidden.first * hidden.second)[: len(table)]
        positions = np.arange(len(table))
        left, right = (system.at(design.key(name), positions) for name in row.sources)
        # A floor keeps pairs that always agree from having infinite weight.
        variance = np.maximum(1 - value**2, 1e-3) / np.maximum(total, 1.0)
        parts.append((left, right, value, scale, np.where(total > 0, variance, 0.0)))
        origins += [row] * len(table)
    columns = [np.concatenate(c) for c in zip(*parts, strict=True)] or [np.zeros(0)] * 5
    equations = Equations(
        left=columns[0].astype(np.int64),
        right=columns[1].astype(np.int64),
        value=columns[2],
        scale=columns[3],
        variance=columns[4],
    )
    return equations, origins


def _graph(equations: Equations, size: int) -> dict[str, set[str]]:
    near: dict[str, set[str]] = {str(i): set() for i in range(size)}
    useful = (equations.scale != 0) & (equations.variance > 0) & (equations.value != 0)
    for a, b in zip(equations.left[useful], equations.right[useful], strict=True):
        near[str(a)].add(str(b))
        near[str(b)].add(str(a))
    return near


def _settled(equations: Equations, known: BoolArray) -> BoolArray:
    """Unknowns whose size is determined: M has full column rank on their component."""
    useful = (equations.scale != 0) & (equations.variance > 0) & (equations.value != 0)
    return determined(equations.left[useful], equations.right[useful], known)


def _choose_signs(equations: Equations, system: _System, solved: BoolArray) -> None:
    """Flip every connected group of new unknowns whose sum of E[a] is negative; what is known keeps its sign."""
    near, seen = _graph(equations, len(system.value)), set[str]()
    for root in map(str, np.flatnonzero(solved)):
        if root in seen:
            continue
        group, queue = {root}, [root]
        while queue:
            fresh = near[queue.pop()] - group
            group |= fresh
            queue += fresh
        seen |= group
        places = np.array(sorted(map(int, group)))
        if not system.known[places].any() and system.value[places].sum() < 0:
            system.value[places] *= -1


def _force_positive(system: _System, pinned: BoolArray) -> list[Note]:
    notes = []
    for key, places in system.places.items():
        wrong = places[(system.value[places] < 0) & ~pinned[places]]
        if len(wrong):
            system.value[wrong] *= -1
            text = f"the sign of {key!r} was flipped to positive"
            notes.append(Note(kind="flip", where=key, size=float(len(wrong)), text=text))
    return notes


def _undetermined(system: _System) -> list[Note]:
    notes = []
    for key, places in system.places.items():
        missing = int((~system.known[places]).sum())
        if missing:
            text = f"agreements determine no accuracy of {key!r}: it is taken to say nothing about the label"
            notes.append(Note(kind="undetermined", where=key, size=float(missing), text=text))
    return notes
