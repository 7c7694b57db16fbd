"""A gait researcher: a folder of 64 Hz recordings, rules about four seconds, no expert settings.

She has CSV files as her sensors wrote them, four rules of thumb about freezing of gait from the literature, and known
labels of other people's patients only to compare with. She wants labels per four seconds.
"""

from pathlib import Path

import numpy as np
import pytest

import dugong as dg

pytestmark = pytest.mark.data


def band(signal, low, high):
    """Power of a signal between two frequencies; 64 samples per second."""
    power = np.abs(np.fft.rfft(signal - signal.mean())) ** 2
    hertz = np.fft.rfftfreq(len(signal), 1 / 64)
    return power[(hertz >= low) & (hertz < high)].sum() + 1e-9


def freeze_index(block, channel):
    """Trembling (3 to 8 Hz) over walking (.5 to 3 Hz)."""
    return band(block[channel], 3, 8) / band(block[channel], 0.5, 3)


@dg.source
def ankle_trembles(block):
    if np.std(block["ankle_vertical"]) < 30:
        return dg.NEGATIVE  # stands still
    return dg.POSITIVE if freeze_index(block, "ankle_vertical") > 3 else dg.NEGATIVE


@dg.source
def leg_trembles(block):
    if np.std(block["leg_vertical"]) < 30:
        return dg.NEGATIVE
    return dg.POSITIVE if freeze_index(block, "leg_vertical") > 2.5 else dg.NEGATIVE


@dg.source
def trunk_trembles(block):
    if np.std(block["trunk_forward"]) < 20:
        return dg.NEGATIVE
    return dg.POSITIVE if freeze_index(block, "trunk_forward") > 2.5 else dg.NEGATIVE


@dg.source(resolution=dg.Window(seconds=12, link="any"))
def walks_well(window):
    """Strong, regular steps all along: nobody freezes here."""
    steps = [band(block["ankle_forward"], 0.5, 3) / len(block) for block in window]
    return dg.NEGATIVE if min(steps) > 4e6 else dg.ABSTAIN


SOURCES = [ankle_trembles, leg_trembles, trunk_trembles, walks_well]
CHANNELS = [f"{place}_{axis}" for place in ("ankle", "leg", "trunk") for axis in ("forward", "vertical", "lateral")]


@pytest.fixture(scope="module")
def recordings(shared_data, tmp_path_factory):
    """The parts of every recording inside of the experiment, as the sensors would have written them."""
    folder = tmp_path_factory.mktemp("gait")
    gold = {}
    with np.load(Path(shared_data) / "gait-daphnet" / "recordings.npz") as stored:
        for name in sorted({key.split("/")[0] for key in stored.files}):
            inside = stored[f"{name}/annotation"] > 0
            values = stored[f"{name}/acceleration"][inside]
            n_blocks = len(values) // 256
            values, marks = values[: 256 * n_blocks], stored[f"{name}/annotation"][inside][: 256 * n_blocks]
            times = np.arange(len(values)) / 64
            rows = np.column_stack([times, values])
            head = ",".join(["t", *CHANNELS])
            np.savetxt(folder / f"{name}.csv", rows, fmt="%.6g", delimiter=",", header=head, comments="")
            gold[name] = np.where((marks.reshape(-1, 256) == 2).mean(axis=1) > 0.5, 1, -1)
    return folder, gold


def f1(labels, gold):
    right = int(((labels == 1) & (gold == 1)).sum())
    return 2 * right / max(1, int((labels == 1).sum() + (gold == 1).sum()))


def test_four_seconds_are_labelled_at_least_as_well_as_by_the_vote(recordings):
    folder, gold = recordings
    sequences = dg.loaders.csv_folder(folder, time="t", every="4s", reduce=None)
    votes = dg.apply(SOURCES, sequences, progress=False)
    assert votes.lengths.tolist() == [len(gold[name]) for name in votes.sequence_ids.tolist()]
    truth = np.concatenate([gold[name] for name in votes.sequence_ids.tolist()])

    model = dg.LabelModel().fit(votes)
    labels = model.labels(votes)
    vote = dg.MajorityVote().fit(votes).predict(votes)
    ours = model.predict(votes)
    assert (ours == 1).any()
    assert f1(ours, truth) >= f1(vote, truth) - 0.003

    # Labels of coarser resolutions come from the same law as those of the elements.
    windows = model.predict_proba(votes, dg.Window(seconds=12, link="any"))[:, 1]
    layout = votes.layout(dg.Window(seconds=12, link="any"))
    starts, stops = layout.flat_bounds()
    element = model.predict_proba(votes)[:, 1]
    largest = np.array([element[a:b].max() for a, b in zip(starts, stops, strict=True)])
    assert (windows >= largest - 1e-9).all()
    assert labels.seconds is not None
