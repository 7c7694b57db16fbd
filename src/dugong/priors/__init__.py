"""What is believed about the labels of a sequence before any vote is seen."""

from dugong.priors.balance import sample_balance_covariance, sample_balance_variance
from dugong.priors.base import Prior, from_dict
from dugong.priors.chain import LabelChain
from dugong.priors.gold import from_labels
from dugong.priors.joint import Joint
from dugong.priors.markov import Markov
from dugong.priors.moments import covariance, expectation
from dugong.priors.pairs import law_of_pairs, pair_law, pair_laws_by_position, pair_sums, row_moments
from dugong.priors.patterns import Patterns
from dugong.priors.uniform import Uniform

__all__ = [
    "Joint",
    "LabelChain",
    "Markov",
    "Patterns",
    "Prior",
    "Uniform",
    "covariance",
    "expectation",
    "from_dict",
    "from_labels",
    "law_of_pairs",
    "pair_law",
    "pair_laws_by_position",
    "pair_sums",
    "row_moments",
    "sample_balance_covariance",
    "sample_balance_variance",
]
