"""How good the labels are: the multi-resolution world, and the paper's left simulation figure."""

from __future__ import annotations

import numpy as np

import dugong as dg
from dugong.infer.engine import posterior
from dugong.worlds.standard import lopsided, multiresolution


def measure_quality(n_seeds: int = 3, n_sequences: int = 10_000) -> dict[str, list[float]]:
    """Brier over the optimum: parameters estimated with the prior given, and everything learned."""
    found: dict[str, list[float]] = {"true parameters, largest difference": [], "estimated": [], "all learned": []}
    for seed in range(n_seeds):
        world = multiresolution(seed)
        votes, labels = world.sample(n_sequences, rng=100 + seed)
        truth = labels["element"] == 1
        best = next(
            iter(posterior(votes, world.parameters(), world.prior, resolutions=["element"]).probabilities.values())
        )
        optimum = float(((best[:, 1] - truth) ** 2).mean())
        given = dg.LabelModel(prior=world.prior, dependencies=world.dependencies).fit(votes)
        pinned = brute_force(world, votes, best[:, 1])
        found["true parameters, largest difference"].append(pinned)
        for name, model in (("estimated", given), ("all learned", dg.LabelModel().fit(votes))):
            brier = float(((model.predict_proba(votes)[:, 1] - truth) ** 2).mean())
            found[name].append(brier / optimum)
    return found


def brute_force(world: dg.worlds.World, votes: dg.Votes, fast: np.ndarray, n_sequences: int = 500) -> float:
    """Largest difference between the chain and enumeration of all label patterns."""
    from dugong.infer import enumerate as enumerated
    from dugong.infer.factors import flatten

    few = votes[np.arange(n_sequences)]
    question = enumerated.LabelQuestion(few, flatten(few, world.parameters()), world.prior.chain())
    slow = enumerated.posterior(question, (few.resolutions[0],))
    found = next(iter(slow.probabilities.values()))[:, 1]
    return float(np.abs(found - fast[: len(found)]).max())


def measure_figure(n_seeds: int = 4) -> dict[str, object]:
    """Error of a source's accuracies by n and T, tied against one table per position (the paper's figure)."""
    sizes, lengths = [500, 2_000, 8_000], [3, 6, 12]
    by_n: dict[str, list[float]] = {"tied": [], "task": []}
    by_length: dict[str, list[float]] = {"tied": [], "task": []}
    for sharing in by_n:
        by_n[sharing] = [_error(sharing, n, 5, n_seeds) for n in sizes]
        by_length[sharing] = [_error(sharing, 2_000, length, n_seeds) for length in lengths]
    return {"n": sizes, "T": lengths, "by_n": by_n, "by_T": by_length}


def _error(sharing: str, n_sequences: int, length: int, n_seeds: int) -> float:
    world, errors = lopsided(6), []
    for seed in range(n_seeds):
        votes, _ = world.sample(n_sequences, lengths=length, rng=seed)
        model = dg.LabelModel(prior=world.prior, dependencies=(), sharing=sharing).fit(votes)  # type: ignore[arg-type]
        errors += [np.abs(model.accuracies_[name] - table).sum() for name, table in world.accuracies(length).items()]
    # The error of the whole vector of parameters: one table per source if tied, one per source and position if not.
    return float(np.mean(errors))
