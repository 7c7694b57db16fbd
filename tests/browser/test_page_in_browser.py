"""The page in a real browser: it loads alone, draws, zooms, explains, obeys the keyboard, and fits a phone."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from contrast import LOWEST
from dugong.report import render_html, summarize
from dugong.report.html.tags import class_colours
from dugong.tasks import Element
from dugong.votes import Votes
from reports import HOSTILE

KINDS = ("two", "many", "hostile")
SECTIONS = {
    "overview": "What was labelled",
    "timelines": "Timelines",
    "sources": "Sources",
    "dependencies": "Dependencies between sources",
    "prior": "Prior: what labels look like before any vote",
    "agreement": "Agreement between sources",
    "scores": "How sure the model is",
    "events": "Events",
    "majority": "Comparison with majority vote",
    "diagnostics": "Diagnostics",
    "provenance": "Provenance",
}


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


def close(found: tuple[int, ...], expected: tuple[int, ...], most: int = 12) -> bool:
    return max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= most


# --- loading -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_loads_without_errors_and_without_the_network(page, kind, scheme):
    opened = page(kind, scheme=scheme)
    opened.run("window.scrollTo(0, document.body.scrollHeight);")
    opened.settled()
    assert opened.browser.get_log("browser") == []
    messages = [json.loads(one["message"])["message"] for one in opened.browser.get_log("performance")]
    asked = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [opened.browser.current_url]


@pytest.mark.parametrize("kind", KINDS)
def test_no_src_and_no_absolute_link(page, kind):
    opened = page(kind)
    found = opened.run(
        "return [...document.querySelectorAll('[src], [href], [srcset], [action]')]"
        ".map((one) => one.getAttribute('src') ?? one.getAttribute('href') ?? 'other');"
    )
    assert found
    assert all(one.startswith("#") for one in found)


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_is_present_and_visible(page, kind):
    opened = page(kind)
    found = opened.run(
        "return Object.fromEntries([...document.querySelectorAll('section')].map((one) => [one.id, "
        "[one.querySelector('h2').textContent, one.getBoundingClientRect().height]]));"
    )
    assert {key: value[0] for key, value in found.items()} == SECTIONS
    assert all(value[1] > 50 for value in found.values())


# --- the timeline --------------------------------------------------------------------------------------------------
def test_ribbons_have_the_colours_of_the_votes(page):
    opened = page("two")
    case, sequence = opened.case, 4
    opened.choose(str(sequence))
    colours = [rgb(one) for one in class_colours(2)[0]]
    picked = opened.run("return document.querySelector('.explanation h4').textContent;")
    skip = int(picked.split()[1].rstrip(":"))
    rows = case.votes.layout(Element()).rows(sequence)
    columns = {name: case.votes.column(name)[rows] for name in ("face", "light", "voice", "echo", "motion")}
    columns["gold"] = case.gold[rows]
    columns["labels"] = case.model.predict(case.votes)[rows]
    columns["labels (best path)"] = case.model.decode(case.votes)[rows]
    n_checked = 0
    for name, votes in columns.items():
        for element, vote in enumerate(votes.tolist()):
            if element != skip and vote:
                assert close(opened.colour(name, element), colours[(vote + 1) // 2]), (name, element, vote)
                n_checked += 1
            elif element != skip:
                assert not any(close(opened.colour(name, element), colour) for colour in colours), (name, element)
    assert n_checked > 60


def test_windows_are_drawn_at_their_own_resolution(page):
    opened = page("two")
    case, sequence = opened.case, 4
    opened.choose(str(sequence))
    positive = rgb(class_colours(2)[0][1])
    place = case.votes.index("show")
    vote = int(case.votes.columns[place][sequence])
    spread = {opened.colour("show", element) for element in range(0, int(case.votes.lengths[sequence]), 4)}
    assert vote != 0
    assert any(close(one, positive) for one in spread) == (vote == 1)


def test_classes_have_their_colours(page):
    opened = page("many")
    case = opened.case
    opened.choose("0")
    colours = [rgb(one) for one in class_colours(3)[0]]
    votes = case.votes.column("net 4")[case.votes.layout(Element()).rows(0)]
    for element in range(20, 60):
        if votes[element] and not opened.explanation()["heading"].startswith(f"Element {element}:"):
            assert close(opened.colour("net 4", element), colours[votes[element] - 1])


def test_the_curve_is_where_the_probability_is(page):
    opened = page("two")
    opened.choose("4")
    case = opened.case
    chance = case.model.predict_proba(case.votes)[case.votes.layout(Element()).rows(4)][:, 1]
    high, low = int(np.argmax(chance)), int(np.argmin(chance))
    tops = []
    for element in (high, low):
        x, middle = opened.at("P(+1)", element)
        column = opened.run(
            "const c = document.querySelector('canvas'), n = 96;"
            "const d = c.getContext('2d').getImageData(arguments[0], arguments[1] - n / 2, 1, n).data;"
            "for (let y = 0; y < n; y++) if (d[4 * y] > d[4 * y + 2] + 20) return 1 - y / n; return 0;",
            x, middle,
        )  # fmt: skip
        tops.append(column)
    assert tops[0] == pytest.approx(chance[high], abs=0.06)
    assert tops[1] == pytest.approx(chance[low], abs=0.06)


def test_zoom_shows_less_and_changes_the_picture(page):
    opened = page("two")
    whole = opened.view()
    before = opened.run("return document.querySelector('canvas').toDataURL();")
    opened.run("document.querySelector('button[aria-label=\"Zoom in\"]').click();")
    opened.settled()
    begin, end = opened.view()
    assert end - begin == pytest.approx((whole[1] - whole[0]) / 2)
    assert opened.run("return document.querySelector('canvas').toDataURL();") != before
    opened.run("document.querySelector('button[aria-label=\"Move on\"]').click();")
    opened.settled()
    assert opened.view()[0] >= begin
    opened.run("document.querySelector('button[aria-label=\"Show the whole sequence\"]').click();")
    opened.settled()
    assert opened.view() == whole


def test_dragging_pans_and_the_wheel_zooms(page):
    from selenium.webdriver.common.action_chains import ActionChains

    opened = page("two")
    canvas = opened.browser.find_element("css selector", "canvas")
    opened.run("arguments[0].scrollIntoView({block: 'center'});", canvas)
    opened.run(
        "arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -300, ctrlKey: true, bubbles: true, "
        "cancelable: true, clientX: arguments[0].getBoundingClientRect().left + arguments[0].clientWidth / 2}));",
        canvas,
    )
    opened.settled()
    begin, end = opened.view()
    assert end - begin < 12
    heading = opened.explanation()["heading"]
    ActionChains(opened.browser).move_to_element(canvas).click_and_hold().move_by_offset(-120, 0).release().perform()
    opened.settled()
    assert opened.view()[0] != begin
    assert opened.explanation()["heading"] == heading, "a drag is no click"


def test_a_long_sequence_stays_smooth(page, tmp_path):
    opened = page("two")
    case, n = opened.case, 20_000
    rng = np.random.default_rng(0)
    elements = [info.resolution == Element() for info in case.votes.sources]
    sources = tuple(info for info, mine in zip(case.votes.sources, elements, strict=True) if mine)
    columns = tuple(rng.integers(-1, 2, n).astype(np.int8) for _ in sources)
    votes = Votes(sources=sources, columns=columns, lengths=np.array([n]))
    path = tmp_path / "long.html"
    path.write_text(render_html(summarize(case.model, votes)), encoding="utf-8")
    assert path.stat().st_size < 1_000_000
    opened = page(str(path))
    times = []
    for key in "++++----+":
        opened.key("canvas", key)
        times.append(float(opened.run("return document.querySelector('canvas').dataset.milliseconds;")))
    assert np.median(times) < 100, times
    assert opened.browser.get_log("browser") == []


# --- explanations --------------------------------------------------------------------------------------------------
def check_explanation(opened, expected, labels):
    shown = opened.explanation()
    rows = {row["name"]: row for row in shown["rows"]}
    parts = [row["value"] for row in shown["rows"] if row["kind"] != "sum"]
    assert sum(parts) == pytest.approx(shown["total"], abs=1e-4), "the bars sum to the log-odds"
    assert shown["total"] == pytest.approx(expected.log_odds, abs=0.002)
    assert f"= {expected.probability:.3f}" in shown["heading"]
    assert labels[expected.target] in shown["heading"]
    assert rows["prior: before any vote"]["value"] == pytest.approx(expected.prior, abs=0.002)
    own = {row["name"]: row["value"] for row in shown["rows"] if row["kind"] == "own"}
    assert own == pytest.approx({one.source: one.log_odds for one in expected.own_votes}, abs=0.003)
    assert rows["neighbours: votes on other tasks"]["value"] == pytest.approx(expected.neighbours, abs=0.006)
    for row in shown["rows"]:
        assert float(row["shown"].replace("−", "-")) == pytest.approx(row["value"], abs=0.0051)


@pytest.mark.parametrize("element", [0, 5, 11])
def test_a_click_on_an_element_explains_it_as_the_model_does(page, element):
    opened = page("two")
    opened.choose("7")
    opened.click("face", element)
    assert opened.explanation()["heading"].startswith(f"Element {element}:")
    check_explanation(opened, opened.case.model.explain(opened.case.votes, 7, element), {1: "+1"})


def test_a_click_on_a_window_or_the_sequence_explains_that(page):
    opened = page("two")
    opened.choose("7")
    case = opened.case
    opened.click("show", 3)
    assert opened.explanation()["heading"].startswith("sequence 0")
    check_explanation(opened, case.model.explain(case.votes, 7, 0, "sequence"), {1: "+1"})
    opened.key("canvas", "ArrowUp")
    assert opened.explanation()["heading"].startswith("caption 0")
    check_explanation(opened, case.model.explain(case.votes, 7, 0, "caption"), {1: "+1"})


def test_explanations_with_more_classes_and_of_another_class(page):
    opened = page("many")
    case = opened.case
    opened.choose("3")
    names = dict(enumerate(("Wake", "NREM", "REM"), start=1))
    for element in (2, 30):
        opened.click("net 1", element)
        check_explanation(opened, case.model.explain(case.votes, 3, element), names)
    opened.run(
        "const s = [...document.querySelectorAll('.tools select')].pop(); s.value = '2';"
        "s.dispatchEvent(new Event('change'));"
    )
    shown = opened.explanation()
    law = case.model.predict_proba(case.votes)[case.votes.layout(Element()).rows(3)][30]
    assert "P(REM)" in shown["heading"]
    assert shown["total"] == pytest.approx(np.log(law[2] / (1 - law[2])), abs=0.003)
    assert sum(row["value"] for row in shown["rows"] if row["kind"] != "sum") == pytest.approx(shown["total"], abs=1e-4)


def test_bars_point_the_right_way(page):
    opened = page("two")
    opened.choose("7")
    found = opened.run(
        "return [...document.querySelectorAll('.explanation tbody tr')].map((row) => [+row.dataset.value, "
        "row.querySelector('.bar span').className, row.querySelector('.bar span').getBoundingClientRect().width]);"
    )
    widest = max(found, key=lambda one: abs(one[0]))
    assert max(one[2] for one in found) == widest[2] > 20
    assert all((value < 0) == (kind == "against") for value, kind, _ in found)


# --- choosing sequences --------------------------------------------------------------------------------------------
def listed(opened) -> list[str]:
    return opened.run("return [...document.querySelectorAll('.sequences li')].map((one) => one.title);")


def test_sequences_are_sorted_by_what_is_asked_for(page):
    opened = page("two")
    case = opened.case
    tracks = {track.name: track for track in summarize(case.model, case.votes, case.gold).sequences.tracks}
    options = opened.run("return [...document.querySelectorAll('.chooser option')].map((one) => one.value);")
    assert options == ["uncertainty", "disagreement", "difference", "wrong", "length", "place"]
    for key in options[:5]:
        opened.run(
            "const s = document.querySelector('.chooser select'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'));", key
        )  # fmt: skip
        values = [getattr(tracks[name], key) for name in listed(opened)]
        assert len(values) == 60
        assert all(a >= b - 1e-5 for a, b in pairwise(values)), key


def test_without_coarse_sources_there_is_no_such_order(page):
    opened = page("many")
    options = opened.run("return [...document.querySelectorAll('.chooser option')].map((one) => one.value);")
    assert "disagreement" not in options


def test_search_narrows_the_list(page):
    opened = page("two")
    opened.run(
        "const s = document.querySelector('input[type=search]'); s.value = '1'; s.dispatchEvent(new Event('input'));"
    )
    assert set(listed(opened)) == {str(place) for place in range(60) if "1" in str(place)}
    opened.run(
        "const s = document.querySelector('input[type=search]'); s.value = 'zz'; s.dispatchEvent(new Event('input'));"
    )
    assert listed(opened) == []
    assert opened.browser.get_log("browser") == []


# --- keyboard and screen readers -----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_the_tab_key_reaches_everything(page, kind):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    opened = page(kind)
    wanted = opened.run(
        "const all = [...document.querySelectorAll('a, button, input, select, summary, canvas, [tabindex=\"0\"]')]"
        ".filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({contentVisibilityAuto: true}));"
        "all.forEach((one, place) => { one.dataset.stop = place; }); return all.length;"
    )
    reached = set()
    for _ in range(wanted + 3):
        ActionChains(opened.browser).send_keys(Keys.TAB).perform()
        stop = opened.run("return document.activeElement.dataset.stop;")
        if stop is not None:
            reached.add(int(stop))
    assert reached == set(range(wanted))
    assert wanted > 25


def test_the_canvas_obeys_the_keyboard(page):
    opened = page("two")
    opened.choose("7")
    opened.key("canvas", "Home")
    assert opened.explanation()["heading"].startswith("Element 0:")
    opened.key("canvas", "ArrowRight")
    assert opened.explanation()["heading"].startswith("Element 1:")
    opened.key("canvas", "End")
    last = int(opened.case.votes.lengths[7]) - 1
    assert opened.explanation()["heading"].startswith(f"Element {last}:")
    opened.key("canvas", "ArrowDown")
    assert opened.explanation()["heading"].startswith("caption ")
    opened.key("canvas", "+")
    assert opened.view()[1] - opened.view()[0] < last
    opened.key("canvas", "0")
    assert opened.view() == (0, last + 1)


def test_n_goes_to_the_next_doubtful_element(page):
    opened = page("two")
    case = opened.case
    chance = case.model.predict_proba(case.votes)
    offsets = case.votes.layout(Element()).offsets
    doubtful = chance.max(axis=1) < 0.75
    sequence = int(np.argmax(np.add.reduceat(doubtful, offsets[:-1])))
    places = np.flatnonzero(doubtful[offsets[sequence] : offsets[sequence + 1]])
    assert len(places) > 2
    opened.choose(str(sequence))
    mine = chance[offsets[sequence] : offsets[sequence + 1]].max(axis=1)
    assert opened.explanation()["heading"].startswith(f"Element {np.argmin(mine)}:"), "the least certain comes first"
    opened.key("canvas", "Home")
    for place in places[:2] if places[0] > 0 else places[1:2]:
        opened.key("canvas", "n")
        assert opened.explanation()["heading"].startswith(f"Element {place}:")
    opened.key("canvas", "p")
    assert opened.explanation()["heading"].startswith(f"Element {places[0]}:")


def test_the_list_obeys_the_keyboard(page):
    opened = page("two")
    names = listed(opened)
    opened.key(".sequences", "ArrowDown")
    chosen = "return document.querySelector('[aria-selected=true]').title;"
    assert opened.run(chosen) == names[1]
    opened.key(".sequences", "End")
    assert opened.run(chosen) == names[-1]
    active = opened.run("return document.querySelector('.sequences').getAttribute('aria-activedescendant');")
    assert opened.run("return document.getElementById(arguments[0]).title;", active) == names[-1]
    assert opened.run("return document.querySelector('.stage h3').textContent;") == f"Sequence {names[-1]}"


def test_screen_readers_get_words_and_a_table(page):
    opened = page("two")
    opened.choose("7")
    canvas = opened.run("const c = document.querySelector('canvas'); return [c.getAttribute('role'), c.ariaLabel];")
    assert canvas[0] == "img"
    assert "sequence 7" in canvas[1]
    assert "table below" in canvas[1]
    unnamed = opened.run(
        "return [...document.querySelectorAll('button, input, select')].filter((one) => !(one.ariaLabel || "
        "one.closest('label'))).length;"
    )
    assert unnamed == 0
    opened.run("document.querySelector('.stage details').open = true;")
    opened.settled()
    rows = opened.run(
        "return [...document.querySelectorAll('.stage details tbody tr')].map((row) => "
        "[...row.cells].map((cell) => cell.textContent));"
    )
    decoded = opened.case.model.decode(opened.case.votes)[opened.case.votes.layout(Element()).rows(7)]
    n_runs = 1 + int(np.count_nonzero(np.diff(decoded)))
    assert len(rows) == n_runs
    assert rows[0][0] == "0"
    assert [row[2] for row in rows] == [
        f"{label:+d}" for place, label in enumerate(decoded) if place == 0 or label != decoded[place - 1]
    ]
    assert opened.run("return document.querySelector('.explanation').getAttribute('aria-live');") == "polite"


# --- screens -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [375, 320, 768])
def test_narrow_screens_do_not_scroll_sideways(page, kind, width):
    opened = page(kind, width=width, height=700)
    opened.run("for (const one of document.querySelectorAll('details')) one.open = true;")
    opened.settled()
    inner, needed = opened.run("return [document.documentElement.clientWidth, document.documentElement.scrollWidth];")
    assert needed <= inner == width
    canvas = opened.run("return document.querySelector('canvas').getBoundingClientRect().right;")
    assert canvas <= width
    opened.run("window.scrollTo(500, 0);")
    assert opened.run("return window.scrollX;") == 0


def test_a_click_works_on_a_narrow_screen(page):
    opened = page("two", width=375, height=700)
    opened.choose("7")
    opened.click("light", 6)
    check_explanation(opened, opened.case.model.explain(opened.case.votes, 7, 6), {1: "+1"})


def test_light_and_dark(page):
    seen = {}
    for scheme in ("light", "dark"):
        opened = page("two", scheme=scheme)
        body = opened.run("return getComputedStyle(document.body).backgroundColor;")
        ink = opened.run("return getComputedStyle(document.body).color;")
        corner = opened.run(
            "return [...document.querySelector('canvas').getContext('2d').getImageData(2, 2, 1, 1).data];"
        )
        seen[scheme] = (body, ink, corner[0])
    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert seen["light"][2] == 255
    assert seen["dark"][2] < 60
    assert seen["dark"][0] != seen["light"][0]
    assert seen["dark"][1] != seen["light"][1]


def test_words_have_contrast(page):
    """WCAG AA: text against its ground at 4.5 or more, light and dark."""
    for scheme in ("light", "dark"):
        opened = page("two", scheme=scheme)
        lowest = opened.run(LOWEST)
        assert lowest[0] >= 4.5, (scheme, lowest)


def test_prints_in_light_colours_on_pages(page):
    opened = page("two", scheme="dark")
    found = opened.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    import base64

    pdf = base64.b64decode(found["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/") >= 3
    opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = opened.run(
        "return [getComputedStyle(document.querySelector('nav')).display, "
        "getComputedStyle(document.querySelector('.chooser')).display, "
        "getComputedStyle(document.body).backgroundColor];"
    )
    opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown == ["none", "none", "rgb(255, 255, 255)"]


# --- hostile names -------------------------------------------------------------------------------------------------
def test_hostile_names_do_not_run_and_can_be_read(page):
    opened = page("hostile")
    names = opened.case.votes.source_names
    for name in HOSTILE:
        opened.choose(next(one for one in listed(opened) if one.startswith(name)))
        assert opened.run("return document.querySelector('.stage h3').textContent;").startswith(f"Sequence {name}")
    opened.run("document.querySelector('.stage details').open = true;")
    opened.settled()
    assert opened.run("return window.broken === undefined;")
    assert opened.browser.get_log("browser") == []
    assert opened.run("return document.querySelectorAll('img, iframe, object').length;") == 0
    assert opened.run("return document.scripts.length;") == 2
    shown = opened.run("return document.getElementById('sources').textContent;")
    panel = opened.run("return document.querySelector('.explanation').textContent;")
    rows = opened.run("return [...document.querySelectorAll('.row-name')].map((one) => one.title);")
    for name in names:
        assert name in shown
        assert name in rows
    for name in names[:5]:
        assert name in panel, "votes on elements are explained under their full names"


def test_right_to_left_names_do_not_reorder_their_surroundings(page):
    opened = page("hostile")
    kinds = opened.run(
        "return [...document.querySelectorAll('#sources tbody th, #sources tbody td')].filter((one) => "
        "one.textContent.includes('gnp.exe')).map((one) => one.firstElementChild.tagName);"
    )
    assert kinds
    assert set(kinds) == {"BDI"}
    order = opened.run(
        "const rows = [...document.querySelectorAll('#sources tbody tr')];"
        "const row = rows.find((one) => one.textContent.includes('gnp'));"
        "return [...row.cells].map((cell) => cell.getBoundingClientRect().left);"
    )
    assert order == sorted(order)


# --- without sequences ---------------------------------------------------------------------------------------------
def test_a_page_without_sequences_is_still_a_page(page, tmp_path):
    case = page("two").case
    path = tmp_path / "none.html"
    path.write_text(render_html(summarize(case.model, case.votes, n_sequences=0)), encoding="utf-8")
    opened = page(str(path))
    assert opened.browser.get_log("browser") == []
    assert opened.run("return document.getElementById('viewer').hidden;") is True
    assert "0 of 60 sequences" in opened.run("return document.getElementById('timelines').textContent;")


def test_a_part_of_a_long_sequence_keeps_its_numbers(page, tmp_path):
    case = page("two").case
    path = tmp_path / "part.html"
    found = summarize(case.model, case.votes, budget=480)
    track = found.sequences.tracks[0]
    assert track.begin > 0 or track.end < track.length
    path.write_text(render_html(found), encoding="utf-8")
    opened = page(str(path))
    assert opened.view() == (track.begin, track.end)
    opened.key("canvas", "Home")
    assert opened.explanation()["heading"].startswith(f"Element {track.begin}:")
    check_explanation(opened, case.model.explain(case.votes, track.place, track.begin), {1: "+1"})


# --- the data beside the labels ------------------------------------------------------------------------------------
def with_media(page, tmp_path, make):
    """A page whose first sequence is drawn with the given elements."""
    case = page("two").case
    names, lengths = case.votes.sequence_ids.tolist(), case.votes.lengths.tolist()
    media = {name: make(length) for name, length in zip(names, lengths, strict=True)}
    path = tmp_path / "media.html"
    path.write_text(render_html(summarize(case.model, case.votes, n_sequences=1, media=media)), encoding="utf-8")
    opened = page(str(path))
    assert opened.browser.get_log("browser") == []
    return opened


def test_an_element_is_a_word(page, tmp_path):
    opened = with_media(page, tmp_path, lambda n: [f"word{place}" for place in range(n)])
    opened.click("words", 2)
    assert opened.explanation()["heading"].startswith("Element 2 “word2”:")
    dark = opened.run(
        "const c = document.querySelector('canvas'), at = [...document.querySelectorAll('.row-name')]"
        ".find((one) => one.title === 'words').dataset.middle, u = c.width / c.clientWidth;"
        "const d = c.getContext('2d').getImageData(200 * u, (at - 25) * u, c.width - 220 * u, 50 * u).data;"
        "let dark = 0; for (let i = 0; i < d.length; i += 4) dark += d[i] < 120; return dark;"
    )
    assert dark > 100


def test_an_element_is_a_picture(page, tmp_path):
    def striped(n):
        frames = np.zeros((n, 40, 40, 3), dtype=np.uint8)
        frames[:, :, :, 0] = 210
        return frames

    opened = with_media(page, tmp_path, striped)
    assert close(opened.colour("pictures", 0), (210, 0, 0), 14)
    opened.click("pictures", 0)
    shown = opened.run(
        "return [...document.querySelector('.explanation .picture').getContext('2d')"
        ".getImageData(20, 20, 1, 1).data].slice(0, 3);"
    )
    assert close(tuple(shown), (210, 0, 0), 14)


def test_a_signal_is_drawn_where_it_is_high(page, tmp_path):
    opened = with_media(page, tmp_path, lambda n: np.where(np.arange(n) < n // 2, 0.5, np.arange(n) % 2.0))
    paper = opened.run("return getComputedStyle(document.body).backgroundColor;")
    white = tuple(int(one) for one in paper[4:-1].split(","))
    assert not close(opened.colour("signal", 1), white)
    assert not close(opened.colour("signal", 4), white)
