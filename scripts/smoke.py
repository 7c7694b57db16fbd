"""Do the whole job with the Dugong that is installed, as a newcomer would: `make smoke` runs this beside a fresh wheel.

It needs nothing but the core dependencies, and stops if it finds the package anywhere but among the installed ones.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import dugong as dg

HERE = Path(dg.__file__)
ROOT = Path(__file__).resolve().parent.parent
COMMAND = Path(sys.executable).parent / "dugong"


def run(*words: str, folder: str) -> str:
    """The standard output of a verb."""
    done = subprocess.run([COMMAND, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dugong {' '.join(words)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def follow(page: str, folder: str) -> None:
    """Do what a tutorial says, with the core dependencies alone."""
    sys.path.append(str(ROOT / "tests"))
    from snippets import run_page

    with contextlib.chdir(folder):
        run_page(ROOT / "docs" / "tutorial" / page, "tutorial")


def main() -> None:
    """From `dugong init` to a report, and a model in code."""
    if not HERE.is_relative_to(sysconfig.get_paths()["purelib"]):
        raise SystemExit(f"this is not the installed package: {HERE}")
    with tempfile.TemporaryDirectory() as folder:
        run("init", "walking", folder=folder)
        made = json.loads(run("run", "walking/project.toml", "--json", folder=folder))
        missing = [file for file in made["files"].values() if not (Path(folder) / file).exists()]
        if missing:
            raise SystemExit(f"dugong run wrote no {missing}")
        votes = dg.Votes.read(Path(folder) / made["files"]["votes"])
        probabilities = dg.LabelModel().fit(votes).predict_proba(votes)
        run("info", folder=folder)
        follow("own-folder.md", folder)
    print(f"dugong {dg.__version__} from {HERE.parent}: {len(probabilities):,} elements labelled")


if __name__ == "__main__":
    main()
