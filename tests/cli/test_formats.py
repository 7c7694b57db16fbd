"""Labels go to other tools and come back: export, import, formats, label --intervals, and the keys of a project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dugong as dg
from command_line import Command
from dugong import formats
from dugong.cli.project import ProjectError, read_project


@pytest.fixture
def ran(small_project: Path, cli: Command) -> Path:
    """The output folder of a project that was run."""
    assert cli("run", small_project).code == 0
    return small_project.parent / "out"


def test_labels_are_exported_by_name_and_by_ending(ran: Path, cli: Command, tmp_path: Path) -> None:
    found = cli("export", ran / "labels.parquet", "--to", "elan", "--rate", "2", "-o", tmp_path / "eaf", "--json")
    assert found.code == 0, found.err
    assert found.json["format"] == "elan"
    assert len(list((tmp_path / "eaf").glob("*.eaf"))) == 60
    expected = dg.Labels.read(ran / "labels.parquet").segments()
    again = formats.read(tmp_path / "eaf").to_unit("element", rate=2)
    assert sorted(zip(again.sequence, again.start, again.end, strict=True)) == sorted(
        zip(expected.sequence, expected.start, expected.end, strict=True)
    )
    assert cli("export", ran / "labels.parquet", "-o", tmp_path / "all.jsonl").code == 0
    assert formats.read(tmp_path / "all.jsonl").equals(expected)


def test_label_studio_gets_media_and_options(ran: Path, cli: Command, tmp_path: Path) -> None:
    words = ("export", ran / "labels.parquet", "--to", "label-studio", "--media", "https://lab/{}.mp4")
    found = cli(*words, "--rate", "2", "--set", "model_version=v7", "-o", tmp_path / "tasks.json")
    assert found.code == 0, found.err
    text = (tmp_path / "tasks.json").read_text()
    assert "https://lab/q00.mp4" in text
    assert '"model_version": "v7"' in text
    assert 'frameRate="2"' in (tmp_path / "tasks.xml").read_text()
    assert cli(*words, "-o", tmp_path / "unknown.json").code == 0
    assert "frameRate" not in (tmp_path / "unknown.xml").read_text()
    bad = cli(*words, "--set", "colour=red", "-o", tmp_path / "tasks.json")
    assert bad.code == 1
    assert "no option 'colour'" in bad.err


def test_only_the_most_useful_sequences(ran: Path, cli: Command, tmp_path: Path) -> None:
    found = cli("export", ran / "labels.parquet", "--review", "5", "-o", tmp_path / "few.jsonl", "--json")
    assert found.code == 0, found.err
    model, votes = dg.LabelModel.load(ran / "model.json"), dg.Votes.read(ran / "votes.parquet")
    assert found.json["sequences"] == list(map(str, model.review(votes, 5).ids))
    missing = cli("export", ran / "labels.parquet", "--review", "5", "--model", "none.json", "-o", tmp_path / "x.jsonl")
    assert missing.code == 2
    assert "--model" in missing.err


def test_corrections_come_back_as_gold_and_as_a_source(ran: Path, cli: Command, tmp_path: Path) -> None:
    (tmp_path / "marks.csv").write_text(
        "sequence,start_seconds,end_seconds,label,source\nq00,0,1.5,1,anna\nq01,1,3,-1,anna\n"
    )
    votes = ran / "votes.parquet"
    gold = cli("import", tmp_path / "marks.csv", "--as", "gold", "--rate", "2", "-o", tmp_path / "gold.csv")
    assert gold.code == 0, gold.err
    lines = (tmp_path / "gold.csv").read_text().splitlines()
    assert lines[1:] == ['"q00",0,3,"1"', '"q01",2,6,"-1"']
    formats.write(formats.read(tmp_path / "marks.csv").to_unit("element", rate=2), tmp_path / "marks.jsonl")
    source = cli(
        "import", tmp_path / "marks.jsonl", "--as", "source", "--votes", votes, "-o", tmp_path / "both.parquet"
    )
    assert source.code == 0, source.err
    both = dg.Votes.read(tmp_path / "both.parquet")
    assert both.source_names == ("one", "two", "three", "anna")
    assert both.column("anna")[:6].tolist() == [1, 1, 1, 0, 0, 0]
    (tmp_path / "strange.csv").write_text("sequence,start,end,label\nq00,0,1,run\n")
    strange = cli("import", tmp_path / "strange.csv", "--as", "gold", "--votes", votes, "-o", tmp_path / "gold.csv")
    assert strange.code == 1
    assert "strange.csv cannot be used: a label must be one of -1, 1; found 'run'" in strange.err


def test_gold_in_seconds_and_of_other_tools_is_read(ran: Path, cli: Command, tmp_path: Path) -> None:
    votes = dg.Votes.read(ran / "votes.parquet")
    gold = np.zeros(votes.n_elements, dtype=np.int8)
    gold[:6] = [1, 1, -1, -1, -1, 1]
    marked = dg.Segments.from_gold(gold, votes)
    formats.write(marked, tmp_path / "gold.jsonl")
    found = cli("check", ran / "votes.parquet", "--gold", tmp_path / "gold.jsonl", "--json")
    assert found.code == 0, found.err
    assert found.json["comparison"] is not None


def test_formats_are_listed_with_what_they_keep(cli: Command) -> None:
    found = cli("formats")
    assert found.code == 0
    for name in formats.names():
        assert name in found.out
    one = cli("formats", "eaf", "--json").json["formats"]["elan"]
    assert one["checked by"] == "pympi-ling"
    assert cli("formats", "nonsense").code == 1


def test_intervals_in_place_of_tasks(ran: Path, cli: Command, tmp_path: Path) -> None:
    words = ("label", ran / "model.json", ran / "votes.parquet", "--intervals", "-o", tmp_path / "events.csv")
    assert cli(*words).code == 0
    assert formats.read(tmp_path / "events.csv").equals(dg.Labels.read(ran / "labels.parquet").segments())
    assert cli(*words, "--resolution", "element", "--resolution", "sequence").code == 2
    assert "--jobs does not go with --intervals" in cli(*words, "--jobs", 2).err


def test_intervals_and_exports_of_a_folder_are_those_of_one_file(cli: Command, small_project: Path) -> None:
    small_project.write_text(small_project.read_text() + 'export = ["csv"]\n')
    assert cli("run", small_project, "--shard-size", 7).code == 0
    output = small_project.parent / "out"
    assert len(list((output / "labels").glob("*.parquet"))) > 1
    labels = dg.Labels.read(output / "labels").segments()
    assert formats.read(output / "export" / "csv" / "segments.csv").equals(labels)
    words = ("label", output / "model.json", output / "votes", "--intervals", "-o", output / "events.csv")
    assert cli(*words).code == 0
    assert formats.read(output / "events.csv").equals(labels)


# --- projects ----------------------------------------------------------------------------------------------------
def truth(project: Path) -> dg.Segments:
    """What is true of all sequences of the small project, by its own loader."""
    namespace: dict[str, object] = {}
    exec((project.parent / "loader.py").read_text(), namespace)
    rows = []
    for name, elements in namespace["sequences"]():  # type: ignore[operator]
        rows += [
            {"sequence": name, "start": place, "end": place + 1, "label": "1"}
            for place, one in enumerate(elements)
            if one[0]
        ]
        rows += [] if any(one[0] for one in elements) else [{"sequence": name, "start": 0, "end": 0, "label": "1"}]
    return dg.Segments.from_rows(rows)


def test_a_project_with_annotations_train_gold_and_export(small_project: Path, cli: Command) -> None:
    folder, marked = small_project.parent, truth(small_project)
    first = [f"q{place:02d}" for place in range(20)]
    formats.write(marked, folder / "gold.jsonl")
    formats.write(marked.select(sequences=first), folder / "corrected.jsonl")
    formats.write(marked.select(sequences=[f"q{place:02d}" for place in range(10, 40)]), folder / "anna.jsonl")
    text = small_project.read_text().replace('sources = "sources.py"', 'sources = ["sources.py", "anna.jsonl"]')
    text += 'gold = "gold.jsonl"\ntrain_gold = "corrected.jsonl"\nexport = ["csv", "boris"]\n'
    text = text.replace("dependencies", 'media = "{}.mp4"\ndependencies')
    small_project.write_text(text)
    found = cli("run", small_project, "--json")
    assert found.code == 1  # boris counts seconds
    assert "rate" in found.err
    small_project.write_text(text.replace('"boris"', '"cvat-images"'))
    found = cli("run", small_project, "--json")
    assert found.code == 0, found.err
    votes = dg.Votes.read(folder / "out" / "votes.parquet")
    assert votes.source_names == ("one", "two", "three", "anna")
    assert (votes.column("anna")[60:240] != 0).all()
    assert len(list((folder / "out" / "export" / "cvat-images").glob("*.xml"))) == 60
    assert (folder / "out" / "export" / "csv" / "segments.csv").is_file()
    compared = found.json["comparison"]
    assert "40" in str(compared) or compared  # the twenty sequences that were fitted with are left out
    sharded = cli("run", small_project, "--shard-size", "10")
    assert sharded.code == 2
    assert "files of annotations as sources and train_gold of this project" in sharded.err
    assert "leave --shard-size out" in sharded.err


def test_scores_leave_out_what_was_fitted_with() -> None:
    from dugong.cli.gold import held_out

    votes = dg.Votes.from_tasks({"s": np.zeros(6, np.int8)}, [2, 2, 2])
    gold, train = np.array([1, -1] * 3, dtype=np.int8), np.array([0, 0, 0, 1, 0, 0], dtype=np.int8)
    assert held_out(gold, train, votes).tolist() == [1, -1, 0, 0, 1, -1]
    assert held_out(gold, None, votes) is gold


def test_check_says_what_corrections_are_worth(ran: Path, small_project: Path, cli: Command) -> None:
    folder = small_project.parent
    marked = truth(small_project)
    formats.write(marked.select(sequences=[f"q{place:02d}" for place in range(30)]), folder / "corrected.jsonl")
    words = ("check", ran / "votes.parquet", "--train-gold", folder / "corrected.jsonl", "--dependencies", "none")
    halves = cli(*words, "--json")
    assert halves.code == 0, halves.err
    assert "worth" in halves.json
    formats.write(marked, folder / "gold.jsonl")
    found = cli(*words, "--gold", folder / "gold.jsonl")
    assert found.code == 0, found.err
    assert "on sequences that the model was not fitted with" in found.out


def test_sources_name_one_module(tmp_path: Path) -> None:
    place = tmp_path / "project.toml"
    place.write_text('data = "d:f"\nsources = ["a.eaf", "b.TextGrid"]\n')
    with pytest.raises(ProjectError, match="must name one file or module of functions"):
        read_project(place)
    place.write_text('data = "d:f"\nsources = ["my.module", "b.TextGrid"]\nexport = "elan"\nmedia = "videos"\n')
    found = read_project(place)
    assert found.sources == "my.module"
    assert found.annotations == (tmp_path / "b.TextGrid",)
    assert found.export == ("elan",)
    assert found.media == str(tmp_path / "videos")


def test_texts_are_found_and_cut_into_elements(tmp_path: Path) -> None:
    from dugong.cli.exchange import with_media
    from dugong.exceptions import FormatError
    from dugong.segments import Recording

    (tmp_path / "n1.txt").write_text("one two\nthree")
    made = dg.Segments(sequence=("n1",), start=(1,), end=(3,), label=("X",), recordings={"n1": Recording(length=3)})
    assert with_media(made, str(tmp_path)).to_unit("character").end[0] == 13
    lines = dg.Segments(sequence=("n1",), start=(1,), end=(2,), label=("X",), recordings={"n1": Recording(length=2)})
    assert with_media(lines, str(tmp_path)).to_unit("character").start[0] == 8
    other = dg.Segments(sequence=("n1",), start=(1,), end=(2,), label=("X",), recordings={"n1": Recording(length=5)})
    with pytest.raises(FormatError, match="3 words and 2 lines, and the sequence 5 elements"):
        with_media(other, str(tmp_path))
    with pytest.raises(FormatError, match="there is none for 'n2'"):
        with_media(dg.Segments(sequence=("n2",), start=(0,), end=(1,), label=("X",)), str(tmp_path))
