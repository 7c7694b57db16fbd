"""What is believed about the labels of a sequence before any vote is seen."""

from dugong.priors.base import Prior
from dugong.priors.chain import LabelChain
from dugong.priors.gold import from_labels
from dugong.priors.joint import Joint
from dugong.priors.markov import Markov
from dugong.priors.patterns import Patterns
from dugong.priors.plain import from_dict
from dugong.priors.uniform import Uniform

__all__ = [
    "Joint",
    "LabelChain",
    "Markov",
    "Patterns",
    "Prior",
    "Uniform",
    "from_dict",
    "from_labels",
]
