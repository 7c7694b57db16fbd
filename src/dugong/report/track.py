"""The sequences that a report shows in full: probabilities, labels and votes over time, and why they are shown.

A `Track` is one sequence (or a part of a very long one) with everything that its timeline and its explanations need.
What all tracks share (resolutions, the vote tables of sources) stands once in `Sequences`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dugong.infer.factors import FlatFactor, flatten
from dugong.law.parameters import Conditional, Crossed, Factor, FullTable, Temporal
from dugong.report.material import Material, label_names
from dugong.report.media import Media
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray, FloatArray, Int8Array, IntArray, read_only
from dugong.votes import Votes, class_indices, code_name

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BYTES = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
_SIZES = (2, 3, 6, 12, 18)

# Log-odds are kept to 0.001, and to 131 at most; what lies beyond is shown as "more than".
LOG_BITS = 18
LOG_CHARS = 3
LOG_STEP = 0.001
LOG_LIMIT = (2 ** (LOG_BITS - 1) - 1) * LOG_STEP


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaneInfo:
    """A resolution whose tasks are drawn: its name, and the names of its labels."""

    name: str
    kind: str
    words: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VoterInfo:
    """A source as explanations read it.

    Attributes
    ----------
    lane : place of its resolution among the lanes
    codes : names of its votes in the order of table columns; the last is "not asked"
    classes : label (place) that each code stands for, -1 for abstain and everything that names no single label
    evidence : (positions, codes of the parents ..., codes, labels) log P(vote | label, votes of the parents); None if
        a vote of this source cannot be told apart from those on other tasks
    parents : places of the sources whose votes on the same task the table reads
    """

    name: str
    lane: int
    codes: tuple[str, ...]
    classes: tuple[int, ...]
    evidence: FloatArray | None
    parents: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lane:
    """The tasks of one resolution in one track.

    Attributes
    ----------
    first : number of the first task inside its sequence (above 0 in an excerpt)
    starts, stops : (n,) elements, counted inside the sequence
    log_probability : (n, K) log P(label | all votes)
    log_prior : (n, K) log P(label) before any vote
    log_exact : (n, K) log P(label | all votes) of the exact model, where labels are an average of it and a more
        cautious answer; None where they are not
    """

    first: int
    starts: IntArray
    stops: IntArray
    log_probability: FloatArray
    log_prior: FloatArray
    log_exact: FloatArray | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Track:
    """One sequence over time.

    Attributes
    ----------
    place, name : its number among all sequences, and its id
    length : elements of the whole sequence
    begin, end : the part that is shown
    uncertainty, disagreement, difference, wrong : what it is sorted by; None where it does not apply
    wrong_path : share of known labels that the decoded ones miss; `wrong` is of the labels that are written
    lanes : one per resolution, elements first
    votes : one array of codes per source, over the tasks of its lane
    labels, decoded, majority, gold : (end - begin,) labels as places, -1 where unknown; gold is None without any
    seconds : (2,) seconds of the first element and per element; None if that is not known
    media : words, pictures or signals of the elements that are shown; None without
    """

    place: int
    name: str
    length: int
    begin: int
    end: int
    uncertainty: float
    disagreement: float | None
    difference: float
    wrong: float | None
    wrong_path: float | None
    lanes: tuple[Lane, ...]
    votes: tuple[Int8Array, ...]
    labels: Int8Array
    decoded: Int8Array
    majority: Int8Array
    gold: Int8Array | None
    seconds: tuple[float, float] | None
    media: Media | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sequences:
    """The tracks of a report, and how they were chosen.

    Attributes
    ----------
    n_all : sequences that the report is about
    how : a sentence that says which of them are here
    path : whether decoded labels are those of the likeliest whole sequence, rather than of single elements
    order : places of the voters in the order in which their votes are credited: parents first
    """

    n_all: int
    how: str
    classes: tuple[str, ...]
    lanes: tuple[LaneInfo, ...]
    voters: tuple[VoterInfo, ...]
    path: bool
    order: tuple[int, ...]
    tracks: tuple[Track, ...]


def bits_for(n_values: int) -> int:
    """Bits per value, of those that pack well."""
    return next(bits for bits in _SIZES if n_values <= 2**bits)


def chars_per_code(n_values: int) -> float:
    """Characters that one value takes."""
    return bits_for(n_values) / 6


def pack(values: AnyArray, bits: int) -> str:
    """Numbers from 0 to 2**bits - 1 as text."""
    numbers = np.asarray(values, dtype=np.int64)
    if bits >= 6:
        digits = np.stack([(numbers >> shift) & 63 for shift in range(bits - 6, -1, -6)], axis=-1).reshape(-1)
    else:
        per = 6 // bits
        padded = np.pad(numbers, (0, -len(numbers) % per))
        digits = padded.reshape(-1, per) @ (1 << np.arange(6 - bits, -1, -bits))
    return _BYTES[digits].tobytes().decode("ascii")


def pack_logs(values: FloatArray) -> str:
    """Log-odds or log-probabilities as text, rounded to 0.001 and limited to 131."""
    limited = np.clip(np.nan_to_num(values, nan=0.0, posinf=LOG_LIMIT, neginf=-LOG_LIMIT), -LOG_LIMIT, LOG_LIMIT)
    return pack(np.rint((limited + LOG_LIMIT) / LOG_STEP), LOG_BITS)


# --- what a single vote says about the label of its own task ----------------------------------------------------------
# Per source log P(vote | label, votes of its parents on the same task), discounted by its weight, with one more row for
# "not asked". These are the numbers that `infer.explain` credits to own votes: votes are added to an otherwise empty
# sequence, so a source that repeats itself counts as on the first task of a sequence, and one that follows a coarser
# source as where that one was not asked.
NOT_ASKED = "not asked"


def make_voters(material: Material) -> tuple[VoterInfo, ...]:
    """One entry per source, in the order of the votes."""
    votes = material.votes
    flats = {flat.factor.source: flat for flat in flatten(votes, material.model.law_.parameters)}
    lanes = list(material.probabilities)
    found = []
    for source in votes.sources:
        factor = flats[source.name].factor
        codes = code_names(votes, source.resolution, factor.n_columns)
        parents = factor.parents if isinstance(factor, Conditional) else ()
        present = tuple(votes.index(name) for name in parents if name in votes.source_names)
        evidence = _own_evidence(flats[source.name])
        found.append(
            VoterInfo(
                name=source.name,
                lane=lanes.index(source.resolution),
                codes=codes,
                classes=code_classes(votes, source.resolution, len(codes)),
                evidence=None if evidence is None else _without_absent(evidence, factor, votes),
                parents=present,
            )
        )
    return tuple(found)


def order_of_credit(material: Material) -> tuple[int, ...]:
    """Places of the sources in elimination order: parents before those who depend on them."""
    votes = material.votes
    return tuple(votes.index(name) for name in material.model.law_.parameters.sources if name in votes.source_names)


def code_names(votes: Votes, resolution: Resolution, n_columns: int) -> tuple[str, ...]:
    """Names of the votes in the order of table columns, and "not asked" at the end."""
    labels = label_names(votes, resolution)
    partial = [code_name(votes, code, resolution) for code in votes.partial] if isinstance(resolution, Element) else []
    names = [*labels, "abstain", *partial]
    return (*names[:n_columns], *["?"] * (n_columns - len(names)), NOT_ASKED)


def code_places(votes: Votes, resolution: Resolution, column: Int8Array, n_codes: int) -> Int8Array:
    """Votes as places in the list of codes of their source."""
    places = class_indices(votes, column, votes.n_classes if isinstance(resolution, Element) else 2)
    return np.where((places < 0) | (places >= n_codes), n_codes - 1, places).astype(np.int8)


def codes_of(votes: Votes, voters: tuple[VoterInfo, ...]) -> list[Int8Array]:
    """Votes of every source as places in its list of codes."""
    asked = zip(votes.sources, votes.columns, voters, strict=True)
    return [code_places(votes, source.resolution, column, len(one.codes)) for source, column, one in asked]


def code_classes(votes: Votes, resolution: Resolution, n_codes: int) -> tuple[int, ...]:
    """The label (its place) that each code stands for; -1 for those that name no single one."""
    n_labels = len(label_names(votes, resolution))
    return tuple(place if place < n_labels else -1 for place in range(n_codes))


def _own_evidence(flat: FlatFactor) -> FloatArray | None:
    """(positions, codes of the parents ..., codes, labels) log-likelihoods; None if there is no such table."""
    factor, table = flat.factor, flat.table
    if isinstance(factor, FullTable):
        return None
    if isinstance(factor, Temporal):  # nothing came before, so that all earlier labels have the same law
        table = table[:, -1].reshape(len(table), -1, factor.n_classes, factor.n_classes)[:, :, 0]
    elif isinstance(factor, Crossed) and len(flat.readings) > 1:  # the parent was not asked, and its label says nothing
        table = table[:, -1].reshape(len(table), -1, factor.n_classes, 2)[..., 0]
    return logs_of(table)


def _without_absent(evidence: FloatArray, factor: Factor, votes: Votes) -> FloatArray:
    """Drop the axes of parents that are not among the votes: they were never asked."""
    parents = factor.parents if isinstance(factor, Conditional) else ()
    table = evidence
    for axis in reversed(range(len(parents))):
        if parents[axis] not in votes.source_names:
            table = np.take(table, -1, axis=1 + axis)
    return read_only(table)


def logs_of(table: FloatArray) -> FloatArray:
    """Logarithms of probabilities; those of zeros are minus infinity."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))
