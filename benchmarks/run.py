"""`make bench`: the whole benchmark in one run, to JSON, Markdown and plots. `--quick` is the short form.

Each part is kept as soon as it is measured: an interrupted run leaves what it found, and the next one goes on there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.peers_setup import ONE_THREAD

os.environ.update(ONE_THREAD)

from benchmarks import peers_setup, render
from benchmarks.cold import measure_cold
from benchmarks.floors import measure_floors
from benchmarks.quality import measure_figure, measure_quality
from benchmarks.race import OURS, PEERS, measure, measured_as
from benchmarks.scaling import measure_scaling
from benchmarks.scenes import SCENARIOS, Scene, write_scene
from benchmarks.targets import checks
from benchmarks.threads import measure_threads
from benchmarks.windows import measure_windows

ROOT = peers_setup.ROOT
PAGE = ROOT / "docs" / "explanation" / "performance.md"
SMALL, LENGTH = 10_000, 5
# CPU seconds per run (imports and warm-up included), on ten thousand sequences and on larger scenes.
QUICK_CAP, CAP = (40.0, 150.0), (120.0, 600.0)


def scenes(*, quick: bool) -> list[Scene]:
    """All scenarios at one size; the plain one at all sizes."""
    small = [Scene(scenario=name, n_sequences=SMALL, n_elements=5) for name in SCENARIOS]
    sizes = [(1_000_000, 5), (10, 100_000)] if quick else [(100_000, 5), (1_000_000, 5), (10, 100_000)]
    return small + [Scene(scenario="plain", n_sequences=n, n_elements=length) for n, length in sizes]


def race(folder: Path, results: dict[str, Any], save: Any, chosen: argparse.Namespace) -> None:
    """Everybody on every scene; what was measured before is kept, unless `--again` says otherwise."""
    failed = peers_setup.set_up()
    caps = chosen.caps or (QUICK_CAP if chosen.quick else CAP)
    only = chosen.only.split(",") if chosen.only else None
    expected = {
        row["name"]: row["cpu"] / (SMALL * 5)
        for row in results["race"]
        if row["scene"] == f"plain-{SMALL}x5" and "cpu" in row
    }
    for scene in scenes(quick=chosen.quick):
        if chosen.scenes and scene.name not in chosen.scenes.split(","):
            continue
        data = write_scene(scene, folder)
        for name in (*OURS, *PEERS):
            if only is not None and name not in only:
                continue
            if chosen.again or not known(results, name, scene):
                row = attempt(name, scene, data, caps, expected)
                keep(results, row)
                print(f"{scene.name:32} {name:24} {render.cell(row)}", flush=True)
                save()
    results["not_installed"] = failed


def known(results: dict[str, Any], name: str, scene: Scene) -> bool:
    """Whether a row was measured before, or was found to fail."""
    return any(row["name"] == name and row["scene"] == scene.name for row in results["race"])


def keep(results: dict[str, Any], row: dict[str, Any]) -> None:
    """Put a row in the place of an earlier one about the same."""
    key = ("name", "scene", "threads")
    others = [old for old in results["race"] if any(old[part] != row[part] for part in key)]
    results["race"] = [*others, row]


def attempt(
    name: str, scene: Scene, data: Path, caps: tuple[float, float], expected: dict[str, float]
) -> dict[str, Any]:
    """Measure, unless growth in proportion from the small plain scene says that the cap would be passed by far."""
    small = scene.n_sequences == SMALL
    cap, seconds = caps[0 if small else 1], expected.get(name, 0.0) * scene.n_sequences * scene.n_elements
    if not small and scene.n_elements == LENGTH and seconds > 1.5 * cap:
        about = "more than " if expected[name] * SMALL * 5 >= caps[0] else "about "
        text = f"not run: {about}{seconds:.0f} s in proportion"
        return {**measured_as(name, scene), "failed": text, "expected_cpu": seconds}
    row = measure(name, scene, data, cap)
    if small and scene.scenario == "plain":
        expected[name] = row.get("cpu", cap) / (SMALL * 5)
    return row


def gibbs() -> list[dict[str, Any]]:
    """The closed form against our own Gibbs sampler, which is a program of its own; its first line is JSON."""
    command = [sys.executable, "-m", "benchmarks.gibbs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[0])
    return rows


def _pair(text: str) -> tuple[float, float]:
    small, large = text.split(",")
    return float(small), float(large)


def main() -> None:
    """Run the parts that are asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, a cap of a minute per run")
    parser.add_argument("--parts", default="race,floors,threads,scaling,quality,figure,gibbs,cold,windows")
    parser.add_argument("--again", action="store_true", help="measure anew what earlier runs have measured")
    parser.add_argument("--only", default=None, help="competitors, separated by commas")
    parser.add_argument("--caps", type=_pair, default=None, help="CPU seconds per run, small and large scenes: 120,600")
    parser.add_argument("--scenes", default=None, help="scenes, separated by commas, such as plain-10000x5")
    chosen = parser.parse_args()
    folder = ROOT / ".cache" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    results |= {"when": time.strftime("%Y-%m-%d"), "machine": f"{platform.machine()}, {os.cpu_count()} cores"}

    def save() -> None:
        results["checks"] = checks(results)
        path.write_text(json.dumps(results, indent=1))

    parts = chosen.parts.split(",")
    if "race" in parts:
        results.setdefault("race", [])
        race(folder, results, save, chosen)
    for name, work in (
        ("floors", measure_floors),
        ("threads", measure_threads),
        ("scaling", measure_scaling),
        ("quality", measure_quality),
        ("figure", measure_figure),
        ("gibbs", gibbs),
        ("cold", measure_cold),
        ("windows", measure_windows),
    ):
        if name in parts:
            print(f"{name} ...", flush=True)
            results[name] = work()
            save()
    save()
    render.plot_race(results["race"], ROOT / "docs" / "img" / "bench.svg")
    if results.get("scaling"):
        render.plot_curves(results["scaling"], results.get("figure"), ROOT / "docs" / "img" / "bench-scaling.svg")
    (folder / "results.md").write_text(render.page(results))
    render.write_page(results, PAGE)
    print(render.page(results))


if __name__ == "__main__":
    main()
