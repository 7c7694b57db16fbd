"""Results as a page: Markdown tables and plots, from the JSON that the runs wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.gibbs import GibbsRow
from benchmarks.gibbs import render as gibbs_table
from benchmarks.scaling import STAGES

Row = dict[str, Any]
BEGIN, END = "<!-- results: written by make bench -->", "<!-- end of results -->"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(row: Row | None) -> str:
    """One measurement as text."""
    if row is None:
        return "not run"
    if "failed" in row:
        return str(row["failed"]).replace("|", "/")
    return f"{row['cpu']:.3g} / {row['peak_mb']:.0f} / {row['ratio']:.3f}"


def race_table(rows: list[Row]) -> str:
    """CPU seconds / peak MB / Brier over the optimum, by competitor and scene."""
    rows = sorted((row for row in rows if row["threads"] == 1), key=lambda row: (row["n"] * row["T"], row["scene"]))
    scenes = list(dict.fromkeys(row["scene"] for row in rows))
    known = {(row["name"], row["scene"]): row for row in rows}
    names = list(dict.fromkeys(row["name"] for row in rows))
    return table(["", *scenes], [[name, *(cell(known.get((name, scene))) for scene in scenes)] for name in names])


def ratio_table(rows: list[Row]) -> str:
    """How many times our CPU each competitor needs."""
    rows = [row for row in rows if row["threads"] == 1]
    scenes = list(dict.fromkeys(row["scene"] for row in rows))
    known = {(row["name"], row["scene"]): row.get("cpu", row.get("expected_cpu")) for row in rows}
    names = [name for name in dict.fromkeys(row["name"] for row in rows) if name != "dugong"]
    body = []
    for name in names:
        cells = [(known.get((name, scene)), known.get(("dugong", scene))) for scene in scenes]
        body.append([name, *(f"{them / us:.1f}" if them and us else "-" for them, us in cells)])
    return table(["times our CPU", *scenes], body)


def plot_race(rows: list[Row], path: Path) -> None:
    """CPU against Brier ratio, one panel per scene."""
    scenes = list(dict.fromkeys(row["scene"] for row in rows))
    columns = 3
    lines = -(-len(scenes) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(12, 3.2 * lines), squeeze=False)
    for place, axis in enumerate(axes.flat):
        if place >= len(scenes):
            axis.axis("off")
            continue
        for row in rows:
            if row["scene"] == scenes[place] and "cpu" in row and row["threads"] == 1:
                axis.scatter(row["cpu"], row["ratio"], s=30)
                axis.annotate(
                    row["name"], (row["cpu"], row["ratio"]), fontsize=7, xytext=(3, 3), textcoords="offset points"
                )
        axis.set(xscale="log", yscale="log", title=scenes[place], xlabel="CPU seconds", ylabel="Brier / optimum")
        axis.axhline(1, color="0.7", lw=1)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def plot_curves(scaling: dict[str, Any], figure_data: dict[str, Any] | None, path: Path) -> None:
    """Cost along each axis, and the error of the accuracies by n and T."""
    panels = len(scaling) + (2 if figure_data else 0)
    figure, axes = plt.subplots(1, panels, figsize=(3.2 * panels, 3))
    for axis, (name, found) in zip(axes, scaling.items(), strict=False):
        for stage in ("fit", "labels"):
            axis.loglog(found["values"], found[stage], "o-", label=f"{stage} ^{found[stage + '_exponent']:.2f}")
        axis.set(xlabel=name, ylabel="CPU seconds")
        right = axis.twinx()
        right.loglog(found["values"], found["memory"], "s--", color="0.6")
        right.set_ylabel(f"MB beside the votes ^{found['memory_exponent']:.2f}", color="0.5")
        axis.legend(fontsize=7)
    if figure_data:
        for axis, name in zip(axes[len(scaling) :], ("n", "T"), strict=True):
            for sharing, errors in figure_data[f"by_{name}"].items():
                axis.loglog(figure_data[name], errors, "o-", label=sharing)
            axis.set(xlabel=name, ylabel="error of all accuracies")
            axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _window_cells(row: dict[str, Any]) -> list[str]:
    """CPU, memory, and what the model says about its labels."""
    if "cpu" not in row:
        return ["", "", row["failed"]]
    exact = row["note"] == "exact"
    return [
        f"{row['cpu']:.2f}",
        f"{row['mb']:.0f}",
        "exact" if exact else row["note"].split("approximate, ")[1].split(" (")[0],
    ]


def page(results: dict[str, Any]) -> str:
    """The part of the page that a run writes."""
    rows = results["race"]
    parts = [f"Measured {results['when']} on {results['machine']}.", "CPU seconds / peak MB / Brier over the optimum:"]
    parts += [race_table(rows), ratio_table(rows), "![CPU and quality](../img/bench.svg)"]
    floors = results.get("floors")
    if floors:
        floor = floors["sum() of the votes"]
        body = [[name, f"{seconds:.4f}", f"{seconds / floor:.1f}"] for name, seconds in floors.items()]
        parts += ["1,000,000 x 5, 10 sources, against the floor:", table(["stage", "CPU s", "times sum()"], body)]
    if results.get("scaling"):
        body = [
            [axis, ", ".join(map(str, found["values"])), *(f"{found[f'{stage}_exponent']:.2f}" for stage in STAGES)]
            for axis, found in results["scaling"].items()
        ]
        parts += [
            "Exponents of growth:",
            table(["axis", "values", "fit, CPU", "labels, CPU", "memory beside the votes"], body),
            "![Scaling](../img/bench-scaling.svg)",
        ]
    if results.get("gibbs"):
        parts += [
            "The closed form against our own Gibbs sampler (10,000 x 5, 10 sources; error: mean absolute one of "
            "P(vote given label)):",
            gibbs_table([GibbsRow(**{k: v for k, v in row.items() if k != "ratio"}) for row in results["gibbs"]]),
        ]
    if results.get("threads"):
        found = results["threads"]
        parts += [
            f"Fit + labels on 1,000,000 x 5, wall seconds: {found['one']:.3f} on one thread, {found['two']:.3f} on two "
            f"({found['ratio']:.2f} times as fast), at a load average of {found['load']:.1f}."
        ]
    if results.get("cold"):
        found = results["cold"]
        parts += [
            f"`dugong demo`, CPU seconds: {found['first']:.1f} with nothing compiled, "
            f"{found['second']:.1f} the next time."
        ]
    if results.get("quality"):
        body = [[name, ", ".join(f"{value:.3g}" for value in values)] for name, values in results["quality"].items()]
        parts += ["Multi-resolution world, Brier over the optimum by seed:", table(["parameters", "by seed"], body)]
    if results.get("windows"):
        body = [[row["case"], f"{row['elements']:,}", *_window_cells(row)] for row in results["windows"]]
        head = ["size/stride", "elements", "CPU s", "peak MB", "labels"]
        parts += [
            "Votes on windows by majority, fit and labels of all resolutions with a given prior:",
            table(head, body),
        ]
    if results.get("checks"):
        body = [[name, asked, found, met] for name, asked, found, met in results["checks"]]
        parts += ["Targets:", table(["what", "asked", "found", "met"], body)]
    return "\n\n".join(parts)


def write_page(results: dict[str, Any], path: Path) -> None:
    """Put the results between the two marks of the page."""
    text = path.read_text()
    head, rest = text.split(BEGIN, 1)
    path.write_text(f"{head}{BEGIN}\n\n{page(results)}\n\n{END}{rest.split(END, 1)[1]}")
