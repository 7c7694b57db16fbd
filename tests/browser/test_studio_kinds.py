"""The studio on every kind of data, begun as a new user does: without a project, in an empty folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dugong.cli.corrections import FILE, Journal
from dugong.sources.judge import png
from reports import binary_case
from studio_browser import SECOND, Studio, screen, serving
from studio_client import Running, write_small_project, write_three_classes, write_two_hours

PLAYER = "const player = document.querySelector('video, audio');"
ELEMENT = "return Number(document.querySelector('.explanation h2')?.innerText.match(/\\d+/)?.[0])"


@contextmanager
def begun(driver: Any, folder: Path, sample: str) -> Iterator[Studio]:
    """A studio without a project, in which a sample was chosen."""
    running = Running(None, folder)
    try:
        screen(driver)
        driver.get_log("browser")
        driver.get(running.link)
        studio = Studio(driver, f"http://127.0.0.1:{running.port}", folder / f"{sample}-sample")
        studio.wait("return document.querySelectorAll('[data-sample]').length === 4;")
        studio.click(f"[data-sample={sample}]")
        studio.wait("return document.querySelector('.queue tbody tr') !== null;", seconds=600)
        yield studio
        assert studio.complaints() == []
        driver.get("about:blank")
    finally:
        code, said = running.interrupt()
    assert code == 0, said
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("sample", ["video", "audio"])
def test_a_file_is_played_and_the_timeline_follows_it(driver: Any, tmp_path: Path, sample: str) -> None:
    pytest.importorskip({"video": "av", "audio": "soundfile"}[sample])
    with begun(driver, tmp_path, sample) as studio:
        studio.click(".queue tbody a")
        studio.drawn()
        studio.wait(f"{PLAYER} return player?.tagName === arguments[0] && player.readyState >= 1;", sample.upper())
        studio.press("\ue011")  # the first element
        studio.wait(f"{ELEMENT} === 0;")
        studio.press(" ")
        studio.wait(f"{PLAYER} return !player.paused && player.currentTime > 1;")
        studio.wait(f"{ELEMENT} >= 3;")
        studio.press("2")  # an interval begins where it plays
        studio.wait(f"{ELEMENT} >= 6;")
        studio.press("2", " ")
        studio.wait(f"{PLAYER} return player.paused;")
        studio.wait("return document.querySelectorAll('.marks li').length === 1;")
        [made] = Journal(studio.folder / FILE).holding()
        assert 3 <= made.start < made.end
        # The picture is that of the element which is picked.
        studio.press("\ue011")
        studio.wait(f"{PLAYER} return !player.seeking && player.currentTime < 0.6;")
        # A part of the file, as a player asks for one of two hours.
        found = studio.browser.execute_async_script(
            f"{PLAYER} const done = arguments[0];"
            "fetch(player.src, {headers: {Range: 'bytes=100-199'}}).then(async (answer) =>"
            " done([answer.status, answer.headers.get('Content-Range'), (await answer.arrayBuffer()).byteLength]));"
        )
        assert (found[0], found[1].split("/")[0], found[2]) == (206, "bytes 100-199", 100)


AT = "Number(new URLSearchParams(location.search).get('at'))"


def shows(studio: Studio, second: int) -> None:
    """Wait until the picture is that of a second."""
    studio.wait(f"{PLAYER} return player?.readyState >= 2 && !player.seeking && {SECOND} === arguments[0];", second)


def test_two_hours_of_video_show_the_picture_of_every_moment(driver: Any, tmp_path: Path) -> None:
    pytest.importorskip("av")
    write_two_hours(tmp_path / "hours", hours=7195 / 3600)  # pixels of the timeline hold several, the last one fewer
    with serving(driver, tmp_path / "hours") as studio:
        driver.get_log("performance")
        studio.go("/sequence/long?at=5000", ".rows canvas")
        studio.drawn()
        shows(studio, 5000)
        for key, second in (("\ue010", 7194), ("\ue012", 7193), ("\ue011", 0), ("\ue014", 1)):
            studio.press(key)
            shows(studio, second)
        studio.press("\ue010", "2")
        studio.wait("return document.querySelector('.marks')?.innerText.includes('element 7194');")
        studio.press("u", "\ue011")
        shows(studio, 0)
        studio.press(" ")
        studio.wait(f"return {SECOND} >= 2;")
        studio.press("\ue010")  # a choice while it plays is a leap
        studio.wait(f"return {SECOND} === 7194;")
        studio.wait(f"{PLAYER} return player.paused;")  # the end
        # A hand along the axis sees one picture after the other, and in the end the one that it stands on.
        studio.run(f"{PLAYER} window.seen = []; player.onseeked = () => {{ window.seen.push({SECOND}); }};")
        studio.drag("time", 1000, 6000, steps=20)
        studio.wait(f"return {AT} > 5900 && {AT} < 6100;")
        shows(studio, studio.run(f"return {AT};"))
        seen = studio.run("return window.seen;")
        assert seen == sorted(seen)
        assert len(seen) >= 2
        assert seen[0] < 1100
        # A link to a moment, in a part of the whole; the file came in parts.
        studio.go("/sequence/long?at=3601&from=3590&to=3620", ".rows canvas")
        studio.drawn()
        shows(studio, 3601)
        told = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
        answers = [one["params"]["response"] for one in told if one["method"] == "Network.responseReceived"]
        assert {one["status"] for one in answers if "/media/" in one["url"]} == {206}
        assert studio.complaints() == []


def test_a_video_that_no_browser_plays_is_shown_picture_by_picture(driver: Any, tmp_path: Path) -> None:
    pytest.importorskip("av")
    write_two_hours(tmp_path / "old", hours=0.1, file="long.avi")
    with serving(driver, tmp_path / "old") as studio:
        studio.go("/sequence/long?at=200", ".rows canvas")
        studio.drawn()
        studio.wait(
            "return document.querySelector('.media img')?.complete && document.querySelector('video') === null;"
        )
        studio.wait(f"return {SECOND} === 200;")
        # However fast a hand moves, no more than one picture is asked for at a time, and the last is that of its place.
        studio.run(
            "window.coming = window.most = 0; const image = document.querySelector('.media img');"
            "new MutationObserver(() => { window.most = Math.max(window.most, ++window.coming); })"
            ".observe(image, {attributes: true, attributeFilter: ['src']});"
            "image.addEventListener('load', () => { window.coming = 0; }, true);"
        )
        studio.drag("time", 20, 340, steps=20)
        studio.wait(f"return {AT} > 330 && {SECOND} === {AT};")
        assert studio.run("return window.most;") == 1
        assert studio.complaints() == []


def test_a_picture_that_belongs_to_a_sequence_is_shown(driver: Any, tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "pictured")
    project.write_text(project.read_text() + 'media = "pictures/{}.png"\n')
    (tmp_path / "pictured" / "pictures").mkdir()
    (tmp_path / "pictured" / "pictures" / "s03.png").write_bytes(png(np.zeros((5, 7), dtype=np.uint8)))
    with serving(driver, tmp_path / "pictured") as studio:
        studio.go("/sequence/s03", ".rows canvas")
        studio.wait("const one = document.querySelector('.media img'); return one?.naturalWidth === 7;")
        studio.go("/sequence/s04", ".rows canvas")
        studio.drawn()
        assert studio.run("return document.querySelector('.media img');") is None
        assert studio.complaints() == []


def test_a_sample_that_is_there_already_is_taken_up_again_with_its_corrections(driver: Any, tmp_path: Path) -> None:
    with begun(driver, tmp_path, "text") as studio:
        studio.click(".queue tbody a")
        studio.drawn()
        studio.press("1")
        studio.wait("return document.querySelectorAll('.marks li').length === 1;")
        name = studio.text("h1")
    with begun(driver, tmp_path, "text") as studio:
        studio.go(f"/sequence/{name}", ".rows canvas")
        studio.wait("return document.querySelectorAll('.marks li').length === 1;")
        studio.drawn()
        studio.press("u")  # undo outlives the page and the server
        studio.wait("return document.querySelector('.marks') === null;")
        assert Journal(studio.folder / FILE).holding() == []


def test_three_classes_are_painted_dragged_explained_and_imported(driver: Any, tmp_path: Path) -> None:
    folder = tmp_path / "three"
    write_three_classes(folder)
    with serving(driver, folder) as studio:
        studio.go("/sequence/7?at=0", ".rows canvas")
        studio.drawn()
        assert [one.split()[0] for one in studio.texts(".palette button")] == ["O", "A", "B"]
        assert {"probabilities", "labels", "your corrections", "halves"} <= set(studio.texts(".row-name"))
        # Paint with the third class, pull the end, and colours are those of the palette.
        studio.click(".palette button:nth-child(3)")
        studio.drag("your corrections", 0, 2)
        studio.wait("return document.querySelector('.marks')?.innerText.includes('elements 0 to 1');")
        studio.drag("your corrections", 2, 3)
        studio.wait("return document.querySelector('.marks').innerText.includes('elements 0 to 2');")
        studio.drawn()
        shown = studio.run(
            "return getComputedStyle(document.querySelector('.palette button:nth-child(3) i')).backgroundColor;"
        )
        assert shown == "rgb({}, {}, {})".format(*studio.colour("your corrections", 1))
        # Why: any of the three labels can be asked about.
        studio.wait("return document.querySelector('.explanation select')?.options.length === 3;")
        studio.run(
            "const select = document.querySelector('.explanation select'); select.value = 'A';"
            "select.dispatchEvent(new Event('change', {bubbles: true}));"
        )
        studio.wait("return document.querySelector('.explanation p').innerText.startsWith('P(A)');")
        # In from another tool, by the name of the file or by a format that is chosen; one undo takes a file back.
        before = len(Journal(folder / FILE).holding())
        table = tmp_path / "mine.csv"
        table.write_text("sequence,start,end,label\n3,0,2,A\n3,2,3,B\n5,1,2,O\n")
        studio.go("/export", "input[type=file]")
        studio.browser.find_element("css selector", "input[type=file]").send_keys(str(table))
        studio.wait("return document.querySelector('.toasts')?.innerText.includes('3 intervals of 2 sequences');")
        made = [(one.sequence, one.start, one.end, one.label) for one in Journal(folder / FILE).holding()[before:]]
        assert made == [("3", 0, 2, "A"), ("3", 2, 3, "B"), ("5", 1, 2, "O")]
        wrong = tmp_path / "wrong.eaf"
        wrong.write_text("<no>")
        studio.browser.find_element("css selector", "input[type=file]").send_keys(str(wrong))
        studio.wait("return document.querySelector('.toasts .warning') !== null;")
        assert len(Journal(folder / FILE).holding()) == before + 3
        studio.go("/sequence/3", ".rows canvas")
        studio.wait("return document.querySelectorAll('.marks li').length === 2;")
        studio.drawn()
        studio.press("u")
        studio.wait("return document.querySelector('.marks') === null;")
        assert len(Journal(folder / FILE).holding()) == before
        for width, scheme in ((1280, "light"), (800, "dark")):
            screen(driver, width, 860, scheme)
            for page in ("/queue", "/sequence/7", "/source/by_size", "/model", "/export"):
                studio.go(page, "main section")
                assert studio.run("return document.documentElement.scrollWidth;") <= width, page
        screen(driver)
        assert studio.complaints() == []


def test_the_timeline_of_a_notebook_shows_media_and_explains(driver: Any, tmp_path: Path) -> None:
    case = binary_case()
    name, length = str(case.votes.sequence_ids[0]), int(case.votes.lengths[0])
    shown = case.model.timeline(case.votes, name, media={name: [f"word{k}" for k in range(length)]})
    file = tmp_path / "cell.html"
    file.write_text(shown._repr_html_(), encoding="utf-8")
    driver.get(file.as_uri())
    frames = driver.find_elements("css selector", "iframe")
    if frames:
        driver.switch_to.frame(frames[0])
    studio = Studio(driver, "", tmp_path)
    studio.wait("return document.querySelector('canvas')?.width > 0;")
    assert {"labels", "words"} <= set(studio.texts(".row-name"))
    studio.run("document.querySelector('canvas').focus();")
    studio.press("\ue014")
    studio.wait("return document.querySelector('.explanation h4') !== null;")
    driver.switch_to.default_content()
