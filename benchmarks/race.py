"""Everybody on the same votes: one process per competitor and scene, one thread each, with a cap on time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers_setup import ONE_THREAD, PYTHON, ROOT
from benchmarks.scenes import Scene

OURS = {"dugong": "ours", "dugong (learned)": "ours_learned", "majority vote": "majority"}
PEERS = {
    "pomegranate HMM": "pomegranate_hmm",
    "hmmlearn": "hmmlearn_hmm",
    "Snorkel": "snorkel_model",
    "FlyingSquid": "flyingsquid_chain",
    "crowd-kit Dawid-Skene": "dawid_skene",
    "skweak HMM": "skweak_hmm",
    "numbskull": "numbskull_dp",
}
# The cap is on CPU time; a process that makes no headway is ended after this many times as much wall time.
PATIENCE = 10


def measure(name: str, scene: Scene, data: Path, cap: float, threads: int = 1) -> dict[str, Any]:
    """One row: CPU seconds, memory and Brier ratio, or why there is none."""
    own = name in OURS
    adapter = Path(__file__).parent / "peers" / f"{(OURS if own else PEERS)[name]}.py"
    python = sys.executable if own else str(PYTHON)
    row = measured_as(name, scene, threads)
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, str(threads))}
    if own:
        environment["PYTHONPATH"] = str(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [
            python,
            "-W",
            "ignore",
            str(Path(__file__).parent / "child.py"),
            str(adapter),
            str(data),
            str(out),
            str(cap),
        ]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                timeout=PATIENCE * cap,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return row | {"failed": f"over {PATIENCE * cap:.0f} s of wall time"}
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return row | {"failed": f"over {cap:.0f} CPU s"}
        if done.returncode or not out.exists():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return row | {"failed": lines[-1][:160]}
        found: dict[str, Any] = json.loads(out.read_text())
        return row | found


def measured_as(name: str, scene: Scene, threads: int = 1) -> dict[str, Any]:
    """The part of a row that says what it is about."""
    row = {"name": name, "scene": scene.name, "scenario": scene.scenario, "threads": threads}
    return row | {"n": scene.n_sequences, "T": scene.n_elements}
