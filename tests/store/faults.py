"""A server between a client and a store that hurts answers: errors, delays, resets, bodies that end early."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OWN = ("transfer-encoding", "content-length", "connection")


class Faults:
    """What is done to answers: `kind`, to a `share` of them, drawn from a seed."""

    def __init__(self) -> None:
        self.kind, self.share, self.n_hurt, self.chance = "none", 0.0, 0, random.Random(0)

    def hurts(self) -> str:
        """The kind of harm of the next answer."""
        if self.chance.random() >= self.share:
            return "none"
        self.n_hurt += 1
        return self.kind


@contextmanager
def faulty_server(port: int, faults: Faults) -> Iterator[str]:
    """The address of a server that passes everything on to a port of this machine, and hurts some of the answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            return

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            harm = faults.hurts()
            if harm == "slow":
                time.sleep(0.2)
            if harm == "reset":  # without a farewell
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
                return
            if harm == "error":
                self._answer(500, [("Content-Type", "application/xml")], b"<Error><Code>InternalError</Code></Error>")
                return
            there = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            there.request(self.command, self.path, body, dict(self.headers.items()))
            answer = there.getresponse()
            data = answer.read()
            self._answer(answer.status, answer.getheaders(), data, cut=harm == "cut" and self.command == "GET")
            there.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, *, cut: bool = False) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            length = next((v for n, v in headers if n.lower() == "content-length"), str(len(data)))
            self.send_header("Content-Length", length if self.command == "HEAD" else str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[: len(data) // 2] if cut else data)
            if cut:
                self.close_connection = True

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve  # noqa: N815 (names of http.server)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
