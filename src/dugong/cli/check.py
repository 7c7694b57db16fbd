"""`dugong check`: what is in votes, what is wrong with them, and, with known labels, whether the model is worth it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dugong.cli.output import emit, example, json_option
from dugong.cli.settings import LEARN, model_options, read_dependencies, read_prior
from dugong.exceptions import DugongError

if TYPE_CHECKING:
    from dugong.model import LabelModel
    from dugong.types import Int8Array
    from dugong.votes import Votes


@click.command(
    "check",
    epilog=example(
        "dugong check votes.parquet",
        "dugong check votes.parquet --gold gold.csv --prior markov:positive=0.1,stay=0.9 --dependencies none",
    ),
)
@click.argument("votes", type=click.Path(path_type=Path))
@click.option("--gold", type=click.Path(path_type=Path), help="Known labels: a .parquet, .csv or .npy file.")
@model_options
@click.option("--model", "model_file", type=click.Path(path_type=Path), help="A fitted model, in place of a new fit.")
@json_option
def command(
    *, votes: Path, gold: Path | None, prior: str, dependencies: str, model_file: Path | None, as_json: bool
) -> None:
    """Say what is in VOTES (.parquet or .npz) and what is wrong with them.

    With a prior or dependencies: whether the votes can determine the model at all. With gold labels: accuracy, F1,
    calibration and events of majority vote and of the model, with confidence intervals by sequence, and a plain
    sentence about which of them is better. VOTES may be a folder of .parquet files, without gold labels.
    """
    from dugong.cli.findings import find_all
    from dugong.votes import Votes

    if votes.is_dir():
        _check_folder(votes, gold, as_json=as_json)
        return
    found = Votes.read(votes)
    known = None
    if gold is not None:
        from dugong.cli.gold import read_gold

        known = read_gold(gold, found)
    summary = found.summary(known)
    findings = find_all(found, summary.problems)
    result: dict[str, Any] = {
        "votes": {"sequences": found.n_sequences, "elements": found.n_elements, "classes": found.classes},
        "summary": summary.to_dict(),
        "findings": [{"kind": one.kind, "source": one.source, "text": one.text} for one in findings],
    }
    parts = [repr(found), str(summary).split("\n- ")[0], _listing(findings)]
    model = _model(prior, dependencies, model_file)
    asked = (prior, dependencies) != (LEARN, LEARN)
    for section in (_identifiability(found, model) if asked else None, _comparison(found, known, model)):
        if section is not None:
            result |= section[0]
            parts.append(section[1])
    emit(result, "\n\n".join(parts), as_json=as_json)


def _check_folder(folder: Path, gold: Path | None, *, as_json: bool) -> None:
    """The same of a folder of votes, read one file after the other."""
    from dugong.cli.findings import find_all
    from dugong.shards import VoteShards, read_sample, summarize_shards
    from dugong.shards.tally import COMPARED

    if gold is not None:
        raise click.UsageError("--gold needs votes in one file; check one of the files of the folder.")
    shards = VoteShards.open(folder)
    summary, sample = summarize_shards(shards), read_sample(shards, COMPARED)
    findings = find_all(sample, summary.problems)
    result = {
        "votes": {"sequences": shards.n_sequences, "elements": shards.n_elements, "classes": sample.classes},
        "summary": summary.to_dict(),
        "findings": [{"kind": one.kind, "source": one.source, "text": one.text} for one in findings],
    }
    emit(result, "\n\n".join([repr(shards), str(summary).split("\n- ")[0], _listing(findings)]), as_json=as_json)


def _listing(findings: tuple[Any, ...]) -> str:
    if not findings:
        return "Nothing is wrong with these votes."
    return "\n".join(["Worth a look:", *(f"- {one.text}" for one in findings)])


def _model(prior: str, dependencies: str, file: Path | None) -> LabelModel:
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


def _comparison(votes: Votes, gold: Int8Array | None, model: LabelModel) -> tuple[dict[str, Any], str] | None:
    """Majority vote and the model on the known labels; majority vote alone if the model cannot be fitted."""
    if gold is None:
        return None
    from dugong.cli.steps import class_options, compare_with_majority

    try:
        fitted = model if hasattr(model, "parameters_") else model.fit(votes)
        comparison = compare_with_majority(votes, gold, fitted)
    except DugongError as error:
        from dugong.baselines import MajorityVote
        from dugong.metrics import evaluate

        shares = MajorityVote().fit(votes).predict_proba(votes)
        alone = evaluate(shares, gold, lengths=votes.lengths, **class_options(votes))
        plain = {"majority": alone.to_dict(), "model_error": str(error)}
        return plain, f"Majority vote:\n{alone}\n\nThe label model cannot be fitted: {error}"
    summary = fitted.summary(votes, gold)
    text = f"{summary}\n\n{_scores(comparison)}\n\n{comparison}"
    return {"model": summary.to_dict(), "comparison": comparison.to_dict()}, text


def _scores(comparison: Any) -> str:
    """Scores of both methods with their intervals."""
    from dugong.metrics.tables import columns, figure, range_of

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
    return columns(head, rows)
