"""``make fuzz``: all groups of cases with a fixed seed, and a table of what became of them.

``python -m fuzz`` runs 20,000 cases, ``--cases 99`` fewer; ``--only models`` one group; ``--case models 17`` one case.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

from fuzz import GROUPS, prepare
from fuzz.running import GOOD, Outcome, one_case, run

ENDS = ("fine", "refused", "foreign", "hang", "crash", "no probabilities", "memory")


def shares(total: int, names: list[str]) -> dict[str, int]:
    """How many cases every group gets, by its weight."""
    weights = {name: GROUPS[name][1] for name in names}
    return {name: max(1, round(total * weight / sum(weights.values()))) for name, weight in weights.items()}


def table(outcomes: list[Outcome]) -> str:
    """Outcomes by group."""
    rows = [("group", "cases", *ENDS, "slowest s", "most MB")]
    for name in [*dict.fromkeys(one.group for one in outcomes), "all"]:
        own = [one for one in outcomes if name in ("all", one.group)]
        count = Counter(one.what for one in own)
        slow, large = max(one.seconds for one in own), max(one.memory for one in own) / 1e6
        rows.append((name, str(len(own)), *(str(count[end]) for end in ENDS), f"{slow:.1f}", f"{large:.0f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)


def refused(outcomes: list[Outcome]) -> str:
    """The most memory that any file took until it was refused, and the most of what it was allowed."""
    own = [one for one in outcomes if one.refused_file]
    if not own:
        return "no file was refused"
    most, nearest = max(own, key=lambda one: one.memory), max(own, key=lambda one: one.memory / one.allowed)
    return (
        f"{len(own)} files were refused: at most {most.memory / 1e6:.0f} MB ({most.group} {most.number}, a file of "
        f"{most.size / 1e6:.2f} MB), at most {nearest.memory / nearest.allowed:.0%} of ten times the file and 200 MB "
        f"({nearest.group} {nearest.number})"
    )


def main() -> None:
    """Run, print, and fail if anything else than a good end was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--case", nargs=2, metavar=("GROUP", "NUMBER"))
    options = parser.parse_args()
    if options.case:
        with tempfile.TemporaryDirectory() as folder:
            print(
                one_case(options.case[0], GROUPS[options.case[0]][0], int(options.case[1]), options.seed, Path(folder))
            )
        return
    prepare()
    began, outcomes, seen = time.monotonic(), [], Counter()
    counts = shares(options.cases, options.only)
    for found in run({name: GROUPS[name][0] for name in counts}, counts, options.seed):
        outcomes.append(found)
        kind = (found.group, found.what, found.detail.rpartition(" at ")[2])
        seen[kind] += 1
        if found.what not in GOOD and seen[kind] <= 3:
            print(
                f"{found.what}: {found.group} {found.number}: {found.detail}".encode(
                    "ascii", "backslashreplace"
                ).decode(),
                flush=True,
            )
    print(table(outcomes))
    print(refused(outcomes))
    print(f"seed {options.seed}, {time.monotonic() - began:.0f} s")
    sys.exit(any(one.what not in GOOD for one in outcomes))


if __name__ == "__main__":
    main()
