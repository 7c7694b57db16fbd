"""``make chaos``: kill -9 in run, apply, fit and label, 25 times each, and compare all bytes with a calm run.

``--kills N`` for another number of kills in each verb. The other incidents (full disk, folder that is gone, a place
where nobody may write, two runs at once) are tests: ``tests/chaos/test_incidents.py``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from chaos.kills import kills


def main() -> None:
    """Torment, print, and fail if a byte differs or a file of the user was touched."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=25, help="how often each verb is killed; default 25")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes; default 2")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dugong-chaos-") as name:
        verbs, different = kills(Path(name), options.kills, jobs=options.jobs, seed=options.seed)
    print(f"{sum(len(verb.hits) for verb in verbs)} kills:", "DIFFERENT" if different else "identical")
    print(*different, sep="\n", end="\n" if different else "")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
