"""The truth of a sample: the label of every task at every resolution of a world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from dugong.priors import Joint, Prior
from dugong.priors.labels import positive_class
from dugong.tasks import Element, Layout, Resolution, SpanTable, find_resolution, link_labels
from dugong.types import Int8Array, IntArray, read_only


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels(Mapping[str | Resolution, Int8Array]):
    """Class values of all tasks, flat, by resolution; ``labels["element"]`` or ``labels[Window(...)]``.

    Attributes
    ----------
    by_resolution : mapping of Resolution to (n_tasks,) int8
        -1/+1, or 1..K for elements with more than two classes.
    lengths : (n_sequences,) elements of each sequence
    spans : mapping of name to SpanTable
    """

    by_resolution: Mapping[Resolution, Int8Array]
    lengths: IntArray
    spans: Mapping[str, SpanTable] = field(default_factory=dict)

    def __getitem__(self, resolution: str | Resolution) -> Int8Array:
        return self.by_resolution[find_resolution(resolution, self.by_resolution)]

    def __iter__(self) -> Iterator[str | Resolution]:
        return iter(self.by_resolution)

    def __len__(self) -> int:
        return len(self.by_resolution)

    def sequence(self, place: int, resolution: str | Resolution = "element") -> Int8Array:
        """The labels of one sequence."""
        found = find_resolution(resolution, self.by_resolution)
        return self.by_resolution[found][Layout.of(found, self.lengths, self.spans).rows(place)]


def draw_labels(
    prior: Prior,
    resolutions: tuple[Resolution, ...],
    lengths: IntArray,
    spans: Mapping[str, SpanTable],
    rng: np.random.Generator,
    class_names: tuple[str, ...] | None = None,
) -> Labels:
    """Draw element labels from the prior, and what follows from them (or, with a joint table, was drawn beside)."""
    drawn: dict[Resolution, Int8Array] = {}
    if isinstance(prior, Joint):
        drawn = _from_joint(prior, resolutions, lengths, spans, rng)
    elements = drawn[Element()] if drawn else prior.sample_lengths(lengths, rng)
    for resolution in resolutions:
        if resolution not in drawn:
            layout = Layout.of(resolution, lengths, spans)
            positive = prior.classes[positive_class(resolution, prior.n_classes, class_names)]
            drawn[resolution] = link_labels(elements, layout, positive)
    ordered = {resolution: read_only(drawn[resolution]) for resolution in resolutions}
    return Labels(by_resolution=ordered, lengths=lengths, spans=spans)


def _from_joint(
    prior: Joint,
    resolutions: tuple[Resolution, ...],
    lengths: IntArray,
    spans: Mapping[str, SpanTable],
    rng: np.random.Generator,
) -> dict[Resolution, Int8Array]:
    for length in np.unique(lengths):
        prior.check_length(int(length))
    cells = prior.sample_tasks(len(lengths), rng)
    drawn: dict[Resolution, Int8Array] = {}
    for resolution in resolutions:
        n_tasks = int(np.diff(Layout.of(resolution, lengths[:1], spans).offsets)[0]) if len(lengths) else 0
        places = [prior.place(resolution, index) for index in range(n_tasks)]
        named = [place for place in places if place is not None]
        if len(named) == n_tasks:
            values = np.array(prior.classes if isinstance(resolution, Element) else (-1, 1), dtype=np.int8)
            drawn[resolution] = values[cells[:, named].reshape(-1)]
    return drawn
