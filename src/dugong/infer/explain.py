"""Why a task has its label: its log-odds as a sum of the prior, its own votes and its neighbours.

In: a model, votes and one task. Out: `Explanation`. The sum is exact by construction: votes are added one after the
other to a sequence without votes, and each is credited with the change of the exact log-odds of the task,

    log-odds(task | all votes) = prior + sum over own votes + neighbours,

where *prior* is the log-odds without any vote, the own votes (in elimination order, so that a correlated source is
credited with what it adds to its parents) are added to that, and *neighbours* is everything that the votes on
other tasks add in the end. With two classes the credit of an own vote is its log-likelihood ratio. Inside
*neighbours* single votes are listed by *influence*: how much the log-odds would fall if that vote had not been
asked. Influences do not sum to anything: votes overlap in what they say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dugong.exceptions import TaskError
from dugong.infer import engine
from dugong.infer.answers import posterior
from dugong.infer.potentials import with_scores
from dugong.law import Law
from dugong.law.parameters import Parameters
from dugong.tasks import Resolution, describe, find_resolution
from dugong.types import MISSING, FloatArray
from dugong.votes import Votes

_MOST_ELEMENTS = 5_000_000  # of all copies of a sequence that one explanation makes


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one vote does to the log-odds of the explained task; `task` counts inside the sequence."""

    source: str
    resolution: Resolution
    task: int
    vote: int
    log_odds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The log-odds of one task, taken apart.

    Attributes
    ----------
    resolution, sequence, task : which task; `task` counts inside the sequence
    target : int
        The class whose log-odds (against all others) are explained.
    log_odds : float
        Given all votes; equals ``prior + sum(own votes) + neighbours + averaging``.
    probability : float
    prior : float
        Log-odds without any vote.
    own_votes : tuple of Contribution
        Votes on this very task; exact, in the order in which they were added.
    neighbours : float
        What all votes on other tasks add.
    influences : tuple of Contribution
        Single votes on other tasks, the most influential first: the fall of the log-odds without the vote.
        These do not sum to `neighbours`.
    n_candidates : int
        Votes, the nearest ones, whose influence was worked out.
    averaging : float
        What averaging the exact model with a more cautious answer adds (learned defaults only).
    """

    resolution: Resolution
    sequence: int
    task: int
    target: int
    log_odds: float
    probability: float
    prior: float
    own_votes: tuple[Contribution, ...]
    neighbours: float
    influences: tuple[Contribution, ...]
    n_candidates: int
    averaging: float = 0.0

    def _repr_html_(self) -> str:
        from dugong.report.notebook import explanation_html

        return explanation_html(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vote:
    column: int
    row: int
    distance: int


def explain(
    law: Law,
    votes: Votes,
    sequence: int,
    task: int,
    resolution: str | Resolution = "element",
    *,
    target: int | None = None,
    n_influences: int = 10,
    n_candidates: int = 100,
    potentials: FloatArray | None = None,
) -> Explanation:
    """Take the log-odds of one task apart: exactly under the law at its word; what tempering adds comes last.

    Parameters
    ----------
    sequence : int
        Its place among the sequences of the votes.
    task : int
        Its place among the tasks of that resolution in the sequence.
    target : int, optional
        Class value; +1 with two classes, else the most likely one by default.
    n_influences : int
        How many votes on other tasks to list.
    n_candidates : int
        How many of the nearest votes to try. Each costs one inference over the sequence, so that it is fewer where a
        sequence is very long: five million elements in all.
    potentials : (n_elements, K), optional
        Soft evidence about all elements of the votes; it is part of the prior's share.
    """
    wanted = find_resolution(resolution, votes.resolutions) if isinstance(resolution, str) else resolution
    alone = law.read(_one_sequence(votes, sequence))
    _check_task(alone, wanted, sequence, task)
    own = _own_votes(alone, law.parameters, wanted, task)
    # Every candidate is one more copy of the sequence: of a very long one fewer fit into memory.
    others = _other_votes(alone, wanted, task, min(n_candidates, _MOST_ELEMENTS // max(1, int(alone.lengths[0]))))
    # All variants as sequences of one call: the engine prepares its tables once for all of them.
    copies = _variants(alone, own, others)
    if potentials is not None:
        potentials = np.tile(potentials[votes.layout("element").rows(sequence)], (copies.n_sequences, 1))
    copies, parameters = with_scores(copies, law.parameters, law.soft)
    answer = engine.posterior(
        copies, parameters, law.prior, resolutions=[wanted], potentials=potentials, inference=law.inference
    )
    found = answer.probabilities[wanted]
    laws = found[task :: len(found) // copies.n_sequences]
    n_own = len(own)
    values = (-1, 1) if laws.shape[1] == 2 else alone.classes
    place = _target_place(values, target, laws[n_own + 1])
    odds = [_log_odds(law, place) for law in laws]
    final = odds[n_own + 1]
    influences = [
        _contribution(alone, vote, _difference(final, without))
        for vote, without in zip(others, odds[n_own + 2 :], strict=True)
    ]
    # By size, whichever way a vote points.
    influences.sort(key=lambda one: -abs(one.log_odds))
    explanation = Explanation(
        resolution=wanted,
        sequence=sequence,
        task=task,
        target=values[place],
        log_odds=final,
        probability=float(laws[n_own + 1, place]),
        prior=odds[0],
        own_votes=tuple(
            _contribution(alone, vote, _difference(after, before))
            for vote, before, after in zip(own, odds[:n_own], odds[1 : n_own + 1], strict=True)
        ),
        neighbours=_difference(final, odds[n_own]),
        influences=tuple(influences[:n_influences]),
        n_candidates=len(others),
    )
    if law.tempering is None:
        return explanation
    return _tempered(explanation, posterior(law, alone, (wanted,))[wanted][task], place)


def _tempered(explanation: Explanation, shown: FloatArray, place: int) -> Explanation:
    """The explanation of the exact law, completed to the probabilities by class that are shown."""
    chance = float(np.clip(shown[place], 1e-300, 1 - 1e-16))
    log_odds = float(np.log(chance) - np.log1p(-chance))
    averaging = log_odds - explanation.log_odds
    return replace(explanation, log_odds=log_odds, probability=float(shown[place]), averaging=averaging)


def _one_sequence(votes: Votes, sequence: int) -> Votes:
    if not 0 <= sequence < votes.n_sequences:
        raise TaskError(
            f"the sequence must be a place from 0 to {votes.n_sequences - 1}; found {sequence}.\n"
            "  Look it up in votes.sequence_ids if you have an id."
        )
    return votes[[sequence]]


def _check_task(votes: Votes, resolution: Resolution, sequence: int, task: int) -> None:
    n_tasks = votes.layout(resolution).n_tasks
    if not 0 <= task < n_tasks:
        raise TaskError(
            f"sequence {sequence} has {n_tasks} tasks at {describe(resolution)}; "
            f"the task must be from 0 to {n_tasks - 1}; found {task}."
        )


def _own_votes(votes: Votes, parameters: Parameters, resolution: Resolution, task: int) -> list[_Vote]:
    """Votes on the task itself, in elimination order."""
    found = []
    for name in parameters.sources:
        if name in votes.source_names:
            column = votes.index(name)
            if votes.sources[column].resolution == resolution and votes.columns[column][task] != MISSING:
                found.append(_Vote(column=column, row=task, distance=0))
    return found


def _other_votes(votes: Votes, resolution: Resolution, task: int, n_candidates: int) -> list[_Vote]:
    """The votes on other tasks that lie nearest: elements between the two pieces, 0 if they overlap."""
    start, stop = (int(bounds[task]) for bounds in votes.layout(resolution).bounds())
    found = []
    for column, info in enumerate(votes.sources):
        starts, stops = votes.layout(info.resolution).bounds()
        gaps = np.maximum(np.maximum(starts - stop + 1, start - stops + 1), 0)
        asked = votes.columns[column] != MISSING
        if info.resolution == resolution:
            asked &= np.arange(len(asked)) != task
        rows = np.flatnonzero(asked)
        nearest = rows[np.argsort(gaps[rows], kind="stable")[:n_candidates]]
        found += [_Vote(column=column, row=int(row), distance=int(gaps[row])) for row in nearest]
    # The nearest votes first, because influence fades with distance, and each costs an inference.
    found.sort(key=lambda vote: vote.distance)
    return found[:n_candidates]


def _variants(votes: Votes, own: list[_Vote], others: list[_Vote]) -> Votes:
    """Copies of the sequence: no vote, one more own vote each, all votes, all but each other vote."""
    n_copies = len(own) + 2 + len(others)
    columns = [np.repeat(column[None], n_copies, axis=0) for column in votes.columns]
    for column in columns:
        column[: len(own) + 1] = MISSING
    for place, vote in enumerate(own):
        columns[vote.column][place + 1 : len(own) + 1, vote.row] = votes.columns[vote.column][vote.row]
    for place, vote in enumerate(others):
        columns[vote.column][len(own) + 2 + place, vote.row] = MISSING
    repeated = np.zeros(n_copies, dtype=np.int64)
    return replace(
        votes,
        columns=tuple(column.reshape(-1) for column in columns),
        scores={name: np.tile(rows, (n_copies, 1)) for name, rows in votes.scores.items()},
        lengths=votes.lengths[repeated],
        ids=None,
        spans={name: table.select(repeated) for name, table in votes.spans.items()},
        time=None,
        faults=(),
    )


def _target_place(values: tuple[int, ...], target: int | None, law: FloatArray) -> int:
    if target is None:
        return 1 if len(values) == 2 else int(np.argmax(law))
    if target not in values:
        raise TaskError(f"the target must be one of the classes {values}; found {target}.")
    return values.index(target)


def _log_odds(law: FloatArray, place: int) -> float:
    """Of one class against all others; infinite where the label is certain."""
    with np.errstate(divide="ignore"):
        return float(np.log(law[place]) - np.log(np.delete(law, place).sum()))


def _difference(after: float, before: float) -> float:
    """Nothing is added to a certainty that stays."""
    return 0.0 if after == before else after - before


def _contribution(votes: Votes, vote: _Vote, log_odds: float) -> Contribution:
    info = votes.sources[vote.column]
    return Contribution(
        source=info.name,
        resolution=info.resolution,
        task=vote.row,
        vote=int(votes.columns[vote.column][vote.row]),
        log_odds=log_odds,
    )
