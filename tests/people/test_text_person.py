"""A text person: notes as plain text, rules about words, drugs marked in their characters, files for brat."""

from __future__ import annotations

import inspect
import random
from pathlib import Path

import dugong as dg
from command_line import Command

DRUGS = ("aspirin", "insulin", "warfarin", "metoprolol", "simvastatin", "lisinopril")
OTHERS = ("the", "patient", "was", "given", "daily", "after", "breakfast", "hospital", "complaining", "slept", "well")


@dg.source
def in_lexicon(word: str) -> int:
    known = word in {"aspirin", "insulin", "warfarin", "metoprolol", "daily"}
    return dg.POSITIVE if known else dg.NEGATIVE


@dg.source
def ends_like_a_drug(word: str) -> int:
    return dg.POSITIVE if word.endswith(("rin", "lin", "olol", "statin", "pril")) else dg.NEGATIVE


@dg.source
def is_long(word: str) -> int:
    return dg.POSITIVE if len(word) >= 7 else dg.NEGATIVE


def write_notes(folder: Path) -> None:
    numbers = random.Random(2)
    for place in range(80):
        words = [numbers.choice(DRUGS if numbers.random() < 0.25 else OTHERS) for _ in range(12)]
        (folder / f"note{place:02d}.txt").write_text(" ".join(words) + ".\n")


def test_from_notes_to_marked_drugs_in_brat(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    write_notes(notes)

    # 1. One element per word; every word knows its characters.
    sequences = dg.loaders.text_folder(notes)
    first = next(iter(sequences))
    text = {name: (notes / f"{name}.txt").read_text() for name in sequences}
    word = sequences[first][3]
    assert text[first][word.start : word.end] == word

    # 2. Rules vote, the model labels; labels become spans.
    votes = dg.apply([in_lexicon, ends_like_a_drug, is_long], sequences, progress=False)
    model = dg.LabelModel().fit(votes)
    found = model.labels(votes).segments(decode=False)

    # 3. The spans in characters are drugs.
    tokens = {name: tuple((one.start, one.end) for one in sequences[name]) for name in sequences}
    spans = found.describe(text=text, tokens=tokens).to_unit("character")
    marked = [text[one.sequence][int(one.start) : int(one.end)] for one in spans]
    words = [word for mark in marked for word in mark.split()]
    right = sum(word in DRUGS for word in words)
    truth = sum(word in DRUGS for name in sequences for word in sequences[name])
    assert right > 0.9 * len(words)
    assert right > 0.9 * truth

    # 4. Out to an annotation tool, and back with nothing lost.
    dg.formats.write(spans, tmp_path / "for-brat", "brat")
    back = dg.formats.read(tmp_path / "for-brat", "brat")
    assert sorted((one.sequence, one.start, one.end) for one in back) == sorted(
        (one.sequence, one.start, one.end) for one in spans
    )


def test_a_folder_of_conll_files_is_data_and_its_words_are_in_the_report(cli: Command, tmp_path: Path) -> None:
    numbers = random.Random(4)
    (tmp_path / "corpus").mkdir()
    for place in range(30):
        words = [numbers.choice(DRUGS if numbers.random() < 0.25 else OTHERS) for _ in range(10)]
        text = "-DOCSTART- -X- -X- O\n\n" + "".join(f"{word} NN B-NP O\n" for word in words)
        (tmp_path / "corpus" / f"d{place:02d}.conll").write_text(text)
    rules = (ends_like_a_drug, is_long)
    code = "import dugong as dg\n\n\n" + "\n\n".join(inspect.getsource(one.function) for one in rules)
    (tmp_path / "sources.py").write_text(code)
    (tmp_path / "project.toml").write_text('data = "corpus"\nsources = "sources.py"\nshow = "100 kB"\n')
    outcome = cli("run", tmp_path, "--json")
    assert outcome.code == 0, outcome.err
    assert '"kind":"words"' in (tmp_path / "output" / "report.html").read_text()
    one = (tmp_path / "corpus" / "d00.conll").read_text()
    (tmp_path / "one.conll").write_text(one + one)
    (tmp_path / "project.toml").write_text('data = "one.conll"\nsources = "sources.py"\noutput = "second"\n')
    assert cli("run", tmp_path, "--json").code == 0
    assert dg.Labels.read(tmp_path / "second" / "labels.parquet").at("element").ids.tolist()[:1] == ["one-1"]
    (tmp_path / "one.conll").write_text(one)
    (tmp_path / "project.toml").write_text('data = "one.conll"\nsources = "sources.py"\noutput = "third"\n')
    assert any("All data are one sequence" in said for said in cli("run", tmp_path, "--json").json["findings"])
