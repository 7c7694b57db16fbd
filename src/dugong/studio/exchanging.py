"""Labels out to other tools, and what people marked in them back in, through `dugong.formats`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from dugong import formats
from dugong.cli.corrections import class_codes
from dugong.cli.media import with_media
from dugong.labels import Labels
from dugong.studio.describing import correction
from dugong.studio.state import Studio, StudioError
from dugong.tasks.layout import stretches


def _folder(studio: Studio, name: str) -> tuple[Path, str]:
    if name not in formats.names():
        raise StudioError(f"there is no format {name!r:.50}; see the list.", kind="missing", status=404)
    known = formats.of_name(name).name
    return Path(str(studio.needed().output)) / "export" / known, known


def export(studio: Studio, name: str, plain: dict[str, Any]) -> dict[str, Any]:
    """Write the labels of the last run, as `dugong export` and ``export =`` in a project do."""
    folder, known = _folder(studio, name)
    studio.shown()
    project = studio.needed()
    names = ("threshold", "min_length", "merge_gap", "rate")
    choice = {key: plain[key] for key in names if plain.get(key) is not None}
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in choice.values()):
        raise StudioError(f"{', '.join(names)} must be numbers.", kind="bad", status=400)
    choice_rate = choice.pop("rate", None)
    segments = Labels.read(project.output / "labels.parquet").segments(
        str(plain.get("resolution") or "element"), **choice
    )
    if choice_rate is not None:
        segments = segments.describe(rate=choice_rate)
    found = with_media(segments, project.media)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=str(project.output)) as draft:
        written = formats.write(found, Path(draft) / known, known)
        for file in [one for one in Path(draft).rglob("*") if one.is_file()]:
            target = folder.parent / file.relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)  # one by one: what somebody put beside them stays
    return {
        "folder": str(folder),
        "files": sorted(Path(str(one)).name for one in written),
        "n": len(written),
        "intervals": len(segments),
        "download": f"/api/export/{known}",
    }


def exported(studio: Studio, name: str, *, missing_ok: bool = False) -> list[Path]:
    """The files of the last export in a format."""
    folder, _ = _folder(studio, name)
    found = sorted(one for one in folder.rglob("*") if one.is_file()) if folder.is_dir() else []
    if not found and not missing_ok:
        raise StudioError("nothing was exported in this format yet.", kind="missing", status=404)
    return found


def take_file(studio: Studio, name: str, content: bytes, kind: str | None) -> dict[str, Any]:
    """Turn the intervals of a file of another tool into corrections, undone together."""
    snapshot = studio.shown()
    safe = Path(name.replace("\\", "/")).name
    if not safe or safe.startswith("."):
        raise StudioError("name must be the name of the file.", kind="bad", status=400)
    with tempfile.TemporaryDirectory(prefix="dugong-import-") as folder:
        file = Path(folder) / safe
        file.write_bytes(content)
        segments = formats.read(file, kind) if kind else formats.read(file)
    labels = segments.to_gold(snapshot.votes, missing_ok=True)
    names = {value: word for word, value in class_codes(snapshot.votes).items()}
    offsets = snapshot.votes.layout("element").offsets
    marks = []
    for start, stop in zip(*(side.tolist() for side in stretches(labels, offsets)), strict=True):
        if labels[start]:
            place = int(offsets.searchsorted(start, side="right")) - 1
            first = int(offsets[place])
            marks.append(
                {"sequence": snapshot.ids[place], "start": start - first, "end": stop - first}
                | {"label": names[int(labels[start])], "length": int(snapshot.votes.lengths[place])}
                | {"shown": {"file": safe}}
            )
    if not marks:
        raise StudioError(f"{safe} marks nothing in the sequences of this project.", kind="data", status=422)
    new = studio.correct(marks)
    sequences = list(dict.fromkeys(one.sequence for one in new))
    return {"n": len(new), "sequences": sequences, "corrections": [correction(one) for one in new]}
