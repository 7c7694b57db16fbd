"""Who may talk to the studio: a page of this very server, in the browser that was given the key, and nobody else.

Every web site that a user visits can send requests to this machine, so being on loopback proves nothing. Each request
must name this server as its host (a foreign name that points here is refused), must not come from another site, must
bear the cookie, and, where it changes something or opens a socket, must say that it comes from a page of ours. The key
in the link of the terminal works once and is not the cookie.
"""

from __future__ import annotations

import hmac
import html
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
