"""The page is one safe, self-contained file, whatever the names in it are. What it does is tested in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.report import render_html, summarize
from dugong.report.html import embed
from dugong.report.html.tags import Html, class_colours, escape, join, tag
from dugong.report.track import ALPHABET, LOG_LIMIT, bits_for, pack, pack_logs
from reports import HOSTILE, binary_case, hostile_case, many_case

VOID = {"meta", "br", "hr", "input", "col", "link", "img"}
SECTIONS = ("overview", "timelines", "sources", "dependencies", "prior", "agreement", "scores", "events", "majority",
            "diagnostics", "provenance")  # fmt: skip


class Reader(HTMLParser):
    """Reads a page: tags with attributes, balance, text, scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.raw: list[tuple[dict[str, str | None], str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, kind, attributes):
        self.tags.append((kind, dict(attributes)))
        if kind not in VOID:
            self.open.append(kind)

    def handle_startendtag(self, kind, attributes):
        self.tags.append((kind, dict(attributes)))

    def handle_endtag(self, kind):
        assert self.open, f"</{kind}> closes nothing"
        assert self.open.pop() == kind

    def handle_data(self, words):
        if self.open and self.open[-1] in ("script", "style"):
            self.raw.append((self.tags[-1][1] | {"kind": self.open[-1]}, words))
        else:
            self.text.append(words)


CASES = {"two": binary_case, "many": many_case, "hostile": hostile_case}


@pytest.fixture(scope="module", params=CASES, ids=str)
def page(request):
    case = CASES[request.param]()
    return render_html(summarize(case.model, case.votes, case.gold, title=HOSTILE[0]))


def test_tags_are_balanced_and_every_section_is_there(page):
    found = Reader(page)
    assert found.open == []
    ids = [attributes.get("id") for _, attributes in found.tags]
    assert [one for one in ids if one in SECTIONS] == list(SECTIONS)
    assert len([one for one in ids if one]) == len({one for one in ids if one}), "ids are unique"


def test_nothing_points_outside(page):
    for kind, attributes in Reader(page).tags:
        for key in ("src", "href", "action", "data", "srcset", "poster"):
            target = attributes.get(key)
            assert target is None or re.fullmatch(r"#[\w-]+", target), (kind, key, target)
        assert not any(key.startswith("on") for key in attributes), (kind, attributes)
        assert kind not in {"iframe", "object", "embed", "base", "img", "link"}
    code = "".join(words for attributes, words in Reader(page).raw if attributes.get("type") != "application/json")
    for word in ("http:", "https:", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "@import", "url(", "eval("):
        assert word not in code


def test_links_inside_lead_somewhere(page):
    found = Reader(page)
    ids = {attributes.get("id") for _, attributes in found.tags}
    targets = [attributes["href"] for kind, attributes in found.tags if kind == "a"]
    assert len(targets) > 10
    assert {target[1:] for target in targets} <= ids


def test_the_policy_names_exactly_this_style_and_script(page):
    found = Reader(page)
    policy = next(a["content"] for _, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    hashes = {}
    for attributes, words in found.raw:
        if attributes.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()
            hashes[attributes["kind"]] = f"'sha256-{digest}'"
    assert f"style-src {hashes['style']}" in policy
    assert f"script-src {hashes['script']}" in policy


def test_the_data_is_json_that_cannot_leave_its_script(page):
    text = next(words for attributes, words in Reader(page).raw if attributes.get("type") == "application/json")
    assert not set(text) & set("<>&\u2028\u2029")
    data = json.loads(text)
    assert set(data) == {"classes", "colours", "bits", "lanes", "voters", "order", "path", "tracks"}


def test_hostile_names_are_text_and_nothing_else():
    case = hostile_case()
    page = render_html(summarize(case.model, case.votes, case.gold, title=HOSTILE[2]))
    found = Reader(page)
    shown = "".join(found.text)
    for name in HOSTILE:
        assert name in shown
    assert sum(kind == "script" for kind, _ in found.tags) == 2
    assert not any(kind in {"img"} for kind, _ in found.tags)
    assert HOSTILE[0] not in page
    data = json.loads(next(w for a, w in found.raw if a.get("type") == "application/json"))
    assert [one["name"] for one in data["voters"]] == list(HOSTILE)
    assert data["classes"] == [HOSTILE[1], HOSTILE[2]]


def test_pictures_and_regions_have_words(page):
    found = Reader(page)
    for kind, attributes in found.tags:
        if kind == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
        if attributes.get("role") == "region":
            assert attributes["tabindex"] == "0"
            assert attributes["aria-label"]
    n_tables = sum(kind == "table" for kind, _ in found.tags)
    assert n_tables == sum(kind == "caption" for kind, _ in found.tags) > 5


def test_size_stays_below_five_megabytes_by_default(rng):
    case = many_case()
    # Votes without any pattern are the worst case for the size: nothing can be saved.
    model, lengths = case.model, np.full(600, 4000)
    columns = tuple(rng.integers(0, 4, lengths.sum()).astype(np.int8) for _ in case.votes.sources)
    from dugong.votes import Votes

    votes = Votes(
        sources=case.votes.sources, columns=columns, lengths=lengths, n_classes=3, class_names=case.votes.class_names
    )
    found = summarize(model, votes)
    page = render_html(found)
    assert len(found.sequences.tracks) < 100
    assert 2_000_000 < len(page.encode()) < 5_000_000


# --- packing -------------------------------------------------------------------------------------------------------
def unpack(text: str, bits: int, n: int) -> list[int]:
    """The other half of `pack`, written anew."""
    stream = "".join(f"{ALPHABET.index(sign):06b}" for sign in text)
    return [int(stream[place * bits : (place + 1) * bits], 2) for place in range(n)]


@given(st.sampled_from([2, 3, 6, 12, 18]), st.data())
def test_packed_numbers_come_back(bits, data):
    values = data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=50))
    text = pack(np.array(values, dtype=np.int64), bits)
    assert len(text) == -(-len(values) * bits // 6)
    assert unpack(text, bits, len(values)) == values


@given(st.lists(st.floats(-200, 200), min_size=1, max_size=20))
def test_packed_log_odds_are_close_and_limited(values):
    text = pack_logs(np.array(values))
    back = np.array(unpack(text, 18, len(values))) * 0.001 - LOG_LIMIT
    assert np.abs(back - np.clip(values, -LOG_LIMIT, LOG_LIMIT)).max() <= 0.000501


def test_certainties_are_packed_as_limits():
    text = pack_logs(np.array([np.inf, -np.inf]))
    assert unpack(text, 18, 2) == [2**18 - 2, 0]


@pytest.mark.parametrize(("n_values", "bits"), [(2, 2), (4, 2), (5, 3), (8, 3), (9, 6), (64, 6), (65, 12)])
def test_bits_are_those_that_pack_well(n_values, bits):
    assert bits_for(n_values) == bits


# --- pieces --------------------------------------------------------------------------------------------------------
@given(st.text())
def test_any_text_becomes_inert(text):
    shown = tag("p", text, title=text)
    found = Reader(shown)
    assert [kind for kind, _ in found.tags] == ["p"]
    assert found.open == []
    assert json.loads(embed({"name": escape(text)})) is not None


def test_only_what_was_made_here_is_taken_as_html():
    assert join("a<b", Html("<br>"), ["c", None]) == "a&lt;b<br>c"
    assert tag("td", "x", class_="n", hidden=False, colspan=2.0) == '<td class="n" colspan="2">x</td>'
    assert tag("p", "\x00\ud800") == "<p>\ufffd\ufffd</p>"


@pytest.mark.parametrize("n_classes", [2, 3, 8, 9, 18])
def test_every_class_has_its_own_colour(n_classes):
    for colours in class_colours(n_classes):
        assert len(set(colours)) == n_classes
        assert all(re.fullmatch("#[0-9a-f]{6}", one) for one in colours)
