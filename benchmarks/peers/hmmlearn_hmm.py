"""hmmlearn with hand-written emissions: independent categorical votes given the state, EM."""

import numpy as np
from hmmlearn.base import BaseHMM

START = np.log(np.array([[0.55, 0.15, 0.30], [0.15, 0.55, 0.30]]))


class VotesHMM(BaseHMM):
    """A hidden Markov model whose observations are rows of votes, coded 0, 1, 2."""

    def _init(self, X, lengths=None):  # noqa: ARG002
        self.tables_ = np.repeat(START[:, None], X.shape[1], axis=1)

    def _check(self):
        return None

    def _compute_log_likelihood(self, X):
        return sum(self.tables_[:, j, X[:, j]].T for j in range(X.shape[1]))

    def _initialize_sufficient_statistics(self):
        stats = super()._initialize_sufficient_statistics()
        stats["votes"] = np.zeros_like(self.tables_)
        return stats

    def _accumulate_sufficient_statistics(self, stats, X, lattice, posteriors, fwdlattice, bwdlattice):
        super()._accumulate_sufficient_statistics(
            stats=stats, X=X, lattice=lattice, posteriors=posteriors, fwdlattice=fwdlattice, bwdlattice=bwdlattice
        )
        for j in range(X.shape[1]):
            for code in range(3):
                stats["votes"][:, j, code] += posteriors[X[:, j] == code].sum(axis=0)

    def _do_mstep(self, stats):
        super()._do_mstep(stats)
        counts = stats["votes"] + 1e-3
        self.tables_ = np.log(counts / counts.sum(axis=2, keepdims=True))


def label(data):
    """P(+1) of every element."""
    votes = data["dense"]
    codes = np.where(votes == 0, 2, (votes + 1) // 2).astype(np.int64)
    lengths = [int(length) for length in data["lengths"]]
    model = VotesHMM(n_components=2, n_iter=20, tol=2e-4 * len(codes), init_params="", params="ste")
    model.startprob_, model.transmat_ = np.array(data["initial"]), np.array(data["transition"])
    model._init(codes)  # noqa: SLF001
    model.n_features = codes.shape[1]
    model.fit(codes, lengths)
    return model.predict_proba(codes, lengths)[:, 1]
