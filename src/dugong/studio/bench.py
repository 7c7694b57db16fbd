"""The side of the user's code: loads a project, shows its raw data, tries an edited source, runs the whole job.

In: tasks by name, from `process`. Out: plain values. This runs in a process of its own, and nothing of the user's code
runs anywhere else. What it prints is kept and shown; the whole job is the one of `dugong run`.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from dugong.cli.job import run_in_files
from dugong.cli.loading import load_module
from dugong.cli.project import Project, read_project
from dugong.cli.sharded import ApplyOptions
from dugong.cli.steps import project_material
from dugong.cli.watching import Watch, forget_modules, saved
from dugong.codec import to_plain
from dugong.engines.local import portable, read_frame, take_pipes, write_frame
from dugong.exceptions import SourceError
from dugong.sources import Source
from dugong.sources.applying import prepare_run
from dugong.sources.inputs import loaded, pairs_of, rate_of
from dugong.sources.loaders.media import Audio, Video
from dugong.sources.voting import SequenceVotes, vote_on_sequence
from dugong.studio.raw import Raw, look_at, picture
from dugong.votes import SourceInfo

_PRINTED = 20_000  # characters that are kept of what a source prints
_KEPT = 16  # loaded sequences that stay in memory
_DECODED = 32 << 20  # bytes of frames or sound that stay with each of them
Send = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a project holds: ids in order, files by id, sources with the file and line of their functions."""

    ids: tuple[str, ...]
    files: Mapping[str, str]
    sources: tuple[tuple[str, str, str | None], ...]
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """Votes of one source on some sequences, and what it printed."""

    info: SourceInfo
    votes: tuple[SequenceVotes, ...]
    printed: str


class TriedError(SourceError):
    """What stopped an edited source, with its trace and what it printed."""

    def __init__(self, text: str, trace: str | None = None, printed: str = "") -> None:
        super().__init__(text)
        self.trace = trace
        self.printed = printed

    def __reduce__(self) -> tuple[Any, ...]:
        return TriedError, (str(self), self.trace, self.printed)


class Bench:
    """One project on the bench."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._project: Project | None = None
        self._file = Path()
        self._seen: dict[str, float] = {}
        self._pairs: dict[str, tuple[Any, Callable[[], Any]]] = {}
        self._rate: float | None = None
        self._material: dict[str, Any] = {}
        self._space: dict[str, Any] = {}
        self._loaded: OrderedDict[str, Any] = OrderedDict()

    # --- tasks -----------------------------------------------------------------------------------------------------
    def begin(self, memory: int) -> None:
        """Bound the memory of this process, where the system can."""
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("900", encoding="ascii")  # rather this one than the server
        if memory and sys.platform == "linux":
            import resource

            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
            used = pages * resource.getpagesize()
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_DATA, (used + memory, hard))

    def open(self, project: str) -> Opened:
        """Load a project."""
        found = read_project(project)
        folder = found.folder.resolve()
        forget_modules(folder)
        self._loaded.clear()
        with _captured():
            sources, material = project_material(found, 1, "abstain")
        sequences = material.pop("sequences")
        self._project, self._file, self._seen = found, Path(project), saved(folder)
        self._pairs = _by_name(sequences)
        look = any(getattr(one.resolution, "seconds", None) for one in sources)
        self._rate = material.pop("rate") or rate_of(sequences, look_inside=look)
        self._material = material
        self._space = _namespace(found, sources)
        files = getattr(sequences, "files", {})
        return Opened(
            ids=tuple(self._pairs),
            files={str(name): str(path) for name, path in files.items()},
            sources=tuple((one.name, one.resolution.name, _home(one)) for one in sources),
            rate=self._rate,
        )

    def raw(self, sequence: str) -> Raw:
        """What can be drawn of a sequence."""
        return look_at(self._sequence(sequence))

    def frame(self, sequence: str, element: int, px: int) -> bytes:
        """A picture of one element."""
        found = self._sequence(sequence)
        if not 0 <= element < len(found):
            raise SourceError(f"sequence {sequence!r} has {len(found)} elements; {element} is none of them.")
        return picture(found, element, px)

    def attempt(self, source: str, text: str, line: int, sequences: list[str]) -> Tried:
        """Let an edited function, whose file has it at `line` (from 0), vote on some sequences; nothing is written."""
        self._refresh()
        with _captured() as printed:
            try:
                return self._attempt(self._edited(source, text, line), sequences, printed)
            except SourceError as error:
                raise TriedError(str(error), printed=_text(printed)) from error
            except (Exception, SystemExit) as error:
                last = "".join(traceback.format_exception_only(error)).strip()
                raise TriedError(last, _trace(error), _text(printed)) from error

    def run(self, project: str) -> dict[str, Any]:
        """Do what `dugong run` does; the studio holds the lock of the project."""
        found = read_project(project)
        forget_modules(found.folder.resolve())
        with _captured() as printed:
            files, applied, (result, _) = run_in_files(found, found.read_prior(), ApplyOptions(), _Sent(self._send))
        result |= {"files": {name: str(path) for name, path in files.items()}, "report": applied.report.to_dict()}
        return {**to_plain(result), "printed": _text(printed)}

    # --- parts -----------------------------------------------------------------------------------------------------
    def _edited(self, name: str, text: str, line: int) -> Source:
        """The source that an edited function makes, in the module as it was loaded: only that function is run anew."""
        assert self._project is not None
        file = f"<{self._project.sources} as edited>"
        padded = "\n" * line + text  # tracebacks then show the lines of the file
        linecache.cache[file] = (len(padded), None, padded.splitlines(keepends=True), file)
        space = dict(self._space)
        exec(compile(padded, file, "exec"), space)
        found = space[name]
        if not isinstance(found, Source):
            raise SourceError(f"{name!r} is no source: decorate the function with @source.")
        return found

    def _attempt(self, source: Source, wanted: list[str], printed: io.StringIO) -> Tried:
        pairs = [(self._pairs[one][0], self._sequence(one)) for one in wanted]
        run = prepare_run([source], pairs, rate=self._rate, **self._material)
        job = run.job(run.chosen)
        votes = tuple(vote_on_sequence(job, item) for item in run.items)
        return Tried(info=run.chosen[0].info, votes=votes, printed=_text(printed))

    def _sequence(self, name: str) -> Any:
        if name not in self._loaded:
            if name not in self._pairs:
                raise SourceError(f"there is no sequence {name!r} any more.")
            given, load = self._pairs[name]
            self._loaded[name] = found = loaded(load(), given)
            if isinstance(found, Video | Audio):  # a rule that is typed looks at the same elements at every pause
                found.keep(_DECODED)
        self._loaded.move_to_end(name)
        while len(self._loaded) > _KEPT:
            self._loaded.popitem(last=False)
        return self._loaded[name]

    def _refresh(self) -> None:
        """Read modules and data again if a file of the project was saved."""
        assert self._project is not None
        if saved(self._project.folder.resolve()) != self._seen:
            self.open(str(self._file))


def _by_name(sequences: Any) -> dict[str, tuple[Any, Callable[[], Any]]]:
    """Ids as text, each with the id itself and how to get its sequence; nothing is loaded that need not be."""
    if isinstance(sequences, Mapping) and not hasattr(sequences, "deferred"):
        return {str(one): (one, partial(sequences.__getitem__, one)) for one in sequences}
    return {str(one): (one, partial(_itself, sequence)) for one, sequence in pairs_of(sequences)[0]}


def _itself(sequence: Any) -> Any:
    return sequence


def _namespace(project: Project, sources: tuple[Source, ...]) -> dict[str, Any]:
    """What the functions of the user's file see."""
    file = str((project.folder / project.sources).resolve())
    for one in sources:
        if _home(one) == file:
            return dict(one.function.__globals__)
    return dict(vars(load_module(project.sources, project.folder)))


def _home(source: Any) -> str | None:
    """The file of a source's function; None if it has none that can be edited."""
    code = getattr(source.function, "__code__", None)
    return None if code is None else str(code.co_filename)


class _Sent(Watch):
    """Tells the server how a run goes."""

    def __init__(self, send: Send) -> None:
        super().__init__(log_json=True)
        self._tell = send

    def event(self, name: str, **values: Any) -> None:
        """One step further."""
        self._tell({"event": name, **to_plain(values)})


# --- what the user's code prints and raises ------------------------------------------------------------------------
@contextlib.contextmanager
def _captured() -> Iterator[io.StringIO]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        yield printed


def _text(printed: io.StringIO) -> str:
    text = printed.getvalue()
    return text if len(text) <= _PRINTED else f"{text[:_PRINTED]}\n... and {len(text) - _PRINTED:,} characters more"


def _trace(error: BaseException) -> str:
    """The traceback from the user's first line on."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((place for place, frame in enumerate(frames) if frame.filename.startswith("<")), len(frames))
    return "".join([*traceback.format_list(frames[first:]), *traceback.format_exception_only(error)]).rstrip()


# --- the life of the process ---------------------------------------------------------------------------------------
def serve() -> None:
    """Answer tasks until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbound, outbound = take_pipes()
    bench = Bench(lambda event: write_frame(outbound, pickle.dumps(("event", event), protocol=5)))
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(inbound, tasks), daemon=True).start()
    home = os.getpid()
    while True:
        answer = _answer(bench, tasks.get())
        if os.getpid() != home:
            os._exit(0)  # a copy of this process that the user's code made
        write_frame(outbound, answer)


def _listen(inbound: BinaryIO, tasks: SimpleQueue[bytes]) -> None:
    while (payload := read_frame(inbound)) is not None:
        tasks.put(payload)
    os._exit(0)  # the server is gone, and with it whoever waits for an answer


def _answer(bench: Bench, payload: bytes) -> bytes:
    task, words = pickle.loads(payload)
    try:
        return pickle.dumps(("done", getattr(bench, task)(**words)), protocol=5)
    except BaseException as error:  # user code may raise anything, and the server must hear of it
        if isinstance(error, TriedError):
            return pickle.dumps(("raised", error), protocol=5)
        return pickle.dumps(("raised", portable(error)), protocol=5)
