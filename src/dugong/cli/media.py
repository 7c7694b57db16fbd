"""What people see beside the labels: videos, sounds, tables and texts, found by the ids of the sequences.

In: segments, and ``--media``: a folder of files named by id, or a pattern such as ``https://host/{}.mp4``. Out: the
segments with their media and, for texts, with text and tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dugong.exceptions import FormatError
from dugong.paths import Place, place_of

if TYPE_CHECKING:
    from dugong.segments import Recording, Segments

_TEXTS = (".txt", ".conll", ".conllu")


def with_media(segments: Segments, media: str | None, element: str | None = None) -> Segments:
    """Say where the media of all sequences are; texts are read, and cut into the elements that were voted on."""
    if media is None:
        return segments
    if "{}" in media:
        return segments.describe(media={name: media.replace("{}", name) for name in segments.recordings})
    folder = place_of(media)
    if not folder.is_dir():
        raise FormatError(f"--media names a folder, or a pattern with {{}} in place of the id; found {media!r}.")
    files: dict[str, Place] = {}
    listed: list[Place] = list(folder.glob("*"))
    for place in sorted(listed, key=str):
        files.setdefault(place.stem, place)
    absent = [name for name in segments.recordings if name not in files]
    if absent:
        raise FormatError(
            f"{folder} must hold a file for every sequence; there is none for {absent[0]!r}, and {len(absent)} are "
            "like this."
        )
    found = {name: files[name] for name in segments.recordings}
    told = segments.describe(media={name: str(place) for name, place in found.items()})
    texts = {name: place for name, place in found.items() if place.suffix in _TEXTS}
    facts = {name: _text(place, segments.recordings[name], element) for name, place in texts.items()}
    return told.describe(
        text={name: one["text"] for name, one in facts.items()},
        tokens={name: one["tokens"] for name, one in facts.items()},
    )


def _text(place: Place, about: Recording, element: str | None) -> dict[str, Any]:
    """The text of a file and the tokens that were its elements."""
    from dugong import formats

    if place.suffix != ".txt":
        known = next(iter(formats.read(place).recordings.values()))
        return {"text": known.text, "tokens": known.tokens}
    text = formats.File.open(place).text
    words = tuple(found.span() for found in re.finditer(r"\S+", text))
    lines = tuple(found.span() for found in re.finditer(r"[^\n]*\S[^\n]*", text))
    cuts = {"word": words, "line": lines}
    if element is not None:
        return {"text": text, "tokens": cuts[element]}
    fitting = {name: cut for name, cut in cuts.items() if about.length in (None, len(cut))}
    if len(fitting) == 1:
        return {"text": text, "tokens": next(iter(fitting.values()))}
    raise FormatError(
        f"{place} has {len(words)} words and {len(lines)} lines, and the sequence {about.length} elements.\n"
        "  Say what an element is: --element word or --element line."
    )
