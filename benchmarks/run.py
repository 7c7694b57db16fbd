"""`make bench`: the whole benchmark in one run, to JSON, Markdown and plots. `--quick` is the short form.

Each part is kept as soon as it is measured, so an interrupted run leaves what it found.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.race import ONE_THREAD, OURS, PEERS

os.environ.update(ONE_THREAD)

from benchmarks import peers_setup, render
from benchmarks.floors import measure_floors
from benchmarks.quality import measure_figure, measure_quality
from benchmarks.race import measure, measured_as
from benchmarks.scaling import measure_scaling
from benchmarks.scenes import SCENARIOS, Scene, write_scene

ROOT = peers_setup.ROOT
PAGE = ROOT / "docs" / "explanation" / "performance.md"
SMALL = 10_000
# CPU seconds per run (imports and warm-up included), on ten thousand sequences and on larger scenes.
QUICK_CAP, CAP = (40.0, 150.0), (150.0, 1200.0)


def scenes(*, quick: bool) -> list[Scene]:
    """All scenarios at one size; the plain one at all sizes."""
    small = [Scene(scenario=name, n_sequences=SMALL, n_elements=5) for name in SCENARIOS]
    sizes = [(1_000_000, 5), (10, 100_000)] if quick else [(100_000, 5), (1_000_000, 5), (10, 100_000)]
    return small + [Scene(scenario="plain", n_sequences=n, n_elements=length) for n, length in sizes]


def race(folder: Path, results: dict[str, Any], save: Any, chosen: argparse.Namespace) -> None:
    """Everybody on every scene; afterwards ourselves on two threads."""
    failed = peers_setup.set_up()
    caps = QUICK_CAP if chosen.quick else CAP
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
            if only is None or name in only:
                row = attempt(name, scene, data, caps, expected)
                keep(results, row)
                print(f"{scene.name:32} {name:24} {render.cell(row)}", flush=True)
                save()
    if only is not None:
        return
    big = Scene(scenario="plain", n_sequences=1_000_000, n_elements=5)
    keep(results, measure("dugong", big, write_scene(big, folder), caps[1], threads=2))
    results["not_installed"] = failed


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
    if not small and seconds > 1.5 * cap:
        about = "more than " if expected[name] * SMALL * 5 >= caps[0] else "about "
        text = f"not run: {about}{seconds:.0f} s in proportion"
        return {**measured_as(name, scene), "failed": text, "expected_cpu": seconds}
    row = measure(name, scene, data, cap)
    if small and scene.scenario == "plain":
        expected[name] = row.get("cpu", cap) / (SMALL * 5)
    return row


def checks(results: dict[str, Any]) -> list[list[str]]:
    """The targets of the issue, with what was found."""
    rows = {(row["name"], row["scene"]): row for row in results["race"] if "cpu" in row and row["threads"] == 1}
    rows |= {
        (row["name"], row["scene"]): {"cpu": row["expected_cpu"]} for row in results["race"] if "expected_cpu" in row
    }
    us, found = rows.get(("dugong", "plain-1000000x5")), []
    floor = (results.get("floors") or {}).get("sum() of the votes")

    def add(name: str, value: float, bound: float, *, least: bool) -> None:
        met = value >= bound if least else value <= bound
        found.append([name, f"{'at least' if least else 'at most'} {bound:g}", f"{value:.3g}", "yes" if met else "no"])

    if us:
        for name, bound in (("pomegranate HMM", 40), ("Snorkel", 15), ("FlyingSquid", 300)):
            them = rows.get((name, "plain-1000000x5"))
            if them:
                add(f"1,000,000 x 5: times our CPU, {name}", them["cpu"] / us["cpu"], bound, least=True)
        if floor:
            add("1,000,000 x 5: fit over sum()", us["cpu_fit"] / floor, 6, least=False)
            add("1,000,000 x 5: fit + labels over sum()", us["cpu"] / floor, 25, least=False)
        add(
            "1,000,000 x 5: memory above the imports, votes included, over the votes",
            1 + (us["peak_mb"] - us["base_mb"]) * 2**20 / 50e6,
            4,
            least=False,
        )
        add("1,000,000 x 5: Brier over the optimum", us["ratio"], 1.01, least=False)
        learned = rows.get(("dugong (learned)", "plain-1000000x5"))
        if learned:
            add("1,000,000 x 5: all learned over given", learned["cpu"] / us["cpu"], 4, least=False)
        two = [row for row in results["race"] if row["threads"] == 2 and "wall" in row]
        if two:
            add("1,000,000 x 5: wall time, one thread over two", us["wall"] / two[-1]["wall"], 1.4, least=True)
    long = [rows.get((name, "plain-10x100000")) for name in ("hmmlearn", "dugong")]
    if long[0] and long[1]:
        add("10 x 100,000: times our CPU, hmmlearn", long[0]["cpu"] / long[1]["cpu"], 10, least=True)
    for value in (results.get("quality") or {}).get("estimated", []):
        add("multi-resolution: Brier over the optimum", value, 1.01, least=False)
    return found


def gibbs() -> str:
    """The run-time comparison with Gibbs sampling, which is a program of its own."""
    if importlib.util.find_spec("benchmarks.gibbs") is None:
        return "benchmarks.gibbs is not there"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gibbs"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr.strip()[-200:]}"


def main() -> None:
    """Run the parts that are asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, a cap of a minute per run")
    parser.add_argument("--parts", default="race,floors,scaling,quality,figure,gibbs")
    parser.add_argument("--only", default=None, help="competitors, separated by commas")
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
        ("scaling", measure_scaling),
        ("quality", measure_quality),
        ("figure", measure_figure),
        ("gibbs", gibbs),
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
