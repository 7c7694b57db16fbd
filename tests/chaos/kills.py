"""kill -9 at random moments of run, apply, fit and label: what is left in the end is what an undisturbed run leaves.

A project of its own is run once undisturbed, and once killed again and again in each verb, every second time with all
worker processes. Files of a user lie in every folder that is written, and must lie there in the end, byte by byte.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

LOADER = """
import random

def sequences():
    for n in range(48):
        numbers = random.Random(n)
        labels = [numbers.random() < 0.4 for _ in range(8)]
        yield f"v{n:03d}", [(y, *(numbers.random() for _ in range(4))) for y in labels for _ in range(5)]
"""
SOURCES = """
import time
import dugong as dg

def vote(element, place):
    return 1 if element[0] == (element[place] < 0.8) else -1

@dg.source
def slow(element):
    time.sleep(0.001)
    return vote(element, 1)

@dg.source
def two(element):
    return vote(element, 2)

@dg.source
def three(element):
    return vote(element, 3)

@dg.source(resolution=dg.Window(size=5))
def window(elements):
    return max(vote(element, 4) for element in elements)
"""
PROJECT = """
output = "out"
data = "loader:sequences"
sources = "sources.py"
prior = { kind = "markov", positive = 0.4, stay = 0.98 }
dependencies = []
"""
PRIOR = ["--prior", "markov:positive=0.4,stay=0.98", "--dependencies", "none"]
DUGONG = [sys.executable, "-c", "from dugong.cli import main; main()"]
THESIS = {
    "part-of-my-thesis.csv": b"a,b\n1,2\n",
    "part-00007.txt": b"mine",
    ".thesis.part": b"mine",
    "notes.json": b"{}",
}


@dataclass(slots=True)
class Verb:
    """One command, where it writes, and how many files were there each time it was killed."""

    words: list[str]
    output: Path
    hits: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The verb itself."""
        return self.words[len(DUGONG)]

    def start(self, **options: object) -> subprocess.Popen[bytes]:
        """Let it begin, in a session of its own."""
        return subprocess.Popen(
            self.words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )

    def run(self) -> None:
        """Let it end."""
        subprocess.run(self.words, check=True, capture_output=True)

    def kill(self, n_files: int, delay: float, *, group: bool) -> None:
        """Kill it, alone or with its workers, some time after so many files are there, if it is still at work."""
        with self.start() as process:
            while process.poll() is None and len(self.files()) < n_files:
                time.sleep(0.002)
            time.sleep(delay)
            if process.poll() is None:
                (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
                process.wait()
                self.hits.append(len(self.files()))
            elif process.returncode:
                raise RuntimeError(f"{self.name} ended with {process.communicate()[1].decode()}")

    def files(self) -> list[Path]:
        """Finished parts so far."""
        folder = self.output.with_suffix(".parts") if self.output.suffix else self.output
        found = [file for file in folder.rglob("[!.]*") if file.suffix in (".parquet", ".npz")]
        return [file for file in found if file.name not in THESIS]


def write_project(root: Path) -> Path:
    """The project that is tormented."""
    root.mkdir(parents=True, exist_ok=True)
    for file, text in {"loader.py": LOADER, "sources.py": SOURCES, "project.toml": PROJECT}.items():
        (root / file).write_text(text)
    return root / "project.toml"


def verbs(project: Path, folder: Path, *, jobs: int = 2, shard_size: int = 4) -> list[Verb]:
    """The verbs, with everything in a folder."""
    votes, model, labels, out = folder / "votes", folder / "model.json", folder / "labels", folder / "out"
    several, size = ["--jobs", str(jobs)], ["--shard-size", str(shard_size)]
    return [
        Verb([*DUGONG, "apply", str(project), *size, "-o", str(votes), *several], votes),
        Verb([*DUGONG, "fit", str(votes), "-o", str(model), *PRIOR, *several], model),
        Verb([*DUGONG, "label", str(model), str(votes), "-o", str(labels), *several], labels),
        Verb([*DUGONG, "run", str(write_project(folder)), *size, *several], out),
    ]


def lay_thesis(folder: Path) -> None:
    """Put files of a user into every folder that is written, a link to one of them too."""
    for name in ("votes", "labels", "out"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file, data in THESIS.items():
            (folder / name / file).write_bytes(data)
        link = folder / name / "part-00099.csv"
        link.unlink(missing_ok=True)
        link.symlink_to("part-of-my-thesis.csv")


def differences(calm: Path, killed: Path) -> list[str]:
    """What is not as after a calm run: files that are missing, too many or other than there, and touched ones."""
    one, two = content(calm), content(killed)
    said = [f"missing: {name}" for name in one.keys() - two.keys()]
    said += [f"too many: {name}" for name in two.keys() - one.keys()]
    said += [f"other bytes: {name}" for name in one.keys() & two.keys() if one[name] != two[name]]
    return sorted(said) + [f"touched: {folder}" for folder in (calm, killed) if not thesis_untouched(folder)]


def thesis_untouched(folder: Path) -> bool:
    """Whether all of them are as they were laid."""
    return all(
        (folder / name / file).read_bytes() == data and (folder / name / "part-00099.csv").is_symlink()
        for name in ("votes", "labels", "out")
        for file, data in THESIS.items()
    )


def content(folder: Path) -> dict[str, bytes]:
    """All votes, labels and models; not what names the folder or the day (reports), and not the user's files."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.is_symlink()]
    ours = [file for file in files if file.name not in THESIS and file.suffix not in (".html", ".lock")]
    return {str(file.relative_to(folder)): file.read_bytes() for file in ours}


def torment(verb: Verb, n_kills: int, total: int, chance: random.Random) -> None:
    """Kill a verb so many times, each time at another moment of its work; parts are taken away lest it ends."""
    for _ in range(20 * n_kills):
        if len(verb.hits) >= n_kills:
            break
        done = verb.files()
        if len(done) > 2 * total // 3:
            for file in chance.sample(done, total // 2):
                file.unlink()
        n_files = chance.randint(len(verb.files()) + 1, total)
        verb.kill(n_files, chance.uniform(0.0, 0.02), group=chance.random() < 0.5)
        _shake_clock(verb.files(), chance)
    verb.run()


def _shake_clock(files: list[Path], chance: random.Random) -> None:
    """A clock that jumped: some files are from years ago, some from years to come."""
    for file in chance.sample(files, len(files) // 2):
        when = time.time() + chance.choice((-1, 1)) * 1e8
        os.utime(file, (when, when))


def kills(
    root: Path,
    n_kills: int,
    *,
    jobs: int = 2,
    shard_size: int = 4,
    seed: int = 0,
    only: tuple[str, ...] = ("apply", "fit", "label", "run"),
) -> tuple[list[Verb], list[str]]:
    """Kill every verb so many times; the verbs with their hits, and what is not as after a calm run."""
    project, chance = write_project(root), random.Random(seed)
    plain, killed = root / "plain", root / "killed"
    lay_thesis(plain)
    lay_thesis(killed)
    tormented = verbs(project, killed, jobs=jobs, shard_size=shard_size)
    for calm, other in zip(verbs(project, plain, jobs=jobs, shard_size=shard_size), tormented, strict=True):
        if calm.name not in only:
            continue
        calm.run()
        torment(other, n_kills, len(calm.files()), chance)
        print(f"{calm.name:<5} killed {len(other.hits)} times, with so many parts done:", *other.hits, flush=True)
    return tormented, differences(plain, killed)
