"""The studio in a real browser: a new user's tour, hostile names and traces, keys, links, words, pictures and sound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from contrast import LOWEST
from dugong.cli.corrections import FILE, Journal
from dugong.cli.init import write_project
from studio_browser import EDITOR, Studio, screen, serving
from studio_client import write_small_project

NASTY = '<img src=x onerror="window.hacked=1">'


@pytest.fixture(scope="module")
def sensor(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """The sample project of a sensor."""
    folder = tmp_path_factory.mktemp("studio") / "walking"
    write_project(folder, "sensor")
    with serving(driver, folder) as studio:
        yield studio
        assert studio.complaints() == []


# --- a new user's tour ----------------------------------------------------------------------------------------------
def test_a_new_users_tour(sensor: Studio) -> None:
    # Find the most doubtful sequence: the first of the queue.
    sensor.go("/queue", ".queue tbody tr")
    doubt = [float(one.split()[0]) for one in sensor.texts(".queue tbody td:nth-child(3)")]
    assert doubt == sorted(doubt, reverse=True)
    name = sensor.text(".queue tbody th")
    sensor.press("\ue007")  # Enter opens it
    sensor.wait("return document.querySelector('h1')?.innerText === arguments[0];", name)
    sensor.drawn()
    assert name in sensor.run("return location.pathname;")
    sensor.wait("return document.querySelector('.explanation tbody tr.sum') !== null;")

    # Change a threshold, and see votes and labels change before anything is saved.
    sensor.go("/source/moves", "#save")
    sensor.drawn()
    before = (sensor.folder / "sources.py").read_text()
    sensor.replace("0.6", "0.9")
    changed = sensor.wait("return Number(document.querySelector('#changed')?.innerText);")
    assert changed > 20
    assert int(sensor.text("#flipped")) > 0
    sensor.drawn()
    assert {"as edited", "labels as edited"} <= set(sensor.texts(".row-name"))
    assert (sensor.folder / "sources.py").read_text() == before

    # Accept: the file has the new text, and nothing else in it has changed.
    fitted = sensor.run("return Number(document.querySelector('.rows canvas').dataset.fit);")
    sensor.click("#save")
    sensor.wait("return Number(document.querySelector('.rows canvas')?.dataset.fit) > arguments[0];", fitted)
    assert (sensor.folder / "sources.py").read_text() == before.replace("0.6", "0.9")

    # Correct an interval by dragging.
    sensor.go(f"/sequence/{name}", ".rows canvas")
    sensor.drawn()
    sensor.drag("your corrections", 10, 20)
    sensor.wait("return document.querySelectorAll('.marks li').length === 1;")
    assert "elements 10 to 19" in sensor.text(".marks")
    [saved] = Journal(sensor.folder / FILE).holding()
    assert (saved.sequence, saved.start, saved.end, saved.label) == (name, 10, 20, "+1")
    assert saved.shown["label"] in ("-1", "+1")

    # Drag its end, take that back, and fit again.
    sensor.drag("your corrections", 20, 26)
    sensor.wait("return document.querySelector('.marks').innerText.includes('10 to 25');")
    sensor.press("u")
    sensor.wait("return document.querySelector('.marks').innerText.includes('10 to 19');")
    fitted = sensor.run("return Number(document.querySelector('.rows canvas').dataset.fit);")
    sensor.click("#fit")
    sensor.wait("return Number(document.querySelector('.rows canvas').dataset.fit) > arguments[0];", fitted)
    sensor.drawn()
    assert sensor.colour("gold", 15) == sensor.colour("your corrections", 15)

    # Export.
    sensor.go("/export", "[data-format=elan]")
    sensor.click("[data-format=elan]")
    sensor.browser.find_element("css selector", "#rate").send_keys("1")
    sensor.click("#write")
    sensor.wait("return document.querySelector('#written') !== null;")
    assert "240 files" in sensor.text("#written")
    assert len(list(sensor.folder.glob("output/export/elan/*.eaf"))) == 240

    # Reload: all is still there.
    sensor.go(f"/sequence/{name}?at=12", ".rows canvas")
    sensor.drawn()
    sensor.wait("return document.querySelector('.marks')?.innerText.includes('10 to 19');")
    sensor.wait("return document.querySelector('.explanation h2').innerText.includes('element 12');")
    sensor.go("/source/moves", "#save")
    sensor.wait(f"return {EDITOR}?.innerText.includes('0.9');")


# --- moving about ---------------------------------------------------------------------------------------------------
def test_keys_reach_every_page_and_the_help_names_them(sensor: Studio) -> None:
    sensor.go("/queue", ".queue tbody tr")
    for key, page in (("m", "Model"), ("e", "Export"), ("r", "Source"), ("s", "Sequence"), ("q", "Queue")):
        sensor.press("g", key)
        sensor.wait("return document.querySelector('.top nav [aria-current]')?.innerText === arguments[0];", page)
    sensor.wait("return document.querySelector('.queue tbody tr') !== null;")
    sensor.press("j", "j")
    assert (
        sensor.run(
            "return [...document.querySelectorAll('.queue tbody tr')].findIndex((one) => one.ariaSelected === 'true');"
        )
        == 2
    )
    sensor.press("?")
    sensor.wait("return document.querySelector('dialog[open]')?.innerText.includes('Next sequence');")
    sensor.press("\ue00c")
    sensor.wait("return document.querySelector('dialog') === null;")


def test_sorting_filters_and_pages_of_the_queue_are_in_the_address(sensor: Studio) -> None:
    sensor.go("/queue?sort=wrong&page=1", ".queue tbody tr")
    assert "page 2 of 10" in sensor.text(".pager")
    sensor.run(
        "const search = document.querySelector('input[type=search]'); search.value = '-007';"
        "search.dispatchEvent(new Event('change', {bubbles: true}));"
    )
    sensor.wait("return document.querySelectorAll('.queue tbody tr').length === 1;")
    assert sensor.run("return location.search;") == "?sort=wrong&q=-007"
    sensor.browser.back()
    sensor.wait("return document.querySelectorAll('.queue tbody tr').length === 25;")


def test_a_link_leads_to_one_sequence_and_moment(sensor: Studio) -> None:
    sensor.go("/sequence/recording-003?at=42&from=30&to=50", ".rows canvas")
    sensor.drawn()
    view = sensor.run("const d = document.querySelector('.rows canvas').dataset; return [+d.from, +d.to];")
    assert view == [30, 50]
    sensor.wait("return document.querySelector('.explanation h2').innerText.includes('element 42');")
    sensor.press("\ue014")  # right
    sensor.wait("return document.querySelector('.explanation h2').innerText.includes('element 43');")
    sensor.wait("return location.search === '?at=43&from=30&to=50';")


def test_a_link_to_a_sequence_that_is_gone_says_so_and_leads_on(sensor: Studio) -> None:
    sensor.go("/sequence/gone?at=3", ".empty[role=alert]")
    assert "There is no sequence gone." in sensor.text(".empty")
    sensor.press("g", "q")
    sensor.wait("return document.querySelector('.queue tbody tr') !== null;")
    sensor.press("\ue007")
    sensor.wait("return document.querySelector('.rows canvas') !== null;")


def test_what_is_moved_looks_as_what_is_drawn_anew(sensor: Studio) -> None:
    rows = ("labels", "moves", "steps_heard", "majority vote", "gold")
    sensor.go("/sequence/recording-003?from=10&to=30", ".rows canvas")
    sensor.drawn()
    for _ in range(8):  # the second and later steps move a picture, until its end is near
        sensor.run(
            "document.querySelector('.rows canvas').dispatchEvent("
            "new WheelEvent('wheel', {deltaY: 100, shiftKey: true, bubbles: true, cancelable: true}));"
        )
        sensor.settled()
    begin, end = sensor.run("const d = document.querySelector('.rows canvas').dataset; return [+d.from, +d.to];")
    assert begin > 25
    inside = range(int(begin) + 1, int(end) - 1)
    moved = [[sensor.colour(row, element) for element in inside] for row in rows]
    sensor.run("document.querySelector('.rows').style.width = '801px';")
    sensor.settled()
    sensor.run("document.querySelector('.rows').style.width = '';")
    sensor.settled()
    assert [[sensor.colour(row, element) for element in inside] for row in rows] == moved


def test_intervals_by_keyboard(sensor: Studio) -> None:
    sensor.go("/sequence/recording-004?at=5", ".rows canvas")
    sensor.drawn()
    chosen = "return document.querySelector('.explanation h2')?.innerText.match(/\\d+/)?.[0] === arguments[0];"
    sensor.wait(chosen, "5")
    sensor.press("m", "\ue014")
    sensor.wait(chosen, "6")
    sensor.press("\ue014")
    sensor.wait(chosen, "7")
    sensor.press("1")
    sensor.wait("return document.querySelector('.marks')?.innerText.includes('elements 5 to 7');")
    sensor.press("\ue017")  # delete
    sensor.wait("return document.querySelector('.marks') === null;")
    sensor.press("u")
    sensor.wait("return document.querySelector('.marks')?.innerText.includes('elements 5 to 7');")
    sensor.press("u")
    sensor.wait("return document.querySelector('.marks') === null;")


def test_intervals_while_it_plays(sensor: Studio) -> None:
    sensor.go("/sequence/recording-006?at=2", ".rows canvas")
    sensor.drawn()
    moved = "return Number(document.querySelector('.explanation h2').innerText.match(/\\d+/)?.[0]) > arguments[0];"
    sensor.press(" ")
    sensor.wait(moved, 4)
    sensor.press("2")
    sensor.wait(moved, 8)
    sensor.press("2", " ")
    sensor.wait("return document.querySelectorAll('.marks li').length === 1;")
    first, last = map(int, re.findall(r"elements (\d+) to (\d+)", sensor.text(".marks"))[0])
    assert 2 < first < last
    sensor.press("u")
    sensor.wait("return document.querySelector('.marks') === null;")


def test_the_end_of_a_label_can_be_dragged(sensor: Studio) -> None:
    sensor.go("/queue?sort=entropy", ".queue tbody tr")
    sensor.click(".queue tbody tr:nth-child(5) a")
    sensor.drawn()
    colours = [sensor.colour("labels", element) for element in range(60)]
    border = next(k for k in range(4, 56) if colours[k] != colours[k - 1] and colours[k + 1] == colours[k])
    sensor.drag("labels", border, border + 2)
    sensor.wait("return document.querySelectorAll('.marks li').length === 1;")
    assert f"elements {border} to {border + 1}" in sensor.text(".marks")
    sensor.drawn()
    assert sensor.colour("your corrections", border) == colours[border - 1]
    sensor.press("u")
    sensor.wait("return document.querySelector('.marks') === null;")


# --- keys are never lost, however slow the machine is ---------------------------------------------------------------
def actions(studio: Studio, name: str) -> list[tuple[int, int, str | None]]:
    """What the journal holds of a sequence."""
    return [(one.start, one.end, one.label) for one in Journal(studio.folder / FILE).holding(name)]


def opened(studio: Studio, name: str, at: int) -> None:
    studio.go(f"/sequence/{name}?at={at}", ".rows canvas")
    studio.drawn()
    studio.wait("return document.querySelector('.explanation h2')?.innerText.includes(arguments[0]);", f"element {at}")


def test_an_undo_takes_back_the_correction_that_is_still_on_its_way(sensor: Studio) -> None:
    opened(sensor, "recording-010", 5)
    before = len(Journal(sensor.folder / FILE).holding())
    sensor.hold("PUT", "/api/gold")
    sensor.press("1", "u", "\ue014", "2", "\ue017")  # mark, undo, go right, mark, delete: nothing is waited for
    sensor.asked(1)
    assert sensor.text("#writing") == "writing …"
    sensor.release()
    sensor.still()
    assert sensor.run("return document.querySelector('.marks');") is None
    assert actions(sensor, "recording-010") == [(6, 7, "+1"), (6, 7, None)]
    sensor.press("u", "u")
    sensor.wait("return [...document.querySelectorAll('.toasts li')].some((one) => one.innerText.includes('Taken'));")
    sensor.still()
    assert len(Journal(sensor.folder / FILE).holding()) == before


def test_an_old_answer_does_not_bring_back_what_was_taken_back(sensor: Studio) -> None:
    opened(sensor, "recording-011", 5)
    sensor.hold("GET", "/api/gold")
    sensor.press("1")
    sensor.wait("return document.querySelectorAll('.marks li').length === 1;")
    sensor.asked(1)
    sensor.press("u")
    sensor.wait("return document.querySelector('.marks') === null;")
    sensor.release()
    sensor.drawn()
    sensor.drawn()
    assert sensor.run("return document.querySelector('.marks');") is None


def test_keys_follow_each_other_faster_than_the_page_draws(sensor: Studio) -> None:
    sensor.go("/queue?sort=name", ".queue tbody tr")
    sensor.run(
        "for (const key of ['j', 'j', 'k', 'Enter'])"
        " document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));"
    )
    sensor.wait("return document.querySelector('h1')?.innerText === 'recording-001';")


def test_keys_wait_for_the_sequence_that_is_loaded(sensor: Studio) -> None:
    sensor.go("/queue?sort=name", ".queue tbody tr")
    sensor.hold("GET", "/api/sequences/")
    sensor.press("j", "\ue007", "]", "1", "]", "2")
    sensor.asked(1)
    sensor.release()
    sensor.wait("return document.querySelector('h1')?.innerText === 'recording-003';")
    sensor.wait("return document.querySelectorAll('.marks li').length === 1;")
    sensor.still()
    made = [actions(sensor, f"recording-00{k}") for k in (1, 2, 3)]
    assert [[label for _, _, label in one] for one in made] == [[], ["-1"], ["+1"]]
    sensor.press("u", "u")
    sensor.wait("return document.querySelector('.marks') === null;")
    sensor.still()
    assert actions(sensor, "recording-002") == []


def test_the_choice_in_the_queue_survives_news(sensor: Studio) -> None:
    sensor.go("/queue?sort=name", ".queue tbody tr")
    sensor.press("j", "j", "j")
    chosen = "return document.querySelector('.queue tr[aria-selected=true]')?.dataset.id === arguments[0];"
    sensor.wait(chosen, "recording-003")
    sensor.hold("GET", "/api/sequences?")
    source = sensor.folder / "sources.py"
    source.write_text(source.read_text() + "\n")  # somebody else saves, and the page asks anew
    sensor.asked(1)
    sensor.press("j")
    sensor.release()
    sensor.settled()
    sensor.wait(chosen, "recording-004")


def test_saving_twice_is_no_clash_with_oneself(sensor: Studio) -> None:
    sensor.go("/source/moves", "#save")
    sensor.drawn()
    before = (sensor.folder / "sources.py").read_text()
    sensor.replace("0.9", "0.85")
    sensor.wait("return !document.querySelector('#save').disabled;")
    sensor.hold("PUT", "/api/sources")
    sensor.control("s")
    sensor.asked(1)
    sensor.replace("0.85", "0.8")
    sensor.control("s")
    sensor.release()
    sensor.wait("return document.querySelector('#save').disabled;")
    assert (sensor.folder / "sources.py").read_text() == before.replace("0.9", "0.8")
    assert sensor.run("return document.querySelector('.fault');") is None


# --- writing sources ------------------------------------------------------------------------------------------------
def test_faults_are_shown_with_their_trace_and_the_worker_comes_back(sensor: Studio) -> None:
    sensor.go("/source/steps_heard", "#save")
    sensor.drawn()
    sensor.replace("0.8", "0.8 / 0")
    sensor.wait("return document.querySelector('.fault')?.innerText.includes('ZeroDivisionError');")
    sensor.replace("0.8 / 0", "0.8 +(")
    sensor.wait("return document.querySelector('.fault')?.innerText.includes('not Python');")
    sensor.replace("0.8 +(", "0.7")
    sensor.wait("return document.querySelector('#changed') !== null && document.querySelector('.fault') === null;")


def test_a_file_that_somebody_else_changed_is_not_overwritten(sensor: Studio) -> None:
    file = sensor.folder / "sources.py"
    sensor.go("/source/heart_is_fast", "#save")
    sensor.replace("1.2", "1.3")
    sensor.wait("return !document.querySelector('#save').disabled;")
    theirs = file.read_text().replace("fastest > 1.2", "fastest > 1.25")
    file.write_text(theirs)
    sensor.click("#save")
    sensor.wait("return document.querySelector('.fault')?.innerText.includes('somebody else');")
    assert "1.25" in sensor.text(".fault")
    assert file.read_text() == theirs
    sensor.run("[...document.querySelectorAll('.fault button')].find((one) => one.innerText.includes('Take')).click();")
    sensor.wait(f"return {EDITOR}?.innerText.includes('1.25');")


def test_a_first_run_that_fails_is_repaired_on_the_page(driver: Any, tmp_path: Path) -> None:
    project = write_small_project(tmp_path / "failing")
    file = project.parent / "sources.py"
    whole = file.read_text() + "\n\ndef helper(value):\n    return value\n"
    file.write_text(whole.replace("LIMIT else", "LIMIT / 0 else") + "\n\nwhile\n")
    with serving(driver, project.parent, ".fault") as studio:
        assert "SyntaxError" in studio.text(".fault")
        studio.click(".fault a")
        studio.wait("return document.querySelector('.verdict.warning')?.innerText.includes('sources.py is no Python');")
        file.write_text(whole.replace("LIMIT else", "LIMIT / 0 else"))  # in another editor
        studio.wait("return document.querySelector('.choices')?.innerText.includes('not in the last fit');")
        assert [one.split("\n")[0] for one in studio.texts(".choices li")] == ["high", "low", "some", "New source"]
        studio.wait("return document.querySelector('.verdict.warning') === null;")
        studio.go("/source/helper", "#save")  # a name that is taken: its own text, and nothing to save
        studio.wait(f"return {EDITOR}?.innerText.includes('return value');")
        assert studio.run("return document.querySelector('#save').disabled;")
        studio.go("/source/high", "#save")
        studio.replace("LIMIT / 0", "LIMIT")
        studio.wait("return document.querySelector('.verdict.note')?.innerText.includes('when there is a fit');")
        studio.control("s")
        studio.wait("return document.querySelector('.choices')?.innerText.includes('covers');")
        assert file.read_text() == whole
        studio.go("/queue", ".queue tbody tr")
        assert studio.complaints() == []


# --- every screen ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (800, "light"), (800, "dark")])
def test_pages_fit_and_are_readable(sensor: Studio, width: int, scheme: str) -> None:
    screen(sensor.browser, width, 860, scheme)
    for page in ("/queue", "/sequence/recording-001", "/source/moves", "/model", "/export"):
        sensor.go(page, "main section")
        sensor.wait(
            "const shown = '.queue tbody tr, .rows canvas[data-step], .panel table, [data-format]';"
            "return document.querySelector(shown) !== null;"
        )
        assert sensor.run("return document.documentElement.scrollWidth;") <= width, page
        contrast = sensor.run(LOWEST)
        assert contrast[0] >= 4.5, (page, contrast)
    screen(sensor.browser)


# --- nothing executes -----------------------------------------------------------------------------------------------
HOSTILE = f"""
import dugong as dg

NASTY = {NASTY!r}

@dg.source(name=NASTY)
def first(value):
    \"\"\"{NASTY}\"\"\"
    return dg.POSITIVE if value > 0.6 else dg.NEGATIVE

@dg.source(name="</script><script>window.hacked=2</script>")
def second(value):
    return dg.POSITIVE if value > 0.5 else dg.NEGATIVE

@dg.source
def third(value):
    print(NASTY)
    return dg.POSITIVE if value > 0.4 else dg.NEGATIVE
"""
LOADER = f"""
import numpy as np

def sequences():
    rng = np.random.default_rng(0)
    names = [{NASTY!r}, "javascript:window.hacked=3", "../../etc/passwd", "a/b?c#d", "\\u202eabc", *map(str, range(15))]
    return {{name: np.repeat(rng.random(8), 5).tolist() for name in names}}
"""


def test_hostile_names_and_traces_execute_nothing(driver: Any, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    (folder / "sources.py").write_text(HOSTILE)
    (folder / "loader.py").write_text(LOADER)
    (folder / "project.toml").write_text(
        'data = "loader:sequences"\nsources = "sources.py"\nprior = { kind = "markov", positive = 0.4, stay = 0.8 }\n'
        f"dependencies = []\nclasses = ['<b onmouseover=alert(1)>no', '{NASTY}']\n"
    )
    with serving(driver, folder) as studio:
        assert NASTY in studio.texts(".queue tbody th")
        for name in (NASTY, "../../etc/passwd", "a/b?c#d"):
            studio.go(f"/sequence/{quote(name, safe='')}", "h1")
            studio.wait("return document.querySelector('h1').innerText === arguments[0];", name)
            studio.drawn()
            studio.wait("return document.querySelector('.explanation tr.sum') !== null;")
        assert NASTY in studio.run("return [...document.querySelectorAll('.row-name')].map((one) => one.title);")
        studio.go("/source/third", "#save")
        studio.replace("0.4", "0.3")
        studio.wait("return document.querySelector('details pre')?.innerText.includes(arguments[0]);", NASTY)
        studio.replace("0.3", "[][1]")
        studio.wait("return document.querySelector('.fault pre')?.innerText.includes('IndexError');")
        studio.replace("[][1]", "undefined_name[NASTY]")
        studio.wait("return document.querySelector('.fault')?.innerText.includes('NameError');")
        for page in ("/model", "/export", "/queue"):
            studio.go(page, "main section")
            studio.settled()
        assert studio.run(
            "return [window.hacked ?? null, document.querySelectorAll('main img, main script').length];"
        ) == [None, 0]
        assert studio.complaints() == []


# --- other kinds of data --------------------------------------------------------------------------------------------
def test_words_are_coloured_and_marked_by_a_drag(driver: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    write_project(tmp_path / "notes", "text")
    with serving(driver, tmp_path / "notes") as studio:
        studio.click(".queue tbody a")
        studio.drawn()
        words = studio.browser.find_elements("css selector", ".tokens span")
        assert len(words) >= 4
        assert any(studio.run("return arguments[0].style.background;", one) for one in words)
        ActionChains(driver, duration=20).move_to_element(words[1]).click_and_hold().move_to_element(
            words[2]
        ).release().perform()
        studio.wait("return document.querySelector('.marks')?.innerText.includes('elements 1 to 2');")
        assert studio.complaints() == []
