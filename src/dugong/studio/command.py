"""`dugong studio`: look, write, correct and export in the browser, on this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import html
import secrets
import socket
import sys
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import click
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dugong.cli.output import PATH, emit, example, json_option, say
from dugong.cli.project import DEFAULT
from dugong.exceptions import DugongError, MissingExtraError

if TYPE_CHECKING:
    import uvicorn

    from dugong.studio.state import Studio


PORT = 8384
_TRIED = 20


class PortError(DugongError, OSError):
    """A port that cannot be used."""


@click.command("studio", epilog=example("dugong studio walking/project.toml", "dugong studio"))
@click.argument("project", type=PATH, required=False)
@click.option("--port", type=click.IntRange(1024, 65535), help=f"Default: {PORT}, or the next one that is free.")
@click.option("--no-browser", is_flag=True, help="Show the link, and open nothing.")
@click.option(
    "--limit",
    type=click.FloatRange(0.2, 600),
    default=5.0,
    show_default=True,
    help="Seconds that a source may take while it is typed, before its process is ended.",
)
@click.option(
    "--memory",
    type=click.FloatRange(0.2),
    default=4.0,
    show_default=True,
    help="Gigabytes that a source may take while it is typed.",
)
@json_option
def command(
    *, project: Path | None, port: int | None, no_browser: bool, limit: float, memory: float, as_json: bool
) -> None:
    """Open PROJECT (a project.toml, by default the one in this folder) in the browser.

    Look at sequences with their votes and probabilities, change sources and see at once what they do, correct labels,
    export. Without a project, a sample one of each kind is offered. The page is for this machine alone: nothing is sent
    anywhere, and the link works once, in one browser; Enter shows a new one. Ctrl-C ends it.

    While a studio is open nothing else may run the project. Its sources are code and run with all that you may do: a
    process of their own keeps the page alive beside them, but it is no sandbox. Open only projects that you trust.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", "studio", "the studio") from None
    from dugong.studio.state import GIGABYTE, Studio

    found = project if project is not None else Path(DEFAULT) if Path(DEFAULT).is_file() else None
    studio = Studio(limit=limit, memory=int(memory * GIGABYTE))
    try:
        if found is not None:
            studio.open(found)
        with contextlib.closing(listen(port)) as door:
            serve(studio, door, show=not no_browser, as_json=as_json)
    finally:
        studio.close()
    say("The studio has ended.")


def listen(port: int | None) -> socket.socket:
    """A socket on loopback: at the port that is asked for, or at the first one that is free."""
    for number in [port] if port is not None else range(PORT, PORT + _TRIED):
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if sys.platform != "win32":
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", number))
            door.listen(128)  # before the link is shown: whoever is quicker than the server waits a moment
        except OSError:
            door.close()
            continue
        return door
    taken = f"port {port} is" if port is not None else f"ports {PORT} to {PORT + _TRIED - 1} are"
    raise PortError(f"{taken} taken by another program.\n  Choose another one: dugong studio --port 9000")


def serve(studio: Studio, door: socket.socket, *, show: bool, as_json: bool = False) -> None:
    """Answer until Ctrl-C."""
    import uvicorn

    from dugong.studio.app import make_app

    keys = Keys(door.getsockname()[1])
    link = keys.link()
    emit({"link": link, "port": keys.port, "project": studio.path}, f"Studio: {link}", as_json=as_json)
    config = uvicorn.Config(
        make_app(studio, keys),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=4_000_000,
        timeout_graceful_shutdown=1,
    )
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(studio, uvicorn.Server(config), keys, door, link if show else None))


async def _serve(studio: Studio, server: uvicorn.Server, keys: Keys, door: socket.socket, shown: str | None) -> None:
    say("The link works once; Enter shows a new one, Ctrl-C ends.")
    _renew_on_enter(keys)
    if studio.project is not None:
        studio.begin()
    if shown is not None:
        import webbrowser

        asyncio.get_running_loop().call_later(0.2, webbrowser.open, shown)
    await server.serve(sockets=[door])


def _renew_on_enter(keys: Keys) -> None:
    """Show a new link whenever somebody presses Enter in the terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        return

    def renew() -> None:
        if sys.stdin.readline():
            say(f"Studio: {keys.link()}")
        else:
            asyncio.get_running_loop().remove_reader(sys.stdin)

    with contextlib.suppress(NotImplementedError, OSError, ValueError):  # no such thing on Windows
        asyncio.get_running_loop().add_reader(sys.stdin, renew)


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
            return _page(
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
        answer = _page(why, 403)
    answer.headers.update(_HEADERS)
    answer.headers["content-security-policy"] = "default-src 'none'; frame-ancestors 'none'"
    await answer(scope, receive, send)


def _page(words: str, status: int) -> HTMLResponse:
    text = f'<!doctype html><meta charset="utf-8"><title>Dugong studio</title><p>{html.escape(words)}</p>'
    return HTMLResponse(text, status_code=status)
