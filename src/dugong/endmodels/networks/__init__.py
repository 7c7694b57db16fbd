"""The paper's end models, written from the published architectures.

| task | network | parameters |
|---|---|---|
| Basketball | `resnet18` | 11,689,512 at 1000 classes |
| Interview | `resnet50` | 25,557,032 at 1000 classes |
| Shot | `resnet3d18`, 16 frames | 33,235,280 at 400 classes |
| BAV | `cnn_lstm`: `densenet40` (1,019,722 at 10 classes), bidirectional LSTM, soft attention | 1,673,666 |
| Gait | `WindowLSTM`: bidirectional LSTM of 300, multiplicative attention | 1,100,402 with 6 sensors |

All return logits, one column per class.
"""

from dugong.endmodels.networks.convolutional import DenseNet, ResNet, densenet40, resnet3d18, resnet18, resnet50
from dugong.endmodels.networks.window import FrameSequenceNet, WindowLSTM, cnn_lstm

__all__ = [
    "DenseNet",
    "FrameSequenceNet",
    "ResNet",
    "WindowLSTM",
    "cnn_lstm",
    "densenet40",
    "resnet3d18",
    "resnet18",
    "resnet50",
]
