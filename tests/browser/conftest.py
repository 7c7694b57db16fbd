"""A real browser for the tests of the page: Chromium of the system's packages, driven by selenium.

``make test-browser`` installs both. Without them these tests are skipped, and say so; with DUGONG_BROWSER=1, which that
verb sets, their absence is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dugong.report import render_html, summarize
from reports import Case, binary_case, hostile_case, many_case
from studio_browser import chromium


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests."""
    browser = chromium(tmp_path_factory.mktemp("profile"))
    if browser is None:
        message = "the page is tested in Chromium with chromedriver and selenium: run `make test-browser`."
        if os.environ.get("DUGONG_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    yield browser
    browser.quit()


@dataclass(frozen=True)
class Page:
    """An open page, with short words for what tests do."""

    browser: Any
    case: Case

    def run(self, script: str, *values: object) -> Any:
        return self.browser.execute_script(script, *values)

    def settled(self) -> None:
        """Wait until everything that was asked for is drawn."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
        )

    def key(self, selector: str, key: str, **options: bool) -> None:
        """Press a key on an element."""
        self.run(
            "const target = document.querySelector(arguments[0]); target.focus();"
            "target.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], bubbles: true, cancelable: true, "
            "...arguments[2]}));",
            selector, key, options,
        )  # fmt: skip
        self.settled()

    def view(self) -> tuple[float, float]:
        """First and last visible element."""
        found = self.run("const d = document.querySelector('canvas').dataset; return [d.from, d.to];")
        return float(found[0]), float(found[1])

    def at(self, row: str, element: float) -> tuple[float, float]:
        """Where the middle of an element lies in a row, in CSS pixels of the canvas."""
        left, width, middle = self.run(
            "const d = document.querySelector('canvas').dataset;"
            "const row = [...document.querySelectorAll('.row-name')].find((one) => one.title === arguments[0]);"
            "return [+d.left, +d.width, +row.dataset.middle];",
            row,
        )
        begin, end = self.view()
        return left + width * (element + 0.5 - begin) / (end - begin), middle

    def colour(self, row: str, element: float) -> tuple[int, ...]:
        """Colour of the pixel in the middle of an element of a row."""
        x, y = self.at(row, element)
        return tuple(
            self.run(
                "const c = document.querySelector('canvas'), u = c.width / c.clientWidth;"
                "const found = c.getContext('2d').getImageData(arguments[0] * u, arguments[1] * u, 1, 1);"
                "return [...found.data].slice(0, 3);",
                x, y,
            )
        )  # fmt: skip

    def click(self, row: str, element: float) -> None:
        """Click into a row, with a real pointer."""
        from selenium.webdriver.common.action_chains import ActionChains

        canvas = self.browser.find_element("css selector", "canvas")
        self.run("arguments[0].scrollIntoView({block: 'center'});", canvas)
        x, y = self.at(row, element)
        size = canvas.size
        ActionChains(self.browser).move_to_element_with_offset(
            canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)
        ).click().perform()
        self.settled()

    def choose(self, name: str) -> None:
        """Choose a sequence by its id."""
        self.run(
            "[...document.querySelectorAll('.sequences li')].find((one) => one.title === arguments[0]).click();", name
        )
        self.settled()

    def explanation(self) -> dict[str, Any]:
        """The explanation as it is shown."""
        return self.run(
            "const panel = document.querySelector('.explanation');"
            "return {heading: panel.querySelector('h4').textContent, total: +panel.querySelector('h4').dataset.total,"
            " rows: [...panel.querySelectorAll('tbody tr')].map((row) => ({kind: row.dataset.kind,"
            " name: row.cells[0].textContent, vote: row.cells[1].textContent, value: +row.dataset.value,"
            " shown: row.cells[3].textContent}))};"
        )


CASES: dict[str, Callable[[], Case]] = {"two": binary_case, "many": many_case, "hostile": hostile_case}
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports as files."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name, make in CASES.items():
        case = make()
        found[name] = folder / f"{name}.html"
        page = render_html(summarize(case.model, case.votes, case.gold, title=f"Report of {name}"))
        found[name].write_text(page, encoding="utf-8")
    return found


@pytest.fixture
def page(driver: Any, pages: dict[str, Path]) -> Open:
    """Open one of the reports at a width, light or dark."""

    def opened(name: str, *, width: int = 1200, height: int = 900, scheme: str = "light") -> Page:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": "prefers-color-scheme", "value": scheme},
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ]
            },
        )
        driver.get_log("browser")
        driver.get_log("performance")
        path = pages.get(name) or Path(name)
        driver.get(path.as_uri())
        result = Page(driver, CASES[name]() if name in CASES else binary_case())
        result.settled()
        return result

    return opened
