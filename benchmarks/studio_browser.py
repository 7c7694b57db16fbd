"""How quick the studio is on screen: `make bench-studio` runs it after the measurements over the wire.

In Chromium: from the last key to new votes on screen (the pause of 150 ms before a text is tried is part of it), the
first page until the queue stands there, and frames per second while a recording of 12 hours at 64 Hz with ten sources
is panned without rest; beside them the milliseconds of the page's own work per frame, of which a machine that is busy
with other things knows nothing. A video of two hours is sought in many places: from the click to the picture of that
second, which must be the right one, and the memory that all processes take for it. Without Chromium, chromedriver and
selenium (``make browser``) nothing is measured, and that is said.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # first: its studio_browser is the one that is used here

from dugong.cli.init import write_project
from studio import HOURS, RATE, quantile, write_night
from studio_browser import SECOND, Studio, chromium, serving
from studio_client import write_two_hours

# Panning as with a wheel that never rests: the view moves with every frame, and frames that were drawn are counted.
PAN = """
const [step, done] = arguments, canvas = document.querySelector('.rows canvas'), box = canvas.getBoundingClientRect();
const wheel = () => canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: step, shiftKey: true, bubbles: true,
  cancelable: true, clientX: box.x + 400, clientY: box.y + 20}));
const begin = performance.now(), drawn = Number(canvas.dataset.drawn);
const next = (now) => {
  if (now - begin > 4000) done((Number(canvas.dataset.drawn) - drawn) / ((now - begin) / 1000));
  else { wheel(); requestAnimationFrame(next); }
};
requestAnimationFrame(next);
"""
# From a key to the answer that was drawn: the words beside the sequence change, and then the timeline is drawn anew.
WATCH = """
window.answers = [];
const drawn = () => Number(document.querySelector('.rows canvas').dataset.drawn);
addEventListener('keydown', () => { window.pressed = [performance.now(), drawn()]; }, true);
new MutationObserver(() => {
  if (window.pressed && document.querySelector('#tried')?.innerText.startsWith('tried on')) {
    const [pressed, before] = window.pressed;
    window.pressed = null;
    const look = () => {
      if (drawn() > before) window.answers.push(performance.now() - pressed); else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }
}).observe(document.querySelector('main'), {subtree: true, childList: true, characterData: true});
"""
AT = "Number(new URLSearchParams(location.search).get('at'))"
# From a click to a picture of another moment.
LEAP = """
window.leaps = [];
const video = document.querySelector('video');
addEventListener('pointerdown', () => {
  const begin = performance.now();
  video.requestVideoFrameCallback(() => window.leaps.push(performance.now() - begin));
}, true);
"""
# A source of each sample project, and the number in it behind which digits are typed.
TYPED = {
    "sensor": ("moves", "0.6", "0.61"),
    "text": ("looks_unusual", ">= 7", ">= 6.1"),
    "audio": ("loud", "0.075", "0.0751"),
    "video": ("something_bright", "190", "190.1"),
}


def typing(studio: Studio, source: str, number: str, begun: str, n: int = 30) -> list[float]:
    """Milliseconds from the last key to new votes on screen."""
    studio.go(f"/source/{source}", "#save")
    studio.drawn()
    studio.replace(number, begun)
    studio.wait("return document.querySelector('#tried').innerText.startsWith('tried on');")
    studio.run(WATCH)
    for place in range(n):
        studio.press(str(1 + place % 9))
        studio.wait("return window.answers.length > arguments[0];", place)
    return list(studio.run("return window.answers;"))


def first_page(studio: Studio) -> float:
    """Milliseconds until the queue stands there."""
    spent = []
    for _ in range(5):
        studio.go("/queue", ".queue tbody tr")
        spent.append(studio.wait("return performance.getEntriesByName('queue')[0]?.startTime;"))
    return max(spent)


def page_seconds(studio: Studio) -> float:
    """Seconds that the thread of the page has worked so far."""
    metrics = studio.browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def panning(studio: Studio) -> dict[str, tuple[float, float]]:
    """Frames per second at three zooms, and milliseconds of work for one."""
    n, found = HOURS * 3600 * RATE, {}
    studio.browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    for words, width in (("four hours", n // 3), ("one hour", n // 12), ("one minute", 60 * RATE)):
        studio.go(f"/sequence/night-1?from=1000&to={1000 + width}", ".rows canvas")
        studio.drawn()
        begin, drawn = page_seconds(studio), "return Number(document.querySelector('.rows canvas').dataset.drawn);"
        before = studio.run(drawn)
        frames = studio.browser.execute_async_script(PAN, 8)
        found[words] = frames, 1000 * (page_seconds(studio) - begin) / (studio.run(drawn) - before)
    return found


def leaping(studio: Studio, hours: float, n: int = 40) -> tuple[list[float], float]:
    """Milliseconds from clicks to pictures all over a long video, and megabytes that all processes take for it."""
    studio.go("/sequence/long?at=0", ".rows canvas")
    studio.drawn()
    studio.wait(f"return document.querySelector('video').readyState >= 2 && {SECOND} === 0;")
    studio.run(LEAP)
    before = megabytes()
    for place in range(n):
        second = round(
            (0.02 + 0.96 * (0.618 * (place + 1) % 1)) * hours * 3600
        )  # far from the last, and never the same
        studio.drag("time", second, second, steps=1)
        studio.wait("return window.leaps.length > arguments[0];", place)
        studio.wait(f"return Math.abs({AT} - arguments[0]) < 30 && {SECOND} === {AT};", second)
    return list(studio.run("return window.leaps;")), megabytes() - before


def megabytes() -> float:
    """Memory of this process and of all that it started: the browser, the studio, its workers."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    mine = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    total = 0
    for one in mine:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += int(text.partition("\nPss:")[2].split()[0])
    return total / 1000


def main() -> int:
    """Measure all, and say what is beyond its bound."""
    slow: list[str] = []

    def say(what: str, value: float, bound: float, unit: str, *, least: bool = False) -> None:
        print(f"{what:<52} {value:8.1f} {unit}   (bound {bound:.0f})", flush=True)
        if value < bound if least else value > bound:
            slow.append(what)

    with tempfile.TemporaryDirectory(prefix="dugong-bench-") as name:
        folder = Path(name)
        browser: Any = chromium(folder / "profile")
        if browser is None:
            print("Chromium, chromedriver or selenium is missing: `make browser`. Nothing was measured on screen.")
            return 0
        try:
            for kind, words in TYPED.items():
                write_project(folder / kind, kind)
                with serving(browser, folder / kind) as studio:
                    found = typing(studio, *words)
                    say(f"on screen, {kind}: from the last key to votes, median", statistics.median(found), 300, "ms")
                    say(f"on screen, {kind}: from the last key to votes, 95 %", quantile(found, 0.95), 600, "ms")
                    say(f"on screen, {kind}: first page", first_page(studio), 1500, "ms")
            if "--quick" not in sys.argv:
                with serving(browser, write_night(folder / "night").parent) as studio:
                    for words, (frames, work) in panning(studio).items():
                        say(f"on screen: 12 h at 64 Hz, {words}", frames, 30, "frames/s", least=True)
                        say(f"work of the page per frame, {words}", work, 1000 / 30, "ms")
                with serving(browser, write_two_hours(folder / "hours", rate=25).parent) as studio:
                    found, more = leaping(studio, 2)
                    say(
                        "on screen, video of 2 h: from a click to its picture, median",
                        statistics.median(found),
                        300,
                        "ms",
                    )
                    say("on screen, video of 2 h: from a click to its picture, 95 %", quantile(found, 0.95), 600, "ms")
                    say("memory that 40 such clicks add, in all processes", more, 200, "MB")
        finally:
            browser.quit()
    print("beyond its bound: " + ", ".join(slow) if slow else "all within their bounds")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
