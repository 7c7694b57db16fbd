"""`dugong init`: a project that works as it is, to be changed piece by piece."""

from __future__ import annotations

import shutil
import tempfile
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from random import Random

import click

from dugong.cli.output import FOLDER, Outcome, verb
from dugong.cli.project import ProjectError

FILES = ("project.toml", "loader.py", "sources.py")


@verb("init", "dugong init walking", "dugong run walking/project.toml", "dugong init birds --like audio")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option(
    "--like",
    type=click.Choice(["sensor", "video", "audio", "text"]),
    default="sensor",
    show_default=True,
    help="What your sequences are; video and audio need the extras of these names.",
)
def command(*, folder: Path, like: str) -> Outcome:
    """Write a working project into DIR: a loader, a few sources, a prior, project.toml and sample data.

    Nothing that exists is overwritten. The project runs at once; then replace its data and sources by your own.
    """
    written = write_project(folder, like)
    lines = [f"Wrote {folder}:", *(f"  {name}" for name in written), f"Next: dugong run {folder / 'project.toml'}"]
    return {"folder": folder, "files": written, "project": folder / "project.toml"}, "\n".join(lines)


def write_project(folder: Path, like: str = "sensor") -> list[str]:
    """Write all files or none; returns what was written."""
    if folder.exists() and any(folder.iterdir()):
        raise ProjectError(f"{folder} must not exist yet, or be empty; nothing was written.\n  Choose another folder.")
    folder = folder.resolve()  # a folder in which somebody is may be named by a dot
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".dugong-init-") as temporary:
        draft = Path(temporary) / "project"
        draft.mkdir()
        for name in FILES:
            text = files("dugong.cli").joinpath("template", like, name).read_text(encoding="utf-8")
            (draft / name).write_text(text, encoding="utf-8")
        n_sequences = _write_sample(draft, like)
        # Into the folder, not in its place, because somebody may be in it.
        folder.mkdir(exist_ok=True)
        for part in draft.iterdir():
            shutil.move(part, folder)
    return [*FILES, f"data/ ({n_sequences} sequences)", "gold.csv"]


def _write_sample(draft: Path, like: str) -> int:
    """Raw data, and known labels of a quarter of it."""
    (draft / "data").mkdir()
    made = list(WRITERS[like](draft / "data"))
    (draft / "gold.csv").write_text(gold_csv(made[: len(made) // 4]), encoding="utf-8")
    return len(made)


# --- Sample data of a new project, of each kind: the same every time, with labels of some sequences. ------------------
# In: a folder. Out: raw files in its folder ``data``, and where the label is positive. Sensors and text are made with
# the standard library alone; sound and video need what reading them needs too.

_NOISE = {"movement": 0.45, "steps": 0.5, "heart": 0.45}
_DRUGS = ("lisinopril", "ramipril", "metoprolol", "simvastatin", "amoxicillin", "fluconazole", "aspirin", "insulin")
# Words of many kinds, so that rules are wrong about different ones: errors on the same few words look like labels.
_BEFORE = ("patient started on", "was given", "they kept", "the team stopped", "moved to", "cannot take", "now takes")
_AFTER = (
    "5 mg daily.",
    "for a cough.",
    "after the visit.",
    "20 units.",
    "with good effect.",
    "and is stable.",
    "at night.",
)
_OTHER = (
    "Seen in clinic by Dr Ostatin.",
    "Sleeps well and eats enough.",
    "Walks a mile in the April sun.",
    "No new complaints today.",
    "Went home with her son Merlin.",
    "Breathing is easy at rest.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A sequence of the sample and the label of each of its elements."""

    name: str
    labels: tuple[bool, ...]


def write_sensor(data: Path) -> Iterator[Labelled]:
    """A wearable that hears steps and feels movement and the heart, second by second; somebody walks now and then."""
    random = Random(7)
    for one in _drawn(random, "recording-{:03d}", 240, 60, positive=0.15, stay=0.95):
        rows = [[walks + random.gauss(0.0, noise) for noise in _NOISE.values()] for walks in one.labels]
        lines = [",".join(_NOISE), *(",".join(f"{value:.3f}" for value in row) for row in rows)]
        (data / f"{one.name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield one


def write_text(data: Path) -> Iterator[Labelled]:
    """Clinical notes, one per line; some words name drugs."""
    random, lines = Random(7), []
    for number in range(200):
        words: list[str] = []
        labels: list[bool] = []
        for _ in range(random.randint(1, 3)):
            drug = random.random() < 0.7
            name = random.choice(_DRUGS)
            text = f"{random.choice(_BEFORE)} {name} {random.choice(_AFTER)}" if drug else random.choice(_OTHER)
            words += text.split()
            labels += [drug and word == name for word in text.split()]
        lines.append(" ".join(words))
        yield Labelled(name=str(number), labels=tuple(labels))
    (data / "notes.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_audio(data: Path, rate: int = 4000, seconds: int = 20) -> Iterator[Labelled]:
    """Wind with gusts, an engine far away, and calls: tones of half a second or more."""
    import numpy as np

    rng, half = np.random.default_rng(7), np.arange(rate // 2) / rate
    for one in _drawn(Random(7), "site-{:02d}", 40, 2 * seconds, positive=0.2, stay=0.85):
        pieces = []
        for call in one.labels:
            wind = rng.normal(0, 0.05 + 0.05 * (rng.random() < 0.12), len(half))
            engine = 0.03 * (rng.random() < 0.1) * np.sin(2 * np.pi * 200 * half)
            tone = call * rng.uniform(0.02, 0.2) * np.sin(2 * np.pi * rng.uniform(400, 900) * half)
            pieces.append(wind + engine + tone)
        sound = np.clip(np.concatenate(pieces), -1, 1)
        with wave.open(str(data / f"{one.name}.wav"), "wb") as file:
            file.setparams((1, 2, rate, 0, "NONE", "not compressed"))  # one channel, two bytes per sample
            file.writeframes((sound * 32767).astype("<i2").tobytes())
        yield one


def write_video(data: Path, n_videos: int = 16, seconds: int = 12) -> Iterator[Labelled]:
    """A grey room into which somebody throws a red ball now and then; four elements per second, eight frames."""
    import numpy as np

    from dugong.experiments.tasks.drawing import write_video as encode

    rng, (rows, columns) = np.random.default_rng(7), np.mgrid[:48, :48]
    for one in _drawn(Random(7), "clip-{:02d}", n_videos, 4 * seconds, positive=0.33, stay=0.9):
        frames = rng.normal(90, 22, (8 * seconds, 48, 48, 3))
        place, step = rng.uniform(10, 38, 2), rng.uniform(-4, 4, 2)
        for frame, there in zip(frames, np.repeat(one.labels, 2), strict=True):
            place = (place + step) % 48
            disc = (rows - place[0]) ** 2 + (columns - place[1]) ** 2 < rng.uniform(8, 20)
            frame[disc] += there * np.array([140, 60, 50])
            frame[...] += 60 * (rng.random() < 0.04)  # a lamp flickers
        encode(data / f"{one.name}.mp4", np.clip(frames, 0, 255).astype(np.uint8), rate=8, played=True)
        yield one


WRITERS = {"sensor": write_sensor, "video": write_video, "audio": write_audio, "text": write_text}


def gold_csv(known: list[Labelled]) -> str:
    """Labels of some sequences as the text of a CSV file."""
    lines = ["sequence,start,end,label"]
    for one in known:
        start = 0
        for label, run in groupby(one.labels):
            stop = start + len(list(run))
            lines.append(f"{one.name},{start},{stop},{1 if label else -1}")
            start = stop
    return "\n".join(lines) + "\n"


def _drawn(random: Random, name: str, n: int, length: int, *, positive: float, stay: float) -> Iterator[Labelled]:
    """Sequences whose labels are a stationary chain, drawn when they are asked for."""
    begin = positive * (1 - stay) / (1 - positive)
    for number in range(n):
        state, labels = random.random() < positive, []
        for _ in range(length):
            labels.append(state)
            state = random.random() < (stay if state else begin)
        yield Labelled(name=name.format(number), labels=tuple(labels))
