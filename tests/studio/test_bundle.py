"""The page in the package is the build of the sources in the repository, and sets nothing as HTML."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEB, ASSETS = ROOT / "web" / "studio", ROOT / "src" / "dugong" / "studio" / "assets"
REPORT = ROOT / "src" / "dugong" / "report" / "html" / "assets"
REPORT_FILES = ("data.js", "explain.js", "draw.js", "media.js", "timeline.js", "page.css")
SOURCES = sorted(one for one in (WEB / "src").rglob("*") if one.is_file())


def test_the_bundle_was_made_from_these_sources():
    files = [*SOURCES, *(WEB / one for one in ("build.js", "package.json", "package-lock.json"))]
    files += [REPORT / one for one in REPORT_FILES]
    sums = sorted(f"{one.name} {hashlib.sha256(one.read_bytes()).hexdigest()}\n" for one in files)
    found = (ASSETS / "built-from.txt").read_text().strip()
    assert found == hashlib.sha256("".join(sums).encode()).hexdigest(), "run `make studio-page` and commit its files"


@pytest.mark.skipif(shutil.which("npm") is None, reason="the bundle is built anew where npm is present")
def test_building_gives_the_same_bytes(tmp_path):
    if not (WEB / "node_modules").is_dir():
        found = subprocess.run(["npm", "ci", "--silent"], cwd=WEB, capture_output=True, text=True, check=False)
        if found.returncode and not os.environ.get("CI"):
            pytest.skip(f"npm could not install what the page is built with: {found.stderr[-300:]}")
        assert found.returncode == 0, found.stderr
    subprocess.run(["node", "build.js", str(tmp_path)], cwd=WEB, check=True)
    built = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert {one.name for one in ASSETS.iterdir()} == set(built)
    for name, content in built.items():
        assert (ASSETS / name).read_bytes() == content, f"{name}: run `make studio-page` and commit its files"


def test_nothing_is_ever_set_as_html():
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function"
    )
    found = {one.name: forbidden.findall(one.read_text()) for one in SOURCES if one.suffix == ".js"}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_page_asks_nothing_of_other_hosts_and_is_small():
    page = (ASSETS / "index.html").read_text()
    assert all(one.startswith("/assets/") for one in re.findall(r'(?:src|href)="([^"]*)"', page))
    assert "<script>" not in page
    assert "style=" not in page
    assert sum(one.stat().st_size for one in ASSETS.iterdir()) < 600_000
