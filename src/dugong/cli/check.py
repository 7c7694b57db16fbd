"""`dugong check`: what is in votes, what is wrong with them, and, with known labels, whether the model is worth it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from dugong.baselines import MajorityVote
from dugong.cli.findings import class_options, compare_with_majority, find_all
from dugong.cli.gold import Known, held_out, labelled, left_to_compare, read_gold
from dugong.cli.job import OpenedVotes, open_votes
from dugong.cli.output import PLACE, Outcome, fit_width, listing, say, verb
from dugong.cli.project import load_sources, read_project
from dugong.cli.settings import LEARN, model_options, read_dependencies, read_groups, read_prior
from dugong.exceptions import DugongError, LabelError, VoteError
from dugong.metrics import Comparison, compare, evaluate
from dugong.metrics.scores import figure, range_of
from dugong.model import LabelModel
from dugong.paths import Place
from dugong.shards.folder import COMPARED
from dugong.texts import text_table
from dugong.types import FloatArray, Int8Array
from dugong.votes import Votes


@verb(
    "check",
    "dugong check walking/project.toml",
    "dugong check votes.parquet",
    "dugong check votes.parquet --gold gold.csv --prior markov:positive=0.1,stay=0.9 --dependencies none",
)
@click.argument("votes", type=PLACE, default="project.toml")
@click.option("--gold", type=PLACE, help="Known labels: .parquet, .csv, .npy, or a file of another tool.")
@click.option(
    "--train-gold", type=PLACE, help="Known labels to fit with: says what they are worth. Needs one file of votes."
)
@click.option("--groups", metavar="TABLE|PATTERN", help="Which sequences belong together, for intervals.")
@model_options
@click.option("--model", type=PLACE, help="A fitted model, in place of a new fit.")
def command(*, votes: Place, prior: str, dependencies: str, **given: Any) -> Outcome:
    """Say what is in VOTES (.parquet or .npz, or a project that was run, by default the one in this folder).

    Of a project, the votes, the known labels and the fitted model are those of its last run: nothing is fitted anew. It
    is also said which of its sources would send data, and where to. A project is code: to know that, its sources are
    executed as a module.

    With a prior or dependencies: whether the votes can determine the model at all. With gold labels: accuracy, F1,
    calibration and events of majority vote and of the model, with confidence intervals by sequence, and a plain
    sentence about which of them is better.

    VOTES may be a folder of .parquet files, here or at a URL, which are read one after the other: counts are exact, the
    model is fitted as `dugong fit` does it, and compared on the sequences with gold labels. Pairs of sources that vote
    alike are looked for in a sample of about 260,000 elements.
    """
    request = Request(votes=votes, **given)
    if votes.suffix == ".toml" or (votes.is_dir() and (votes / "project.toml").is_file()):
        request = _of_project(request)
    needs_all = "--train-gold needs all votes in one file, and VOTES is a folder." if request.train_gold else None
    opened = open_votes(request.votes, needs_all=needs_all)
    if request.model is not None:
        model = LabelModel.load(request.model)
    else:
        model = LabelModel(prior=read_prior(prior), dependencies=read_dependencies(dependencies))
    size, seen, known = opened.whole, opened.sample(COMPARED), _known(request, opened)
    judged = seen if known is None else known.votes
    members = None if request.groups is None else _members(request.groups, opened, judged, request.folder)
    summary = opened.summary(known)
    findings = find_all(seen, summary.problems)
    result: dict[str, Any] = {
        "votes": {"sequences": size.n_sequences, "elements": size.n_elements, "classes": seen.classes},
        "summary": summary.to_dict(),
        "findings": findings,
    }
    found = listing("Worth a look:", [one.text for one in findings]) or "Nothing is wrong with these votes."
    parts = [repr(size), str(summary).split("\n- ")[0], found]
    asked = (prior, dependencies) != (LEARN, LEARN)
    sections = [
        _identifiability(seen, model) if asked else None,
        None if known is None else _comparison(opened, known, members, model),
        None if request.sends is None else ({"sends": request.sends}, _sending(request.sends)),
        None if request.train_gold is None else _worth(seen, request.train_gold, known, model),
    ]
    for plain, text in filter(None, sections):
        result |= plain
        parts.append(text)
    return result, fit_width("\n\n".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be checked; `folder` is what the file of groups counts from, `sends` who gets data of a project."""

    votes: Place
    gold: Place | None
    train_gold: Place | None
    groups: str | None
    model: Place | None
    folder: Path | None = None
    sends: dict[str, str] | None = None


def _sending(sends: dict[str, str]) -> str:
    """Who gets the data, in words."""
    lines = [f"{name} sends what it reads to {where}" for name, where in sends.items()]
    return listing("These sources send data:", lines) or "No source sends data anywhere."


def _of_project(request: Request) -> Request:
    """What the last run of a project left, where nothing else is named, and who gets its data."""
    place, project = request.votes, read_project(str(request.votes))
    votes, folder, fitted = (project.output / name for name in ("votes.parquet", "votes", "model.json"))
    votes = folder if folder.is_dir() and not votes.is_file() else votes
    sources = load_sources(project.sources, project.folder)
    sending = {one.name: one.function.sends_to for one in sources if hasattr(one.function, "sends_to")}
    if not (votes.exists() and fitted.is_file()):
        say(_sending(sending))  # what one wants to know before a first run
        raise VoteError(f"{place} has not been run yet: there is no {votes}, {fitted}.\n  Run it: dugong run {place}")
    return Request(
        votes=votes,
        gold=request.gold or project.gold,
        train_gold=request.train_gold or project.train_gold,
        groups=request.groups or project.groups,
        model=request.model or fitted,
        folder=None if request.groups else project.folder,
        sends=sending,
    )


def _members(groups: str, opened: OpenedVotes, judged: Votes, folder: Path | None) -> list[str]:
    """The groups of the sequences that are judged; there must be one for every sequence."""
    for votes in opened:
        read_groups(groups, votes, folder)
    return read_groups(groups, judged, folder)


def _known(request: Request, opened: OpenedVotes) -> Known | None:
    """Votes and known labels to compare on, of sequences that no model is fitted with."""
    if request.gold is None:
        return None
    known = opened.known(request.gold)
    if known.remark:
        say(known.remark)
    if request.train_gold is None:
        return known
    train = read_gold(request.train_gold, known.votes, missing_ok=True)
    others = left_to_compare(known.gold, train, known.votes, say)
    return None if others is None else replace(known, gold=others)


def _identifiability(votes: Votes, model: LabelModel) -> Outcome:
    """Whether these votes can determine the model, in words."""
    try:
        outcome = model.identifiability(votes)
    except DugongError as error:
        return {"identifiability": {"error": str(error)}}, f"Identifiability: {error}"
    return {"identifiability": outcome.to_dict()}, f"Identifiability:\n{outcome}"


def _comparison(opened: OpenedVotes, known: Known, groups: list[str] | None, model: LabelModel) -> Outcome:
    """Majority vote and the model on the known labels; majority vote alone if the model cannot be fitted."""
    votes, gold = known.votes, known.gold
    try:
        fitted = model if hasattr(model, "law_") else opened.fit(model)
        comparison = compare_with_majority(votes, gold, fitted, groups)
    except DugongError as error:
        shares = MajorityVote().fit(votes).predict_proba(votes)
        alone = evaluate(shares, gold, lengths=votes.lengths, **class_options(votes))
        plain = {"majority": alone.to_dict(), "model_error": str(error)}
        return plain, f"Majority vote:\n{alone}\n\nThe label model cannot be fitted: {error}"
    summary = fitted.summary(votes, gold)
    parts = [str(summary), _scores(comparison), *_by_class(comparison), str(comparison)]
    return {"model": summary.to_dict(), "comparison": comparison.to_dict()}, "\n\n".join(parts)


def _worth(votes: Votes, train_gold: Place, known: Known | None, model: LabelModel) -> Outcome:
    """What the labels are worth that the model can be fitted with."""
    train = read_gold(train_gold, votes, missing_ok=True)
    comparison, where = worth_of(votes, train, None if known is None else known.gold, model)
    text = f"Known labels to fit with ({where}):\n{_scores(comparison)}\n\n{comparison}"
    return {"worth": comparison.to_dict()}, text


def _scores(comparison: Any) -> str:
    """Scores of both methods with their intervals."""
    names = list(dict.fromkeys(score.name for one in comparison.evaluations for score in one.scores))
    head = ("score", *(word for name in comparison.names for word in (name, "interval")))
    rows = []
    for name in names:
        cells = [(figure(one.value(name)), range_of(one.interval(name))) for one in comparison.evaluations]
        rows.append((name, *chain.from_iterable(cells)))
    return text_table(head, rows)


def _by_class(comparison: Any) -> list[str]:
    """F1 of every class under both methods, where there are more than two classes."""
    by_method = [one.classes for one in comparison.evaluations]
    if len(by_method[0]) <= 2:
        return []
    head = ("class", "known", *(f"F1, {name}" for name in comparison.names))
    rows = [
        (same[0].name, f"{same[0].n_gold:,}", *(figure(one.f1) for one in same))
        for same in zip(*by_method, strict=True)
    ]
    return [text_table(head, rows)]


# --- what known labels are worth --------------------------------------------------------------------------------------
# The model fitted with them against the model fitted without, on other sequences. Without labels to compare with, half
# of the sequences with known labels is fitted with, the other half is compared on, and the other way round.
WITHOUT, WITH = "without", "with known labels"


def worth_of(votes: Votes, train: Int8Array, gold: Int8Array | None, model: LabelModel) -> tuple[Comparison, str]:
    """Compare fits without and with known labels, and say on what."""
    without = _anew(model, votes)
    if gold is not None:
        known, where = held_out(gold, train, votes), "on sequences that the model was not fitted with"
        answers = _anew(model, votes, train)
    else:
        known, where = train, "each half of the known sequences labelled by a model fitted with the other half"
        answers = _halves(votes, train, model)
    if not known.any():
        raise LabelError("there is nothing to compare on: every sequence with known labels was fitted with.")
    methods = {WITHOUT: without, WITH: answers}
    return compare(methods, known, lengths=votes.lengths, **class_options(votes)), where


def _halves(votes: Votes, train: Int8Array, model: LabelModel) -> FloatArray:
    """Probabilities of every sequence under a model that was not fitted with its known labels."""
    known = np.flatnonzero(labelled(train, votes))
    if len(known) < 2:
        raise LabelError(
            f"known labels of at least two sequences are needed to say what they are worth; found {len(known)}."
        )
    half = np.repeat(np.isin(np.arange(votes.n_sequences), known[::2]), votes.lengths)
    first, second = (_anew(model, votes, np.where(part, train, np.int8(0))) for part in (~half, half))
    return np.where(half[:, None], first, second)


def _anew(model: LabelModel, votes: Votes, train: Int8Array | None = None) -> FloatArray:
    """Probabilities under a model with the same settings, fitted anew."""
    return type(model)(**model.get_params()).fit(votes, train).predict_proba(votes)
