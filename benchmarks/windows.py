"""Windows of many sizes and overlaps: CPU seconds, memory and growth of fit and labels with a given prior."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

import dugong as dg
from dugong.worlds import Block, World, confusion
from dugong.worlds.standard import lopsided_table, sticky

N_ELEMENTS = 100_000
# name: size and stride in elements; the last one is a majority over whole sequences of three classes.
CASES: dict[str, tuple[int, int]] = {
    "640/640": (640, 640),
    "30/10": (30, 10),
    "12/1": (12, 1),
    "256/32": (256, 32),
    "64/1": (64, 1),
    "sequence, three classes": (100, 100),
}


def make_world(name: str) -> World:
    """Five sources on elements and three on windows (or whole sequences)."""
    rng = np.random.default_rng(0)
    size, stride = CASES[name]
    if name.startswith("sequence"):
        coarse = [dg.Sequence(link="majority", of=one) for one in (1, 1, 1)]
        prior = dg.priors.Markov(initial=[0.5, 0.3, 0.2], transition=np.full((3, 3), 0.05) + 0.85 * np.eye(3))
        tables = [confusion(3, accuracy, abstain=0.3) for accuracy in (0.6, 0.65, 0.7, 0.75, 0.8)]
    else:
        coarse = [dg.Window(size=size, stride=stride, link="majority")] * 3
        prior, tables = sticky(0.3, 0.9), [lopsided_table(rng) for _ in range(5)]
    blocks = [Block(names=(f"s{j}",), table=table) for j, table in enumerate(tables)]
    blocks += [
        Block(names=(f"w{j}",), table=lopsided_table(rng), resolution=resolution) for j, resolution in enumerate(coarse)
    ]
    lengths = 100 if name.startswith("sequence") else 10_000
    return World(prior=prior, blocks=tuple(blocks), lengths=lengths, name=name)


def run_case(name: str, n_elements: int) -> dict[str, Any]:
    """Fit and label once to load what is compiled, then once to measure."""
    world = make_world(name)
    length = 100 if name.startswith("sequence") else min(n_elements, 10_000)
    few, _ = world.sample(2, lengths=min(length, 1300), rng=1)
    votes, _ = world.sample(n_elements // length, lengths=length, rng=0)

    def work(one: dg.Votes) -> dg.LabelModel:
        model = dg.LabelModel(prior=world.prior, dependencies=()).fit(one)
        model.labels(one)
        return model

    work(few)
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = work(votes)
    notes = [note.text for note in model.diagnostics_.notes if note.kind == "inference"]
    return {
        "case": name,
        "elements": n_elements,
        "cpu": time.process_time() - begin,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "mb_before": before / 1024,
        "note": notes[0] if notes else "exact",
    }


def measure_windows() -> list[dict[str, Any]]:
    """Every case at full and at half size, in a process of its own."""
    rows = []
    for name in CASES:
        for n_elements in (N_ELEMENTS // 2, N_ELEMENTS):
            command = [sys.executable, "-m", "benchmarks.windows", name, str(n_elements)]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            last = (found.stdout.strip().splitlines() or [""])[-1]
            rows.append(
                json.loads(last)
                if last.startswith("{")
                else {"case": name, "elements": n_elements, "failed": found.stderr.strip()[-300:]}
            )
    return rows


if __name__ == "__main__":
    for row in [run_case(sys.argv[1], int(sys.argv[2]))] if len(sys.argv) > 2 else measure_windows():
        print(json.dumps(row))
