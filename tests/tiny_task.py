"""A task that takes a moment: noisy numbers, four sources, a linear end model. For tests of what runs tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from dugong.exceptions import LoaderError
from dugong.experiments import EndModel, Facts, Recipe, Size, TaskMaterial
from dugong.priors import from_labels
from dugong.sources import source

SIZE = Size(train=120, dev=20, test=40, small=True)


def generate(size: Size, seed: int, folder: Path) -> TaskMaterial:
    rng = np.random.default_rng(seed)
    sequences, gold, parts = {}, {}, {}
    for part in ("train", "dev", "test"):
        for number in range(getattr(size, part)):
            name = f"{part}{number}"
            labels = np.repeat(rng.choice([-1, 1], 2, p=[0.6, 0.4]), 2).astype(np.int8)
            sequences[name] = labels[:, None] + rng.normal(0, 1.3, (4, 4))
            gold[name], parts[name] = labels, part
    (folder / "file").write_text("raw data may be in files")
    return TaskMaterial(
        sequences=sequences, gold=gold, parts=parts, groups=dict.fromkeys(gold, "a"), origin="simulated"
    )


def load(folder: Path) -> TaskMaterial:
    if not (folder / "tiny.npy").is_file():
        raise LoaderError(f"the real data must be in {folder}: tiny.npy; found no such file.")
    material = generate(SIZE, int(np.load(folder / "tiny.npy")), folder)
    return TaskMaterial(
        sequences=material.sequences, gold=material.gold, parts=material.parts, groups=material.groups, origin="Tiny"
    )


def _vote(value: float) -> int:
    return 1 if value > 0.5 else -1 if value < -0.5 else 0


@source
def first(element):
    return _vote(element[0])


@source
def second(element):
    return _vote(element[1])


@source
def third(element):
    return _vote(element[2])


@source
def fourth(element):
    return _vote(element[3])


def network(small: bool):
    from torch import nn

    return nn.Linear(4, 2)


def inputs(sequence, small: bool):
    return sequence


def user_prior(gold):
    return from_labels(gold)


RECIPE = Recipe(
    name="tiny",
    title="numbers above zero",
    facts=Facts(n_elements=4, size=SIZE, positive=0.4, sources=(4, 0, 0), network="linear"),
    quick=SIZE,
    sources=(first, second, third, fourth),
    dependencies=(),
    user_prior=user_prior,
    generate=generate,
    end_model=EndModel(network=network, inputs=inputs, options={"epochs": 3, "learning_rate": 0.05}),
    load=load,
    real_data="tiny.npy",
)

LABELS_ONLY = replace(RECIPE, end_model=None, load=None)
