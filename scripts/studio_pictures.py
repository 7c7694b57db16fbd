"""Make the pictures of the studio in docs/img anew: the sample of a sensor, as a browser shows it.

Run it with ``make studio-pictures``. It needs Chromium, chromedriver and selenium, which ``make browser`` installs.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from dugong.cli.init import write_project  # noqa: E402
from studio_browser import Studio, chromium, screen, serving  # noqa: E402

TARGET, WIDTH, MOST_BYTES = ROOT / "docs" / "img", 1180, 200_000


def photograph(studio: Studio, name: str, height: int) -> None:
    """Keep what is on screen."""
    studio.run("document.activeElement.blur(); scrollTo(0, 0);")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    found = studio.browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
    picture = base64.b64decode(found["data"])
    assert len(picture) < MOST_BYTES, f"{name} has {len(picture):,} bytes; at most {MOST_BYTES:,} are wanted"
    (TARGET / f"studio-{name}.png").write_bytes(picture)


def take_all(studio: Studio) -> None:
    """The four pages of the tour."""
    screen(studio.browser, WIDTH, 900)
    studio.go("/queue", ".queue tbody tr")
    first = studio.text(".queue tbody th")
    photograph(studio, "queue", 520)
    studio.go(f"/sequence/{first}", ".rows canvas")
    studio.drawn()
    studio.drag("your corrections", 15, 23)
    studio.wait("return document.querySelectorAll('.marks li').length === 1;")
    studio.wait("return document.querySelector('.explanation tr.sum') !== null;")
    photograph(studio, "sequence", 860)
    studio.go("/source/moves", "#save")
    studio.drawn()
    studio.replace("0.6", "0.9")
    studio.wait("return document.querySelector('#changed') !== null;")
    studio.drawn()
    photograph(studio, "source", 860)
    screen(studio.browser, WIDTH, 900, "dark")
    studio.go("/model", ".panel table")
    photograph(studio, "model", 700)


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as name:
        browser = chromium(Path(name) / "profile")
        if browser is None:
            raise SystemExit("error: Chromium, chromedriver or selenium is missing.\n  Run `make browser` first.")
        try:
            write_project(Path(name) / "walking", "sensor")
            with serving(browser, Path(name) / "walking") as studio:
                take_all(studio)
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
