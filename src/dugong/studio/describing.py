"""What is asked of the studio, and what it says about the project, one sequence and the text of a source."""

from __future__ import annotations

import json
import mimetypes
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from dugong import __version__, formats
from dugong.cli.corrections import FILE, class_codes
from dugong.cli.exchange import with_media
from dugong.cli.gold import known_runs, train_labels
from dugong.cli.init import write_project
from dugong.cli.project import DEFAULT
from dugong.codec import parse, to_plain
from dugong.exceptions import DugongError
from dugong.report.html.tags import class_colours
from dugong.report.media import Raw
from dugong.report.tracks import lane_info, seconds_of
from dugong.studio import StudioError
from dugong.studio.editing import SourceFile
from dugong.studio.pages import SORTS, sequence_row, source_details, source_rows
from dugong.studio.snapshot import Snapshot
from dugong.studio.state import Studio

SAMPLES = {
    "sensor": ("a sensor: who walks, and when", None),
    "video": ("videos: when the ball is in the picture", "av"),
    "audio": ("sound: when the bird sings", "soundfile"),
    "text": ("notes of a ward: which words name a drug", None),
}


# --- what is asked, and how it is answered ----------------------------------------------------------------------------
def in_ascii(content: Any) -> str:
    """JSON in ASCII: whatever names and texts hold, they can be sent."""
    return json.dumps(to_plain(content), allow_nan=False, separators=(",", ":"))


def bad(text: str) -> StudioError:
    """What a request must be, and is not."""
    return StudioError(text, "bad")


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """What is asked of a studio."""

    studio: Studio
    request: Request
    body: bytes

    def named(self, part: str = "id") -> Any:
        """A part of the address."""
        return self.request.path_params[part]

    @property
    def query(self) -> Mapping[str, str]:
        """The words of the query."""
        return self.request.query_params

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number of the query, moved between bounds."""
        text = self.query.get(name, str(default))
        try:
            value = int(float(text)) if len(text) < 30 else None
        except (ValueError, OverflowError):
            value = None
        if value is None:
            raise bad(f"{name} must be a whole number; found {text!r:.100}.")
        return min(max(value, low), high)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The body as a JSON object."""
        if self.request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise bad("the content type must be application/json.")
        try:
            plain = parse(self.body)
        except (DugongError, ValueError, RecursionError) as error:
            raise bad(f"the body must be JSON: {error}.") from None
        if not isinstance(plain, dict):
            raise bad("the body must be a JSON object.")
        return plain

    def word(self, name: str) -> str:
        """Text of the body."""
        value = self.plain.get(name)
        if not isinstance(value, str):
            raise bad(f"{name} must be text; found {value!r:.100}.")
        return value


# --- the project ---------------------------------------------------------------------------------------------------
def project_page(asked: Inquiry) -> dict[str, Any]:
    """Everything that the page needs to begin."""
    studio = asked.studio
    head = {"version": __version__, "who": studio.who, "run": studio.run, "limit": studio.limit}
    if studio.project is None:
        return {**head, "project": None, "folder": Path.cwd(), "samples": samples()}
    project, snapshot = studio.project, studio.snapshot
    base = {
        **head,
        "project": studio.path,
        "title": project.folder.resolve().name,
        "folder": project.folder.resolve(),
        "gold": project.gold is not None,
        "n_corrections": len(studio.journal.holding()),
        "corrections_file": FILE,
        "formats": [_format(name) for name in formats.names()],
        "sorts": [{"name": name, "words": words} for name, words in SORTS.items()],
        "stale": studio.stale,
        "fit": 0,
        "classes": [],
        "lanes": [],
        "sources": [],
        "n_sequences": 0,
        "n_elements": 0,
        "rate": None,
        "kind": None,
    }
    return base if snapshot is None else base | _fitted(studio, snapshot)


def samples() -> list[dict[str, Any]]:
    """Sample projects, and which of them can be made here."""
    return [
        {"kind": kind, "words": words, "ready": package is None or find_spec(package) is not None}
        | {"missing": None if package is None or find_spec(package) is not None else f"dugong-ws[{kind}]"}
        for kind, (words, package) in SAMPLES.items()
    ]


def write_sample(studio: Studio, kind: str) -> Path:
    """Write a sample project into the folder where the studio was started; an earlier one is taken up again."""
    if studio.project is not None:
        raise StudioError("a project is open already.", "taken")
    if kind not in SAMPLES:
        raise bad(f"sample must be one of {', '.join(SAMPLES)}; found {kind!r:.50}.")
    folder = Path.cwd() / f"{kind}-sample"
    if not (folder / DEFAULT).is_file():
        write_project(folder, kind)
    return folder / DEFAULT


def _format(name: str) -> dict[str, Any]:
    one = formats.of_name(name)
    return {
        "name": one.name,
        "title": one.title,
        "suffixes": list(one.suffixes),
        "reads": True,
        "writes": True,
        "needs": one.extra,
        "unit": one.unit,
    }


def _fitted(studio: Studio, snapshot: Snapshot) -> dict[str, Any]:
    votes = snapshot.votes
    light, dark = class_colours(votes.n_classes)
    classes = zip(snapshot.classes, votes.classes, light, dark, strict=True)
    _, editable = studio.functions()
    return {
        "fit": snapshot.number,
        "two": dict(zip(("light", "dark"), class_colours(2), strict=True)),
        "classes": [{"name": name, "value": value, "light": a, "dark": b} for name, value, a, b in classes],
        "lanes": [asdict(lane_info(votes, one)) | {"n_tasks": votes.layout(one).n_tasks} for one in snapshot.lanes],
        "sources": [
            {"name": one.name, "resolution": one.resolution.name, "editable": one.name in editable}
            | {"lane": snapshot.voters[place].lane}
            for place, one in enumerate(votes.sources)
        ],
        "n_sequences": votes.n_sequences,
        "n_elements": votes.n_elements,
        "rate": None if votes.time is None else votes.time.common_rate,
        "kind": studio.kind,
    }


# --- one sequence --------------------------------------------------------------------------------------------------
def sequence_page(asked: Inquiry) -> dict[str, Any]:
    """What one sequence is, apart from its tracks."""
    studio, name = asked.studio, asked.named()
    snapshot, place, length = studio.find(name)
    try:
        raw, file = studio.raw(name).raw, studio.media(name)
    except DugongError:  # the tracks say what is wrong; votes and labels can be seen all the same
        raw, file = Raw(kind="other", length=length), None
    path = quote(name, safe="")
    kind = None if file is None else mimetypes.guess_type(file.name)[0]
    playable = kind is not None and kind.startswith(("video/", "audio/", "image/"))
    ids = snapshot.ids
    return {
        "id": name,
        "place": place,
        "length": length,
        "seconds": seconds_of(snapshot.votes, place),
        "kind": raw.kind,
        "signals": [one.name for one in raw.signals],
        "tokens": len(raw.tokens),
        "media": {"type": kind, "url": f"/media/{path}"} if playable else None,
        "frames": {"url": f"/api/sequences/{path}/frame", "n": raw.n_frames} if raw.n_frames else None,
        "previous": ids[place - 1] if place else None,
        "next": ids[place + 1] if place + 1 < len(ids) else None,
        "gold": corrections(studio, name),
        "numbers": sequence_row(snapshot, place, studio.corrected()),
    }


def corrections(studio: Studio, sequence: str | None) -> dict[str, Any]:
    """Corrections that hold, of one sequence or of all, with the number by which a page tells older from newer."""
    journal = studio.journal
    version, n = journal.version, len(journal.holding())  # first: what follows may be newer than it says, never older
    return {"corrections": journal.holding(sequence), "version": version, "n": n, "can_undo": n > 0}


# --- sources -------------------------------------------------------------------------------------------------------
def _file_name(file: SourceFile, studio: Studio) -> str:
    return str(file.path.relative_to(studio.needed().folder))


def sources_page(asked: Inquiry) -> dict[str, Any]:
    """All sources of the last fit, and functions of the file that are not in it yet."""
    studio, snapshot = asked.studio, asked.studio.snapshot
    rows = [] if snapshot is None else source_rows(snapshot)
    try:
        file = studio.source_file()
    except StudioError as error:
        return {"sources": [_with_edit(row, {}) for row in rows], "file": None, "digest": None, "trouble": str(error)}
    known, fitted = file.functions(), {row["name"] for row in rows}
    rows += [{"name": one.name, "resolution": None} for one in known.values() if one.source and one.name not in fitted]
    found = {"sources": [_with_edit(row, known) for row in rows], "file": _file_name(file, studio)}
    return {**found, "digest": file.digest, "trouble": file.trouble}


def _with_edit(row: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    editable = row["name"] in known
    why = None if editable else "it is not a function at the top of the file of sources; edit it where it is made."
    return {**row, "editable": editable, "why_not": why}


def source_page(asked: Inquiry) -> dict[str, Any]:
    """One source: numbers, text, and what to look at."""
    studio, name = asked.studio, asked.named("name")
    file, snapshot = studio.source_file(), studio.snapshot
    known = file.functions()
    rows = {} if snapshot is None else {row["name"]: row for row in source_rows(snapshot)}
    if name not in known and name not in rows:
        raise StudioError(f"there is no source {name!r}.", "missing")
    row = rows.get(name, {"name": name})
    function = known.get(name)
    details = {} if snapshot is None else source_details(snapshot, name)
    return {
        **_with_edit(row, known),
        "text": None if function is None else function.text,
        "line": None if function is None else function.first + 1,
        "digest": file.digest,
        "file": _file_name(file, studio),
        **details,
    }


# --- labels out to other tools, and back ------------------------------------------------------------------------------
def _folder(asked: Inquiry) -> tuple[Path, str]:
    name = asked.named("format")
    if name not in formats.names():
        raise StudioError(f"there is no format {name!r:.50}; see the list.", "missing")
    known = formats.of_name(name).name
    return Path(str(asked.studio.needed().output)) / "export" / known, known


def export(asked: Inquiry) -> dict[str, Any]:
    """Write the labels of the last fit in another format; what is corrected by now is certain."""
    plain, (folder, known), snapshot = asked.plain, _folder(asked), asked.studio.shown()
    project, resolution = snapshot.project, str(plain.get("resolution") or "element")
    names = ("threshold", "min_length", "merge_gap", "rate")
    choice = {key: plain[key] for key in names if plain.get(key) is not None}
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in choice.values()):
        raise bad(f"{', '.join(names)} must be numbers.")
    rate = choice.pop("rate", None)
    certain = train_labels(project, snapshot.votes)
    segments = snapshot.model.labels(snapshot.votes, [resolution], known=certain).segments(resolution, **choice)
    segments = segments if rate is None else segments.describe(rate=rate)
    found = with_media(segments, project.media)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=str(project.output)) as draft:
        written = formats.write(found, Path(draft) / known, known)
        for file in [one for one in Path(draft).rglob("*") if one.is_file()]:
            target = folder.parent / file.relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)  # one by one: what somebody put beside them stays
    return {
        "folder": folder,
        "files": sorted(Path(str(one)).name for one in written),
        "n": len(written),
        "intervals": len(segments),
        "download": f"/api/export/{known}",
    }


def exported(asked: Inquiry) -> list[Path]:
    """The files of the last export in a format."""
    folder, _ = _folder(asked)
    found = sorted(one for one in folder.rglob("*") if one.is_file()) if folder.is_dir() else []
    if not found:
        raise StudioError("nothing was exported in this format yet.", "missing")
    return found


def take_file(asked: Inquiry) -> dict[str, Any]:
    """Turn the intervals of a file of another tool into corrections, undone together."""
    snapshot = asked.studio.shown()
    safe = Path(asked.query.get("name", "").replace("\\", "/")).name
    if not safe or safe.startswith("."):
        raise bad("name must be the name of the file.")
    with tempfile.TemporaryDirectory(prefix="dugong-import-") as folder:
        file = Path(folder) / safe
        file.write_bytes(asked.body)
        segments = formats.read(file, asked.query.get("format") or None)
    labels = segments.to_gold(snapshot.votes, missing_ok=True)
    names = {value: word for word, value in class_codes(snapshot.votes).items()}
    marks = [
        {"sequence": snapshot.ids[place], "start": start, "end": stop}
        | {"label": names[label], "length": int(snapshot.votes.lengths[place]), "shown": {"file": safe}}
        for place, start, stop, label in zip(*(one.tolist() for one in known_runs(labels, snapshot.votes)), strict=True)
    ]
    if not marks:
        raise StudioError(f"{safe} marks nothing in the sequences of this project.", "data")
    new = asked.studio.correct(marks)
    return {"n": len(new), "sequences": list(dict.fromkeys(one.sequence for one in new)), "corrections": new}
