"""A studio in a process of its own, and somebody who talks to it over the wire, as a browser would."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection, connect

SOURCES = '''"""Who votes."""

import dugong as dg

LIMIT = 0.5   # stays as it is written


@dg.source
def high(value):
    return 1 if value > LIMIT else -1


# between two sources
@dg.source
def low(value):   # not low
    return -1 if value < 0.4 else 0


@dg.source(resolution=dg.Window(size=5, link="any"))
def some(window):
    return 1 if max(window) > 0.6 else -1
'''
LOADER = """import random


def sequences():
    made = {}
    for number in range(12):
        draw = random.Random(number)
        state, values = False, []
        for _ in range(30):
            state = draw.random() < (0.85 if state else 0.15)
            values.append((0.65 if state else 0.3) + draw.gauss(0, 0.2))
        made[f"s{number:02d}"] = values
    return made
"""
PROJECT = """data = "loader:sequences"
sources = "sources.py"
prior = { kind = "markov", positive = 0.4, stay = 0.85 }
dependencies = []
"""


THREE_SOURCES = """import dugong as dg


@dg.source
def by_size(word):
    return {1: "O", 2: "A"}.get(len(word), "B")


@dg.source
def by_letter(word):
    if word == "boom":
        raise ValueError("<b>boom</b>")
    return "A" if word[0] == "a" else None


@dg.source
def third(word):
    return "O" if len(word) < 2 else "B" if len(word) > 2 else "A"


@dg.source(resolution=dg.Window(size=3, link="any", of="A"))
def some_a(window):
    return 1 if any(word[0] == "a" for word in window) else -1


@dg.source(resolution=dg.Spans("halves", link="any", of="B"))
def half_b(words):
    return 1 if any(len(word) > 2 for word in words) else -1
"""
THREE_LOADER = """import random


def sequences():
    draw = random.Random(3)
    words = ["x", "ab", "long", "a", "aa", "boom", "yy"]
    made = {n: [draw.choice(words) for _ in range(draw.randint(4, 12))] for n in range(40)}
    return made | {40: []}


def halves(words):
    middle = len(words) // 2
    return [(0, middle), (middle, len(words))] if middle else []
"""
THREE_PROJECT = """data = "loader:sequences"
sources = "sources.py"
classes = ["O", "A", "B"]
background = "O"
on_fault = "abstain"
spans = { halves = "loader:halves" }
prior = { kind = "markov", initial = [0.4, 0.3, 0.3], transition = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] }
dependencies = []
"""

HOURS_SOURCES = """import dugong as dg


def lit(frame):
    return frame[12, 52, 0] > 128  # the field of the seventh bit of the second


@dg.source
def lamp(frame):
    return 1 if lit(frame) else -1


@dg.source
def flickers(frame):
    return 1 if lit(frame) != (frame[40, 8, 0] > 220) else -1


@dg.source(resolution=dg.Window(seconds=8, link="any"))
def in_eight_seconds(window):
    return 1 if any(lit(frame) for frame in window) else -1
"""
HOURS_LOADER = """from pathlib import Path

from dugong.sources.loaders import video_folder


def sequences():
    return video_folder(Path(__file__).parent / "data", every="1s")
"""
HOURS_PROJECT = """data = "loader:sequences"
sources = "sources.py"
prior = { kind = "markov", positive = 0.45, stay = 0.98 }
dependencies = []
"""


def _written(folder: Path, sources: str, loader: str, project: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("sources.py", sources), ("loader.py", loader), ("project.toml", project)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "project.toml"


def write_small_project(folder: Path) -> Path:
    """A project that is fitted in a moment."""
    return _written(folder, SOURCES, LOADER, PROJECT)


def write_three_classes(folder: Path) -> Path:
    """Three classes, windows about one of them, spans, an empty sequence, a source that raises now and then."""
    return _written(folder, THREE_SOURCES, THREE_LOADER, THREE_PROJECT)


def write_two_hours(folder: Path, *, rate: int = 1, hours: float = 2, file: str = "long.mp4") -> Path:
    """Two hours of video: noise, so that the file is large, and beside it fields that tell the second by its bits."""
    import av

    (folder / "data").mkdir(parents=True)
    noise = np.random.default_rng(7).integers(0, 256, (50, 64, 64, 3), dtype=np.uint8)
    codec, options = ("libx264", {"crf": "20", "preset": "ultrafast"}) if file.endswith("mp4") else ("mpeg4", {})
    with av.open(str(folder / "data" / file), "w") as video:
        stream = video.add_stream(codec, rate=rate, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        stream.codec_context.gop_size = 10 * rate
        for number in range(round(hours * 3600 * rate)):
            picture = noise[number % len(noise)]
            bits = number // rate >> np.arange(32) & 1
            picture[:, 32:] = 255 * np.kron(bits.reshape(8, 4), np.ones((8, 8)))[..., None]
            video.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        video.mux(stream.encode())
    return _written(folder, HOURS_SOURCES, HOURS_LOADER, HOURS_PROJECT)


def free_port() -> int:
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Running:
    """A studio that was started by its command."""

    def __init__(self, project: Path | None, cwd: Path, *options: str) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "dugong", "studio", *([str(project)] if project else [])]
        command += ["--no-browser", "--port", str(self.port), *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        if found is None:
            raise AssertionError(self.process.stderr.read())
        self.link = found[0]

    def enter(self) -> Client:
        """Use the link."""
        client = Client(self.port)
        status, headers, _ = client.raw("GET", self.link[self.link.index("/open") :])
        assert status == 200, self.link
        client.cookie = headers["set-cookie"].partition(";")[0]
        return client

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; returns the exit code and the rest of what was said."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=120)
        return self.process.returncode, said

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Client:
    """One browser."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self.port = port
        self.cookie = cookie
        self.own = f"http://127.0.0.1:{port}"

    def raw(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request; header names with _ for -, and None of ours where one is given."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        own = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
        if method != "GET":
            own |= {"Origin": self.own, "Content-Type": "application/json"}
        sent = {name: value for name, value in (own | given).items() if value}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body or b"")
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def json(self, method: str, path: str, plain: Any = None, **headers: str) -> tuple[int, Any]:
        body = None if plain is None else json.dumps(plain).encode()
        status, _, content = self.raw(method, path, body, **headers)
        return status, json.loads(content)

    def json_bytes(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        status, _, content = self.raw(method, path, body)
        return status, json.loads(content)

    def get(self, path: str) -> Any:
        status, plain = self.json("GET", path)
        assert status == 200, plain
        return plain

    def fitted(self, at_least: int = 1, seconds: float = 240) -> Any:
        """The project, when a run has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            plain = self.get("/api/project")
            if plain["run"]["state"] == "failed" or (plain["fit"] >= at_least and plain["run"]["state"] == "idle"):
                return plain
            time.sleep(0.05)
        raise AssertionError(plain["run"])

    @contextlib.contextmanager
    def socket(self, **changes: Any) -> Iterator[Live]:
        options = {"origin": self.own, "additional_headers": {"Cookie": self.cookie}} | changes
        with connect(f"ws://127.0.0.1:{self.port}/api/live", **options) as one:
            yield Live(one)


class Live:
    """An open socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.events: list[Any] = []
        self._number = 0

    def send(self, **plain: Any) -> None:
        self.socket.send(json.dumps(plain))

    def until(self, operation: str, timeout: float = 120) -> Any:
        """The next message of a kind; others are kept."""
        while True:
            plain = json.loads(self.socket.recv(timeout=timeout))
            if plain["op"] == operation:
                return plain
            self.events.append(plain)

    def attempt(self, text: str, source: str = "high", sequence: str = "s00", **more: Any) -> Any:
        self._number += 1
        self.send(op="try", n=self._number, source=source, text=text, sequence=sequence, px=200, **more)
        answer = self.until("tried")
        assert answer["n"] == self._number
        return answer


def unpacked(plain: dict[str, Any]) -> Any:
    """A packed array."""
    return np.frombuffer(base64.b64decode(plain["b"]), dtype=np.dtype(plain["t"]).newbyteorder("<"))
