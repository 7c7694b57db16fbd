"""kill -9 at random moments of apply, fit and label: what is left in the end is what an undisturbed run leaves.

``python -m benchmarks.kills`` runs the three verbs on a project of its own, once undisturbed and once killed 20 times
in each of them (``--kills N`` for another number), every second time with all worker processes. It prints how many
kills hit a verb that was at work, how far it was then, and whether votes, model and labels are the same bytes.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

LOADER = """
import random

def sequences():
    for n in range(240):
        numbers = random.Random(n)
        labels = [numbers.random() < 0.4 for _ in range(8)]
        yield f"v{n:03d}", [(y, *(numbers.random() for _ in range(4))) for y in labels for _ in range(25)]
"""
SOURCES = """
import time
import dugong as dg

def vote(element, place):
    return 1 if element[0] == (element[place] < 0.8) else -1

@dg.source
def slow(element):
    time.sleep(0.00005)
    return vote(element, 1)

@dg.source
def two(element):
    return vote(element, 2)

@dg.source
def three(element):
    return vote(element, 3)

@dg.source(resolution=dg.Window(size=25))
def window(elements):
    return max(vote(element, 4) for element in elements)
"""
PROJECT = 'data = "loader:sequences"\nsources = "sources.py"\n'
PRIOR = ["--prior", "markov:positive=0.4,stay=0.98", "--dependencies", "none"]


@dataclass(slots=True)
class Verb:
    """One command, where it writes, and how many files were there each time it was killed."""

    words: list[str]
    output: Path
    hits: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The verb itself."""
        return self.words[3]

    def run(self) -> None:
        """Let it end."""
        subprocess.run(self.words, check=True, capture_output=True)

    def kill(self, n_files: int, delay: float, *, group: bool) -> None:
        """Kill it, alone or with its workers, some time after so many files are there, if it is still at work."""
        with subprocess.Popen(
            self.words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        ) as process:
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
        return [file for file in folder.glob("[!.]*") if file.suffix in (".parquet", ".npz")]


def verbs(folder: Path, jobs: int) -> list[Verb]:
    """The three verbs, with everything in a folder."""
    dugong = [sys.executable, "-c", "from dugong.cli import main; main()"]
    votes, model, labels = folder / "votes", folder / "model.json", folder / "labels"
    several = ["--jobs", str(jobs)]
    project = str(folder.parent / "project.toml")
    return [
        Verb([*dugong, "apply", project, "--shard-size", "4", "-o", str(votes), *several], votes),
        Verb([*dugong, "fit", str(votes), "-o", str(model), *PRIOR, *several], model),
        Verb([*dugong, "label", str(model), str(votes), "-o", str(labels), *several], labels),
    ]


def content(folder: Path) -> dict[str, bytes]:
    """All votes, labels and the model."""
    files = [folder / "model.json", *(folder / "votes").iterdir(), *(folder / "labels").iterdir()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def torment(verb: Verb, n_kills: int, total: int, chance: random.Random) -> None:
    """Kill a verb so many times, each time at another moment of its work; parts are taken away lest it ends."""
    while len(verb.hits) < n_kills:
        done = verb.files()
        if len(done) > 2 * total // 3:
            for file in chance.sample(done, total // 2):
                file.unlink()
        n_files = chance.randint(len(verb.files()) + 1, total)
        verb.kill(n_files, chance.uniform(0.0, 0.02), group=chance.random() < 0.5)
    verb.run()


def main() -> None:
    """Compare an undisturbed run with one that is killed again and again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how often each verb is killed; default 20")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes; default 2")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dugong-kills-") as name:
        root = Path(name)
        for file, text in {"loader.py": LOADER, "sources.py": SOURCES, "project.toml": PROJECT}.items():
            (root / file).write_text(text)
        plain, killed = root / "plain", root / "killed"
        plain.mkdir()
        killed.mkdir()
        chance = random.Random(options.seed)
        for calm, other in zip(verbs(plain, options.jobs), verbs(killed, options.jobs), strict=True):
            calm.run()
            total = len(calm.files())
            torment(other, options.kills, total, chance)
            print(
                f"{calm.name:<5} killed {len(other.hits)} times, with so many of {total} parts done:",
                *other.hits,
                flush=True,
            )
        expected, found = content(plain), content(killed)
        same = expected == found
        print(
            f"{len(expected)} files, {sum(map(len, expected.values())):,} bytes: {'identical' if same else 'DIFFERENT'}"
        )
    sys.exit(not same)


if __name__ == "__main__":
    main()
