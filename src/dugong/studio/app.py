"""The endpoints of the studio: each reads the request, asks `Studio`, and answers with plain data.

``docs/reference/studio.md`` says what every endpoint takes and gives. Work that takes longer than a moment happens in
threads.
"""

from __future__ import annotations

import json
import mimetypes
import secrets
import zipfile
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from dugong.cli.corrections import class_codes
from dugong.codec import parse
from dugong.exceptions import DugongError
from dugong.studio import describing, pages
from dugong.studio.command import Door, Keys, policy
from dugong.studio.editing import ChangedError, EditError, check_function
from dugong.studio.live import live
from dugong.studio.state import Studio, StudioError, plain_error
from dugong.studio.tracks import Stretch
from dugong.tasks import find_resolution

LARGEST = {"import": 50_000_000, "text": 2_000_000, "json": 200_000}
# Types that a browser shows or plays; anything else is only ever downloaded.
_SHOWN = ("video/", "audio/", "image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "text/csv")


class Plain(JSONResponse):
    """JSON in ASCII: whatever names and texts hold, they can be sent."""

    def render(self, content: Any) -> bytes:
        """The bytes of the answer."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def make_app(studio: Studio, keys: Keys) -> ASGIApp:
    """The server behind its door."""
    api = Api(studio)
    routes = [
        Route("/api/project", api.shows(describing.project_page), methods=["GET"]),
        Route("/api/project", api.open_sample, methods=["POST"]),
        Route("/api/sequences", api.sequences, methods=["GET"]),
        Route("/api/sequences/{id:path}/tracks", api.tracks, methods=["GET"]),
        Route("/api/sequences/{id:path}/frame", api.frame, methods=["GET"]),
        Route("/api/sequences/{id:path}", api.shows(describing.sequence_page, "id"), methods=["GET"]),
        Route("/api/explain/{id:path}/{task:int}", api.explain, methods=["GET"]),
        Route("/api/gold", api.gold, methods=["GET"]),
        Route("/api/gold", api.mark, methods=["PUT"]),
        Route("/api/gold", api.undo, methods=["DELETE"]),
        Route("/api/import", api.take_file, methods=["POST"]),
        Route("/api/sources", api.shows(describing.sources_page), methods=["GET"]),
        Route("/api/sources/{name}", api.shows(describing.source_page, "name"), methods=["GET"]),
        Route("/api/sources/{name}", api.save_source, methods=["PUT"]),
        Route("/api/fit", api.fit, methods=["POST"]),
        Route("/api/fit", api.stop, methods=["DELETE"]),
        Route("/api/model", api.shows(lambda studio: pages.model_page(studio.shown())), methods=["GET"]),
        Route("/api/report", api.report, methods=["GET"]),
        Route("/api/export/{format}", api.export, methods=["POST"]),
        Route("/api/export/{format}", api.download, methods=["GET"]),
        WebSocketRoute("/api/live", partial(live, studio)),
        Route("/media/{id:path}", api.media, methods=["GET"]),
        Route("/assets/{name}", asset, methods=["GET"]),
        Route("/{path:path}", page, methods=["GET"]),
    ]
    handlers: dict[Any, Any] = {DugongError: _failed, HTTPException: _not_found, Exception: _failed}
    return Door(Starlette(routes=routes, exception_handlers=handlers), keys)


class Api:
    """One method per endpoint."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def shows(self, page: Callable[..., dict[str, Any]], *names: str) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that only shows: what a function says about the studio and the named parts of the address."""

        async def shown(request: Request) -> Response:
            given = [request.path_params[name] for name in names]
            return Plain(await to_thread.run_sync(page, self._studio, *given))

        return shown

    # --- the project -----------------------------------------------------------------------------------------------
    async def open_sample(self, request: Request) -> Response:
        """Write a sample project, and open it."""
        kind = _word(await _json(request), "sample")
        path = await to_thread.run_sync(describing.write_sample, self._studio, kind)
        self._studio.open(path)  # here, because the lock belongs to this thread
        self._studio.begin()
        return await self.shows(describing.project_page)(request)

    # --- sequences -------------------------------------------------------------------------------------------------
    async def sequences(self, request: Request) -> Response:
        """One page of the queue."""
        query = request.query_params
        wanted = pages.Wanted(
            sort=query.get("sort", "entropy"),
            page=_whole(query.get("page", "0"), "page", 0, 10**9),
            size=_whole(query.get("size", "50"), "size", 1, 1000),
            **{name: query.get(name, "") for name in ("q", "corrected", "label", "source")},
        )
        if wanted.sort.removeprefix("-") not in pages.SORTS:
            raise _bad(f"sort must be one of {', '.join(pages.SORTS)}; found {wanted.sort!r}.")
        studio = self._studio
        found = await to_thread.run_sync(pages.queue, studio.shown(), wanted, studio.corrected())
        return Plain(found)

    async def tracks(self, request: Request) -> Response:
        """A stretch of one sequence, as the pixels need it."""
        name, query = request.path_params["id"], request.query_params
        length = int(self._studio.shown().votes.lengths[self._studio.place(name)])
        begin = _whole(query.get("from", "0"), "from", 0, length)
        end = _whole(query.get("to", str(length)), "to", begin, 10**12)
        px = _whole(query.get("px", "1000"), "px", 50, 8000)
        stretch = Stretch(begin=begin, end=min(end, length), px=px)
        raw = query.get("signals", "1") != "0"
        found = await to_thread.run_sync(partial(self._cut, name, stretch, query.get("source"), raw=raw))
        return Plain(found)

    def _cut(self, name: str, stretch: Stretch, source: str | None, *, raw: bool) -> dict[str, Any]:
        studio = self._studio
        snapshot, place = studio.shown(), studio.place(name)
        found = studio.tracks(snapshot, place).cut(stretch, studio.known(snapshot, place), source)
        nothing: dict[str, Any] = {"signals": [], "tokens": None, "raw_error": None}
        if not raw:
            return found | nothing
        try:
            return found | nothing | studio.raw(name).cut(stretch)
        except DugongError as error:  # votes and labels can be seen all the same
            return found | nothing | {"raw_error": plain_error(error)}

    async def frame(self, request: Request) -> Response:
        """A picture of one element."""
        name, query = request.path_params["id"], request.query_params
        length = int(self._studio.shown().votes.lengths[self._studio.place(name)])
        element = _whole(query.get("element", "0"), "element", 0, max(length - 1, 0))
        px = _whole(query.get("px", "320"), "px", 16, 4000)
        ask = partial(self._studio.ask, "frame", limit=30.0, sequence=name, element=element, px=px)
        return Response(await to_thread.run_sync(ask), media_type="image/png")

    async def media(self, request: Request) -> Response:
        """The file behind a sequence."""
        file = await to_thread.run_sync(self._studio.media, request.path_params["id"])
        if file is None:
            raise StudioError("there is no file behind this sequence.", kind="missing", status=404)
        kind = mimetypes.guess_type(file.name)[0] or ""
        known = kind if kind.startswith(_SHOWN) else "application/octet-stream"
        # A policy of its own: whatever the file is, nothing in it may run.
        return FileResponse(file, media_type=known, headers={"content-security-policy": "default-src 'none'; sandbox"})

    async def explain(self, request: Request) -> Response:
        """Why a label is what it is."""
        snapshot, place = self._studio.shown(), self._studio.place(request.path_params["id"])
        resolution = find_resolution(request.query_params.get("resolution", "element"), snapshot.votes.resolutions)
        task, layout = request.path_params["task"], snapshot.votes.layout(resolution)
        rows = layout.rows(place)
        if task >= rows.stop - rows.start:
            raise StudioError(f"there is no task {task}.", kind="missing", status=404)
        label = request.query_params.get("label")
        return Plain(await to_thread.run_sync(pages.explanation, snapshot, place, task, resolution, label))

    # --- corrections -----------------------------------------------------------------------------------------------
    async def gold(self, request: Request) -> Response:
        """The corrections that hold."""
        return Plain(describing.corrections(self._studio, request.query_params.get("sequence")))

    async def mark(self, request: Request) -> Response:
        """Correct an interval."""
        plain = await _json(request)
        name, snapshot = _word(plain, "sequence"), self._studio.shown()
        length = int(snapshot.votes.lengths[self._studio.place(name)])
        start, end, label = plain.get("start"), plain.get("end"), plain.get("label")
        if not (_is_whole(start) and _is_whole(end) and 0 <= start < end <= length):  # type: ignore[operator]
            raise _bad(f"start and end must be elements of the sequence, 0 to {length}; found {start!r}, {end!r}.")
        classes = class_codes(snapshot.votes)
        if label is not None and label not in classes:
            raise _bad(f"label must be one of {', '.join(classes)}, or null; found {label!r:.100}.")
        shown = plain.get("shown") if isinstance(plain.get("shown"), dict) else {}
        mark = {"sequence": name, "start": start, "end": end, "label": label, "length": length, "shown": shown}
        new = (await to_thread.run_sync(self._studio.correct, [mark]))[0]
        return Plain({"correction": describing.correction(new)} | describing.corrections(self._studio, name))

    async def undo(self, request: Request) -> Response:
        """Take a correction back."""
        given = (await _json(request)).get("correction")
        undone = await to_thread.run_sync(self._studio.undo, None if given is None else str(given))
        return Plain({"undone": describing.correction(undone)} | describing.corrections(self._studio, undone.sequence))

    async def take_file(self, request: Request) -> Response:
        """Intervals of another tool become corrections."""
        name = request.query_params.get("name", "")
        content = await _body(request, LARGEST["import"])
        take = partial(describing.take_file, self._studio, name, content, request.query_params.get("format"))
        return Plain(await to_thread.run_sync(take))

    # --- sources ---------------------------------------------------------------------------------------------------
    async def save_source(self, request: Request) -> Response:
        """Write one function into the user's file."""
        plain = await _json(request, LARGEST["text"])
        name, text, digest = request.path_params["name"], _word(plain, "text"), _word(plain, "digest")
        save = partial(_save, self._studio, name, text, digest, fit=plain.get("fit", True) is True)
        found, new = await to_thread.run_sync(save)
        return Plain(found, status_code=201 if new else 200)

    # --- fit, model, export ----------------------------------------------------------------------------------------
    async def fit(self, _: Request) -> Response:
        """Begin a run."""
        self._studio.fit()
        return Plain({"run": self._studio.run.plain()}, status_code=202)

    async def stop(self, _: Request) -> Response:
        """End the run that is under way."""
        await to_thread.run_sync(self._studio.stop)
        return Plain({"run": self._studio.run.plain()})

    async def report(self, _: Request) -> Response:
        """The report of the last run; its own script may run, and reach nothing of ours."""
        file = Path(str(self._studio.needed().output)) / "report.html"
        if not file.is_file():
            raise StudioError("there is no report yet.", kind="waiting", status=503)
        allowed = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
        return FileResponse(
            file, media_type="text/html", headers={"content-security-policy": f"{allowed}; img-src data:"}
        )

    async def export(self, request: Request) -> Response:
        """Write the labels in another format."""
        plain = await _json(request)
        write = partial(describing.export, self._studio, request.path_params["format"], plain)
        return Plain(await to_thread.run_sync(write))

    async def download(self, request: Request) -> Response:
        """What was exported, as one file."""
        found = await to_thread.run_sync(describing.exported, self._studio, request.path_params["format"])
        if len(found) == 1:
            return FileResponse(found[0], filename=found[0].name, media_type="application/octet-stream")
        content = await to_thread.run_sync(_zipped, found)
        head = {"content-disposition": f'attachment; filename="{request.path_params["format"]}.zip"'}
        return Response(content, media_type="application/zip", headers=head)


def _save(studio: Studio, name: str, text: str, digest: str, *, fit: bool) -> tuple[dict[str, Any], bool]:
    file = studio.source_file()
    known = file.functions()
    if file.digest != digest:
        current = {"text": known[name].text if name in known else None, "digest": file.digest}
        why = f"{file.path.name} was changed by somebody else since you opened it; nothing was written."
        raise StudioError(why, kind="changed", status=409, more={"current": current})
    if name not in known and check_function(text) != name:
        raise EditError(f"the function must be called {name!r}, as the address says.", 1, 0)
    whole, found = file.with_function(name, text)
    written = file.write(whole)
    studio.look_at_sources()
    if fit:
        studio.fit(again=True)
    plain = {"digest": written.digest, "line": found.first + 1, "text": found.text, "name": found.name}
    return plain, name not in known


def _zipped(found: list[Path]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in found:
            archive.write(file, file.name)
    return buffer.getvalue()


# --- the page ------------------------------------------------------------------------------------------------------
async def page(request: Request) -> Response:
    """The page itself, for every address that is not one of ours."""
    if request.path_params["path"].startswith(("api/", "media/", "assets/")):
        raise HTTPException(404)
    nonce = secrets.token_urlsafe(16)
    file = files("dugong.studio").joinpath("assets", "index.html")
    text = file.read_text(encoding="utf-8") if file.is_file() else "<!doctype html><p>The page was not built.</p>"
    head = {"content-security-policy": policy(request.headers["host"], nonce)}
    return HTMLResponse(text.replace("{{nonce}}", nonce), headers=head)


async def asset(request: Request) -> Response:
    """A file of the page."""
    known = {one.name: one for one in files("dugong.studio").joinpath("assets").iterdir() if one.is_file()}
    name = request.path_params["name"]
    if name not in known or name == "index.html":
        raise HTTPException(404)
    return Response(known[name].read_bytes(), media_type=mimetypes.guess_type(name)[0] or "application/octet-stream")


# --- reading requests, telling errors --------------------------------------------------------------------------------
async def _body(request: Request, most: int) -> bytes:
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise StudioError(f"at most {most:,} bytes are taken.", kind="bad", status=413)
    return content


async def _json(request: Request, most: int = LARGEST["json"]) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise _bad("the content type must be application/json.")
    content = await _body(request, most)
    try:
        plain = parse(content)
    except (DugongError, ValueError, RecursionError) as error:
        raise _bad(f"the body must be JSON: {error}.") from None
    if not isinstance(plain, dict):
        raise _bad("the body must be a JSON object.")
    return plain


def _bad(text: str) -> StudioError:
    return StudioError(text, kind="bad", status=400)


def _word(plain: dict[str, Any], name: str) -> str:
    value = plain.get(name)
    if not isinstance(value, str):
        raise _bad(f"{name} must be text; found {value!r:.100}.")
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(text: str, name: str, low: int, high: int) -> int:
    try:
        value = int(float(text)) if len(text) < 30 else None
    except (ValueError, OverflowError):
        value = None
    if value is None:
        raise _bad(f"{name} must be a whole number; found {text!r:.100}.")
    return min(max(value, low), high)


async def _failed(_: Request, error: Exception) -> Response:
    plain = plain_error(error)
    status = 500
    if isinstance(error, StudioError):
        status = error.status
        plain |= error.more
    elif isinstance(error, EditError):
        status = 422
        plain |= {"kind": "syntax", "line": error.line, "column": error.column}
    elif isinstance(error, ChangedError):
        status, plain["kind"] = 409, "changed"
    elif isinstance(error, DugongError | OSError):
        status = 422
    return Plain({"error": plain}, status_code=status)


async def _not_found(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    plain = {"kind": "missing" if status == 404 else "bad", "text": "there is no such address.", "trace": None}
    return Plain({"error": plain}, status_code=status)
