"""A browser that looks at a running studio: for the tests, for the pictures of the documentation, for measurements.

Chromium and chromedriver come from the system's packages, selenium from the package index: ``make browser``.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from studio_client import Running

PATIENCE = 60  # seconds after which a wait gives up: only a failure ever takes as long
EDITOR = "document.querySelector('.editor')?.shadowRoot?.querySelector('.cm-content')"
# The second that the picture on screen tells, in the video of `write_two_hours`.
SECOND = (
    "(() => { const pen = new OffscreenCanvas(64, 64).getContext('2d'); let second = 0;"
    " pen.drawImage(document.querySelector('video, .media img'), 0, 0, 64, 64);"
    " const { data } = pen.getImageData(0, 0, 64, 64);"
    " for (let k = 0; k < 32; k++) if (data[4 * (64 * (4 + 8 * (k >> 2)) + 36 + 8 * (k & 3))] > 128) second += 2 ** k;"
    " return second; })()"
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def chromium(profile: Path) -> Any:
    """A browser with a profile of its own; None where something is missing."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    service = shutil.which("chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        return None
    if binary is None or service is None:
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(service))
    browser.set_script_timeout(2 * PATIENCE)
    return browser


@dataclass(frozen=True)
class Studio:
    """A browser that looks at a running studio."""

    browser: Any
    base: str
    folder: Path

    def run(self, script: str, *values: object) -> Any:
        return self.browser.execute_script(script, *values)

    def go(self, path: str, awaited: str = "main") -> None:
        self.browser.get(self.base + path)
        self.wait(f"return document.querySelector({json.dumps(awaited)}) !== null;")

    def wait(self, script: str, *values: object, seconds: float = PATIENCE) -> Any:
        """Wait until a script gives something true, and give it back."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run(script, *values)
            if found:
                return found
            time.sleep(0.03)
        told, shown = self.text(".toasts"), self.run("return document.body.innerText;")
        raise AssertionError(f"waited {seconds} s for: {script}\nmessages: {told or 'none'}\n{shown[:3000]}")

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? '';", selector))

    def texts(self, selector: str) -> list[str]:
        return list(
            self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText);", selector)
        )

    def click(self, selector: str) -> None:
        self.wait("return document.querySelector(arguments[0]);", selector)
        self.browser.find_element("css selector", selector).click()

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def hold(self, method: str, path: str) -> None:
        """Let the page wait for answers to a question until `release`: a slow machine, whenever a test wants one."""
        self.run(
            "const [method, path] = arguments, own = window.fetch.bind(window);"
            "window.held = {asked: 0, go: null}; const gate = new Promise((done) => { window.held.go = done; });"
            "window.fetch = async (where, options) => {"
            "  const wanted = (options?.method ?? 'GET') === method && String(where).startsWith(path);"
            "  if (wanted) window.held.asked += 1; const answer = await own(where, options);"
            "  if (wanted) await gate; return answer; };",
            method, path,
        )  # fmt: skip

    def asked(self, times: int) -> None:
        """Wait until what is held was asked for."""
        self.wait("return window.held.asked >= arguments[0];", times)

    def release(self) -> None:
        """Let held answers through."""
        self.run("window.held.go();")

    def control(self, key: str) -> None:
        """Press a key together with Ctrl."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).key_down("\ue009").send_keys(key).key_up("\ue009").perform()

    def settled(self) -> None:
        """Let the page do what it has heard of: two frames, and all that they begin."""
        self.browser.execute_async_script(
            "const [done] = arguments;requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)));"
        )

    def still(self) -> None:
        """Wait until everything that the user asked for is written."""
        self.wait("return document.querySelector('#writing') === null;")

    def drawn(self) -> None:
        """Wait until the timeline shows data, and nothing more is to be drawn."""
        self.wait("const c = document.querySelector('.rows canvas'); return c && c.dataset.step;")
        self.settled()

    def at(self, row: str, element: float) -> tuple[float, float]:
        """Where an element begins in a row of the timeline, in pixels from the middle of the canvas."""
        return tuple(
            self.run(
                "const c = document.querySelector('.rows canvas'), d = c.dataset;"
                "const row = [...document.querySelectorAll('.row-name')].find((one) => one.title === arguments[0]);"
                "const x = +d.left + (+d.width * (arguments[1] - d.from)) / (d.to - d.from);"
                "return [x - c.clientWidth / 2, +row.dataset.middle - c.clientHeight / 2];",
                row, element,
            )
        )  # fmt: skip

    def drag(self, row: str, begin: float, end: float, steps: int = 2) -> None:
        """Drag with a real pointer inside of a row of the timeline, step by step."""
        from selenium.webdriver.common.action_chains import ActionChains

        canvas = self.browser.find_element("css selector", ".rows canvas")
        self.run("arguments[0].scrollIntoView({block: 'center'});", canvas)
        y = round(self.at(row, begin)[1])
        places = [round(self.at(row, begin + (end - begin) * k / steps)[0]) for k in range(steps + 1)]
        hand = (
            ActionChains(self.browser, duration=20).move_to_element_with_offset(canvas, places[0], y).click_and_hold()
        )
        for before, place in pairwise(places):
            hand.move_by_offset(place - before, 0)
        hand.release().perform()

    def colour(self, row: str, element: float) -> list[int]:
        """Colour in the middle of an element of a row."""
        x, y = self.at(row, element + 0.5)
        return list(
            self.run(
                "const c = document.querySelector('.rows canvas'), u = c.width / c.clientWidth;"
                "const x = (arguments[0] + c.clientWidth / 2) * u, y = (arguments[1] + c.clientHeight / 2) * u;"
                "return [...c.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3);",
                x, y,
            )
        )  # fmt: skip

    def replace(self, old: str, new: str) -> None:
        """Replace words in the editor by keys alone: go there, choose them, and type."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        self.wait(f"return {EDITOR}?.innerText.includes(arguments[0]);", old)
        self.run(f"{EDITOR}.focus();")
        lines = self.run(f"return [...{EDITOR}.querySelectorAll('.cm-line')].map((line) => line.textContent);")
        row, column = next((row, line.index(old)) for row, line in enumerate(lines) if old in line)
        keys = ActionChains(self.browser).key_down(Keys.CONTROL).send_keys(Keys.HOME).key_up(Keys.CONTROL)
        keys.send_keys(Keys.DOWN * row + Keys.RIGHT * column)
        keys.key_down(Keys.SHIFT).send_keys(Keys.RIGHT * len(old)).key_up(Keys.SHIFT).send_keys(new).perform()
        self.wait(f"return {EDITOR}?.innerText.includes(arguments[0]);", lines[row].replace(old, new, 1))

    def complaints(self) -> list[str]:
        """What the browser complains about: script errors and violations of the policy."""
        told = [one["message"] for one in self.browser.get_log("browser")]
        # Refusals are answers, and it is the tests that read pixels.
        known = ("Failed to load resource", "WebSocket", "willReadFrequently", "will-read-frequently")
        return [one for one in told if not any(words in one for words in known)]


def screen(driver: Any, width: int = 1280, height: int = 860, scheme: str = "light") -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@contextmanager
def serving(driver: Any, folder: Path, awaited: str = ".queue tbody tr") -> Iterator[Studio]:
    """A studio on a project, open in the browser, when the first run has shown something."""
    running = Running(folder, folder)
    try:
        screen(driver)
        driver.get_log("browser")
        driver.get(running.link)
        studio = Studio(driver, f"http://127.0.0.1:{running.port}", folder)
        shown = "return document.querySelector(arguments[0]) !== null;"
        studio.wait(shown, awaited, seconds=600)  # the first fit compiles
        yield studio
        driver.get("about:blank")
    finally:
        running.interrupt()
