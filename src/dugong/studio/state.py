"""What the studio knows: one project, locked while it is open, its last fit, its corrections, and who listens.

In: what the page asks for. Out: plain values, and events for all sockets. The user's code is asked through two
processes: the *desk* (raw data, and sources while they are typed) and the *runner* (the whole job, as `dugong run`).
Methods that wait are called from threads; what they change is changed under one lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import getpass
import hashlib
import os
import threading
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from dugong.cli.corrections import FILE, Correction, Journal, new_id
from dugong.cli.project import DEFAULT, Project, read_project
from dugong.exceptions import DugongError
from dugong.paths import locked
from dugong.studio import StudioError, plain_error
from dugong.studio.bench import UserProcess
from dugong.studio.editing import SourceFile
from dugong.studio.snapshot import Snapshot, load_snapshot
from dugong.studio.tracks import MarkedLabels, RawTracks, SequenceTracks

GIGABYTE = 1 << 30
LIMIT = 5.0  # seconds that a source may take while it is typed, unless the user says otherwise
_SLOW = 120.0  # seconds that a loader may take
_EVERY = 0.7  # seconds between two looks at the file of sources
_KEPT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How a run is going."""

    state: str = "idle"
    step: str | None = None
    done: int | None = None
    total: int | None = None
    error: dict[str, Any] | None = None


class Studio:
    """One studio."""

    def __init__(self, *, memory: int = 4 * GIGABYTE, limit: float = LIMIT) -> None:
        self.limit = limit
        self.who = _user()
        self.desk = UserProcess(memory=memory, started=lambda event: self.tell({"op": "worker", **event}))
        self.runner = UserProcess(memory=_most_of_memory())
        self.path: Path | None = None
        self.project: Project | None = None
        self.snapshot: Snapshot | None = None
        self.run = RunState()
        self.kind: str | None = None  # what the data are, once that is known
        self._journal: Journal | None = None
        self._listeners: set[asyncio.Queue[dict[str, Any]]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guard = threading.RLock()
        self.saving = threading.Lock()  # of the file of sources: read, compared and written by one page at a time
        self._again = False
        self._over = threading.Event()
        self._seen: tuple[str, dict[str, str]] = ("", {})
        self._running: threading.Thread | None = None
        self._fitted = ""
        # What the loader shows of a sequence by its id; its bins, by fit and place; both kept for a while.
        self.raw = lru_cache(_KEPT)(self._look)
        self.tracks = lru_cache(_KEPT)(SequenceTracks)
        self._marked = lru_cache(1)(self._mark)
        self._files: dict[str, Path | None] | None = None
        self._held = contextlib.ExitStack()
        self._context = contextvars.copy_context()

    # --- opening and closing ---------------------------------------------------------------------------------------
    def open(self, path: Path) -> None:
        """Take a project, if nobody else has it; call this where `close` is called."""
        project = read_project(path)
        if not isinstance(project.output, Path):
            text = f"the studio needs results on this machine, and the output of {path} is {project.output}."
            raise StudioError(text, "data")
        self._context.run(self._held.enter_context, locked(project.output))
        self.path, self.project = path.resolve(), project
        if self.path.is_dir():
            self.path = self.path / DEFAULT
        self._journal = Journal(project.folder / FILE)
        self.desk.prepare("open", project=str(self.path))
        self.look_at_sources()

    def begin(self) -> None:
        """Show what the last run left, run anew, and look after the files of the project; returns at once."""
        threading.Thread(target=self._begin, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _begin(self) -> None:
        project = self.needed()
        if (project.output / "votes.parquet").is_file() and (project.output / "model.json").is_file():
            with contextlib.suppress(
                DugongError, OSError
            ):  # of an earlier version, or half gone: the run makes new ones
                self._take(load_snapshot(project, 1, {}, None))
        self.fit()
        self.warm()

    def warm(self) -> None:
        """Start the process for edits before anybody edits, and see what the data are."""
        with contextlib.suppress(DugongError):
            for name in list(self.contents())[:1]:
                self.kind = self.raw(name).raw.kind

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self.look_at_sources()

    def look_at_sources(self) -> None:
        """Tell the pages if the file of sources is another one than before, whoever saved it."""
        with self._guard:
            (old, before), (new, now) = self._seen, self.functions()
            self._seen = new, now
        if old not in ("", new):
            changed = [name for name in {**before, **now} if now.get(name) != before.get(name)]
            self.tell({"op": "sources", "digest": new, "changed": changed})

    def functions(self) -> tuple[str, dict[str, str]]:
        """The digest of the file of sources, and the text of its functions by name; nothing where there is none."""
        try:
            file = self.source_file()
        except (DugongError, OSError):  # gone for a moment, or for good: the next run says so
            return "", {}
        return file.digest, {name: one.text for name, one in file.functions().items()}

    def close(self) -> None:
        """End everything that was started, and let the project go."""
        self._again = False
        self._over.set()
        self.runner.close()
        self.desk.close()
        if (running := self._running) is not None:
            running.join(timeout=5)
        self._context.run(self._held.close)

    def needed(self) -> Project:
        """The project, which must be there."""
        if self.project is None:
            raise StudioError("there is no project yet: choose a sample.", "empty")
        return self.project

    def shown(self) -> Snapshot:
        """The last fit, which must be there."""
        self.needed()
        if self.snapshot is None:
            text = "nothing was fitted yet: wait for the first run, or look at its error."
            raise StudioError(text, "waiting")
        return self.snapshot

    def find(self, name: str) -> tuple[Snapshot, int, int]:
        """The last fit, and the place and length of a sequence in it."""
        snapshot = self.shown()
        place = snapshot.places.get(name)
        if place is None:
            raise StudioError(f"there is no sequence {name!r}.", "missing")
        return snapshot, place, int(snapshot.votes.lengths[place])

    # --- listening -------------------------------------------------------------------------------------------------
    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """A queue of all events from now on; give it back to `leave`."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Listen no more."""
        self._listeners.discard(queue)

    def tell(self, event: dict[str, Any]) -> None:
        """Tell all pages; from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            for queue in tuple(self._listeners):
                with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
                    loop.call_soon_threadsafe(queue.put_nowait, event)

    # --- the project -----------------------------------------------------------------------------------------------
    def contents(self) -> dict[str, Path | None]:
        """The sequences of the loader and the files behind them; loads it in the process of the user's code."""
        files = self._files  # which another thread may forget
        if files is None:
            self._files = files = _media_files(self.needed(), self.ask("open", limit=_SLOW, project=str(self.path)))
        return files

    def ask(self, task: str, *, limit: float | None = None, **words: Any) -> Any:
        """Ask the desk something."""
        self.needed()
        return self.desk.ask(task, limit=limit, **words)

    def source_file(self) -> SourceFile:
        """The file of the sources, as it is on disk."""
        project = self.needed()
        name = project.sources if project.sources.endswith(".py") else f"{project.sources.replace('.', '/')}.py"
        file = project.folder / name
        if not file.is_file():
            text = f"the sources are the module {project.sources!r}, which is no file of this project: edit them there."
            raise StudioError(text, "data")
        return SourceFile.read(file)

    def _look(self, name: str) -> RawTracks:
        self.contents()
        return RawTracks(self.ask("raw", limit=_SLOW, sequence=name))

    def media(self, name: str) -> Path | None:
        """The file behind a sequence, if there is one."""
        return self.contents().get(name)

    # --- corrections -----------------------------------------------------------------------------------------------
    @property
    def journal(self) -> Journal:
        """The corrections of the project."""
        self.needed()
        assert self._journal is not None
        return self._journal

    def correct(self, marks: list[dict[str, Any]]) -> list[Correction]:
        """Write corrections down, all together; they are on disk when this returns."""
        batch, now = new_id(), datetime.now(UTC).isoformat(timespec="seconds")
        new = [
            Correction(id=new_id(), who=self.who, when=now, batch=batch, **{**one, "shown": one.get("shown", {})})
            for one in marks
        ]
        with self._guard:
            self.journal.add(new)
        for name in dict.fromkeys(one.sequence for one in new):
            self.tell({"op": "gold", "n": len(self.journal.holding()), "sequence": name})
        return new

    def undo(self, correction: str | None) -> Correction:
        """Take a correction back."""
        with self._guard:
            undone = self.journal.undo(correction)
        if undone is None:
            raise StudioError("there is nothing to undo.", "missing")
        self.tell({"op": "gold", "n": len(self.journal.holding()), "sequence": undone.sequence})
        return undone

    def corrected(self) -> Counter[str]:
        """How many corrections each sequence has."""
        return Counter(one.sequence for one in self.journal.holding())

    def known(self, snapshot: Snapshot, place: int) -> MarkedLabels:
        """Known labels of a sequence with the corrections of now; kept until one is added or taken back."""
        marks = self.journal.holding(snapshot.ids[place])
        return self._marked(snapshot, place, tuple(one.id for one in marks))

    def _mark(self, snapshot: Snapshot, place: int, _: tuple[str, ...]) -> MarkedLabels:
        return MarkedLabels(snapshot, place, self.journal.labels(snapshot.votes[[place]]))

    # --- the whole job ---------------------------------------------------------------------------------------------
    @property
    def stale(self) -> bool:
        """Whether the last fit is not of the sources, settings and corrections of now."""
        return self.project is not None and self._fitted != self._stamp()

    def _stamp(self) -> str:
        assert self.path is not None and self.project is not None
        digest = hashlib.sha256()
        files = [self.path, self.project.folder / FILE, *sorted(self.project.folder.glob("*.py"))]
        for file in files:
            digest.update(file.read_bytes() if file.is_file() else b"")
            digest.update(b"\0")
        return digest.hexdigest()

    def fit(self, *, again: bool = False) -> None:
        """Begin a run; if one is under way, refuse, or run once more after it."""
        self.needed()
        with self._guard:
            if self._running is not None and self._running.is_alive():
                if not again:
                    raise StudioError("a run is under way; wait for it, or end it.", "taken")
                self._again = True
                return
            self._running = threading.Thread(target=self._run, daemon=True)
            self._running.start()

    def stop(self) -> None:
        """End the run that is under way."""
        self._again = False
        self.runner.end("the run was ended")

    def _run(self) -> None:
        again = True
        while again:
            self._run_once()
            with self._guard:  # whoever asks from here on finds no run, and begins one
                again, self._again = self._again, False
                self._running = self._running if again else None

    def _run_once(self) -> None:
        stamp, path = self._stamp(), self.path
        self._progress(RunState(state="running", step="start"))
        try:
            outcome = self.runner.ask("run", event=self._heard, project=str(path))
            self._progress(replace(self.run, step="show"))
            self.project = read_project(str(path))
            number = 1 if self.snapshot is None else self.snapshot.number + 1
            last = self.snapshot if self.snapshot is not None and self.snapshot.outcome else None
            self._take(load_snapshot(self.project, number, outcome, last or self.snapshot))
            self._fitted = stamp
        except Exception as error:
            self._progress(RunState(state="failed", error=plain_error(error)))
            return
        self._progress(RunState())

    def _take(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._files = None  # the loader may have changed
        self.raw.cache_clear()
        self.tell({"op": "fit", "fit": snapshot.number})

    def _progress(self, state: RunState) -> None:
        self.run = state
        self.tell({"op": "run", "run": state})

    def _heard(self, event: dict[str, Any]) -> None:
        if event["event"] == "progress":
            self._progress(RunState(state="running", step="apply", done=event.get("done"), total=event.get("total")))
        elif event["event"] == "done":
            self._progress(RunState(state="running", step=event.get("step")))


def _media_files(project: Project, opened: dict[str, str | None]) -> dict[str, Path | None]:
    """Files by id: those that the loader reads, or those of the folder that the project names."""
    found = {name: None if file is None else Path(file) for name, file in opened.items()}
    media = project.media
    if media is not None and "://" not in media:
        if "{}" in media:
            pattern = {name: project.folder / media.replace("{}", name) for name in opened}
            found |= {name: file for name, file in pattern.items() if file.is_file() and _inside(file, project)}
        elif Path(media).is_dir():
            stems = {file.stem: file for file in sorted(Path(media).iterdir()) if file.is_file()}
            found |= {name: stems[name] for name in opened if name in stems}
    return {name: file if file is not None and file.is_file() else None for name, file in found.items()}


def _inside(file: Path, project: Project) -> bool:
    """Whether a file lies where the pattern of the project says, whatever the id is."""
    assert project.media is not None
    root = (project.folder / project.media.split("{}", maxsplit=1)[0]).resolve()
    home = root if root.is_dir() else root.parent
    return file.resolve().is_relative_to(home)


def _most_of_memory() -> int:
    """Bytes that a whole run may take: four fifths of what the machine has; 0 where that is not known."""
    try:
        return int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 0


def _user() -> str:
    with contextlib.suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return "somebody"
