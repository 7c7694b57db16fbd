"""What was asked for, beside what was found: one row per target, from the results of a run."""

from __future__ import annotations

from typing import Any

BIG, LONG = "plain-1000000x5", "plain-10x100000"
VOTES_MB = 50e6 / 2**20
FASTER = (("pomegranate HMM", 40.0), ("Snorkel", 15.0), ("FlyingSquid", 300.0))

Line = list[str]


def checks(results: dict[str, Any]) -> list[Line]:
    """All targets about which something was measured."""
    rows = {(row["name"], row["scene"]): row for row in results.get("race", []) if row["threads"] == 1}
    return [*_race(rows), *_floors(results), *_memory(rows), *_windows(results), *_rest(results)]


def line(name: str, value: float, bound: float, *, least: bool = False) -> Line:
    """One row of the table."""
    met = value >= bound if least else value <= bound
    return [name, f"{'at least' if least else 'at most'} {bound:g}", f"{value:.3g}", "yes" if met else "no"]


def _cpu(row: dict[str, Any] | None) -> float | None:
    return None if row is None else row.get("cpu", row.get("expected_cpu"))


def _race(rows: dict[tuple[str, str], dict[str, Any]]) -> list[Line]:
    found = []
    for scene, words, peers in ((BIG, "1,000,000 x 5", FASTER), (LONG, "10 x 100,000", (("hmmlearn", 10.0),))):
        us = _cpu(rows.get(("dugong", scene)))
        for name, bound in peers:
            them = rows.get((name, scene))
            cpu = _cpu(them)
            if us and cpu and them is not None:
                how = "" if "cpu" in them else " (in proportion)"
                found.append(line(f"{words}: times our CPU, first calls, {name}{how}", cpu / us, bound, least=True))
    return found


def _floors(results: dict[str, Any]) -> list[Line]:
    floors = results.get("floors")
    if not floors:
        return []
    floor, found = floors["sum() of the votes"], []
    found.append(line("1,000,000 x 5: fit over sum()", floors["fit"] / floor, 6))
    found.append(line("1,000,000 x 5: fit + labels over sum()", floors["fit + labels"] / floor, 25))
    us = next((r for r in results.get("race", []) if r["name"] == "dugong" and r["scene"] == BIG and "cpu" in r), None)
    if us is not None:
        name = "1,000,000 x 5: validation + fit + labels, first calls in a process, over sum()"
        found.append(line(name, us["cpu"] / floor, 25))
    if "fit + labels, all learned" in floors:
        ratio = floors["fit + labels, all learned"] / floors["fit + labels"]
        found.append(line("1,000,000 x 5: all learned over given", ratio, 4))
    return found


def _windows(results: dict[str, Any]) -> list[Line]:
    """CPU, memory and growth of windows by majority."""
    rows = {(row["case"], row["elements"]): row for row in results.get("windows", []) if "cpu" in row}
    found = []
    for case, size in rows:
        if size == max(one for name, one in rows if name == case):
            found.append(line(f"windows {case}: CPU seconds on {size:,} elements", rows[case, size]["cpu"], 10))
            found.append(line(f"windows {case}: peak MB", rows[case, size]["mb"], 500))
            half = rows.get((case, size // 2))
            if half:
                growth = rows[case, size]["cpu"] / (2 * half["cpu"])
                found.append(line(f"windows {case}: CPU over twice that of half the elements", growth, 1.3))
    return found


def _memory(rows: dict[tuple[str, str], dict[str, Any]]) -> list[Line]:
    us = rows.get(("dugong", BIG))
    if us is None or "cpu" not in us:
        return []
    above = 1 + (us["peak_mb"] - us["base_mb"]) / VOTES_MB
    return [
        line("1,000,000 x 5: memory above the imports, votes included, over the votes", above, 4),
        line("1,000,000 x 5: Brier over the optimum", us["ratio"], 1.01),
    ]


def _rest(results: dict[str, Any]) -> list[Line]:
    found = []
    if results.get("threads"):
        threads = results["threads"]
        name = f"1,000,000 x 5: wall time, one thread over two (load average {threads['load']:.1f})"
        found.append(line(name, threads["ratio"], 1.4, least=True))
    qualities = (results.get("quality") or {}).get("estimated", [])
    found += [line("multi-resolution: Brier over the optimum", value, 1.01) for value in qualities]
    found += _gibbs(results)
    if results.get("cold"):
        found.append(line("dugong demo, nothing compiled yet, CPU seconds", results["cold"]["first"], 10))
    return found


def _gibbs(results: dict[str, Any]) -> list[Line]:
    """Samplers over the closed form: stopped where their error is no larger, else run to their end."""
    rows, found = results.get("gibbs") or [], []
    for row in rows:
        stopped = row["stopped_seconds"]
        how = "never as exact" if stopped is None else "stopped when as exact, by one who knows the truth"
        seconds = row["sampler_seconds"] if stopped is None else stopped
        name = f"{row['world']} world: our Gibbs sampler ({how}) over the closed form, CPU"
        found.append(line(name, seconds / row["closed_seconds"], 150, least=True))
    peer = _numbskull(results)
    if rows and peer is not None:
        name = "lopsided world: numbskull over the closed form, CPU"
        found.append(line(name, peer / rows[0]["closed_seconds"], 1000, least=True))
    return found


def _numbskull(results: dict[str, Any]) -> float | None:
    rows = [r for r in results.get("race", []) if r["name"] == "numbskull" and r["scene"] == "plain-10000x5"]
    return _cpu(rows[0]) if rows else None
