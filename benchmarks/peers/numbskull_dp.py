"""numbskull: data programming by Gibbs sampling; elements one by one, one accuracy weight per source."""

import numpy as np
from numbskull import NumbSkull
from numbskull.inference import FACTORS
from numbskull.numbskulltypes import Factor, FactorToVar, Variable, Weight


def label(data):
    """P(+1) of every element."""
    votes = data["dense"]
    n, m = votes.shape
    weight = np.zeros(m + 1, Weight)
    weight["initialValue"][:m] = 1.0
    weight["initialValue"][m] = 0.5 * np.log(data["initial"][1] / data["initial"][0])
    weight["isFixed"][m] = True
    variable = np.zeros(n + n * m, Variable)
    variable["cardinality"][:n], variable["cardinality"][n:] = 2, 3
    variable["dataType"] = 0
    variable["isEvidence"][n:] = 1
    variable["initialValue"][n:] = np.where(votes == 0, 2, (votes + 1) // 2).reshape(-1)
    factor = np.zeros(n + n * m, Factor)
    factor["factorFunction"][:n] = FACTORS["DP_GEN_CLASS_PRIOR"]
    factor["factorFunction"][n:] = FACTORS["DP_GEN_LF_ACCURACY"]
    factor["weightId"][:n], factor["weightId"][n:] = m, np.tile(np.arange(m), n)
    factor["featureValue"] = 1.0
    factor["arity"][:n], factor["arity"][n:] = 1, 2
    factor["ftv_offset"] = np.concatenate([np.arange(n), n + 2 * np.arange(n * m)])
    fmap = np.zeros(n + 2 * n * m, FactorToVar)
    fmap["vid"][:n] = np.arange(n)
    fmap["vid"][n::2], fmap["vid"][n + 1 :: 2] = np.repeat(np.arange(n), m), n + np.arange(n * m)
    graph = (weight, variable, factor, fmap, np.zeros(len(variable), np.bool_), len(fmap))
    learner = sampler(sample_evidence=True)
    learner.loadFactorGraph(*graph)
    learner.learning(out=False)
    weight["initialValue"] = learner.factorGraphs[0].weight_value[0]
    labeller = sampler(sample_evidence=False)
    labeller.loadFactorGraph(*graph)
    labeller.inference(out=False)
    return labeller.factorGraphs[0].marginals[:n]


def sampler(*, sample_evidence):
    """A sampler; learning draws votes as well, labelling holds them."""
    return NumbSkull(
        n_inference_epoch=100,
        n_learning_epoch=100,
        stepsize=0.1 / 1000,
        decay=0.98,
        quiet=True,
        verbose=False,
        learn_non_evidence=True,
        sample_evidence=sample_evidence,
        burn_in=10,
        nthreads=1,
    )
