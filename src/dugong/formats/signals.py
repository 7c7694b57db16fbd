"""Annotations of signals: EDF+ and WFDB (PhysioNet); one sequence per file [extras].

Of EDF+ we write a file of annotations alone, which every viewer lays over the recording. The probability follows the
label (``walk p=0.93``); ``probabilities=False`` leaves it out, for programs that group by text. In WFDB an interval
begins with ``+`` and ``(label`` and lasts until the next ``+``; ``(N`` is normal, which is no interval; files without
rhythm changes give their beats as instants.
"""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dugong.exceptions import FormatError, import_extra
from dugong.formats import Files, Format
from dugong.formats.files import File, Intervals, apart, columns, forbid, only, placed, split_note, with_note
from dugong.segments import Recording, Segments


# --- EDF+ -------------------------------------------------------------------------------------------------------------
def _edfio() -> Any:
    return import_extra("edfio", "edf", "reading and writing EDF files")


def parse_edf(file: File) -> Any:
    """The recording as edfio has it: signals, annotations, duration. What edfio repairs in silence is an error here."""
    edfio = _edfio()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return edfio.read_edf(file.data)
    except Exception as error:  # noqa: BLE001 (whatever a parser that is not ours runs into)
        raise file.error(f"this is no EDF file, or it is damaged or cut off: {error}.") from None


def _read_edf(file: File) -> Segments:
    recording, rows = parse_edf(file), Intervals(file, "second")
    with file.at("annotations"):
        marked = list(recording.annotations)
    for number, one in enumerate(marked, start=1):
        if not one.text:
            continue
        label, probability, _ = split_note(one.text)
        end = round(one.onset + (one.duration or 0.0), 9)
        rows.add(f"annotation {number}", file.stem, one.onset, end, label, probability)
    return rows.done({file.stem: Recording(duration=recording.duration or None)})


def _write_edf(segments: Segments, stem: str, options: Mapping[str, Any]) -> Files:
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


# --- WFDB -------------------------------------------------------------------------------------------------------------
_NORMAL = "N"
_SUFFIX = "atr"


def _wfdb() -> Any:
    return import_extra("wfdb", "wfdb", "reading and writing WFDB annotations")


def _read_wfdb(file: File) -> Segments:
    wfdb, rows = _wfdb(), Intervals(file, "element")
    with tempfile.TemporaryDirectory() as folder:  # the library reads files, and ours may be at a URL
        (Path(folder) / f"record.{_SUFFIX}").write_bytes(file.data)
        try:
            found = wfdb.rdann(str(Path(folder) / "record"), _SUFFIX)
        except Exception as error:  # noqa: BLE001  (damaged bytes raise many kinds)
            raise file.error(f"these are no WFDB annotations, or they are damaged: {error}.") from None
    marks = list(zip(found.sample.tolist(), found.symbol, found.aux_note, strict=True))
    changes = [(sample, note.strip("\0").removeprefix("(")) for sample, symbol, note in marks if symbol == "+"]
    for number, (start, label) in enumerate(changes):
        end = changes[number + 1][0] if number + 1 < len(changes) else float("inf")
        if label != _NORMAL:
            rows.add(f"annotation {number + 1}", file.stem, start, end, label)
    for number, (sample, symbol, _) in enumerate([] if changes else marks, start=1):
        rows.add(f"annotation {number}", file.stem, sample, sample, symbol)
    return rows.done({file.stem: Recording(rate=None if found.fs is None else float(found.fs))})


def _write_wfdb(segments: Segments, stem: str, _: Mapping[str, Any]) -> Files:
    wfdb = _wfdb()
    import numpy as np

    found = apart(placed(segments, "element", "wfdb"), "wfdb", of=("sequence",))
    if _NORMAL in found.labels:
        raise FormatError("the format 'wfdb' takes the label 'N' for normal, which is no interval; rename it.")
    marks: list[tuple[int, str]] = []
    for start, end, label in columns(found, "start", "end", "label"):
        if marks and marks[-1][0] == int(start):
            marks.pop()  # the next interval begins where this one ends
        marks += [(int(start), f"({label}"), (int(end), f"({_NORMAL}")]
    about = found.recordings[only(found)]
    with tempfile.TemporaryDirectory() as folder:
        wfdb.wrann(
            "record",
            _SUFFIX,
            np.array([sample for sample, _ in marks] or [0]),
            symbol=["+"] * max(len(marks), 1),
            aux_note=[note for _, note in marks] or [f"({_NORMAL}"],
            fs=about.rate,
            write_dir=folder,
        )
        return {f"{stem}.{_SUFFIX}": (Path(folder) / f"record.{_SUFFIX}").read_bytes()}


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
        read=_read_edf,
        write=_write_edf,
        single=True,
        extra="edf",
        options=("probabilities",),
        aliases=("edf+",),
    ),
    Format(
        name="wfdb",
        title="WFDB annotations",
        suffixes=(f".{_SUFFIX}",),
        unit="elements (samples), exact",
        keeps="start, end, label, rate",
        loses="probability, source; overlaps are refused, and so is the label N",
        checked="wfdb",
        fits=lambda file: len(file.data) >= 2 and file.data[-2:] == b"\0\0",
        read=_read_wfdb,
        write=_write_wfdb,
        single=True,
        extra="wfdb",
    ),
)
