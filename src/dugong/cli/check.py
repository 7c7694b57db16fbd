"""`dugong check`: what is in votes, what is wrong with them, and, with known labels, whether the model is worth it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dugong.cli.output import emit, example, fit_width, json_option, say
from dugong.cli.places import PLACE
from dugong.cli.settings import LEARN, model_options, read_dependencies, read_prior
from dugong.exceptions import DugongError, VoteError
from dugong.paths import Place
from dugong.tasks import Element
from dugong.types import ABSTAIN, MISSING
from dugong.votes import Problem, Votes, allowed_classes, code_name, count_codes, implied_background

if TYPE_CHECKING:
    from dugong.model import LabelModel
    from dugong.shards import VoteShards
    from dugong.types import Int8Array
    from dugong.votes import Summary, Votes

NEAR_COPY = 0.98


@click.command(
    "check",
    epilog=example(
        "dugong check walking/project.toml",
        "dugong check votes.parquet",
        "dugong check votes.parquet --gold gold.csv --prior markov:positive=0.1,stay=0.9 --dependencies none",
    ),
)
@click.argument("votes", type=PLACE, default="project.toml")
@click.option("--gold", type=PLACE, help="Known labels: .parquet, .csv, .npy, or a file of another tool.")
@click.option(
    "--train-gold", type=PLACE, help="Known labels to fit with: says what they are worth. Needs one file of votes."
)
@click.option("--groups", metavar="TABLE|PATTERN", help="Which sequences belong together, for intervals.")
@model_options
@click.option("--model", "model_file", type=PLACE, help="A fitted model, in place of a new fit.")
@json_option
def command(
    *,
    votes: Place,
    gold: Place | None,
    train_gold: Place | None,
    groups: str | None,
    prior: str,
    dependencies: str,
    model_file: Place | None,
    as_json: bool,
) -> None:
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
    request = Request(votes=votes, gold=gold, train_gold=train_gold, groups=groups, model=model_file)
    if votes.suffix == ".toml" or (votes.is_dir() and (votes / "project.toml").is_file()):
        request = _of_project(request)
    if request.train_gold is not None and request.votes.is_dir():
        raise click.UsageError("--train-gold needs all votes in one file, and VOTES is a folder.")
    model = _model(prior, dependencies, request.model)
    checked = (_of_folder if request.votes.is_dir() else _of_file)(request, model)
    summary = checked.summary
    findings = find_all(checked.votes, summary.problems)
    size = checked.size
    result: dict[str, Any] = {
        "votes": {"sequences": size.n_sequences, "elements": size.n_elements, "classes": checked.votes.classes},
        "summary": summary.to_dict(),
        "findings": [{"kind": one.kind, "source": one.source, "text": one.text} for one in findings],
    }
    parts = [repr(size), str(summary).split("\n- ")[0], _listing(findings)]
    asked = (prior, dependencies) != (LEARN, LEARN)
    for section in (_identifiability(checked.votes, model) if asked else None, _comparison(checked, model)):
        if section is not None:
            result |= section[0]
            parts.append(section[1])
    if request.sends is not None:
        result["sends"] = request.sends
        parts.append(_sending(request.sends))
    if request.train_gold is not None:
        worth = _worth(checked, request.train_gold, model)
        result |= worth[0]
        parts.append(worth[1])
    emit(result, fit_width("\n\n".join(parts)), as_json=as_json)


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
    lines = [f"- {name} sends what it reads to {where}" for name, where in sends.items()]
    return "\n".join(["These sources send data:", *lines]) if lines else "No source sends data anywhere."


def _of_project(request: Request) -> Request:
    """What the last run of a project left, where nothing else is named, and who gets its data."""
    from dugong.cli.loading import load_sources
    from dugong.cli.project import read_project

    place, project = request.votes, read_project(str(request.votes))
    votes, fitted = project.output / "votes.parquet", project.output / "model.json"
    folder = project.output / "votes"
    if not votes.is_file() and folder.is_dir():
        votes = folder
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Checked:
    """What there is to say something about.

    Attributes
    ----------
    size : all votes, or the folder
    votes : all votes, or a sample
    known, gold : votes on sequences with known labels, and these; None without
    groups : of the sequences in `known`, for intervals; None without
    summary : of all votes
    fit : fits a model to all votes
    """

    size: Votes | VoteShards
    votes: Votes
    known: Votes
    gold: Int8Array | None
    groups: list[str] | None
    summary: Summary
    fit: Callable[[], LabelModel]


def _of_file(request: Request, model: LabelModel) -> _Checked:
    from dugong.cli.annotations import held_out
    from dugong.cli.gold import read_gold
    from dugong.votes import Votes

    found = Votes.read(request.votes)
    labels = None if request.gold is None else read_gold(request.gold, found)
    if labels is not None and request.train_gold is not None:
        labels = held_out(labels, read_gold(request.train_gold, found, missing_ok=True), found)
        if not labels.any():
            say("nothing is compared with known labels: every sequence that has some was fitted with.")
            labels = None
    return _Checked(
        size=found,
        votes=found,
        known=found,
        gold=labels,
        groups=_groups(request, found),
        summary=found.summary(labels),
        fit=lambda: model.fit(found),
    )


def _of_folder(request: Request, model: LabelModel) -> _Checked:
    """One file after the other."""
    from dugong.cli.known import read_known
    from dugong.shards import VoteShards, fit_shards, read_sample, summarize_shards
    from dugong.shards.sampling import COMPARED

    shards = VoteShards.open(request.votes)
    sample, summary = read_sample(shards, COMPARED), summarize_shards(shards)
    known = None if request.gold is None else read_known(request.gold, shards)
    if known is not None:
        summary = known.graded(summary)
        say(known.remark)
    return _Checked(
        size=shards,
        votes=sample,
        known=sample if known is None else known.votes,
        gold=None if known is None else known.gold,
        groups=None if known is None else _groups(request, known.votes),
        summary=summary,
        fit=lambda: fit_shards(model, shards),
    )


def _groups(request: Request, votes: Votes) -> list[str] | None:
    from dugong.cli.groups import read_groups

    return None if request.groups is None else read_groups(request.groups, votes, request.folder)


def _listing(findings: tuple[Any, ...]) -> str:
    if not findings:
        return "Nothing is wrong with these votes."
    return "\n".join(["Worth a look:", *(f"- {one.text}" for one in findings)])


def _model(prior: str, dependencies: str, file: Place | None) -> LabelModel:
    from dugong.model import LabelModel

    if file is not None:
        return LabelModel.load(file)
    return LabelModel(prior=read_prior(prior), dependencies=read_dependencies(dependencies))


def _identifiability(votes: Votes, model: LabelModel) -> tuple[dict[str, Any], str]:
    """Whether these votes can determine the model, in words."""
    try:
        outcome = model.identifiability(votes)
    except DugongError as error:
        return {"identifiability": {"error": str(error)}}, f"Identifiability: {error}"
    return {"identifiability": outcome.to_dict()}, f"Identifiability:\n{outcome}"


def _comparison(checked: _Checked, model: LabelModel) -> tuple[dict[str, Any], str] | None:
    """Majority vote and the model on the known labels; majority vote alone if the model cannot be fitted."""
    votes, gold = checked.known, checked.gold
    if gold is None:
        return None
    from dugong.cli.steps import class_options, compare_with_majority

    try:
        fitted = model if hasattr(model, "law_") else checked.fit()
        comparison = compare_with_majority(votes, gold, fitted, checked.groups)
    except DugongError as error:
        from dugong.baselines import MajorityVote
        from dugong.metrics import evaluate

        shares = MajorityVote().fit(votes).predict_proba(votes)
        alone = evaluate(shares, gold, lengths=votes.lengths, **class_options(votes))
        plain = {"majority": alone.to_dict(), "model_error": str(error)}
        return plain, f"Majority vote:\n{alone}\n\nThe label model cannot be fitted: {error}"
    summary = fitted.summary(votes, gold)
    parts = [str(summary), _scores(comparison), *_by_class(comparison), str(comparison)]
    return {"model": summary.to_dict(), "comparison": comparison.to_dict()}, "\n\n".join(parts)


def _worth(checked: _Checked, train_gold: Place, model: LabelModel) -> tuple[dict[str, Any], str]:
    """What the labels are worth that the model can be fitted with."""
    from dugong.cli.gold import read_gold
    from dugong.cli.worth import worth_of

    train = read_gold(train_gold, checked.votes, missing_ok=True)
    comparison, where = worth_of(checked.votes, train, checked.gold, model)
    return {
        "worth": comparison.to_dict()
    }, f"Known labels to fit with ({where}):\n{_scores(comparison)}\n\n{comparison}"


def _scores(comparison: Any) -> str:
    """Scores of both methods with their intervals."""
    from dugong.metrics.scores import figure, range_of
    from dugong.texts import text_table

    names = list(dict.fromkeys(score.name for one in comparison.evaluations for score in one.scores))
    head = ("score", *(word for name in comparison.names for word in (name, "interval")))
    rows = [
        (
            name,
            *(
                cell
                for one in comparison.evaluations
                for cell in (figure(one.value(name)), range_of(one.interval(name)))
            ),
        )
        for name in names
    ]
    return text_table(head, rows)


def _by_class(comparison: Any) -> list[str]:
    """F1 of every class under both methods, where there are more than two classes."""
    from dugong.metrics.scores import figure
    from dugong.texts import text_table

    by_method = [one.classes for one in comparison.evaluations]
    if len(by_method[0]) <= 2:
        return []
    head = ("class", "known", *(f"F1, {name}" for name in comparison.names))
    rows = [
        (same[0].name, f"{same[0].n_gold:,}", *(figure(one.f1) for one in same))
        for same in zip(*by_method, strict=True)
    ]
    return [text_table(head, rows)]


def find_all(votes: Votes, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """All remarks about votes; `problems` are those that their summary has already."""
    copies = {one.source for one in problems if one.kind == "copy"}
    return (*problems, *_unipolar(votes), *_near_copies(votes, copies), *_unvoted(votes))


def _spoken(votes: Votes, name: str) -> list[int]:
    return [code for code in count_codes(votes.column(name)) if code not in (ABSTAIN, MISSING)]


def _unipolar(votes: Votes) -> list[Problem]:
    found = []
    for source in votes.sources:
        codes, abstains = _spoken(votes, source.name), ABSTAIN in count_codes(votes.column(source.name))
        if len(codes) == 1 and abstains:
            word = code_name(votes, codes[0], source.resolution)
            text = f"source {source.name!r} votes {word} or abstains; what it tells lies in when it abstains."
            found.append(Problem(kind="unipolar", source=source.name, text=text))
    return found


def _near_copies(votes: Votes, copies: set[str | None]) -> list[Problem]:
    """Pairs of sources on the same tasks that agree almost wherever one of them speaks."""
    found = []
    for first, second in combinations([one for one in votes.sources if one.name not in copies], 2):
        if first.resolution != second.resolution:
            continue
        one, other = votes.column(first.name), votes.column(second.name)
        asked = (one != MISSING) & (other != MISSING)
        spoken = asked & ((one != ABSTAIN) | (other != ABSTAIN))
        n_spoken = int(np.count_nonzero(spoken))
        share = np.count_nonzero(spoken & (one == other)) / max(n_spoken, 1)
        constant = min(len(_spoken(votes, first.name)), len(_spoken(votes, second.name))) < 2
        if share >= NEAR_COPY and not constant:
            text = (
                f"sources {first.name!r} and {second.name!r} vote alike on {share:.1%} of the tasks where either "
                "speaks; declare them dependent, or keep one."
            )
            found.append(Problem(kind="near-copy", source=second.name, text=text))
    return found


def _unvoted(votes: Votes) -> list[Problem]:
    """Classes of elements for which no source ever votes, beside the background."""
    if not any(isinstance(source.resolution, Element) for source in votes.sources):
        return []
    voted: set[int] = set()
    for source in votes.sources:
        if isinstance(source.resolution, Element):
            voted = voted.union(*(allowed_classes(votes, code) for code in _spoken(votes, source.name)))
    background = implied_background(votes)
    found = []
    for value in votes.classes:
        if value not in voted and value != background:
            word = code_name(votes, value, Element())
            text = f"no source that votes on elements ever votes {word}; nothing but the prior speaks for this class."
            found.append(Problem(kind="unvoted-class", source=None, text=text))
    if background is not None and votes.background is None:
        word = code_name(votes, background, Element())
        text = f"{word} is the only class that no source votes for: it is taken as background."
        found.append(Problem(kind="background", source=None, text=text))
    return found
