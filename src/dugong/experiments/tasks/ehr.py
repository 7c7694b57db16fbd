"""EHR: which words mention a disorder; eleven vocabularies and a list of stopwords.

The paper tags words of patient notes as inside or outside of a disorder, with vocabularies of the Unified Medical
Language System whose types are mapped to disorder or something else, merged by vocabulary. It counts sentences and
says T = 2; here sentences keep their length, and two is the reach of the prior: a word and the next. The paper reports
the label model alone. A vocabulary that is silent about a word says something, so abstaining counts as evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from dugong.experiments.recipe import PARTS, Facts, Recipe, Size, find_folder
from dugong.experiments.tasks.examples import Example, as_material, sizes_of
from dugong.priors import Prior, from_labels
from dugong.sources import Source, source
from dugong.types import ABSTAIN, NEGATIVE, Int8Array

# Our names, with the sources of BC5CDR that have the same role; the last three list what is no disorder.
VOCABULARIES = {
    "diseases": ("tag-DictCore-Disease",),
    "diseases_exact": ("tag-DictCore-Disease-Exact",),
    "syndromes": ("tag-Disease or Syndrome",),
    "body": ("tag-BodyTerms",),
    "cancers": ("tag-CancerLike",),
    "phrases": ("link-ExtractedPhrase",),
    "hyphens": ("link-PostHyphen",),
    "possessives": ("link-PossessivePhrase",),
    "chemicals": ("tag-DictCore-Chemical", "tag-DictCore-Chemical-Exact"),
    "organic": ("tag-Organic Chemical", "tag-Antibiotic", "tag-Element, Ion, or Isotope", "tag-Vitamin", "tag-Acid"),
    "prefixes": ("link-HyphenatedPrefix",),
}
AGAINST = ("chemicals", "organic", "prefixes")
CHEMICAL, DISEASE = (1, 2), (3, 4)  # tags of BC5CDR, begin and inside
_STOP = """a after all also an and are as at be been before between both but by can did during for from had has have in
into is it its may no not of on or our than that the their there these this those to two was we were when which while
who with without . , ; : ( ) [ ] - / % = < > '"""
STOPWORDS = frozenset(_STOP.split())
N_TERMS, N_HEADS, N_OTHERS, N_DRUGS = 400, 250, 600, 150
# Of each simulated vocabulary: its family, and the share that it takes of what its family knows.
LISTS = {
    "diseases": ("disease", 0.8),
    "diseases_exact": ("disease", 0.3),
    "syndromes": ("clinical", 0.8),
    "body": ("clinical", 0.3),
    "cancers": ("nursing", 0.4),
    "phrases": ("billing", 0.8),
    "hyphens": ("nursing", 0.5),
    "possessives": ("billing", 0.2),
    "chemicals": ("disease", 0.8),
    "organic": ("clinical", 0.7),
    "prefixes": ("nursing", 0.3),
}
# By family, how many words that are no disorders are taken for one.
FAMILIES = {"disease": 8, "clinical": 15, "nursing": 90, "billing": 50}


Phrase = tuple[str, ...]


def vocabulary(name: str) -> Source:
    """A source that votes as a vocabulary lists words."""
    column = list(VOCABULARIES).index(name)

    def listed(text: Text) -> Int8Array:
        return text.entries[:, column]

    return source(name=name, vectorized=True)(listed)


@source(vectorized=True)
def stopwords(text: Text) -> Int8Array:
    """Stopwords and marks mention nothing."""
    return np.array([NEGATIVE if word.lower() in STOPWORDS else ABSTAIN for word in text.words], dtype=np.int8)


def expert(dev: Sequence[Int8Array]) -> Prior:
    """How often a mention begins and goes on in the dev set."""
    return from_labels(dev, kind="patterns", length=2, min_count=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Text:
    """Words, and what each of the vocabularies says of them, (n_words, 11)."""

    words: tuple[str, ...]
    entries: Int8Array

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, place: int | slice) -> Text:
        rows = place if isinstance(place, slice) else slice(place, place + 1)
        return Text(words=self.words[rows], entries=self.entries[rows])


# --- simulated notes --------------------------------------------------------------------------------------------------
@as_material("simulated")
def simulate(size: Size, seed: int, folder: Path) -> Iterator[Example]:  # noqa: ARG001  no files
    """Sentences, twenty to a note; all parts share one language and the same vocabularies."""
    rng = np.random.default_rng(seed)
    terms = [_term(rng) for _ in range(N_TERMS)]
    listed = {name: _list_of(rng, terms, name, seed) for name in VOCABULARIES}
    for part, count in sizes_of(size):
        for number in range(count):
            words, labels = _sentence(rng, terms)
            text = Text(words=tuple(words), entries=_look_up(words, listed))
            gold = np.array(labels, dtype=np.int8)
            yield Example(f"{part}-{number}", part, f"{part}-{number // 20}", text, gold)


def _term(rng: np.random.Generator) -> Phrase:
    """A disorder: perhaps some words that say which, and a head."""
    which = [f"which{_common(rng, 80)}" for _ in range(rng.choice(3, p=[0.5, 0.35, 0.15]))]
    return (*which, f"disorder{_common(rng, N_HEADS)}")


def _common(rng: np.random.Generator, n_words: int) -> int:
    """A word by its rank; the first are the most frequent."""
    return int(n_words * rng.random() ** 2)


def _list_of(rng: np.random.Generator, terms: list[Phrase], name: str, seed: int) -> set[Phrase]:
    """Phrases of one vocabulary: a share of what its family knows, and of what its family gets wrong."""
    family, share = LISTS[name]
    # The same for all vocabularies of a family.
    known = np.random.default_rng([seed, list(FAMILIES).index(family)])
    right: list[Phrase]
    wrong: list[Phrase]
    if name in AGAINST:
        right = [(f"drug{number}",) for number in range(N_DRUGS) if known.random() < 0.7]
        wrong = [(f"disorder{number}",) for number in known.choice(N_HEADS, 12, replace=False)]
    else:
        rare = np.arange(len(terms)) / len(terms)
        knows, short = known.random(len(terms)) < 0.7 - 0.4 * rare, known.random(len(terms)) < 0.3
        right = [term[-1:] if short[at] else term for at, term in enumerate(terms) if knows[at]]
        wrong = [(f"other{number}",) for number in known.choice(N_OTHERS, FAMILIES[family], replace=False)]
    return {phrase for phrase in right + wrong if rng.random() < share}


def _sentence(rng: np.random.Generator, terms: list[Phrase]) -> tuple[list[str], list[int]]:
    """Six to sixteen words, some of them the mention of a disorder."""
    words: list[str] = []
    labels: list[int] = []
    stop = sorted(STOPWORDS)
    for _ in range(rng.integers(6, 17)):
        kind = rng.choice(5, p=[0.08, 0.37, 0.43, 0.08, 0.04])
        new = (
            terms[_common(rng, N_TERMS)] if kind == 0
            else (stop[_common(rng, len(stop))],) if kind == 1
            else (f"other{_common(rng, N_OTHERS)}",) if kind == 2
            else (f"drug{_common(rng, N_DRUGS)}",) if kind == 3
            else (f"which{_common(rng, 80)}",)
        )  # fmt: skip
        words += new
        labels += [1 if kind == 0 else -1] * len(new)
    return words, labels


def _look_up(words: list[str], listed: dict[str, set[Phrase]]) -> Int8Array:
    """Which words lie in a phrase that the vocabulary lists."""
    entries = np.zeros((len(words), len(listed)), dtype=np.int8)
    for size in (1, 2, 3):
        for start in range(len(words) - size + 1):
            phrase = tuple(words[start : start + size])
            for column, (name, phrases) in enumerate(listed.items()):
                if phrase in phrases:
                    entries[start : start + size, column] = -1 if name in AGAINST else 1
    return entries


# --- real abstracts ---------------------------------------------------------------------------------------------------
@as_material("BC5CDR")
def load_bc5cdr(folder: Path) -> Iterator[Example]:
    """Whole abstracts; diseases inside or outside (B and I alike), chemicals are something else."""
    place = find_folder(folder, "ner-bc5cdr", ("votes.npz", "meta.json", "text.txt"))
    names = json.loads((place / "meta.json").read_text(encoding="utf-8"))["sources"]
    with np.load(place / "votes.npz") as stored:
        votes, tags, lengths, split = (stored[name] for name in ("votes", "gold", "lengths", "split"))
    entries = np.zeros((len(votes), len(VOCABULARIES)), dtype=np.int8)
    for column, (name, rules) in enumerate(VOCABULARIES.items()):
        asked = votes[:, [names.index(rule) for rule in rules]]
        found = np.isin(asked, CHEMICAL if name in AGAINST else DISEASE).any(axis=1)
        entries[found, column] = -1 if name in AGAINST else 1
    gold = np.where(np.isin(tags, DISEASE), 1, -1).astype(np.int8)
    ends = np.cumsum(lengths)
    for number, line in enumerate((place / "text.txt").read_text(encoding="utf-8").splitlines()):
        name, rows = f"abstract-{number}", slice(ends[number] - lengths[number], ends[number])
        text = Text(words=tuple(line.split()), entries=entries[rows])
        yield Example(name, PARTS[split[number]], name, text, gold[rows])


RECIPE = Recipe(
    name="ehr",
    title="disorders in patient notes, words",
    facts=Facts(
        n_elements=2,
        size=Size(train=10_000, dev=10_940, test=16_641),
        positive=0.12,
        sources=(12, 0, 0),
        network="-",
    ),
    quick=Size(train=1000, dev=200, test=500, small=True),
    sources=(*(vocabulary(name) for name in VOCABULARIES), stopwords),
    # Vocabularies of one family share their entries; what is listed as one thing that is no disorder is not listed as
    # another, so lists of other things depend on each other.
    dependencies=(
        ("diseases", "diseases_exact"),
        ("syndromes", "body"),
        ("cancers", "hyphens"),
        *combinations((*AGAINST, "stopwords"), 2),
    ),
    user_prior=expert,
    generate=simulate,
    end_model=None,
    load=load_bc5cdr,
    real_data=(
        "The paper's notes (MIMIC-III with the labels of ShARe) need a licence. The abstracts of BC5CDR with the votes "
        "of lexicons are free: ner-bc5cdr/text.txt (one abstract a line, words apart), votes.npz (votes, gold, "
        "lengths, split) and meta.json (names of the sources). Diseases are positive, inside or outside; what a "
        "lexicon lists as a chemical is a vote against. Abstracts keep their own parts."
    ),
)
