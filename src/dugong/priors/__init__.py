"""What is believed about the labels of a sequence before any vote is seen."""

from dugong.priors.base import Prior, from_dict, sample_balance_covariance, sample_balance_variance
from dugong.priors.chain import LabelChain
from dugong.priors.joint import Joint
from dugong.priors.markov import Markov, Uniform
from dugong.priors.pairs import pair_law, pair_sums
from dugong.priors.patterns import Patterns, from_labels

__all__ = [
    "Joint",
    "LabelChain",
    "Markov",
    "Patterns",
    "Prior",
    "Uniform",
    "from_dict",
    "from_labels",
    "pair_law",
    "pair_sums",
    "sample_balance_covariance",
    "sample_balance_variance",
]
