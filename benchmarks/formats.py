"""Processor time of writing and reading 100,000 intervals, format by format (`make bench-formats`).

Formats that hold one sequence per file get one sequence; the others get a hundred. Text formats get a text of 200,000
tokens. The bound is two seconds for a text format.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from dugong import Segments, formats
from dugong.exceptions import MissingExtraError
from dugong.segments import Recording

N = 100_000
BOUND = 2.0
BINARY = ("edf", "huggingface", "spacy", "wfdb")
TEXTS = ("brat", "conll", "conllu", "doccano", "prodigy", "spacy")


def intervals(n: int, n_sequences: int, *, text: bool) -> Segments:
    """Intervals of one element with one element between them, at four elements per second."""
    each = n // n_sequences
    names = [f"r{place:03d}" for place in range(n_sequences)]
    start = np.tile(np.arange(each) * 2.0, n_sequences)
    length = 2 * each
    about = Recording(length=length, rate=4.0, media="r.mp4")
    if text:
        tokens = tuple((5 * place, 5 * place + 4) for place in range(length))
        about = Recording(length=length, text="word " * length, tokens=tokens)
    return Segments(
        sequence=tuple(name for name in names for _ in range(each)),
        start=start,
        end=start + 1,
        label=tuple(("walk", "turn", "sit down")[place % (2 if text else 3)] for place in range(each)) * n_sequences,
        probability=np.round(np.random.default_rng(0).random(n), 4),
        source=("dugong",),
        recordings=dict.fromkeys(names, about),
    )


def measure(name: str, folder: Path) -> tuple[float, float, int] | None:
    """Seconds of the processor for writing and reading, and the size of the files; None without its extra."""
    one = formats.of_name(name)
    given = intervals(N, 1 if one.single else 100, text=name in TEXTS)
    if name == "rttm":
        given = intervals(N, 100, text=True).describe(rate=4.0)
    path = folder / f"r000{one.suffixes[0]}"
    try:
        begin = process_time()
        written = formats.write(given, path, name)
        middle = process_time()
        found = formats.read(path, name)
        end = process_time()
    except MissingExtraError:
        return None
    assert len(found) == N, (name, len(found))
    return middle - begin, end - middle, sum(Path(str(file)).stat().st_size for file in written)


def main() -> int:
    """Measure all formats, or those that are named; fails if a text format takes longer than the bound."""
    names = sys.argv[1:] or list(formats.names())
    slow = []
    print(f"{'format':<14}{'write s':>9}{'read s':>9}{'MB':>8}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, Path(folder))
        if found is None:
            print(f"{name:<14}  (its extra is not installed)")
            continue
        print(f"{name:<14}{found[0]:>9.2f}{found[1]:>9.2f}{found[2] / 1e6:>8.1f}")
        if name not in BINARY and found[0] + found[1] > BOUND:
            slow.append(name)
    if slow:
        print(f"slower than {BOUND} s: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
