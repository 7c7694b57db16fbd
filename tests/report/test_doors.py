"""The ways to a report: the method, the verb, notebooks and matplotlib."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dugong.cli import exit_code
from dugong.cli.gold import write_gold
from dugong.exceptions import LabelError, NotFittedError, TaskError
from dugong.model import LabelModel
from dugong.report import summarize
from dugong.report.notebook import plot_accuracies, plot_agreement, plot_labels, plot_reliability, plot_votes
from dugong.votes import SourceInfo, Votes
from reports import HOSTILE, binary_case, hostile_case, many_case


@pytest.fixture
def files(tmp_path):
    case = binary_case()
    case.model.save(tmp_path / "model.json")
    case.votes.write(tmp_path / "votes.parquet")
    write_gold(case.gold, case.votes, tmp_path / "gold.parquet")
    return tmp_path


def test_the_method_returns_the_value_and_writes_the_page(tmp_path):
    case = binary_case()
    found = case.model.report(case.votes, tmp_path / "report.html", case.gold, n_sequences=3, title="Interviews")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>Interviews</title>" in page
    assert len(found.sequences.tracks) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html"]


def test_the_ending_decides_the_form(tmp_path):
    case = many_case()
    for kind in ("txt", "json"):
        case.model.report(case.votes, tmp_path / f"report.{kind}", n_sequences=1)
    assert "Comparison with majority vote" in (tmp_path / "report.txt").read_text(encoding="utf-8")
    plain = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert plain["overview"]["classes"] == ["Wake", "NREM", "REM"]
    with pytest.raises(LabelError, match=r"\.html, \.txt or \.json; found '.*report\.pdf'"):
        case.model.report(case.votes, tmp_path / "report.pdf")


def test_a_model_must_be_fitted_first():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        LabelModel().report(binary_case().votes)


# --- the verb ------------------------------------------------------------------------------------------------------
def test_the_verb_writes_a_page_and_says_where(files, capsys):
    names = [str(files / name) for name in ("model.json", "votes.parquet")]
    output = files / "report.html"
    code = exit_code(["report", *names, "--gold", str(files / "gold.parquet"), "-o", str(output), "--sequence", "12",
                "--sequences", "2", "--title", "Nights", "--json"])  # fmt: skip
    said = capsys.readouterr()
    assert code == 0, said.err
    result = json.loads(said.out)
    assert result["report"] == str(output)
    assert result["better"] is True
    assert result["sequences"] == 2
    assert result["bytes"] == output.stat().st_size
    assert "<h1><bdi>Nights</bdi></h1>" in output.read_text(encoding="utf-8")


def test_the_verb_in_words(files, capsys):
    code = exit_code(["report", str(files / "model.json"), str(files / "votes.parquet"), "-o", str(files / "r.txt")])
    said = capsys.readouterr()
    assert code == 0
    assert said.out.endswith(f"The report is in {files / 'r.txt'}.\n")
    assert "cannot be told without known labels" in said.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["-o", "report.docx"], ".html, .txt or .json; found 'report.docx'"),
        (["--gold", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--sequence", "nobody"], "there is no sequence 'nobody'"),
    ],
    ids=["ending", "gold", "sequence"],
)
def test_mistakes_are_data_errors_and_leave_nothing(files, capsys, monkeypatch, change, message):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    assert exit_code(["report", "model.json", "votes.parquet", *change]) == 1
    said = capsys.readouterr().err
    assert "error: " in said
    assert message in said
    assert sorted(files.iterdir()) == before


def test_the_verb_is_listed():
    from dugong.cli import VERBS

    assert list(VERBS).index("label") < list(VERBS).index("report")


# --- notebooks -----------------------------------------------------------------------------------------------------
def test_rich_representations_show_sources_and_are_inert():
    case = hostile_case()
    for shown in (case.votes._repr_html_(), case.model._repr_html_()):
        assert shown.count("<tr>") == 1 + case.votes.n_sources
        assert "<script>" not in shown
        assert "<img" not in shown
        assert "&lt;script&gt;window.broken" in shown
    assert "not fitted yet" in LabelModel()._repr_html_()


def test_a_fitted_model_shows_what_it_learned():
    shown = binary_case().model._repr_html_()
    for word in ("Label model of 7 sources", "motion repeats itself", "voice + echo", "+1 on 30.0%, about 7 in a row"):
        assert word in shown


def test_everything_that_a_notebook_shows_has_html_and_is_inert():
    case = hostile_case()
    explanation = case.model.explain(case.votes, 0, 0)
    for shown in (case.model.summary(), case.model.diagnostics_, explanation):
        html = shown._repr_html_()
        assert 'class="dugong"' in html
        assert "<script>" not in html
    assert explanation._repr_html_().count("<tr>") >= 3 + len(explanation.own_votes) - 1


def test_a_comparison_has_html():
    from dugong.metrics import compare

    gold = np.array([1, -1, 1, 1, -1, -1] * 20)
    laws = np.stack([1 - (gold > 0), gold > 0], axis=1) * 0.8 + 0.1
    shown = compare({"vote": np.full_like(laws, 0.5), "model": laws}, gold, lengths=[6] * 20)._repr_html_()
    assert "On known labels" in shown
    assert "model is better than vote" in shown


def test_a_report_in_a_cell_is_a_small_frame():
    case = binary_case()
    report = case.model.report(case.votes)
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert len(shown) < 1_000_000
    assert 'sandbox="allow-scripts"' in shown


def test_a_timeline_shows_one_sequence(tmp_path):
    case = binary_case()
    wanted = case.votes.sequence_ids.tolist()[2]
    timeline = case.model.timeline(case.votes, wanted)
    assert len(timeline.sequences.tracks) == 1
    assert timeline.sequences.tracks[0].name == str(wanted)
    assert timeline._repr_html_().startswith("<iframe")
    timeline.write(tmp_path / "one.html")
    assert 'id="viewer"' in (tmp_path / "one.html").read_text(encoding="utf-8")
    with pytest.raises(TaskError, match="there is no sequence 'nobody'"):
        case.model.timeline(case.votes, "nobody")


# --- matplotlib ----------------------------------------------------------------------------------------------------
@pytest.fixture
def closed(monkeypatch):
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


def test_votes_are_drawn_one_ribbon_per_source(closed):
    case = binary_case()
    axes = case.votes.plot(2, gold=case.gold)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [*case.votes.source_names, "gold"]
    rows = case.votes.layout("element").rows(2)
    column = case.votes.column("face")[rows]
    drawn = sum(len(piece.get_paths()) for piece in axes.collections[:2])
    assert drawn == np.count_nonzero(column)
    assert axes.get_xlim() == (0, case.votes.lengths[2])


def test_charts_draw_on_given_axes_and_return_them(closed):
    case = binary_case()
    report = summarize(case.model, case.votes, case.gold, n_sequences=0)
    charts = [
        lambda ax: plot_votes(case.votes, 0, ax=ax),
        lambda ax: plot_labels(case.model, case.votes, 1, ax=ax),
        lambda ax: plot_accuracies(report, ax=ax),
        lambda ax: plot_agreement(report, ax=ax),
        lambda ax: plot_agreement(report, residual=True, ax=ax),
        lambda ax: plot_reliability(report, ax=ax),
    ]
    for chart in charts:
        _, axes = closed.subplots()
        assert chart(axes) is axes
        assert axes.has_data()
    figure = plot_labels(many_case().model, many_case().votes).figure
    figure.canvas.draw()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["P(Wake)", "P(NREM)", "P(REM)"]


def test_hostile_names_do_not_break_charts(closed):
    case = hostile_case()
    axes = case.votes.plot(0)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(HOSTILE)
    dollars = case.votes.select(sources=[HOSTILE[0]])
    dollars = Votes(sources=(SourceInfo(name="$x^$ costs $5"),), columns=dollars.columns, lengths=case.votes.lengths)
    dollars.plot(0).figure.canvas.draw()
