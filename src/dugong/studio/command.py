"""`dugong studio`: look, write, correct and export in the browser, on this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dugong.cli.output import PATH, emit, example, json_option, say
from dugong.cli.project import DEFAULT
from dugong.exceptions import DugongError, import_extra

if TYPE_CHECKING:
    import uvicorn

    from dugong.studio.app import Keys
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
    for package in ("starlette", "uvicorn", "websockets"):
        import_extra(package, "studio", "the studio")
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
        with contextlib.suppress(OSError):  # it listens before the link is shown: whoever is quicker waits a moment
            return socket.create_server(("127.0.0.1", number), backlog=128)
    taken = f"port {port} is" if port is not None else f"ports {PORT} to {PORT + _TRIED - 1} are"
    raise PortError(f"{taken} taken by another program.\n  Choose another one: dugong studio --port 9000")


def serve(studio: Studio, door: socket.socket, *, show: bool, as_json: bool = False) -> None:
    """Answer until Ctrl-C."""
    import uvicorn

    from dugong.studio.app import Keys, make_app

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
