"""Votes as a folder: fit, label and summary stream over it and say what they would say about votes in memory."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import dugong as dg
from dugong.engines import Processes
from dugong.shards import Shard, VoteShards, fit_shards, label_shards, read_sample, summarize_shards
from dugong.shards.folder import UNFINISHED

PRIOR = dg.priors.Markov(positive=0.4, stay=0.85)


@pytest.fixture
def shards(parts: list[dg.Votes], tmp_path: Path) -> VoteShards:
    return VoteShards.write(parts, tmp_path / "votes")


def given_model() -> dg.LabelModel:
    return dg.LabelModel(prior=PRIOR, dependencies=[("s0", "s1")])


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_sizes_are_known_without_reading_votes(shards: VoteShards, whole: dg.Votes, monkeypatch) -> None:
    def refuse(_: object) -> None:
        raise AssertionError("votes were read")

    monkeypatch.setattr(dg.Votes, "read", refuse)
    again = VoteShards.open(shards.folder)
    assert (again.n_sequences, again.n_elements) == (whole.n_sequences, whole.n_elements)
    assert max(shard.longest for shard in again.shards) == whole.lengths.max()


def test_iterating_gives_the_parts_back(shards: VoteShards, parts: list[dg.Votes]) -> None:
    assert all(found.equals(part) for found, part in zip(shards, parts, strict=True))


def test_fit_is_the_fit_of_all_votes_in_memory(shards: VoteShards, whole: dg.Votes) -> None:
    streamed, direct = fit_shards(given_model(), shards), given_model().fit(whole)
    assert any(note.kind == "balance" for note in direct.diagnostics_.notes)
    for name, table in direct.accuracies_.items():
        np.testing.assert_allclose(streamed.accuracies_[name], table, rtol=0, atol=1e-12)
    np.testing.assert_allclose(streamed.correlations_["s0", "s1"], direct.correlations_["s0", "s1"], rtol=0, atol=1e-12)
    errors, expected = streamed.standard_errors_.to_dict(), direct.standard_errors_.to_dict()
    assert errors.keys() == expected.keys()
    np.testing.assert_allclose(streamed.predict_proba(whole), direct.predict_proba(whole), rtol=0, atol=1e-12)


def test_engines_give_the_same_bits(shards: VoteShards, tmp_path: Path) -> None:
    for name, engine in (("one", None), ("two", Processes(n_jobs=2))):
        model = fit_shards(given_model(), shards, engine=engine)
        model.save(tmp_path / f"{name}.json")
        label_shards(model, shards, tmp_path / name, engine=engine)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_no_more_than_one_shard_is_read_at_a_time(shards: VoteShards, tmp_path: Path, monkeypatch) -> None:
    columns: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []
    read = Shard.read

    def watched(self: Shard) -> dg.Votes:
        alive.append(sum(column() is not None for column in columns))
        votes = read(self)
        columns.append(weakref.ref(votes.columns[0]))
        return votes

    monkeypatch.setattr(Shard, "read", watched)
    label_shards(fit_shards(given_model(), shards), shards, tmp_path / "labels")
    assert len(alive) >= 3 * len(shards)
    assert max(alive) <= 1


def test_what_is_learned_comes_from_a_sample_of_whole_sequences(shards: VoteShards, whole: dg.Votes) -> None:
    model = fit_shards(dg.LabelModel(), shards, sample=1500)
    note = next(note for note in model.diagnostics_.notes if note.kind == "sample")
    assert f"of {whole.n_sequences:,} sequences" in note.text
    assert 0.1 < note.size < 0.6
    assert note.text in str(model.summary())
    sample = read_sample(shards, 1500)
    assert sample.n_elements == pytest.approx(1500, rel=0.3)
    assert {str(one).partition("-")[0] for one in sample.sequence_ids} == {"mon", "tue", "wed", "thu", "fri", "sat"}


def test_the_sample_does_not_depend_on_the_shards(
    whole: dg.Votes, shards: VoteShards, parts: list[dg.Votes], tmp_path: Path
) -> None:
    other = VoteShards.write([whole[:7], whole[7:200], whole[200:]], tmp_path / "other")
    assert read_sample(other, 1500).equals(read_sample(shards, 1500))
    backwards = VoteShards.write(parts[::-1], tmp_path / "backwards")
    assert read_sample(backwards, 1500).equals(read_sample(shards, 1500))
    assert read_sample(shards, 10**9).equals(whole)
    assert read_sample(shards, 1).n_sequences >= 1


def test_a_limit_on_memory(shards: VoteShards, tmp_path: Path) -> None:
    from dugong.shards.folder import jobs_within, need, read_size, sample_within

    assert [read_size(one) for one in ("2GB", "500 mb", "1.5GiB", 1000)] == [2 * 10**9, 5 * 10**8, 15 * 10**8, 1000]
    largest = max(shard.n_elements for shard in shards.shards)
    room = need(largest, shards)
    assert [jobs_within(shards, memory, 8) for memory in (None, room, 3 * room, 100 * room)] == [8, 1, 3, 8]
    assert sample_within(shards, None) == sample_within(shards, "10GB") == 1 << 21
    assert sample_within(shards, need(1000, shards)) == 1000
    model = fit_shards(given_model(), shards, memory=room)
    with pytest.raises(dg.VoteError, match=r"must hold one shard; shard part-0000\d\.parquet has [\d,]+ elements"):
        label_shards(model, shards, tmp_path / "labels", memory=room - 1)


def test_labels_are_those_of_the_model(shards: VoteShards, whole: dg.Votes, tmp_path: Path) -> None:
    model = fit_shards(given_model(), shards)
    done = label_shards(model, shards, tmp_path / "labels", resolutions=["element"])
    table = pq.read_table(sorted((tmp_path / "labels").glob("*.parquet")))
    assert done.n_rows == table.num_rows == whole.n_elements
    np.testing.assert_allclose(table["p_1"].to_numpy(), model.predict_proba(whole)[:, 1], rtol=0, atol=1e-12)


def test_labels_that_are_there_stay_until_model_or_votes_change(shards: VoteShards, tmp_path: Path) -> None:
    model, folder = fit_shards(given_model(), shards), tmp_path / "labels"
    label_shards(model, shards, folder)
    first = files_of(folder)
    (folder / "part-00002.parquet").unlink()
    (folder / "part-00004.parquet").write_bytes(b"PAR1 half of it")
    again = label_shards(model, shards, folder)
    assert (again.n_done, again.n_kept) == (2, 4)
    assert files_of(folder) == first
    other = fit_shards(dg.LabelModel(prior=PRIOR, dependencies=()), shards)
    assert label_shards(other, shards, folder).n_kept == 0
    assert label_shards(other, shards, folder, resolutions=["element"]).n_kept == 0


def test_the_summary_is_that_of_votes_in_memory(shards: VoteShards, whole: dg.Votes) -> None:
    assert str(summarize_shards(shards)) == str(whole.summary())
    assert summarize_shards(shards).to_dict() == whole.summary().to_dict()


def test_remarks_of_the_summary(parts: list[dg.Votes], tmp_path: Path) -> None:
    def worse(votes: dg.Votes) -> dg.Votes:
        columns = list(votes.columns)
        columns[1], columns[2], columns[3] = columns[0], np.zeros_like(columns[0]), np.ones_like(columns[0])
        return replace(votes, columns=tuple(columns))

    bad = [worse(part) for part in parts]
    found = summarize_shards(VoteShards.write(bad, tmp_path / "bad"))
    kinds = {(one.kind, one.source) for one in found.problems}
    assert kinds >= {("copy", "s1"), ("never-votes", "s2"), ("always-same", "s3")}
    assert {one.text for one in found.problems} == {one.text for one in dg.Votes.concat(bad).summary().problems}


def test_the_class_that_silence_stands_for_is_that_of_all_shards(tmp_path: Path) -> None:
    def part(name: str, spoken: int) -> dg.Votes:
        codes = np.array([[spoken], [-1], [spoken], [-1]])
        return dg.Votes.from_classes(codes, lengths=[4], ids=[name], classes=["rest", "walk", "run"], abstain=-1)

    parts = [part("first", 1), part("second", 2)]
    text = str(summarize_shards(VoteShards.write(parts, tmp_path / "votes")))
    assert text == str(dg.Votes.concat(parts).summary())
    assert "they count as background" in text


def test_sequences_without_ids_are_called_by_their_shard(parts: list[dg.Votes], tmp_path: Path) -> None:
    shards = VoteShards.write([replace(part, ids=None) for part in parts], tmp_path / "votes")
    assert shards.shards[3].read().sequence_ids[5] == "part-00003/5"


def test_an_unfinished_folder_is_never_read_as_whole(parts: list[dg.Votes], tmp_path: Path) -> None:
    def interrupted():
        yield parts[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        VoteShards.write(interrupted(), tmp_path / "votes")
    assert (tmp_path / "votes" / UNFINISHED).exists()
    with pytest.raises(dg.VoteError, match=r"is not complete.*\n.*continues where it stopped"):
        VoteShards.open(tmp_path / "votes")


def test_shards_that_do_not_fit_together_are_named(parts: list[dg.Votes], tmp_path: Path) -> None:
    folder = VoteShards.write(parts[:2], tmp_path / "votes").folder
    parts[2].select(sources=["s0", "s1"]).write(folder / "part-00002.parquet")
    with pytest.raises(dg.VoteError, match=r"same sources; part-00002\.parquet differs from part-00000"):
        VoteShards.open(folder)
    (folder / "part-00002.parquet").write_bytes(b"PAR1")
    with pytest.raises(dg.VoteError, match=r"part-00002\.parquet cannot be read"):
        VoteShards.open(folder)
    with pytest.raises(dg.VoteError, match="there is no folder"):
        VoteShards.open(tmp_path / "nowhere")
