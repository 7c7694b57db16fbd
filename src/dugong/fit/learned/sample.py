"""Which elements of long sequences are learned from, and which of these the search for structure looks at.

In: a reader of votes, or folded votes. Out: all elements, or about `PART`, then `SEARCHED` of them. Pieces of sequences
are chosen by a hash of what was voted on them, never by position, name or order: shuffling sequences or sources changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dugong.fit.learned.folded import Folded, fold
from dugong.fit.learned.panel import Panel, Reader
from dugong.fit.learned.part import choose_pieces
from dugong.fit.learned.settings import CHUNK, PART, SEARCHED
from dugong.sums._kernels import add_hashes
from dugong.tasks.layout import ranges
from dugong.types import AnyArray, Int8Array, IntArray


def thin(folded: Folded, most: int = SEARCHED) -> Folded:
    """The same if at most twice `most` elements have two votes, else pieces of it with about so many.

    Elements with fewer votes say nothing about how sources go together.
    """
    # Counted in elements with two votes, because only these can show that sources go together.
    n = -(-int(folded.sizes @ (folded.rows.spoken().sum(axis=1) > 1)) // most)
    if n <= 2:
        return folded
    panel = folded.panel
    borders = _borders(np.append(np.flatnonzero(panel.starts), len(panel.starts)))
    hashes = _hash_pieces(borders, panel.codes.T, panel.known)
    begins = np.zeros(len(panel.starts), dtype=np.bool_)
    begins[borders[:-1]] = True
    return fold(panel.rows(np.flatnonzero(np.repeat(choose_pieces(hashes, n), np.diff(borders))), begins))


def in_order(folded: Folded) -> Folded:
    """The same sequences in an order that follows from what was voted on them."""
    panel = folded.panel
    first = np.append(np.flatnonzero(panel.starts), len(panel.starts))
    order = np.argsort(_hash_pieces(first, panel.codes.T, panel.known), kind="stable")
    places = ranges(first[:-1][order], np.diff(first)[order])
    return replace(folded, panel=panel.rows(places, panel.starts), which=folded.which.take(places))


def read_sample(reader: Reader, most: int = PART) -> tuple[Panel, IntArray | None]:
    """All elements if there are at most twice `most` of them, else pieces with about so many, and which these are."""
    n_elements = int(reader.offsets[-1])
    if n_elements <= 2 * most:
        return reader.read(0, n_elements), None
    borders = _borders(reader.offsets)
    chosen = choose_pieces(_hash_pieces(borders, reader.columns(), reader.known), -(-n_elements // most))
    begins = np.zeros(n_elements, dtype=np.bool_)
    begins[borders[:-1][np.diff(borders) > 0]] = True
    rows = np.flatnonzero(np.repeat(chosen, np.diff(borders)))
    codes = np.empty((len(rows), len(reader.sources)), dtype=np.int8)
    for place, column in enumerate(reader.columns()):
        codes[:, place] = column.take(rows)
    known = np.full(len(rows), -1, dtype=np.int8) if reader.known is None else reader.known[rows]
    return Panel(coding=reader.coding, codes=codes, starts=begins[rows], known=known, ties=reader.ties), rows


def _borders(offsets: IntArray) -> IntArray:
    """Where pieces begin: at sequences, and every `CHUNK` elements inside long ones."""
    lengths = np.diff(offsets)
    # Long sequences are cut, because a few of them would otherwise be all of the sample or none of it.
    pieces = np.maximum(-(-lengths // CHUNK), 1)
    owner = np.repeat(np.arange(len(lengths)), pieces)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.concatenate([offsets[:-1][owner] + inside * CHUNK, offsets[-1:]])


def _hash_pieces(borders: IntArray, columns: Iterable[Int8Array], known: Int8Array | None) -> AnyArray:
    """One number per piece: the sum over sources of a hash of their votes, so that no order enters."""
    total = np.zeros(len(borders) - 1, dtype=np.uint64)
    for column in columns:
        add_hashes(np.ascontiguousarray(column), borders, np.uint64(0), total)
    if known is not None:
        add_hashes(known, borders, np.uint64(1), total)
    return total
