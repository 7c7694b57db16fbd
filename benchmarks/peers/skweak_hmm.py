"""skweak's HMM on spaCy documents: one document per sequence, one span per run of equal votes."""

import numpy as np
import skweak
import spacy
from spacy.tokens import Doc, Span

NAMES = {-1: "NEG", 1: "POS"}


def label(data):
    """P(+1) of every element."""
    votes, vocabulary = data["dense"], spacy.blank("en").vocab
    ends = np.cumsum(data["lengths"])
    documents = [make(votes[end - n : end], vocabulary) for end, n in zip(ends, data["lengths"], strict=True)]
    model = skweak.aggregation.HMM("hmm", list(NAMES.values()), prefixes="IO")
    model.fit(documents)
    found = []
    for document in documents:
        probabilities = model.aggregate(model.get_observation_df(document))
        found.append(probabilities[next(c for c in probabilities.columns if c.endswith("POS"))].to_numpy())
    return np.concatenate(found)


def make(votes, vocabulary):
    """One sequence as a document with spans."""
    document = Doc(vocabulary, words=["x"] * len(votes))
    for j in range(votes.shape[1]):
        spans = [Span(document, t, t + 1, label=NAMES[int(v)]) for t, v in enumerate(votes[:, j]) if v != 0]
        document.spans[f"s{j}"] = spans
    return document
