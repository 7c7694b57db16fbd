"""Weights from files: what fits is loaded, what does not is named, and nothing in a file is run."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import nn

from dugong.endmodels import EndModelError, load_weights, resnet3d18, resnet18, save_weights, train
from endmodels.small import linear, same_weights


def network(n_classes: int = 2, seed: int = 0) -> nn.Sequential:
    return nn.Sequential(linear(3, 4, seed), nn.ReLU(), linear(4, n_classes, seed + 1))


def test_there_and_back(tmp_path):
    save_weights(network(seed=4), tmp_path / "weights.pt")
    other = network()
    report = load_weights(other, tmp_path / "weights.pt")
    assert same_weights(other, network(seed=4))
    assert report.loaded == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert report.missing == report.unexpected == report.mismatched == ()


def test_weights_of_a_training_can_be_saved(tmp_path):
    data = torch.randn(8, 3)
    training = train(network(), data, [1, -1] * 4, epochs=1)
    save_weights(training.weights, tmp_path / "weights.pt")
    other = network(seed=9)
    load_weights(other, tmp_path / "weights.pt")
    assert same_weights(other, training.model)


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", None])
@pytest.mark.parametrize("prefix", ["module.", ""])
def test_common_wrappings(tmp_path, key, prefix):
    state = {prefix + name: tensor for name, tensor in network(seed=4).state_dict().items()}
    torch.save(state if key is None else {"epoch": 3, "arch": "x", key: state}, tmp_path / "weights.pt")
    other = network()
    load_weights(other, tmp_path / "weights.pt")
    assert same_weights(other, network(seed=4))


def test_a_new_last_layer_needs_strict_false(tmp_path):
    save_weights(network(1000, seed=4), tmp_path / "pretrained.pt")
    other = network(2)
    with pytest.raises(EndModelError) as error:
        load_weights(other, tmp_path / "pretrained.pt")
    message = str(error.value)
    assert "2 of its 4 tensors do" in message
    assert "Other shapes (2): 2.weight (file (1000, 4), network (2, 4)), 2.bias (file (1000,), network (2,))" in message
    assert "pass strict=False" in message
    assert same_weights(other, network(2))
    report = load_weights(other, tmp_path / "pretrained.pt", strict=False)
    assert report.mismatched == ("2.weight", "2.bias")
    assert same_weights(other[0], network(seed=4)[0])
    assert same_weights(other[2], network(2)[2])


def test_missing_and_unexpected_names_are_listed(tmp_path):
    state = network().state_dict()
    state["extra.weight"] = state.pop("0.bias")
    torch.save(state, tmp_path / "weights.pt")
    with pytest.raises(EndModelError) as error:
        load_weights(network(), tmp_path / "weights.pt")
    assert "Not in the file (1): 0.bias." in str(error.value)
    assert "Not in the network (1): extra.weight." in str(error.value)


def test_nothing_in_common_is_an_error_even_if_not_strict(tmp_path):
    save_weights(network(), tmp_path / "weights.pt")
    with pytest.raises(EndModelError, match=r"0 of its 2 tensors do") as error:
        load_weights(nn.Linear(7, 7), tmp_path / "weights.pt", strict=False)
    assert "strict=False" not in str(error.value)


def test_long_lists_are_shortened(tmp_path):
    save_weights(nn.Linear(2, 2), tmp_path / "weights.pt")
    with pytest.raises(EndModelError, match=r"Not in the file \(122\): conv1.weight, .* and 114 more"):
        load_weights(resnet18(), tmp_path / "weights.pt")


def test_a_pretrained_encoder_loads_into_a_network_without_its_last_layer(tmp_path):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pretrained, clip = resnet18(10), resnet3d18(None)
    save_weights(pretrained, tmp_path / "weights.pt")
    encoder = resnet18(None)
    assert load_weights(encoder, tmp_path / "weights.pt", strict=False).unexpected == ("fc.weight", "fc.bias")
    assert torch.equal(encoder.state_dict()["layer4.1.conv2.weight"], pretrained.state_dict()["layer4.1.conv2.weight"])
    assert len(load_weights(clip, tmp_path / "weights.pt", strict=False).mismatched) == 17


class Harmful:
    def __reduce__(self):
        return (print, ("this must never run",))


@pytest.mark.parametrize(
    "write", [lambda path, x: torch.save(x, path), lambda path, x: path.write_bytes(pickle.dumps(x, protocol=2))]
)
def test_code_in_a_file_is_never_run(tmp_path, capsys, write):
    write(tmp_path / "weights.pt", {"0.weight": Harmful()})
    with pytest.raises(EndModelError, match="more than tensors and plain data"):
        load_weights(network(), tmp_path / "weights.pt")
    assert capsys.readouterr().out == ""


def test_whole_networks_are_refused(tmp_path):
    torch.save(network(), tmp_path / "weights.pt")
    with pytest.raises(EndModelError, match=r"save its state_dict\(\) alone"):
        load_weights(network(), tmp_path / "weights.pt")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(EndModelError, match=r"there is no file .*absent\.pt"):
        load_weights(network(), tmp_path / "absent.pt")
    for content, found in [([1, 2], "found list"), ({"lr": 0.1}, "a mapping with lr"), ({}, "found nothing")]:
        torch.save(content, tmp_path / "weights.pt")
        with pytest.raises(EndModelError, match=found):
            load_weights(network(), tmp_path / "weights.pt")
    save_weights(network(), tmp_path / "weights.pt")
    whole = (tmp_path / "weights.pt").read_bytes()
    (tmp_path / "weights.pt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(EndModelError, match=r"damaged|is not loaded"):
        load_weights(network(), tmp_path / "weights.pt")
