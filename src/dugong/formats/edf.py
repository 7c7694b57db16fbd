"""EDF+ annotations: onset, duration and text in seconds; one sequence per file [extra].

We write a file of annotations alone, which every viewer lays over the recording. The probability follows the label
(``walk p=0.93``); ``probabilities=False`` leaves it out, for programs that group by text.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any

from dugong.exceptions import import_extra
from dugong.formats.files import File, Intervals
from dugong.formats.registry import Files, Format
from dugong.formats.texts import columns, forbid, placed, split_note, with_note
from dugong.segments import Recording, Segments


def _edfio() -> Any:
    return import_extra("edfio", "edf", "reading and writing EDF files")


def parse(file: File) -> Any:
    """The recording as edfio has it: signals, annotations, duration. What edfio repairs in silence is an error here."""
    edfio = _edfio()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return edfio.read_edf(file.data)
    except Exception as error:  # noqa: BLE001 (whatever a parser that is not ours runs into)
        raise file.error(f"this is no EDF file, or it is damaged or cut off: {error}.") from None


def _read(file: File) -> Segments:
    recording, rows = parse(file), Intervals(file, "second")
    with file.at("annotations"):
        marked = list(recording.annotations)
    for number, one in enumerate(marked, start=1):
        if not one.text:
            continue
        label, probability, _ = split_note(one.text)
        end = round(one.onset + (one.duration or 0.0), 9)
        rows.add(f"annotation {number}", file.stem, one.onset, end, label, probability)
    return rows.done({file.stem: Recording(duration=recording.duration or None)})


def _write(segments: Segments, stem: str, options: Mapping[str, Any]) -> Files:
    edfio = _edfio()
    found = placed(segments, "second", "edf").sort()
    forbid(found, r"\x00\x14\x15", "edf")
    shown = options.get("probabilities", True)
    marked = [
        edfio.EdfAnnotation(start, round(end - start, 9), with_note(label, p if shown else None))
        for start, end, label, p in columns(found, "start", "end", "label", "probability")
    ]
    handle = io.BytesIO()
    silent = [edfio.EdfAnnotation(0, None, "")]  # a file must hold something; a text without letters says nothing
    edfio.Edf([], annotations=marked or silent).write(handle)
    return {f"{stem}.edf": handle.getvalue()}


FORMATS = (
    Format(
        name="edf",
        title="EDF+ annotations",
        suffixes=(".edf",),
        unit="seconds, 1 ns",
        keeps="start, end, label, probability (4 decimals); instants",
        loses="source, duration",
        checked="pyedflib",
        fits=lambda file: file.data[:8].strip() == b"0" and b"EDF" in file.data[192:236],
        read=_read,
        write=_write,
        single=True,
        extra="edf",
        options=("probabilities",),
        aliases=("edf+",),
    ),
)
