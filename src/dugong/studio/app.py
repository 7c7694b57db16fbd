"""The server of the studio: its addresses, and what answers there.

An endpoint gets what was asked, runs in a thread, and answers with plain data; ``docs/reference/studio.md`` says what
every one takes and gives.
"""

from __future__ import annotations

import hmac
import html
import mimetypes
import secrets
import zipfile
from collections.abc import Awaitable, Callable
from functools import partial
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from anyio import CapacityLimiter, from_thread, to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dugong.cli.corrections import class_codes
from dugong.exceptions import DugongError
from dugong.studio import STATUS, StudioError, describing, pages, plain_error
from dugong.studio.describing import Inquiry, bad, in_ascii
from dugong.studio.editing import EditError, check_function
from dugong.studio.live import live
from dugong.studio.state import Studio
from dugong.studio.tracks import Stretch
from dugong.tasks import find_resolution

_RAW, _WAITING = ("/api/sequences/", "/media/"), 8
_FILE, _TEXT, _JSON = 50_000_000, 2_000_000, 200_000  # bytes that a body may have
# Types that a browser shows or plays; anything else is only ever downloaded.
_SHOWN = ("video/", "audio/", "image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "text/csv")
Endpoint = Callable[[Inquiry], dict[str, Any] | Response]


class Plain(JSONResponse):
    """Plain data."""

    def render(self, content: Any) -> bytes:
        """The bytes of the answer."""
        return in_ascii(content).encode("ascii")


def make_app(studio: Studio, keys: Keys) -> ASGIApp:
    """The server behind its door."""
    # Of several addresses that fit, the first is taken. The number is that of the largest body, if there is any.
    endpoints: list[tuple[str, str, Endpoint, int]] = [
        ("GET", "/api/project", describing.project_page, 0),
        ("POST", "/api/project", open_sample, _JSON),
        ("GET", "/api/sequences", sequences, 0),
        ("GET", "/api/sequences/{id:path}/tracks", tracks, 0),
        ("GET", "/api/sequences/{id:path}/frame", frame, 0),
        ("GET", "/api/sequences/{id:path}", describing.sequence_page, 0),
        ("GET", "/api/explain/{id:path}/{task:int}", explain, 0),
        ("GET", "/api/gold", lambda asked: describing.corrections(studio, asked.query.get("sequence")), 0),
        ("PUT", "/api/gold", mark, _JSON),
        ("DELETE", "/api/gold", undo, _JSON),
        ("POST", "/api/import", describing.take_file, _FILE),
        ("GET", "/api/sources", describing.sources_page, 0),
        ("GET", "/api/sources/{name}", describing.source_page, 0),
        ("PUT", "/api/sources/{name}", save_source, _TEXT),
        ("POST", "/api/fit", fit, 0),
        ("DELETE", "/api/fit", stop, 0),
        ("GET", "/api/model", lambda _: pages.model_page(studio.shown()), 0),
        ("GET", "/api/report", report, 0),
        ("POST", "/api/export/{format}", describing.export, _JSON),
        ("GET", "/api/export/{format}", download, 0),
        ("GET", "/media/{id:path}", media, 0),
    ]
    # What waits for the user's code has few threads of its own, so that the others are free while a loader hangs.
    waiting = CapacityLimiter(_WAITING)
    routes = [
        *(
            Route(at, _answering(studio, answer, most, waiting if at.startswith(_RAW) else None), methods=[verb])
            for verb, at, answer, most in endpoints
        ),
        WebSocketRoute("/api/live", partial(live, studio)),
        Route("/assets/{name}", asset, methods=["GET"]),
        Route("/{path:path}", page, methods=["GET"]),
    ]
    handlers: dict[Any, Any] = {DugongError: _failed, HTTPException: _not_found, Exception: _failed}
    return Door(Starlette(routes=routes, exception_handlers=handlers), keys)


def _answering(
    studio: Studio, answer: Endpoint, most: int, limiter: CapacityLimiter | None
) -> Callable[[Request], Awaitable[Response]]:
    """What the server calls: it reads the request, and lets a thread answer."""

    def respond(asked: Inquiry) -> Response:
        found = answer(asked)
        return found if isinstance(found, Response) else Plain(found)

    async def answered(request: Request) -> Response:
        body = await _body(request, most) if most else b""
        return await to_thread.run_sync(respond, Inquiry(studio=studio, request=request, body=body), limiter=limiter)

    return answered


async def _body(request: Request, most: int) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise HTTPException(413, f"at most {most:,} bytes are taken.")
    return bytes(content)


def open_sample(asked: Inquiry) -> dict[str, Any]:
    """Write a sample project, and open it."""
    path = describing.write_sample(asked.studio, asked.word("sample"))
    from_thread.run_sync(asked.studio.open, path)  # there, because the lock belongs to that thread
    asked.studio.begin()
    return describing.project_page(asked)


# --- sequences -----------------------------------------------------------------------------------------------------
def sequences(asked: Inquiry) -> dict[str, Any]:
    """One page of the queue."""
    wanted = pages.Wanted(
        sort=asked.query.get("sort", "entropy"),
        page=asked.whole("page", 0, 0, 10**9),
        size=asked.whole("size", 50, 1, 1000),
        **{name: asked.query.get(name, "") for name in ("q", "corrected", "label", "source")},
    )
    if wanted.sort.removeprefix("-") not in pages.SORTS:
        raise bad(f"sort must be one of {', '.join(pages.SORTS)}; found {wanted.sort!r}.")
    return pages.queue(asked.studio.shown(), wanted, asked.studio.corrected())


def tracks(asked: Inquiry) -> dict[str, Any]:
    """A stretch of one sequence, as the pixels need it."""
    studio, name = asked.studio, asked.named()
    snapshot, place, length = studio.find(name)
    begin = asked.whole("from", 0, 0, length)
    end = asked.whole("to", length, begin, 10**12)
    stretch = Stretch(begin=begin, end=min(end, length), px=asked.whole("px", 1000, 50, 8000))
    only = asked.query.get("source")
    found = studio.tracks(snapshot, place).cut(stretch, studio.known(snapshot, place), only)
    found |= {"signals": [], "tokens": None, "raw_error": None}
    if asked.query.get("signals", "1") == "0":
        return found
    try:
        return found | studio.raw(name).cut(stretch)
    except DugongError as error:  # votes and labels can be seen all the same
        return found | {"raw_error": plain_error(error)}


def frame(asked: Inquiry) -> Response:
    """A picture of one element."""
    _, _, length = asked.studio.find(asked.named())
    element, px = asked.whole("element", 0, 0, max(length - 1, 0)), asked.whole("px", 320, 16, 4000)
    picture = asked.studio.ask("frame", limit=30.0, sequence=asked.named(), element=element, px=px)
    return Response(picture, media_type="image/png")


def media(asked: Inquiry) -> Response:
    """The file behind a sequence."""
    file = asked.studio.media(asked.named())
    if file is None:
        raise StudioError("there is no file behind this sequence.", "missing")
    kind = mimetypes.guess_type(file.name)[0] or ""
    known = kind if kind.startswith(_SHOWN) else "application/octet-stream"
    # A policy of its own: whatever the file is, nothing in it may run.
    return FileResponse(file, media_type=known, headers={"content-security-policy": "default-src 'none'; sandbox"})


def explain(asked: Inquiry) -> dict[str, Any]:
    """Why a label is what it is."""
    snapshot, place, _ = asked.studio.find(asked.named())
    resolution = find_resolution(asked.query.get("resolution", "element"), snapshot.votes.resolutions)
    task, rows = asked.named("task"), snapshot.votes.layout(resolution).rows(place)
    if task >= rows.stop - rows.start:
        raise StudioError(f"there is no task {task}.", "missing")
    return pages.explanation(snapshot, place, task, resolution, asked.query.get("label"))


# --- corrections ---------------------------------------------------------------------------------------------------
def mark(asked: Inquiry) -> dict[str, Any]:
    """Correct an interval."""
    name, plain = asked.word("sequence"), asked.plain
    snapshot, _, length = asked.studio.find(name)
    start, end, label = plain.get("start"), plain.get("end"), plain.get("label")
    if not (type(start) is int and type(end) is int and 0 <= start < end <= length):
        raise bad(f"start and end must be elements of the sequence, 0 to {length}; found {start!r}, {end!r}.")
    classes = class_codes(snapshot.votes)
    if label is not None and label not in classes:
        raise bad(f"label must be one of {', '.join(classes)}, or null; found {label!r:.100}.")
    shown = plain.get("shown") if isinstance(plain.get("shown"), dict) else {}
    new = {"sequence": name, "start": start, "end": end, "label": label, "length": length, "shown": shown}
    return {"correction": asked.studio.correct([new])[0], **describing.corrections(asked.studio, name)}


def undo(asked: Inquiry) -> dict[str, Any]:
    """Take a correction back."""
    given = asked.plain.get("correction")
    undone = asked.studio.undo(None if given is None else str(given))
    return {"undone": undone, **describing.corrections(asked.studio, undone.sequence)}


# --- sources, fit, export ------------------------------------------------------------------------------------------
def save_source(asked: Inquiry) -> Response:
    """Write one function into the user's file."""
    studio, name, text, digest = asked.studio, asked.named("name"), asked.word("text"), asked.word("digest")
    with studio.saving:
        file = studio.source_file()
        known = file.functions()
        if file.digest != digest:
            current = {"text": known[name].text if name in known else None, "digest": file.digest}
            why = f"{file.path.name} was changed by somebody else since you opened it; nothing was written."
            raise StudioError(why, "changed", current=current)
        if name not in known and check_function(text) != name:
            raise EditError(f"the function must be called {name!r}, as the address says.", 1, 0)
        whole, found = file.with_function(name, text)
        written = file.write(whole)
    studio.look_at_sources()
    if asked.plain.get("fit", True) is True:
        studio.fit(again=True)
    plain = {"digest": written.digest, "line": found.first + 1, "text": found.text, "name": found.name}
    return Plain(plain, status_code=200 if name in known else 201)


def fit(asked: Inquiry) -> Response:
    """Begin a run."""
    asked.studio.fit()
    return Plain({"run": asked.studio.run}, status_code=202)


def stop(asked: Inquiry) -> dict[str, Any]:
    """End the run that is under way."""
    asked.studio.stop()
    return {"run": asked.studio.run}


def report(asked: Inquiry) -> Response:
    """The report of the last run; its own script may run, and reach nothing of ours."""
    file = Path(str(asked.studio.needed().output)) / "report.html"
    if not file.is_file():
        raise StudioError("there is no report yet.", "waiting")
    allowed = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    return FileResponse(file, media_type="text/html", headers={"content-security-policy": f"{allowed}; img-src data:"})


def download(asked: Inquiry) -> Response:
    """What was exported, as one file."""
    found = describing.exported(asked)
    if len(found) == 1:
        return FileResponse(found[0], filename=found[0].name, media_type="application/octet-stream")
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in found:
            archive.write(file, file.name)
    head = {"content-disposition": f'attachment; filename="{asked.named("format")}.zip"'}
    return Response(buffer.getvalue(), media_type="application/zip", headers=head)


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


# --- errors --------------------------------------------------------------------------------------------------------
async def _failed(_: Request, error: Exception) -> Response:
    plain = plain_error(error)
    return Plain({"error": plain}, status_code=STATUS.get(plain["kind"], 422))


async def _not_found(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = "missing" if error.status_code == 404 else "bad"
    text = error.detail if error.status_code == 413 else "there is no such address."
    return Plain({"error": {"kind": kind, "text": text, "trace": None}}, status_code=error.status_code)


# --- Who may talk to the studio ---------------------------------------------------------------------------------------
# A page of this very server, in the browser that was given the key, and nobody else. Every web site that a user visits
# can send requests to this machine, so being on loopback proves nothing. Each request must name this server as its host
# (a foreign name that points here is refused), must not come from another site, must bear the cookie, and, where it
# changes something or opens a socket, must say that it comes from a page of ours. The key in the link of the terminal
# works once and is not the cookie.
_SAFE = ("GET", "HEAD")
_OWN = ("same-origin", "none")
# No page of ours may be framed, sniffed, cached by others, or named to other sites.
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def policy(host: str, nonce: str) -> str:
    """What a page of ours may load: only what this server sends."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
        f"media-src 'self' blob:; connect-src 'self' ws://{host}; font-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class Keys:
    """The keys of one studio: links for the terminal, each good for one use, and the cookie."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie_name = f"dugong_{port}"
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._cookie = secrets.token_urlsafe(32)
        self._tokens: set[str] = set()

    def link(self) -> str:
        """A link that opens the studio once."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(token)
        return f"http://{self.hosts[0]}/open?token={token}"

    def spend(self, token: str) -> bool:
        """Use a token up."""
        found = [one for one in self._tokens if hmac.compare_digest(one.encode(), token.encode())]
        self._tokens.difference_update(found)
        return bool(found)

    def set_cookie(self) -> str:
        """The header that hands the cookie over."""
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, header: str) -> bool:
        """Whether a cookie header holds the cookie of this studio."""
        try:
            found = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())


class Door:
    """Lets in what may come in; everything behind it is trusted."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request or socket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        why = self._refused(scope)
        if why is not None:
            await _refuse(scope, receive, send, why)
            return
        if scope["path"] == "/open":
            await self._open(scope)(scope, receive, _guarded(scope, send))
            return
        await self._app(scope, receive, _guarded(scope, send))

    def _refused(self, scope: Scope) -> str | None:
        """Why something may not come in; None if it may."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._keys.hosts:
            return "this server answers to its own address alone; open the link that the terminal shows."
        if scope["path"] == "/open" and scope["type"] == "http" and scope["method"] in _SAFE:
            return None  # the token decides
        if any(site not in _OWN for site in headers.getlist("sec-fetch-site")):
            return "requests of other sites are refused."
        own = [f"http://{hosts[0]}"]
        origins = headers.getlist("origin")
        writes = scope["type"] == "websocket" or scope["method"] not in _SAFE
        if (origins or writes) and origins != own:
            return "only a page of this studio may do that."
        if not any(map(self._keys.knows, headers.getlist("cookie"))):
            return "open the link that the terminal shows: it is the key. Press Enter there for a new one."
        return None

    def _open(self, scope: Scope) -> Response:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if not self._keys.spend(query.get("token", [""])[0]):
            return _notice(
                "This link was used already, or it is not of this studio. Press Enter in the terminal for a new one.",
                403,
            )
        wanted = query.get("next", ["/"])[0]
        target = wanted if wanted.startswith("/") and not wanted.startswith(("//", "/\\")) else "/"
        # A page that moves on, not a redirect: the browser then counts the next request as one of ours.
        text = (
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={html.escape(target)}">'
            "<title>Dugong studio</title>"
        )
        return HTMLResponse(text, headers={"set-cookie": self._keys.set_cookie()})


def _guarded(scope: Scope, send: Send) -> Send:
    """Add the headers that every answer has; a page brings a policy of its own."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = policy(Headers(scope=scope)["host"], secrets.token_urlsafe(16))
            headers = MutableHeaders(scope=message)
            for name, value in {**_HEADERS, "content-security-policy": ours}.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": why})
        return
    if scope["path"].startswith(("/api", "/media", "/assets")):
        answer: Response = JSONResponse({"error": {"kind": "refused", "text": why, "trace": None}}, status_code=403)
    else:
        answer = _notice(why, 403)
    answer.headers.update(_HEADERS)
    answer.headers["content-security-policy"] = "default-src 'none'; frame-ancestors 'none'"
    await answer(scope, receive, send)


def _notice(words: str, status: int) -> HTMLResponse:
    text = f'<!doctype html><meta charset="utf-8"><title>Dugong studio</title><p>{html.escape(words)}</p>'
    return HTMLResponse(text, status_code=status)
