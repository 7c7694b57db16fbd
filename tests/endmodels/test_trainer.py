"""The trainer: what it minimises, what it keeps, what it leaves alone, what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dugong.endmodels import EndModelError, Epoch, TrainingProgress, pad_sequences, predict, train
from dugong.endmodels.batches import batch_rows, macro_f1
from dugong.exceptions import LabelError
from endmodels.small import blobs, linear, noisy, same_weights, soften

DATA, GOLD = blobs(60, seed=1)
SOFT = soften(GOLD)
DEV = blobs(40, seed=2)


def one_full_step(**options):
    """The loss before, and the weights after, one step on all data."""
    training = train(linear(3), DATA, epochs=1, batch_size=100, learning_rate=0.01, **options)
    return training.history[0].loss, training.model


def reference(targets: torch.Tensor, class_weights: list[float] | None = None, rows=slice(None)):
    """The same step with torch's own loss."""
    network = linear(3)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    weight = None if class_weights is None else torch.tensor(class_weights)
    inputs = torch.tensor(DATA[rows], dtype=torch.float32)
    loss = functional.cross_entropy(network(inputs), targets, weight=weight)
    loss.backward()
    optimizer.step()
    return loss.item(), network


def assert_same(ours, theirs):
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    torch.testing.assert_close(ours[1].weight, theirs[1].weight, rtol=1e-4, atol=1e-6)


def test_soft_labels_are_cross_entropy():
    assert_same(one_full_step(labels=SOFT), reference(torch.tensor(SOFT, dtype=torch.float32)))


def test_hard_labels_are_cross_entropy_of_classes():
    classes = torch.tensor((GOLD > 0).astype(int))
    assert_same(one_full_step(labels=SOFT, loss="hard"), reference(classes))
    assert_same(one_full_step(labels=GOLD), reference(classes))


def test_class_weights_are_torchs():
    classes = torch.tensor((GOLD > 0).astype(int))
    assert_same(one_full_step(labels=GOLD, class_weights=[1.0, 5.0]), reference(classes, [1.0, 5.0]))


def test_unknown_labels_are_left_out():
    some = np.where(np.arange(60) % 3 == 0, 0, GOLD)
    classes = torch.tensor((GOLD[some != 0] > 0).astype(int))
    assert_same(one_full_step(labels=some), reference(classes, rows=some != 0))
    training = train(linear(3), DATA, some, epochs=1)
    assert (training.n_examples, training.n_left_out) == (40, 20)


def test_confidence_is_a_weight():
    probabilities = soften(GOLD)
    probabilities[:30] = soften(GOLD[:30], 0.7)
    weights = np.where(np.arange(60) < 30, 0.4, 0.8)
    ours = one_full_step(labels=probabilities, loss="confidence")
    assert_same(ours, one_full_step(labels=GOLD, weights=weights))


def test_a_single_logit_is_the_log_odds_of_the_second_class():
    for network in (linear(3, 1), nn.Sequential(linear(3, 1), nn.Flatten(0))):
        training = train(network, DATA, SOFT, epochs=30, learning_rate=0.05)
        probabilities = predict(training.model, DATA)
        assert probabilities.shape == (60, 2)
        logit = training.model(torch.tensor(DATA, dtype=torch.float32)).detach().numpy().reshape(-1)
        np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-logit)), rtol=1e-5)
        assert np.mean((probabilities[:, 1] > 0.5) == (GOLD > 0)) > 0.85


def test_the_given_network_and_the_random_state_stay():
    network, before = noisy(), torch.random.get_rng_state()
    train(network, DATA, SOFT, epochs=2, dev=DEV)
    assert same_weights(network, noisy())
    assert network.training
    assert torch.equal(torch.random.get_rng_state(), before)


def test_equal_seeds_give_equal_weights():
    torch.manual_seed(1)
    first = train(noisy(), DATA, SOFT, epochs=3, batch_size=16, seed=7)
    torch.manual_seed(2)
    again = train(noisy(), DATA, SOFT, epochs=3, batch_size=16, seed=7)
    other = train(noisy(), DATA, SOFT, epochs=3, batch_size=16, seed=8)
    assert same_weights(first.model, again.model)
    assert first.history == again.history
    assert not same_weights(first.model, other.model)


def test_early_stopping_stops_and_keeps_the_best():
    # the labels of the training set are wrong, so the dev set is best early and worse ever after
    training = train(linear(3), DATA, soften(-GOLD), dev=DEV, metric="loss", patience=3, epochs=200, learning_rate=0.05)
    assert training.stopped == "patience"
    assert len(training.history) == training.best_epoch + 3 < 200
    losses = [epoch.dev_loss for epoch in training.history]
    assert training.best_epoch == 1 + int(np.argmin(losses))
    assert training.best.dev_loss == min(losses)
    logs = np.log(predict(training.model, DEV[0]))
    kept = -np.mean(logs[np.arange(40), (DEV[1] > 0).astype(int)])
    assert kept == pytest.approx(min(losses), rel=1e-6)


def test_without_patience_all_epochs_run_and_the_best_is_kept():
    training = train(linear(3), DATA, soften(-GOLD), dev=DEV, metric="loss", epochs=8, learning_rate=0.05)
    assert (training.stopped, len(training.history)) == ("epochs", 8)
    assert training.best_epoch == 1
    assert [epoch.improved for epoch in training.history] == [True] + [False] * 7


def test_f1_decides_and_ties_go_to_the_lower_loss():
    training = train(linear(3), DATA, SOFT, dev=DEV, epochs=40, learning_rate=0.05)
    best = max((epoch.dev_f1, -epoch.dev_loss) for epoch in training.history)
    assert (training.best.dev_f1, -training.best.dev_loss) == best
    by_f1 = [epoch for epoch in training.history if epoch.dev_f1 == best[0]]
    assert len(by_f1) > 1


def test_without_a_dev_set_the_last_epoch_is_kept():
    training = train(linear(3), DATA, SOFT, epochs=4)
    assert (training.best_epoch, training.best.dev_f1) == (4, None)
    assert set(training.weights) == {"weight", "bias"}
    assert torch.equal(training.weights["weight"], training.model.weight)
    with pytest.raises(TypeError):
        training.weights["weight"] = torch.zeros(2, 3)


def test_the_table_marks_the_best_epoch():
    training = train(linear(3), DATA, np.where(np.arange(60) < 5, 0, GOLD), dev=DEV, epochs=3)
    lines = str(training).splitlines()
    assert len(lines) == 5
    assert lines[training.best_epoch].endswith("*")
    assert "55 examples, 5 left out" in lines[-1]


def test_macro_f1_by_hand():
    gold, chosen = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])
    # class 0: 1 hit of 2 and 2; class 1: 1 hit, 2 labelled, 1 gold; class 2: none; class 3 does not occur
    assert macro_f1(chosen, gold, 4) == pytest.approx((0.5 + 2 / 3 + 0) / 3)
    assert macro_f1(np.array([0, 1]), np.array([0, 1]), 2) == 1.0
    assert macro_f1(np.array([0, 0]), np.array([0, 0]), 2) == 0.0


def test_progress_is_reported_after_every_epoch():
    seen: list[TrainingProgress] = []
    training = train(linear(3), DATA, SOFT, dev=DEV, epochs=3, seed=5, progress=seen.append)
    assert [now.done for now in seen] == [1, 2, 3]
    assert {(now.total, now.seed) for now in seen} == {(3, 5)}
    assert tuple(now.epoch for now in seen) == training.history
    assert seen[-1].best_epoch == training.best_epoch
    assert seen[-1].seconds > 0
    assert isinstance(seen[0].epoch, Epoch)


def test_the_bar_is_drawn_on_a_terminal(monkeypatch, capsys):
    train(linear(3), DATA, SOFT, epochs=1, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    train(linear(3), DATA, SOFT, epochs=2, dev=DEV, progress=True)
    drawn = capsys.readouterr().err
    assert "Training" in drawn
    assert "dev F1" in drawn


class Pairs:
    """A dataset that computes its items."""

    def __init__(self, data, parts=1):
        self.data, self.parts = data, parts

    def __len__(self):
        return len(self.data)

    def __getitem__(self, place):
        assert isinstance(place, int)
        item = self.data[place]
        return item if self.parts == 1 else (item, torch.tensor(item[:1], dtype=torch.float32))


def test_all_forms_of_data_train_alike(tmp_path):
    mapped = np.memmap(tmp_path / "data", dtype=np.float64, mode="w+", shape=DATA.shape)
    mapped[:] = DATA
    frozen = DATA.view()
    frozen.flags.writeable = False
    forms = [DATA, frozen, mapped, torch.tensor(DATA, dtype=torch.float32), (DATA,), list(DATA), Pairs(DATA)]
    trained = [train(linear(3), form, SOFT, epochs=2, batch_size=16).model for form in forms]
    assert all(same_weights(trained[0], other) for other in trained[1:])
    found = [predict(trained[0], form, batch_size=7) for form in forms]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = linear(4)

    def forward(self, x, extra):
        return self.last(torch.cat([x, extra], dim=1))


def test_several_inputs_are_several_arguments():
    in_memory = train(TwoInputs(), (DATA, DATA[:, :1]), SOFT, epochs=2).model
    by_item = train(TwoInputs(), Pairs(DATA, parts=2), SOFT, epochs=2).model
    assert same_weights(in_memory, by_item)
    assert predict(in_memory, (DATA, DATA[:, :1])).shape == (60, 2)


class Tagger(nn.Module):
    """Labels every element of a sequence."""

    def __init__(self):
        super().__init__()
        self.last = linear(2, 3)

    def forward(self, x, mask):
        assert mask.dtype == torch.bool
        return self.last(x)


def test_labels_of_every_element():
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(size, 2)) for size in rng.integers(2, 6, size=40)]
    gold = [1 + (one[:, 0] > 0) + (one[:, 0] > 0.8) for one in sequences]
    padded, labels = pad_sequences(sequences), pad_sequences(gold)
    training = train(
        Tagger(),
        padded,
        labels.values,
        dev=(padded, labels.values),
        epochs=60,
        learning_rate=0.1,
        batch_size=8,
    )
    found = predict(training.model, padded)
    assert found.shape == (*padded.mask.shape, 3)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-12)
    assert np.mean(found.argmax(axis=-1)[padded.mask] + 1 == labels.values[padded.mask]) > 0.9
    assert training.best.dev_f1 > 0.85


def test_lazy_layers_and_frozen_layers():
    lazy = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    assert predict(train(lazy, DATA, SOFT, epochs=2, seed=3).model, DATA).shape == (60, 2)
    frozen = nn.Sequential(linear(3, 4), nn.ReLU(), linear(4, 2))
    frozen[0].requires_grad_(requires_grad=False)
    trained = train(frozen, DATA, SOFT, epochs=2, weight_decay=0.1).model
    assert same_weights(trained[0], frozen[0])
    assert not same_weights(trained[2], frozen[2])


def test_weight_decay_shrinks():
    plain = train(linear(3), DATA, SOFT, epochs=20, learning_rate=0.05).model
    decayed = train(linear(3), DATA, SOFT, epochs=20, learning_rate=0.05, weight_decay=1.0).model
    assert decayed.weight.norm() < 0.7 * plain.weight.norm()


def test_predicting_changes_nothing():
    network = noisy()
    first, again = predict(network, DATA), predict(network, DATA, batch_size=7)
    np.testing.assert_allclose(first, again, rtol=1e-5)
    assert same_weights(network, noisy())
    assert all(module.training for module in network.modules())
    network[1].eval()
    predict(network, DATA)
    assert [module.training for module in network] == [True, False, True, True, True]


def test_a_last_batch_of_one_joins_the_batch_before():
    rows = np.arange(9)
    assert [batch.tolist() for batch in batch_rows(rows, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    assert [len(batch) for batch in batch_rows(rows, 5)] == [5, 4]
    assert [len(batch) for batch in batch_rows(rows[:1], 5)] == [1]
    assert [len(batch) for batch in batch_rows(rows, 1)][-1] == 2
    train(noisy(), DATA[:33], SOFT[:33], batch_size=32, epochs=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train(linear(3), DATA, SOFT[:-1]), "one label per example; found 59 and 60 examples"),
        (lambda: train(linear(3), DATA, SOFT, patience=3), "give dev="),
        (lambda: train(linear(3), DATA, SOFT, epochs=0), "epochs must be a whole number, at least 1; found 0"),
        (lambda: train(linear(3), DATA, SOFT, batch_size=2.5), "batch_size must be a whole number"),
        (lambda: train(linear(3), DATA, SOFT, seed=-1), "seed must be a whole number, at least 0"),
        (lambda: train(linear(3), DATA, SOFT, learning_rate=0.0), "positive number; found 0.0"),
        (lambda: train(linear(3), DATA, SOFT, weight_decay=-1.0), "0 or more; found -1.0"),
        (lambda: train(linear(3), DATA, SOFT, dev=DEV, metric="auc"), "one of f1, loss; found 'auc'"),
        (lambda: train(linear(3), DATA, SOFT, dev=DATA), r"a pair \(data, labels\); found ndarray"),
        (lambda: train(linear(3), DATA, SOFT, dev=(DATA, GOLD[:5])), "dev must have one label per example"),
        (lambda: train(linear(3), {"a": DATA}, SOFT), "found dict"),
        (lambda: train(linear(3), (DATA, DATA[:5]), SOFT), r"as many rows as each other; found \[60, 5\]"),
        (lambda: train(linear(3), (DATA, "x"), SOFT), "arrays or tensors; found str"),
        (lambda: train(linear(3), np.array(["a"]), SOFT), "data must hold numbers"),
        (lambda: train(linear(3), [np.ones(3), np.ones(4)], SOFT[:2]), "Make them equal with pad_sequences"),
        (lambda: train(linear(3), DATA[:0], SOFT[:0]), "at least one example"),
        (lambda: train(nn.Flatten(), DATA[:, :2], SOFT), "no parameters to train"),
        (lambda: train(nn.LSTM(3, 2), DATA, SOFT), "one tensor of logits; found tuple"),
        (lambda: train(linear(3), np.where(DATA > 1, np.nan, DATA), SOFT), "the loss is nan in epoch 1"),
        (lambda: train(linear(3), DATA[:, None].repeat(2, axis=1), SOFT), r"returns \(2, 2\) per example"),
        (lambda: predict(linear(3), DATA, batch_size=0), "at least 1; found 0"),
        (lambda: predict(linear(3), DATA[:0]), "at least one example"),
        (lambda: predict(nn.Flatten(0), DATA), "one row per example, 60 here"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(EndModelError, match=message):
        call()


def test_labels_must_fit_the_network():
    with pytest.raises(LabelError, match="has 3 classes, so probabilities must have as many columns; found 2"):
        train(linear(3, 3), DATA, SOFT)
    with pytest.raises(LabelError, match="0 means unknown"):
        train(linear(3), DATA, (GOLD > 0).astype(int))
    as_ints = train(linear(3), DATA, (GOLD > 0).astype(int), classes=(0, 1), epochs=1)
    assert same_weights(as_ints.model, train(linear(3), DATA, GOLD, epochs=1).model)


def test_history_is_finite():
    training = train(noisy(), DATA, SOFT, dev=DEV, epochs=3, class_weights="balanced", loss="confidence")
    assert all(math.isfinite(epoch.loss) and 0 <= epoch.dev_f1 <= 1 for epoch in training.history)
