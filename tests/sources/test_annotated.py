"""Words that know where they stand, and epochs of recordings."""

import pickle

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import LoaderError
from dugong.sources.loaders import conll, edf_folder, folder, text_folder

CONLL = "-DOCSTART- O\n\nEU B-ORG\nrejects O\n\nPeter B-PER\nBlackburn I-PER\n"


def test_conll_gives_documents_or_sentences(tmp_path):
    (tmp_path / "a.conll").write_text(CONLL)
    words = conll(tmp_path / "a.conll")
    assert {name: list(map(str, one)) for name, one in words.items()} == {"a": ["EU", "rejects", "Peter", "Blackburn"]}
    parts = conll(tmp_path / "a.conll", by="sentence")
    assert {name: list(map(str, one)) for name, one in parts.items()} == {
        "a:1": ["EU", "rejects"],
        "a:2": ["Peter", "Blackburn"],
    }
    assert (words["a"][1].start, words["a"][1].end) == (3, 10)
    with pytest.raises(LoaderError, match="by= must be"):
        conll(tmp_path / "a.conll", by="page")


def test_the_ids_are_those_of_annotations_read_from_the_same_file(tmp_path):
    (tmp_path / "a.conll").write_text(CONLL)
    gold = dg.formats.read(tmp_path / "a.conll")
    assert set(gold.sequence) == set(conll(tmp_path / "a.conll"))


def test_plain_text_keeps_the_places_of_words(tmp_path):
    text = "Aspirin, 100 mg.\nSlept well."
    (tmp_path / "note.txt").write_text(text)
    words = text_folder(tmp_path)["note"]
    assert words == ["Aspirin", ",", "100", "mg", ".", "Slept", "well", "."]
    assert all(text[word.start : word.end] == word for word in words)
    again = pickle.loads(pickle.dumps(words[5]))  # noqa: S301 (our own bytes)
    assert (again, again.start) == ("Slept", 17)
    assert folder(tmp_path)["note"] == words


def test_edf_is_cut_into_epochs(tmp_path):
    edfio = pytest.importorskip("edfio")
    rng = np.random.default_rng(0)
    signals = [
        edfio.EdfSignal(rng.normal(size=95 * rate), sampling_frequency=rate, label=name)
        for name, rate in (("EEG", 100), ("EMG", 10))
    ]
    edfio.Edf(signals).write(tmp_path / "night.edf")
    found = edf_folder(tmp_path, every="30s")
    night = found["night"]
    assert (len(night), found.rate, night.clock) == (3, 1 / 30, (0.0, 1 / 30))
    assert {name: len(samples) for name, samples in night[1].items()} == {"EEG": 3000, "EMG": 300}
    assert night[1:][0]["EMG"].tolist() == night[1]["EMG"].tolist()
    with pytest.raises(LoaderError, match="there is no channel 'EOG'; known are 'EEG', 'EMG'"):
        edf_folder(tmp_path, channels=["EOG"])["night"]
