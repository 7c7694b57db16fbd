"""How quick the studio answers: `make bench-studio` (`ARGS=--quick` leaves the long recording out).

Everything is measured over the wire, as the page would do it, on a warm process: from the end of typing to new votes on
each sample project; the first page with all that it fetches; a recording of 12 hours at 64 Hz with ten sources, panned.
A browser adds the time to draw; `tests/browser` measures that.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import numpy as np

from dugong.cli.init import write_project
from studio_client import Client, Running

HOURS, RATE, N_SOURCES = 12, 64, 10
BOUNDS = {"typing, median": 0.3, "typing, 95 %": 0.6, "first page": 1.5, "one pan": 1 / 30}
LOADER = """from pathlib import Path

from dugong.sources.loaders import npy_folder


def sequences():
    return npy_folder(Path(__file__).parent / "data")
"""
SOURCE = """
@dg.source(vectorized=True)
def rule_{place}(values):
    return np.where(values[:, {column}] > {limit}, 1, -1)

"""
PROJECT = """data = "loader:sequences"
sources = "sources.py"
rate = 64
prior = { kind = "markov", positive = 0.3, stay = 0.999 }
dependencies = []
"""


def timed(action: Callable[..., object], *given: object, **named: object) -> float:
    """Seconds that a call takes."""
    begin = perf_counter()
    action(*given, **named)
    return perf_counter() - begin


def quantile(values: list[float], share: float) -> float:
    """The value below which a share of all lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def typing(kind: str, folder: Path, n: int = 60) -> list[float]:
    """Seconds from each sent text to its answer; every text is new."""
    write_project(folder / kind, kind)
    running = Running(folder / kind / "project.toml", folder)
    try:
        client = running.enter()
        client.fitted()
        sequence = client.get("/api/sequences")["sequences"][0]["id"]
        client.get(f"/api/sequences/{quote(sequence, safe='')}")
        name = client.get("/api/project")["sources"][0]["name"]
        text = client.get(f"/api/sources/{name}")["text"]
        with client.socket() as live:
            live.attempt(text, source=name, sequence=sequence)
            return [timed(live.attempt, f"{text}    # {place}\n", source=name, sequence=sequence) for place in range(n)]
    finally:
        running.interrupt()


def first_page(client: Client) -> float:
    """Everything that the page fetches before it shows the queue, one after the other."""
    paths = ("/", "/assets/studio.css", "/assets/studio.js", "/api/project", "/api/sequences?sort=entropy&page=0")
    return sum(timed(client.raw, "GET", path) for path in paths)


def write_night(folder: Path) -> Path:
    """Twelve hours at 64 Hz, and ten rules."""
    (folder / "data").mkdir(parents=True)
    rng, n = np.random.default_rng(1), HOURS * 3600 * RATE
    state = np.repeat(rng.random(n // (RATE * 30)) < 0.3, RATE * 30)
    for name in ("night-1", "night-2"):
        values = rng.normal(size=(n, 5)).astype(np.float32) + state[:, None]
        np.save(folder / "data" / f"{name}.npy", values)
    rules = [SOURCE.format(place=p, column=p % 5, limit=0.3 + 0.05 * p) for p in range(N_SOURCES)]
    (folder / "sources.py").write_text("import numpy as np\n\nimport dugong as dg\n\n" + "".join(rules))
    (folder / "loader.py").write_text(LOADER)
    (folder / "project.toml").write_text(PROJECT)
    return folder / "project.toml"


def panning(folder: Path, frames: int = 90) -> dict[str, list[float]]:
    """Seconds per stretch at three zooms, each stretch a little further to the right."""
    running = Running(write_night(folder), folder.parent)
    try:
        client = running.enter()
        client.fitted(seconds=600)
        n = HOURS * 3600 * RATE
        client.get("/api/sequences/night-1/tracks?px=1200")  # the first look reads the recording
        found = {}
        for words, width in (("all 12 hours", n), ("one hour", n // 12), ("one minute", 60 * RATE)):
            starts = [int(place / frames * (n - width)) for place in range(frames)]
            path = "/api/sequences/night-1/tracks?from={}&to={}&px=1200"
            found[words] = [timed(client.raw, "GET", path.format(a, a + width)) for a in starts]
        return found
    finally:
        running.interrupt()


def main() -> int:
    """Measure all, and say what is beyond its bound."""
    slow = []

    def say(what: str, value: float, bound: str) -> None:
        print(f"{what:<44} {1000 * value:8.1f} ms   (bound {1000 * BOUNDS[bound]:.0f} ms)", flush=True)
        if value > BOUNDS[bound]:
            slow.append(what)

    with tempfile.TemporaryDirectory(prefix="dugong-bench-") as name:
        folder = Path(name)
        for kind in ("sensor", "text", "audio", "video"):
            found = typing(kind, folder)
            say(f"{kind}: from typing to votes, median", statistics.median(found), "typing, median")
            say(f"{kind}: from typing to votes, 95 %", quantile(found, 0.95), "typing, 95 %")
        running = Running(folder / "sensor" / "project.toml", folder)
        client = running.enter()
        client.fitted()
        say("first page on a warm process", max(first_page(client) for _ in range(5)), "first page")
        running.interrupt()
        if "--quick" not in sys.argv:
            for words, spent in panning(folder / "night").items():
                say(f"12 h at 64 Hz, {words}: pan, median", statistics.median(spent), "one pan")
                say(f"12 h at 64 Hz, {words}: pan, 95 %", quantile(spent, 0.95), "one pan")
    print("beyond its bound: " + ", ".join(slow) if slow else "all within their bounds")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
