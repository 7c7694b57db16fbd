"""The environment of the peers, `.venv-peers`: torch first, so that no CUDA arrives, then each peer on its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-peers"
PYTHON = HOME / "bin" / "python"
# Part of the environment of every measurement; read when numba is imported, so set before.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
# flyingsquid does not ask for pgmpy, which it imports.
PACKAGES = ("hmmlearn", "crowd-kit", "pomegranate", "snorkel", "flyingsquid pgmpy", "skweak", "numbskull")


def set_up() -> dict[str, str]:
    """Make the environment once; returns what did not install, with the reason."""
    stamp = HOME / ".stamp"
    if stamp.exists():
        return dict(line.split("\t", 1) for line in stamp.read_text().splitlines())
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    (HOME / ".gitignore").write_text("*\n")
    failed = {}
    for package in ("torch==2.13.0", *PACKAGES):
        print(f"installing {package} ...", flush=True)
        done = _install(package.split())
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            failed[package] = lines[-1][:200].replace("\t", " ")
    stamp.write_text("".join(f"{package}\t{reason}\n" for package, reason in failed.items()))
    return failed


def _install(packages: list[str]) -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", "constraints.txt"]
    return subprocess.run([*command, *packages], cwd=ROOT, capture_output=True, text=True, check=False)
