"""A run that is stopped and resumed ends as one that is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dugong.endmodels import EndModelError, load_weights, train
from dugong.endmodels.seeds import train_seeds
from endmodels.small import blobs, linear, noisy, same_weights, soften

DATA, GOLD = blobs(50, seed=1)
SOFT = soften(GOLD, 0.8)
DEV = blobs(30, seed=2)
OPTIONS = {"batch_size": 8, "learning_rate": 0.02, "seed": 3, "dev": DEV, "metric": "loss", "weight_decay": 0.01}


class KilledError(Exception):
    pass


def kill_after(epoch: int):
    def report(now):
        if now.done == epoch:
            raise KilledError

    return report


class Dies:
    """A dataset whose disk fails after some reads."""

    def __init__(self, reads: int):
        self.reads = reads

    def __len__(self):
        return len(DATA)

    def __getitem__(self, place):
        self.reads -= 1
        if self.reads < 0:
            raise KilledError
        return DATA[place]


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_killed_run_resumes_exactly(tmp_path, stop):
    path = tmp_path / "runs" / "gait.pt"
    whole = train(noisy(), DATA, SOFT, epochs=6, **OPTIONS)
    with pytest.raises(KilledError):
        train(noisy(), DATA, SOFT, epochs=6, checkpoint=path, progress=kill_after(stop), **OPTIONS)
    epochs: list[int] = []
    resumed = train(
        noisy(seed=9), DATA, SOFT, epochs=6, checkpoint=path, progress=lambda now: epochs.append(now.done), **OPTIONS
    )
    assert epochs == list(range(stop + 1, 7))
    assert resumed.history == whole.history
    assert resumed.best_epoch == whole.best_epoch
    assert same_weights(resumed.model, whole.model)


def test_a_run_killed_within_an_epoch_resumes_exactly(tmp_path):
    whole = train(noisy(), DATA, SOFT, epochs=4, **OPTIONS)
    with pytest.raises(KilledError):
        train(noisy(), Dies(1 + 2 * 50 + 20), SOFT, epochs=4, checkpoint=tmp_path / "run.pt", **OPTIONS)
    resumed = train(noisy(), Dies(10_000), SOFT, epochs=4, checkpoint=tmp_path / "run.pt", **OPTIONS)
    assert same_weights(resumed.model, whole.model)


def test_the_best_weights_survive_a_restart(tmp_path):
    """Wrong labels: the best epoch is the first, long before the restart."""
    options = {**OPTIONS, "patience": 4, "epochs": 30}
    whole = train(linear(3), DATA, soften(-GOLD), **options)
    assert (whole.best_epoch, whole.stopped) == (1, "patience")
    with pytest.raises(KilledError):
        train(linear(3), DATA, soften(-GOLD), checkpoint=tmp_path / "run.pt", progress=kill_after(3), **options)
    resumed = train(linear(3), DATA, soften(-GOLD), checkpoint=tmp_path / "run.pt", **options)
    assert (resumed.best_epoch, resumed.stopped) == (1, "patience")
    assert same_weights(resumed.model, whole.model)
    again = linear(3, seed=5)
    load_weights(again, tmp_path / "run.pt")
    assert same_weights(again, whole.model)


def test_a_finished_run_is_not_run_again_but_can_be_prolonged(tmp_path):
    path = tmp_path / "run.pt"
    short = train(noisy(), DATA, SOFT, epochs=2, checkpoint=path, **OPTIONS)
    content = path.read_bytes()
    again = train(noisy(), DATA, SOFT, epochs=2, checkpoint=path, progress=kill_after(2), **OPTIONS)
    assert path.read_bytes() == content
    assert same_weights(short.model, again.model)
    longer = train(noisy(), DATA, SOFT, epochs=5, checkpoint=path, **OPTIONS)
    assert same_weights(longer.model, train(noisy(), DATA, SOFT, epochs=5, **OPTIONS).model)
    with pytest.raises(EndModelError, match="holds 5 epochs, and epochs=3 asks for fewer"):
        train(noisy(), DATA, SOFT, epochs=3, checkpoint=path, **OPTIONS)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"seed": 4}, "seed"),
        ({"learning_rate": 0.01, "batch_size": 16}, "batch_size, learning_rate"),
        ({"loss": "hard"}, "loss, labels and weights"),
        ({"labels": soften(GOLD, 0.7)}, "labels and weights"),
        ({"class_weights": [1.0, 2.0]}, "labels and weights, dev labels"),
        ({"data": DATA + 1}, "data"),
        ({"dev": (DEV[0] + 1, DEV[1])}, "dev data"),
        ({"dev": None, "metric": "loss"}, "dev data, dev labels"),
    ],
)
def test_another_run_is_refused(tmp_path, changes, named):
    path = tmp_path / "run.pt"
    train(noisy(), DATA, SOFT, epochs=1, checkpoint=path, **OPTIONS)
    options = {"data": DATA, "labels": SOFT, **OPTIONS, **changes}
    with pytest.raises(EndModelError, match=f"holds another run: {named} differ.\n  Give another path"):
        train(noisy(), epochs=1, checkpoint=path, **options)


def test_another_network_is_refused(tmp_path):
    train(noisy(), DATA, SOFT, epochs=1, checkpoint=tmp_path / "run.pt", **OPTIONS)
    with pytest.raises(EndModelError, match="weights of another network"):
        train(linear(3), DATA, SOFT, epochs=1, checkpoint=tmp_path / "run.pt", **OPTIONS)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "run.pt"
    path.write_bytes(b"no file of torch")
    with pytest.raises(EndModelError, match=r"is not loaded|damaged"):
        train(noisy(), DATA, SOFT, epochs=1, checkpoint=path)
    torch.save({"weight": torch.zeros(1)}, path)
    with pytest.raises(EndModelError, match="is no checkpoint of a training"):
        train(noisy(), DATA, SOFT, epochs=1, checkpoint=path)


def test_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    train(noisy(), DATA, SOFT, epochs=1, checkpoint=path)
    content = torch.load(path, weights_only=True)
    torch.save({**content, "version": 99}, path)
    with pytest.raises(EndModelError, match="checkpoint version 99; this library reads 1"):
        train(noisy(), DATA, SOFT, epochs=1, checkpoint=path)


def test_nothing_is_left_beside_the_file(tmp_path):
    train(noisy(), DATA, SOFT, epochs=2, checkpoint=tmp_path / "run.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]


def test_seeds_resume_from_a_folder(tmp_path):
    options = {**OPTIONS, "epochs": 3, "test": DEV, "seeds": (0, 1)}
    del options["seed"]
    whole = train_seeds(factory, DATA, SOFT, **options)
    calls = iter(range(100))

    def die(_now):
        if next(calls) == 4:  # in the second seed
            raise KilledError

    with pytest.raises(KilledError):
        train_seeds(factory, DATA, SOFT, checkpoint=tmp_path, progress=die, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-0.pt", "seed-1.pt"]
    resumed = train_seeds(factory, DATA, SOFT, checkpoint=tmp_path, **options)
    assert resumed.scores == whole.scores
    for one, other in zip(resumed.trainings, whole.trainings, strict=True):
        assert same_weights(one.model, other.model)


def factory():
    """Draws its weights from torch's random state, unlike `noisy`."""
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def test_digests_see_every_value(tmp_path):
    data = np.zeros((3000, 3))
    labels = soften(np.where(np.arange(3000) % 2, 1, -1))
    train(linear(3), data, labels, epochs=1, batch_size=1000, checkpoint=tmp_path / "run.pt")
    data[2999, 2] = 1e-9
    with pytest.raises(EndModelError, match="another run: data differ"):
        train(linear(3), data, labels, epochs=1, batch_size=1000, checkpoint=tmp_path / "run.pt")
