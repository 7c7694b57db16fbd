"""Votes in parts, as several machines or days would leave them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dugong as dg


def make_part(name: str, n_sequences: int = 40, length: int = 25, n_sources: int = 4) -> dg.Votes:
    """Sources on elements and one on windows, right four times in five, that often abstain."""
    rng = np.random.default_rng(sum(map(ord, name)))
    lengths = rng.integers(length // 2, length, n_sequences)
    window = dg.Window(size=5, link="any")
    columns = {f"s{j}": [] for j in range(n_sources)} | {"w": []}
    for n in lengths:
        labels = np.where(np.repeat(rng.random(-(-n // 5)) < 0.4, 5)[:n], 1, -1)
        for j in range(n_sources):
            right = rng.random(n) < 0.8
            columns[f"s{j}"].append(np.where(rng.random(n) < 0.3, 0, np.where(right, labels, -labels)))
        coarse = np.array([labels[i : i + 5].max() for i in range(0, n, 5)])
        columns["w"].append(np.where(rng.random(len(coarse)) < 0.85, coarse, -coarse))
    flat = {name: np.concatenate(parts).astype(np.int8) for name, parts in columns.items()}
    votes = dg.Votes.from_tasks(flat, lengths=lengths, resolutions={"w": window})
    return replace(votes, ids=np.array([f"{name}-{i}" for i in range(n_sequences)]))


@pytest.fixture(scope="session")
def parts() -> list[dg.Votes]:
    return [make_part(name) for name in ("mon", "tue", "wed", "thu", "fri", "sat")]


@pytest.fixture(scope="session")
def whole(parts: list[dg.Votes]) -> dg.Votes:
    return dg.Votes.concat(parts)
