"""What a person should look at first: what teaches most, and not the same thing twice.

In: votes and what a law says about them. Out: a `Review`. By *entropy*: whole sequences, by the bits of uncertainty
that are left in them; one that looks like a sequence chosen before counts less. By *value*: single elements, by how
much knowing the label is expected to improve the labels of its sequence. The risk of a label with probabilities p is
1 - sum p^2 (its expected Brier loss), so that an element t is worth

    sum over elements s and classes k, j of   Cov(y_s = k, y_t = j)^2 / P(y_t = j),

the expected fall of the risk of all s, t itself included. Covariances are those of labels drawn from the law. After a
choice they become those that are expected to be left (law of total covariance), so that the neighbours of a chosen
element lose exactly what it will tell about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dugong.exceptions import LabelError
from dugong.infer.potentials import sum_by_sequence
from dugong.tasks import Element, Resolution, Spans, Window
from dugong.tasks.layout import Layout, SpanTable, ranges
from dugong.types import ABSTAIN, MISSING, FloatArray, Int8Array, IntArray, read_only
from dugong.votes import Votes, replace_unchecked

_TWIN = 0.1  # what a sequence counts that looks exactly like one that was chosen before
DRAWS = 500  # of the labels of a sequence: covariances to about .02
_CANDIDATES = 10  # elements that are looked at for each that is chosen, the most uncertain first
_BLOCK = 400  # elements of a long sequence whose candidates are weighed against each other
_AT_ONCE = 20_000  # elements that are drawn together
_REACH = 100  # elements on either side of them that their labels can tell something about
_CONTEXT = (
    1_000  # elements of a long sequence on either side of these that are drawn along: what is farther is forgotten
)
BYS = ("entropy", "value")

Draw = Callable[[Votes, Int8Array | None], Int8Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Review:
    """What to look at, the most useful first: sequences, or single elements.

    Attributes
    ----------
    ids : ids of the sequences, one per choice
    places : (n,) their places in the votes
    worth : (n,) what looking at each was worth when it was chosen
    by : what worth means
    elements : (n,) places of elements inside their sequences; None where whole sequences were chosen
    rows : (n,) places of the same elements among all elements of the votes, as in arrays of gold labels; or None
    """

    ids: tuple[Any, ...]
    places: IntArray
    worth: FloatArray
    by: str
    elements: IntArray | None = None
    rows: IntArray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        found: dict[str, Any] = {"by": self.by, "sequences": list(self.ids), "worth": self.worth.tolist()}
        return found if self.elements is None else {**found, "elements": self.elements.tolist()}

    def __str__(self) -> str:
        names, worth = [f"{one!s:<24}" for one in ("sequence", *self.ids)], self.worth.tolist()
        if self.elements is None:
            cells = [self.by, *(f"{one:8.2f}" for one in worth)]
        else:
            rows = zip(self.elements.tolist(), worth, strict=True)
            cells = [f"element  {self.by}", *(f"{at:>7}  {one:8.3f}" for at, one in rows)]
        return "\n".join(f"{name}  {cell}" for name, cell in zip(names, cells, strict=True))


def entropy(votes: Votes, probabilities: FloatArray) -> FloatArray:
    """Bits of uncertainty that are left in the labels of every sequence, (n_sequences,)."""
    safe = np.where(probabilities > 0, probabilities, 1.0)
    bits = -(probabilities * np.log2(safe)).sum(axis=1)
    return sum_by_sequence(bits, votes.layout(Element()).offsets)


def check_request(budget: int, by: str) -> None:
    """Raise unless something can be chosen so."""
    if by not in BYS:
        raise LabelError(f"reviews are chosen by {' or '.join(map(repr, BYS))}; found by={by!r}.")
    if budget < 1:
        raise LabelError(f"the budget is what there is time for, at least 1; found {budget}.")


def choose(votes: Votes, probabilities: FloatArray, budget: int) -> Review:
    """Choose at most `budget` sequences, one after the other, by entropy."""
    worth = np.where(votes.lengths > 0, entropy(votes, probabilities), -np.inf)
    looks = _looks(votes, probabilities)
    scale = float(np.median(np.linalg.norm(looks - looks.mean(axis=0), axis=1))) or 1.0
    near = np.full(votes.n_sequences, np.inf)
    places: list[int] = []
    gains: list[float] = []
    for _ in range(min(budget, int((votes.lengths > 0).sum()))):
        gain = worth * (_TWIN + (1 - _TWIN) * np.minimum(near / scale, 1.0))
        gain[places] = -np.inf
        best = int(np.argmax(gain))
        places.append(best)
        gains.append(float(gain[best]))
        near = np.minimum(near, np.linalg.norm(looks - looks[best], axis=1))
    ids = votes.sequence_ids.tolist()
    return Review(
        ids=tuple(ids[place] for place in places), places=np.array(places), worth=np.array(gains), by="entropy"
    )


def _looks(votes: Votes, probabilities: FloatArray) -> FloatArray:
    """What a sequence looks like: shares of classes and, by source, of each vote; (n_sequences, n_features)."""
    size = np.maximum(votes.lengths, 1)
    offsets = votes.layout(Element()).offsets
    features = [sum_by_sequence(column, offsets) / size for column in probabilities.T]
    for source, column in zip(votes.sources, votes.columns, strict=True):
        layout = votes.layout(source.resolution)
        count = np.maximum(np.diff(layout.offsets), 1)
        hits = (column == code for code in np.unique(column).tolist() if code not in (ABSTAIN, MISSING))
        features += [sum_by_sequence(one.astype(np.float64), layout.offsets) / count for one in hits]
    return np.stack(features, axis=1)


# --- by value --------------------------------------------------------------------------------------------------------
def choose_elements(
    votes: Votes, probabilities: FloatArray, draw: Draw, budget: int, known: Int8Array | None = None
) -> Review:
    """Choose at most `budget` elements, one after the other, by the risk that their labels take away.

    Parameters
    ----------
    probabilities : (n_elements, K) of the labels
    draw : function from votes and known labels to drawn labels, (n_draws, n_elements)
    known : (n_elements,) labels that are known already, 0 = unknown
    """
    risk = 1 - (probabilities**2).sum(axis=1)
    if known is not None:
        risk = np.where(known == 0, risk, 0.0)
    order = np.argsort(-risk, kind="stable")
    candidates = np.sort(order[: _CANDIDATES * budget][risk[order[: _CANDIDATES * budget]] > 0])
    pools = [
        _Pool(scene, part, drawn, np.array(votes.classes))
        for scene, drawn in _drawn(votes, _scenes(votes, candidates), draw, known)
        for part in scene.parts
    ]
    chosen: list[tuple[int, int, float]] = []
    while len(chosen) < budget and pools:
        best = max(pools, key=lambda pool: pool.most)
        if best.most <= 0:
            break
        chosen.append((best.scene.place, *best.take()))
    places = np.array([one[0] for one in chosen], dtype=np.int64)
    elements = np.array([one[1] for one in chosen], dtype=np.int64)
    ids = votes.sequence_ids.tolist()
    return Review(
        ids=tuple(ids[place] for place in places.tolist()),
        places=places,
        worth=np.array([one[2] for one in chosen]),
        by="value",
        elements=elements,
        rows=votes.layout(Element()).offsets[places] + elements,
    )


@dataclass(frozen=True, slots=True)
class _Scene:
    """A sequence, or a stretch of a long one, whose labels are drawn; and its candidates in parts."""

    place: int
    begin: int
    end: int
    parts: list[IntArray]


def _scenes(votes: Votes, candidates: IntArray) -> list[_Scene]:
    """Where candidates lie. Of a long sequence only what is near them is drawn: the rest tells nothing about them."""
    offsets = votes.layout(Element()).offsets
    owners = np.searchsorted(offsets, candidates, side="right") - 1
    windows = [one for one in votes.resolutions if isinstance(one, Window)]
    around = _REACH + _CONTEXT + min(max((one.size for one in windows), default=0), _AT_ONCE)
    # Windows of a stretch are windows of the sequence only if it begins where one of each kind begins.
    step = math.lcm(*(one.stride for one in windows))
    step = step if step <= _AT_ONCE else 1
    scenes: list[_Scene] = []
    for place in np.unique(owners).tolist():
        own, length = candidates[owners == place] - offsets[place], int(votes.lengths[place])
        # Those of a long sequence in parts.
        parts = np.split(own, np.flatnonzero(np.diff(own // _BLOCK)) + 1)
        if length <= _AT_ONCE:
            scenes.append(_Scene(place, 0, length, parts))
            continue
        for part in parts:
            begin, end = max(0, int(part[0]) - around) // step * step, min(length, int(part[-1]) + 1 + around)
            scenes.append(_Scene(place, begin, end, [part]))
    return scenes


def _drawn(
    votes: Votes, scenes: list[_Scene], draw: Draw, known: Int8Array | None
) -> Iterator[tuple[_Scene, Int8Array]]:
    """Drawn labels of every scene; many at a time, as far as memory allows."""
    where = np.array([(one.place, one.begin, one.end) for one in scenes], dtype=np.int64).reshape(-1, 3)
    places, begins, ends = where.T
    starts = votes.layout(Element()).offsets[places] + begins
    full = np.cumsum(ends - begins) // _AT_ONCE
    for chosen in np.split(np.arange(len(scenes)), np.flatnonzero(np.diff(full)) + 1) if scenes else ():
        lengths = ends[chosen] - begins[chosen]
        part = take_stretches(votes, places[chosen], begins[chosen], ends[chosen])
        drawn = draw(part, None if known is None else known[ranges(starts[chosen], lengths)])
        pieces = np.split(drawn, np.cumsum(lengths)[:-1], axis=1)
        yield from zip([scenes[at] for at in chosen], pieces, strict=True)


class _Pool:
    """The candidates of one part of a scene, and the covariances of its labels with theirs.

    `spread` has the shape (window, K, candidates, K): covariances of every element near a candidate with it.
    """

    def __init__(self, scene: _Scene, candidates: IntArray, drawn: Int8Array, classes: IntArray) -> None:
        self.scene, self.candidates = scene, candidates
        n_draws, length = drawn.shape
        inside = candidates - scene.begin
        first, last = max(0, int(inside[0]) - _REACH), min(length, int(inside[-1]) + _REACH + 1)
        states = (drawn[:, first:last, None] == classes).astype(np.float32)
        means = states.mean(axis=0)
        own = inside - first
        centred = (states - means).reshape(n_draws, -1)
        spread = centred.T @ centred.reshape(n_draws, -1, len(classes))[:, own].reshape(n_draws, -1) / n_draws
        self.spread = spread.reshape(last - first, len(classes), len(own), len(classes)).astype(np.float64)
        self.chances = means[own].astype(np.float64)  # (candidates, K)
        # Drawn covariances are never zero: what chance alone gives is taken off.
        noise = (means * (1 - means)).sum(axis=1)
        self.noise = float(noise.sum()) / n_draws * (1 - self.chances).sum(axis=1)
        self.own, self.taken = own, np.zeros(len(own), dtype=np.bool_)
        self._value()

    def _value(self) -> None:
        safe = np.where(self.chances > 0, self.chances, 1.0)
        total = np.einsum("skcj,cj->c", self.spread**2, 1 / safe) - self.noise
        # The label itself is known for certain afterwards, however little the others follow.
        itself = np.einsum("ckj,cj->c", self.spread[self.own, :, np.arange(len(self.own))] ** 2, 1 / safe)
        self.worth = np.where(self.taken, 0.0, np.maximum(total, itself))
        self.most = float(self.worth.max(initial=0.0))

    def take(self) -> tuple[int, float]:
        """The best candidate and its worth; covariances become those that are expected to be left."""
        best = int(np.argmax(self.worth))
        found = int(self.candidates[best]), float(self.worth[best])
        safe = np.where(self.chances[best] > 0, self.chances[best], 1.0)
        told = self.spread[:, :, best] / safe
        self.spread = self.spread - np.einsum("skj,cij->skci", told, self.spread[self.own, :, best])
        self.taken[best] = True
        self._value()
        return found


# --- Stretches of sequences as sequences of their own: to look closely at a few places of very long recordings.
# In: votes, and where each stretch begins and ends. Out: votes on these elements alone. A task that is not a task of
# the stretch as well, because a border cuts it or because windows begin elsewhere, was not asked there.


def take_stretches(votes: Votes, places: IntArray, begins: IntArray, ends: IntArray) -> Votes:
    """Elements begins..ends of the sequences at some places, each stretch as one sequence; without times and faults."""
    lengths, firsts = ends - begins, votes.layout(Element()).offsets[places] + begins
    spans = {
        one.name: _inside(votes.layout(one), firsts, lengths) for one in votes.resolutions if isinstance(one, Spans)
    }
    rows = {one: _rows(votes, one, firsts, lengths, spans) for one in votes.resolutions}
    columns, scores = [], {}
    for info, column in zip(votes.sources, votes.columns, strict=True):
        own = rows[info.resolution]
        columns.append(read_only(np.where(own < 0, np.int8(MISSING), column[own])))
        if info.name in votes.scores:
            found = votes.scores[info.name][own]
            found[own < 0] = np.nan
            scores[info.name] = read_only(found)
    return replace_unchecked(
        votes,
        columns=tuple(columns),
        scores=scores,
        lengths=read_only(lengths),
        ids=read_only(np.arange(len(places))),
        groups=None if votes.groups is None else read_only(votes.groups[places]),
        spans=spans,
        time=None,
        faults=(),
    )


def _inside(layout: Layout, firsts: IntArray, lengths: IntArray) -> SpanTable:
    """The given pieces that lie wholly inside each stretch."""
    starts, stops = layout.flat_bounds()
    low, high = np.searchsorted(starts, firsts), np.searchsorted(stops, firsts + lengths, side="right")
    counts = np.maximum(high - low, 0)
    rows, shift = ranges(low, counts), np.repeat(firsts, counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return SpanTable(offsets=offsets, starts=starts[rows] - shift, stops=stops[rows] - shift)


def _rows(
    votes: Votes, resolution: Resolution, firsts: IntArray, lengths: IntArray, spans: dict[str, SpanTable]
) -> IntArray:
    """The row of every task of the stretches among those of the votes, -1 where there is none."""
    if isinstance(resolution, Element):
        return ranges(firsts, lengths)
    layout = Layout.of(resolution, lengths, spans)
    shift = firsts[layout.owners()]
    starts, stops = (bound + shift for bound in layout.bounds())
    known_starts, known_stops = votes.layout(resolution).flat_bounds()
    found = np.searchsorted(known_starts, starts)
    same = found < len(known_starts)
    same[same] = (known_starts[found[same]] == starts[same]) & (known_stops[found[same]] == stops[same])
    return np.where(same, found, -1)
