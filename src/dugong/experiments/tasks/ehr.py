"""EHR: which words mention a disorder; eleven vocabularies and a list of stopwords.

The paper tags words of patient notes as inside or outside of a disorder, with vocabularies of the Unified Medical
Language System whose types are mapped to disorder or something else, merged by vocabulary. It counts sentences and
says T = 2; here sentences keep their length, and two is the reach of the prior: a word and the next. The paper reports
the label model alone. A vocabulary that is silent about a word says something, so abstaining counts as evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dugong.experiments.recipe import Facts, Recipe, Size
from dugong.experiments.tasks.ehr_data import AGAINST, STOPWORDS, VOCABULARIES, Text, load_bc5cdr, simulate
from dugong.priors import Prior, from_labels
from dugong.sources import Source, source
from dugong.types import ABSTAIN, NEGATIVE, Int8Array


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
