"""Make docs/img/report.png anew: the report of the demo, as a browser shows it.

Run it with ``make screenshot``. It needs Chromium, chromedriver and selenium, which ``make test-browser`` installs.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from dugong.model import LabelModel
from dugong.sources import apply
from dugong.worlds import tv_news
from dugong.worlds.standard import broadcasts
from dugong.worlds.tvnews_sources import SOURCES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from studio_browser import chromium  # noqa: E402

TARGET = ROOT / "docs" / "img" / "report.png"
WIDTH, MARGIN, MOST_BYTES = 1080, 10, 300_000


def make_report(folder: Path) -> tuple[Path, str]:
    """The report that ``dugong demo`` writes, of fewer broadcasts, and the sequence to show."""
    shows = broadcasts(600, rng=0)
    votes = apply(SOURCES, shows.frames, progress=False)
    model = LabelModel(prior=tv_news().prior, dependencies=()).fit(votes)
    page = folder / "report.html"
    report = model.report(votes, page, shows.labels["element"], title="Interviews in TV news (simulated)")
    found = [track for track in report.sequences.tracks if track.gold is not None and 5 < track.gold.sum() < 20]
    return page, max(found, key=lambda track: track.difference).name


def photograph(page: Path, sequence: str, folder: Path) -> bytes:
    """The timeline of a sequence as PNG."""
    browser = chromium(folder / "profile")
    if browser is None:
        raise SystemExit("error: Chromium, chromedriver and selenium must be there; `make browser` installs them.")
    try:
        size = {"width": WIDTH, "height": 900, "deviceScaleFactor": 1.25, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page.as_uri())
        browser.execute_script("document.querySelector('nav').style.position = 'static';")
        browser.execute_script(
            "const sort = document.querySelector('.chooser select'); sort.value = 'difference';"
            "sort.dispatchEvent(new Event('change'));"
            "[...document.querySelectorAll('.sequences li')].find((one) => one.title === arguments[0]).click();",
            sequence,
        )
        browser.execute_async_script("const [done] = arguments; requestAnimationFrame(() => setTimeout(done, 50));")
        top, bottom = browser.execute_script(
            "const box = (words) => document.querySelector(words).getBoundingClientRect();"
            "return [box('#timelines').top + scrollY + 2, box('.explanation').bottom + scrollY];"
        )
        clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top + MARGIN, "scale": 1}
        found = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    finally:
        browser.quit()
    return base64.b64decode(found["data"])


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as name:
        page, sequence = make_report(Path(name))
        picture = photograph(page, sequence, Path(name))
    assert len(picture) < MOST_BYTES, f"the picture has {len(picture):,} bytes; at most {MOST_BYTES:,} are wanted"
    TARGET.write_bytes(picture)


if __name__ == "__main__":
    main()
