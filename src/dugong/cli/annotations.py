"""What people marked, in a project: as sources beside functions, as labels to fit with, and labels to look at.

In: the project and its votes. Out: votes with one more source per annotator; known labels apart from those that the
model was fitted with; labels as files of the tools that the project names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dugong.exceptions import DugongError, VoteError
from dugong.paths import Place
from dugong.tasks import Element

if TYPE_CHECKING:
    from dugong.cli.project import Project
    from dugong.labels import Labels
    from dugong.types import Int8Array
    from dugong.votes import Votes


def add_annotations(project: Project, votes: Votes) -> Votes:
    """The votes, and what the files of annotations say, as further sources.

    Where an annotator looked and marked nothing, the vote is the background; with two classes, the negative one.
    """
    from dugong import formats

    for place in project.annotations:
        marked = formats.read(place)
        marked = replace(marked, source=tuple(one or place.stem for one in marked.source) or (place.stem,))
        names = votes.class_names or tuple(map(str, votes.classes))
        silence = project.background or (names[0] if votes.n_classes == 2 else None)
        try:
            votes = votes.with_segments(marked, background=silence, missing_ok=True)
        except DugongError as error:
            raise VoteError(f"{place} cannot be used as a source: {error}") from None
    return _add_tables(project, votes)


def _add_tables(project: Project, votes: Votes) -> Votes:
    """The votes, and the columns of tables that the project names, as further sources."""
    from dugong.cli.gold import known_table
    from dugong.cli.project import inside
    from dugong.tasks import Sequence

    for name, about in project.tables.items():
        place, options = inside(project.folder, about["file"]), {key: about[key] for key in about if key != "file"}
        options["resolution"] = Sequence() if options.get("resolution") == "sequence" else None
        try:
            votes = votes.with_table(known_table(place), name, **options)
        except DugongError as error:
            raise VoteError(f"{place} cannot be used as a source: {error}") from None
    return votes


def train_labels(project: Project, votes: Votes) -> Int8Array | None:
    """Known labels that the model is fitted with, if the project has any: its file, and corrections of its studio."""
    from dugong.cli.corrections import corrected
    from dugong.cli.gold import read_gold

    known = None if project.train_gold is None else read_gold(project.train_gold, votes, missing_ok=True)
    return corrected(project.folder, votes, known)


def held_out(gold: Int8Array, train: Int8Array | None, votes: Votes) -> Int8Array:
    """Known labels of sequences that the model was not fitted with; 0 elsewhere."""
    if train is None:
        return gold
    offsets = votes.layout(Element()).offsets
    seen = np.diff(np.concatenate([[0], np.cumsum(train != 0)])[offsets]) > 0
    return np.where(np.repeat(seen, votes.lengths), np.int8(0), gold)


def export_labels(project: Project, parts: Iterable[Labels]) -> dict[str, Place]:
    """Write labels, of one file or shard by shard, in all formats that the project names, each into its own folder."""
    from dugong import formats
    from dugong.cli.media import with_media

    found = [one.segments("element" if "element" in one.resolutions else one.resolutions[0]) for one in parts]
    segments = with_media(formats.joined(project.output, found), project.media)
    files: dict[str, Place] = {}
    for name in project.export:
        folder = project.output / "export" / formats.of_name(name).name
        formats.write(segments, folder, name)
        files[f"labels for {formats.of_name(name).title}"] = folder
    return files
