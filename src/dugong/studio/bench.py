"""The side of the user's code: loads a project, shows its raw data, tries an edited source, runs the whole job.

In: tasks by name, from the server. Out: plain values. This runs in a process of its own, and nothing of the user's code
runs anywhere else. What it prints is kept and shown; the whole job is the one of `dugong run`.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from dugong.cli.job import run_job
from dugong.cli.output import Watch, forget_modules, saved
from dugong.cli.project import Project, load_module, read_project
from dugong.cli.steps import ApplyOptions, project_material
from dugong.codec import to_plain
from dugong.engines.local import portable, read_frame, take_pipes, write_frame
from dugong.exceptions import SourceError
from dugong.report.media import Raw, look_at, picture
from dugong.sources import Source
from dugong.sources.applying import prepare_run
from dugong.sources.inputs import loaded, pairs_of, rate_of
from dugong.sources.loaders.media import Audio, Video
from dugong.sources.voting import SequenceVotes, vote_on_sequence
from dugong.studio import StudioError
from dugong.votes import SourceInfo

_PRINTED = 20_000  # characters that are kept of what a source prints
_KEPT = 16  # loaded sequences that stay in memory
_DECODED = 32 << 20  # bytes of frames or sound that stay with each of them
Send = Callable[[dict[str, Any]], None]


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
        self._sequence = lru_cache(_KEPT)(self._load)

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

    def open(self, project: str) -> dict[str, str | None]:
        """Load a project; returns the ids of its sequences in order, with the files behind them."""
        found = read_project(project)
        folder = found.folder.resolve()
        forget_modules(folder)
        self._sequence.cache_clear()
        with _captured():
            sources, material, _ = project_material(found, 1, "abstain")
        sequences = material.pop("sequences")
        self._project, self._file, self._seen = found, Path(project), saved(folder)
        self._pairs = _by_name(sequences)
        look = any(getattr(one.resolution, "seconds", None) for one in sources)
        self._rate = material.pop("rate") or rate_of(sequences, look_inside=look)
        self._material = material
        self._space = _namespace(found, sources)
        return dict.fromkeys(self._pairs) | {
            str(one): str(file) for one, file in getattr(sequences, "files", {}).items()
        }

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
            watch = Watch(log_json=True, tell=self._send)
            files, applied, (result, _) = run_job(found, found.read_prior(), ApplyOptions(), watch)
        result |= {"files": files, "report": applied.report.to_dict(), "printed": _text(printed)}
        return dict(to_plain(result))

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

    def _load(self, name: str) -> Any:
        if name not in self._pairs:
            raise SourceError(f"there is no sequence {name!r} any more.")
        given, load = self._pairs[name]
        found = loaded(load(), given)
        if isinstance(found, Video | Audio):  # a rule that is typed looks at the same elements at every pause
            found.keep(_DECODED)
        return found

    def _refresh(self) -> None:
        """Read modules and data again if a file of the project was saved."""
        assert self._project is not None
        if saved(self._project.folder.resolve()) != self._seen:
            self.open(str(self._file))


def _by_name(sequences: Any) -> dict[str, tuple[Any, Callable[[], Any]]]:
    """Ids as text, each with the id itself and how to get its sequence; nothing is loaded that need not be."""
    if isinstance(sequences, Mapping) and not hasattr(sequences, "deferred"):
        return {str(one): (one, partial(sequences.__getitem__, one)) for one in sequences}
    found = dict(pairs_of(sequences)[0])
    return {str(one): (one, partial(found.__getitem__, one)) for one in found}


def _namespace(project: Project, sources: tuple[Source, ...]) -> dict[str, Any]:
    """What the functions of the user's file see."""
    file = str((project.folder / project.sources).resolve())
    for one in sources:
        code = getattr(one.function, "__code__", None)
        if code is not None and str(code.co_filename) == file:
            return dict(one.function.__globals__)
    return dict(vars(load_module(project.sources, project.folder)))


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
        return pickle.dumps(("raised", portable(error)), protocol=5)


# --- the process, as the server sees it: asked one thing at a time, ended when it takes too long, started anew --------
# In: what to do, and how long it may take. Out: the answer, or a `LostError` in words; events come on the way. The
# process is not a sandbox: it may do what the user may do. It protects the page from accidents, nothing else.
_START = "import sys; sys.path[:] = {path!r}; from dugong.studio.bench import serve; serve()"
Event = Callable[[dict[str, Any]], None]


class LostError(StudioError):
    """The process of the user's code ended without an answer."""


class UserProcess:
    """One process that answers, whoever asks first; `close` it in the end."""

    def __init__(self, *, memory: int, started: Event = lambda _: None) -> None:
        self._memory = memory
        self._started = started
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._opening: list[tuple[str, dict[str, Any]]] = []
        self._why = ""
        self._closed = False

    def prepare(self, task: str, **words: Any) -> None:
        """Say what every new process is told first."""
        self._opening = [(task, words)]

    def ask(self, task: str, *, limit: float | None = None, event: Event = lambda _: None, **words: Any) -> Any:
        """Let the process do something; `limit` is in seconds. Called from threads."""
        with self._turn:
            self._start()
            try:
                return self._exchange(task, words, limit, event)
            except LostError:
                threading.Thread(target=self.revive, daemon=True).start()
                raise

    def revive(self) -> None:
        """Start a process if there is none, so that the next one to ask need not wait."""
        with self._turn, contextlib.suppress(Exception):  # whoever asks next is told what is wrong
            self._start()

    def end(self, why: str) -> None:
        """End what is under way; whoever waits for it gets a `LostError` with this reason."""
        self._why = why
        if self._process is not None:
            _kill(self._process)

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self.end("the studio has ended")
        if self._process is not None:
            self._process.wait()

    def _start(self) -> None:
        """Start a process if there is none."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._closed:
            raise LostError("the studio has ended.", "lost")
        if self._process is not None:
            with contextlib.suppress(OSError), self._process:
                pass  # to leave it is to wait for its end, and to close its pipes
        self._started({"state": "starting", "why": self._why})
        command = [sys.executable, *(f"-W{one}" for one in sys.warnoptions), "-c", _START.format(path=sys.path)]
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} | os.environ
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        self._why = ""
        for task, words in (("begin", {"memory": self._memory}), *self._opening):
            self._exchange(task, words, 60.0)
        self._started({"state": "ready", "why": ""})

    def _exchange(self, task: str, words: dict[str, Any], limit: float | None, event: Event = lambda _: None) -> Any:
        process = self._process
        assert process is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(limit or 0.0, end)
        timer.daemon = True
        if limit is not None:
            timer.start()
        try:
            answer = _talk(process, (task, words), event)
        finally:
            timer.cancel()
        if late.is_set():
            process.wait()  # it answered in the very last moment, and is gone all the same
        if answer is None:
            raise LostError(self._last_words(process, limit if late.is_set() else None), "lost")
        if answer[0] == "raised":
            raise answer[1]
        return answer[1]

    def _last_words(self, process: subprocess.Popen[bytes], limit: float | None) -> str:
        code = process.wait()
        if self._why:
            return f"{self._why}."
        if limit is not None:
            self._why = f"it took longer than {limit:g} s"
        elif code == -9:
            self._why = "it was killed, which is what a lack of memory does"
        else:
            self._why = f"it ended with exit code {code}" if code >= 0 else f"it crashed (signal {-code})"
        return f"the process of your sources was ended: {self._why}. It is started anew."


def _talk(process: Any, task: tuple[str, dict[str, Any]], event: Event) -> tuple[str, Any] | None:
    """The answer to a task, with events on the way; None if the process is gone."""
    with contextlib.suppress(OSError, ValueError):
        write_frame(process.stdin, pickle.dumps(task, protocol=5))
        while (frame := read_frame(process.stdout)) is not None:
            kind, value = pickle.loads(frame)
            if kind != "event":
                return kind, value
            event(value)
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started."""
    if process.poll() is None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
