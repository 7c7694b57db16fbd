"""The networks: published sizes, shapes, names of weights, and blindness to padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dugong.endmodels import (
    EndModelError,
    FrameSequenceNet,
    WindowLSTM,
    cnn_lstm,
    densenet40,
    networks,
    resnet3d18,
    resnet18,
    resnet50,
)
from dugong.endmodels.networks.convolutional import BasicBlock, ResNet
from dugong.endmodels.networks.window import MultiplicativeAttention, SoftAttention
from endmodels.small import n_parameters


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.mark.parametrize(
    ("network", "published"),
    [
        (lambda: resnet18(1000), 11_689_512),
        (lambda: resnet50(1000), 25_557_032),
        (lambda: resnet3d18(400), 33_235_280),
        (lambda: resnet3d18(400, shortcut="B"), 33_409_104),
        (lambda: densenet40(10), 1_019_722),
        (lambda: densenet40(100), 1_060_132),
        (lambda: densenet40(10, bottleneck=True), 176_122),
        (cnn_lstm, 1_673_666),
        (lambda: WindowLSTM(6), 1_100_402),
    ],
)
def test_parameter_counts(network, published):
    assert n_parameters(network()) == published


def test_the_3d_counts_follow_from_the_published_one():
    """A widely used 3-D ResNet-18 has 33,371,472: a stem of 3 instead of 7 frames, and shortcuts B."""
    stem = 3 * 64 * 7 * 7
    with_b = 33_371_472 - 3 * stem + 7 * stem
    shortcuts = sum(before * after + 2 * after for before, after in [(64, 128), (128, 256), (256, 512)])
    assert (with_b, with_b - shortcuts) == (33_409_104, 33_235_280)


def test_the_recurrent_counts_follow_from_their_formulas():
    hidden, n_features = 300, 9
    expected = 8 * hidden * (n_features + hidden + 2) + 4 * hidden**2 + (2 * hidden + 1) * 5
    assert n_parameters(WindowLSTM(n_features, 5)) == expected
    lstm, attention, last = 8 * 128 * (448 + 128 + 2), 256 * 256 + 2 * 256, 257 * 2
    assert n_parameters(cnn_lstm()) == n_parameters(densenet40(None)) + lstm + attention + last


def test_weights_are_named_as_in_widely_used_files():
    names = set(resnet18(1000).state_dict())
    assert len(names) == 122
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.conv1.weight",
        "layer2.0.downsample.0.weight",
        "layer2.0.downsample.1.num_batches_tracked",
        "layer4.1.bn2.bias",
        "fc.weight",
        "fc.bias",
    } <= names
    deep = resnet50(1000).state_dict()
    assert len(deep) == 320
    assert deep["layer1.0.downsample.0.weight"].shape == (256, 64, 1, 1)
    assert deep["layer4.2.conv3.weight"].shape == (2048, 512, 1, 1)
    clip = resnet3d18(400).state_dict()
    assert clip["conv1.weight"].shape == (64, 3, 7, 7, 7)
    assert not [name for name in clip if "downsample" in name]
    assert "layer3.0.downsample.1.bias" in resnet3d18(400, shortcut="B").state_dict()


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (resnet18, (2, 3, 32, 32)),
        (resnet50, (2, 3, 32, 32)),
        (resnet3d18, (2, 3, 16, 32, 32)),
        (densenet40, (2, 3, 16, 16)),
        (cnn_lstm, (2, 3, 3, 16, 16)),
        (lambda n: WindowLSTM(6, n), (2, 5, 6)),
    ],
)
def test_every_weight_takes_part(network, shape):
    one = network(3)
    logits = one(torch.randn(shape))
    assert logits.shape == (2, 3)
    functional.cross_entropy(logits, torch.tensor([0, 2])).backward()
    still = [name for name, weight in one.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert still == []


def sizes_of(network: nn.Module, x: torch.Tensor) -> dict[str, tuple[int, ...]]:
    """What comes out of the stages."""
    seen: dict[str, tuple[int, ...]] = {}
    for name, module in network.named_children():
        module.register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: tuple(out.shape[1:])}))
    network.eval()
    with torch.no_grad():
        network(x)
    return seen


def test_the_stages_have_the_published_sizes():
    image = sizes_of(resnet18(10), torch.randn(1, 3, 224, 224))
    assert image["conv1"] == (64, 112, 112)
    assert image["maxpool"] == image["layer1"] == (64, 56, 56)
    assert image["layer4"] == (512, 7, 7)
    clip = sizes_of(resnet3d18(10), torch.randn(1, 3, 16, 112, 112))
    assert clip["conv1"] == (64, 16, 56, 56)
    assert clip["layer1"] == (64, 8, 28, 28)
    assert clip["layer4"] == (512, 1, 4, 4)
    dense = sizes_of(densenet40(10), torch.randn(1, 3, 32, 32))
    assert dense["stem"] == (16, 32, 32)
    assert dense["stages"] == (448, 8, 8)


def test_shortcut_a_thins_and_pads():
    x = torch.randn(2, 64, 4, 6, 6)
    shortcut = resnet3d18(2).get_submodule("layer2.0.downsample")(x)
    assert shortcut.shape == (2, 128, 2, 3, 3)
    assert torch.equal(shortcut[:, :64], x[:, :, ::2, ::2, ::2])
    assert not shortcut[:, 64:].any()


def test_a_residual_block_by_hand():
    block = resnet18(2).get_submodule("layer2.0").eval()
    x = torch.randn(2, 64, 8, 8)
    weights = dict(block.named_parameters())
    scale = (1 + 1e-5) ** -0.5  # fresh statistics: mean 0, variance 1
    inner = functional.relu(functional.conv2d(x, weights["conv1.weight"], stride=2, padding=1) * scale)
    added = functional.conv2d(inner, weights["conv2.weight"], padding=1) * scale
    shortcut = functional.conv2d(x, weights["downsample.0.weight"], stride=2) * scale
    torch.testing.assert_close(block(x), functional.relu(added + shortcut), rtol=1e-4, atol=1e-5)


def test_a_dense_layer_keeps_its_input():
    layer = networks.DenseNet(7, growth=4, n_classes=2).stages[0]
    x = torch.randn(2, 16, 8, 8)
    assert layer(x).shape == (2, 20, 8, 8)
    assert torch.equal(layer(x)[:, :16], x)


def test_networks_without_classes_are_encoders():
    for encoder, width in [(resnet18(None), 512), (resnet50(None), 2048), (densenet40(None), 448)]:
        assert encoder.n_features == width
        assert encoder.eval()(torch.randn(1, 3, 32, 32)).shape == (1, width)
    network = FrameSequenceNet(resnet18(None), 512, 4, hidden=8)
    assert network(torch.randn(2, 2, 3, 32, 32)).shape == (2, 4)


def padded_window() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(3, 5, 4)
    return x, torch.tensor([[True] * 5, [False, True, True, True, False], [False, False, False, True, True]])


def test_padding_does_not_change_a_window():
    network = WindowLSTM(4, hidden=6)
    x, mask = padded_window()
    logits = network(x, mask)
    for row in range(3):
        alone = network(x[row : row + 1, mask[row]])
        torch.testing.assert_close(logits[row : row + 1], alone, rtol=1e-5, atol=1e-6)
    x[~mask] = 1e6
    torch.testing.assert_close(network(x, mask), logits, rtol=0, atol=0)


@pytest.mark.parametrize("training", [True, False])
def test_padding_does_not_change_a_sequence_of_frames(training):
    """Not in training either, where frames share the statistics of their batch."""
    network = cnn_lstm(hidden=6, dropout=0.0).train(training)
    frames = torch.randn(2, 3, 3, 8, 8)
    mask = torch.tensor([[True, True, False], [True, True, False]])
    frames[~mask] = 1e3
    torch.testing.assert_close(network(frames, mask), network(frames[:, :2]), rtol=1e-5, atol=1e-6)


def test_attention_is_a_mean_over_the_mask():
    hidden, mask = torch.randn(2, 4, 6), torch.tensor([[True, True, False, False], [True] * 4])
    soft, product, query = SoftAttention(6), MultiplicativeAttention(6), torch.randn(2, 6)
    for weights in (soft.weights(hidden, mask), product.weights(hidden, query, mask)):
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(2))
        assert not weights[0, 2:].any()
    scores = torch.stack([query[1] @ product.product.weight @ hidden[1, t] for t in range(4)])
    expected = torch.softmax(scores, dim=0) @ hidden[1]
    torch.testing.assert_close(product(hidden, query, mask)[1], expected, rtol=1e-5, atol=1e-6)


def test_refusals():
    with pytest.raises(EndModelError, match=r"shape \(n, channels, height, width\); found \(3, 32, 32\)"):
        resnet18()(torch.randn(3, 32, 32))
    with pytest.raises(EndModelError, match=r"takes floats; found torch.uint8.\n.*/ 255"):
        resnet18()(torch.zeros(1, 3, 32, 32, dtype=torch.uint8))
    with pytest.raises(EndModelError, match="'A' or 'B'; found 'C'"):
        resnet3d18(shortcut="C")
    with pytest.raises(EndModelError, match=r"depth must be 3 k \+ 4; found 41"):
        networks.DenseNet(41, growth=12, n_classes=2)
    with pytest.raises(EndModelError, match=r"at least 4 wide and high; found \(2, 8\)"):
        densenet40()(torch.randn(1, 3, 2, 8))
    with pytest.raises(EndModelError, match="at least one step in its mask"):
        WindowLSTM(4)(torch.randn(1, 3, 4), torch.zeros(1, 3, dtype=torch.bool))
    with pytest.raises(EndModelError, match=r"one entry per step \(1, 3\)"):
        WindowLSTM(4)(torch.randn(1, 3, 4), torch.ones(1, 2, dtype=torch.bool))


def test_networks_return_finite_numbers_from_raw_numpy_frames():
    frames = np.random.default_rng(0).random((2, 3, 16, 16), dtype=np.float32)
    assert torch.isfinite(densenet40()(torch.from_numpy(frames))).all()


def test_narrow_residual_networks_have_the_same_layers():
    wide = ResNet(2, BasicBlock, (2, 2, 2, 2), n_classes=2)
    narrow = ResNet(2, BasicBlock, (2, 2, 2, 2), n_classes=2, width=8)
    assert list(narrow.state_dict()) == list(wide.state_dict())
    assert narrow.n_features == 64
    assert narrow(torch.zeros(2, 3, 16, 16)).shape == (2, 2)
