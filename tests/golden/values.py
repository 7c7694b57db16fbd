"""What is pinned of a fitted model, how it is kept in a small file, and how a difference is told.

``python tests/golden/values.py [given] [classes] [learned]`` (or ``make golden``) writes the files anew.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dugong as dg

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from golden.cases import CASES, GROUPS, Case, Group  # noqa: E402 - found through the line above

TOLERANCE = 1e-9
WHOLE = 60  # arrays up to this size are kept entry by entry
SAMPLED = 16  # of larger ones: this many entries, and sums


def measure(case: Case, folder: Path | None = None) -> dict[str, np.ndarray]:
    """Every pinned quantity of a case, by a name that says what it is."""
    votes, labels = case.read(folder)
    model = _fit(case, votes, labels)
    found: dict[str, np.ndarray] = {}
    for name, table in model.accuracies_.items():
        found[f"accuracies of {name}"] = table
        found[f"standard errors of {name}"] = model.standard_errors_.accuracies[name]
    for first, second in sorted(model.correlations_):
        found[f"correlations of {first} and {second}"] = model.correlations_[first, second]
        if (first, second) in model.standard_errors_.correlations:
            found[f"standard errors of {first} and {second}"] = model.standard_errors_.correlations[first, second]
    if isinstance(model.prior_, dg.priors.Markov):
        found["initial of the prior"] = np.array(model.prior_.initial)
        found["transition of the prior"] = np.array(model.prior_.transition)
    for resolution in case.resolutions:
        found[f"labels by {resolution}"] = model.predict_proba(votes, resolution)
    found["best path"] = model.decode(votes).astype(float)
    found["log-likelihood per element"] = model.log_likelihood(votes) / np.maximum(votes.lengths, 1)
    return found


def _fit(case: Case, votes: dg.Votes, labels: np.ndarray) -> dg.LabelModel:
    model = dg.LabelModel(**case.settings, n_threads=1)
    if case.shards > 1:
        for shard in range(case.shards):
            model.partial_fit(votes[list(range(shard, votes.n_sequences, case.shards))])
        return model
    gold = np.where(np.arange(votes.n_elements) % 5 == 0, labels, 0) if case.gold else None
    groups = [place // 9 for place in range(votes.n_sequences)] if case.groups else None
    return model.fit(votes, gold=gold, groups=groups)


def pack(array: np.ndarray) -> dict[str, Any]:
    """A small form: all entries of a small array; of a large one some entries, and sums that weigh every entry."""
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    packed: dict[str, Any] = {"shape": list(np.shape(array))}
    if flat.size <= WHOLE:
        return packed | {"entries": flat.tolist()}
    return packed | {"entries": flat[_places(flat.size)].tolist(), "sums": _sums(flat)}


def _places(size: int) -> np.ndarray:
    return np.linspace(0, size - 1, SAMPLED).astype(int)


def _sums(flat: np.ndarray) -> list[float]:
    """Three sums with weights that look random: over the root of the size, one changed entry stays visible."""
    order = np.arange(1, flat.size + 1)
    return [float(np.cos(order * step) @ flat / np.sqrt(flat.size)) for step in (1.0, 2.3, 3.7)]


def difference(expected: dict[str, Any], found: np.ndarray) -> str | None:
    """What moved and by how much, in words; None where nothing did."""
    now = pack(found)
    if now["shape"] != expected["shape"]:
        return f"has shape {now['shape']}, had {expected['shape']}"
    for what, key in (("entry", "entries"), ("weighted sum", "sums")):
        before, after = (np.array(packed.get(key, ()), dtype=np.float64) for packed in (expected, now))
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        moved = np.zeros(len(before))
        moved[~same] = np.abs(before[~same] - after[~same])
        if not (moved <= TOLERANCE).all():
            worst = int(np.argmax(np.nan_to_num(moved, nan=np.inf)))
            told = f"{what} {worst} of {len(before)} was {before[worst]}, is {after[worst]}"
            return f"moved by {moved[worst]:.3g}: {told}"
    return None


def differences(expected: dict[str, dict[str, Any]], found: dict[str, np.ndarray]) -> list[str]:
    """A line for every quantity that moved, appeared or went."""
    lines = [f"{name}: is gone" for name in expected if name not in found]
    lines += [f"{name}: is new" for name in found if name not in expected]
    told = {name: difference(expected[name], array) for name, array in found.items() if name in expected}
    return lines + [f"{name}: {text}" for name, text in told.items() if text]


def path_of(group: Group) -> Path:
    """The file with the values of a group."""
    return HERE / f"{group}.json"


def read_values(group: Group) -> dict[str, dict[str, Any]]:
    """The pinned values of a group: case, quantity, packed array."""
    return json.loads(path_of(group).read_text())


def write_values(group: Group, folder: Path) -> None:
    """Measure all cases of a group and pin what they give now: one line per quantity, so that a diff can be read."""
    cases = {name: case for name, case in CASES.items() if case.group == group}
    blocks = []
    for name, case in cases.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(pack(array))}" for key, array in measure(case, folder).items()]
        blocks.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    path_of(group).write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def main(words: list[str]) -> None:
    """Write the groups that are named, or all."""
    folder = Path(os.environ.get("DUGONG_DATA", HERE.parents[2] / "shared" / "data"))
    for group in GROUPS:
        if not words or group in words:
            write_values(group, folder)
            print(f"wrote {path_of(group)}")


if __name__ == "__main__":
    main(sys.argv[1:])
