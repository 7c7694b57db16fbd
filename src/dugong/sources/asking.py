"""Asking a model over HTTP, once: a cache that survives crashes, a budget that is never exceeded, and patience.

In: the body of a request to an OpenAI-compatible chat endpoint. Out: the text of its answer. Every answer is on disk
before anybody sees it, under a hash of the whole request, so that nothing is asked twice: not after a crash, not by two
processes, not by two elements that look the same. The key of the service is read from the environment when a request
is sent and is kept nowhere.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import os
import platform
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dugong.exceptions import SourceError

Accept = Callable[[Mapping[str, Any]], str | None]
_TABLES = """
create table if not exists answers (key text primary key, answer text not null, tokens integer not null);
create table if not exists asking (key text primary key, model text not null, since real not null, tokens integer);
create table if not exists askers (key text primary key, machine text not null, process integer not null);
create table if not exists spent (model text primary key, tokens integer not null);
"""
# A request that another process has begun counts as lost after this many times its own time limit.
_LOST = 1.5
_POLL = 0.05
_COUNTING = threading.Lock()  # of what was used, by the threads of a judge


class BudgetError(SourceError):
    """Asking on would cost more tokens than allowed."""


class UnavailableError(SourceError):
    """The service does not answer, or not as it should."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """Where to ask, how often to try again, and what it may cost.

    Attributes
    ----------
    base_url : such as ``http://localhost:8000/v1``
    key_env : name of the environment variable that holds the key, or None
    cache : file with all answers so far
    max_tokens_total : tokens that all requests to this model may cost together, or None
    timeout : seconds for one request
    prices : of a million tokens that are sent and of a million that come back, or None
    retries : tries after the first one, where the service is busy or broken
    wait : seconds before the first new try, if the service does not say; doubles each time
    """

    base_url: str
    key_env: str | None = None
    cache: str = "judge.sqlite"
    max_tokens_total: int | None = None
    timeout: float = 60.0
    prices: tuple[float, float] | None = None
    retries: int = 6
    wait: float = 0.5
    _used: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SourceError(f"base_url= must begin with http:// or https://; found {self.base_url!r}.")
        if parts.username or parts.password:
            raise SourceError("base_url= must not hold a password; name the variable that holds the key: key_env=...")
        if self.prices is not None and not _are_prices(self.prices):
            raise SourceError(
                "prices= must be two numbers, what a million tokens cost that are sent and that come back; "
                f"found {self.prices!r}."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_used": Counter()}

    @property
    def address(self) -> str:
        """Who gets the data: scheme, host and port."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    def take_usage(self) -> dict[str, float]:
        """Calls, answers from the cache, tokens and their cost since this was last asked, in this process."""
        with _COUNTING:
            found: dict[str, float] = {**self._used}
            self._used.clear()
        return found

    def note(self, **used: Any) -> None:
        """Count what was used."""
        with _COUNTING:
            self._used.update(used)

    def ask(self, body: Mapping[str, Any], most: int, accept: Accept) -> str:
        """The answer to a request, from the cache or the service.

        Parameters
        ----------
        most : tokens that one try can cost
        accept : from what came back to the text that is kept, None if it is not what was asked for
        """
        self._key()  # before tokens are put aside for a request that cannot be sent
        text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        key = hashlib.sha256(f"{self.base_url}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
        request = _Request(key=key, model=str(body["model"]), text=text, most=most)
        while True:
            with self._book() as book:
                found = book.execute("select answer from answers where key = ?", (key,)).fetchone()
                mine = found is None and self._reserve(book, request)
            if found is not None:
                self.note(cached=1)
                return str(found[0])
            if mine:
                return self._fetch(request, accept)
            time.sleep(_POLL)  # somebody else is asking the very same

    # --- the book ----------------------------------------------------------------------------------------------------
    @contextmanager
    def _book(self) -> Iterator[sqlite3.Connection]:
        """The cache, inside of one transaction that no other process can enter."""
        Path(self.cache).parent.mkdir(parents=True, exist_ok=True)
        try:
            book = sqlite3.connect(self.cache, timeout=30, isolation_level=None)
            book.executescript(_TABLES)
            book.execute("begin immediate")
        except sqlite3.DatabaseError as error:
            raise SourceError(
                f"{self.cache} cannot be used as a cache of answers: {error}.\n  Name another file: cache=..."
            ) from error
        try:
            yield book
            book.execute("commit")
        except BaseException:
            book.execute("rollback")
            raise
        finally:
            book.close()

    def _reserve(self, book: sqlite3.Connection, request: _Request) -> bool:
        """Take the request on and put its tokens aside; False if somebody else has."""
        known = book.execute("select since, tokens from asking where key = ?", (request.key,)).fetchone()
        if known is not None:
            if time.time() - known[0] < _LOST * self.timeout and not _ended(book, request.key):
                return False
            # Its process died. What it may have spent counts as spent: a budget errs on the safe side.
            self._settle(book, request, int(known[1]))
        self._hold(book, request)
        return True

    def _hold(self, book: sqlite3.Connection, request: _Request) -> None:
        """Put the tokens of one try aside, if the budget has them."""
        if self.max_tokens_total is not None:
            sums = ("select coalesce(sum(tokens), 0) from spent", "select coalesce(sum(tokens), 0) from asking")
            spent, held = (book.execute(f"{one} where model = ?", (request.model,)).fetchone()[0] for one in sums)
            if spent + held + request.most > self.max_tokens_total:
                raise BudgetError(
                    f"{request.model}: the budget of {self.max_tokens_total:,} tokens does not allow a further request "
                    f"of up to {request.most:,}; {spent:,} are spent and {held:,} under way.\n"
                    "  Answers so far are kept. Raise max_tokens_total=, or label with what there is."
                )
        row = (request.key, request.model, time.time(), request.most)
        book.execute("insert or replace into asking values (?, ?, ?, ?)", row)
        book.execute("insert or replace into askers values (?, ?, ?)", (request.key, _machine(), os.getpid()))

    def _settle(self, book: sqlite3.Connection, request: _Request, tokens: int) -> None:
        """Release what was put aside for a try, and book what it cost."""
        for table in ("asking", "askers"):
            book.execute(f"delete from {table} where key = ?", (request.key,))
        book.execute(
            "insert into spent values (?, ?) on conflict (model) do update set tokens = tokens + excluded.tokens",
            (request.model, tokens),
        )

    # --- the service -------------------------------------------------------------------------------------------------
    def _fetch(self, request: _Request, accept: Accept) -> str:
        """Ask until there is a valid answer; it is written down before it is used."""
        for attempt in range(self.retries + 1):
            if attempt:
                with self._book() as book:
                    self._hold(book, request)
            reply = self._post(request.text)
            choice, sent, received = reply.read(request.most)
            answer, tokens = accept(choice) if choice else None, sent + received
            self.note(calls=1, tokens=tokens)
            if self.prices is not None:
                self.note(cost=(self.prices[0] * sent + self.prices[1] * received) / 1e6)
            with self._book() as book:
                self._settle(book, request, tokens)
                if answer is not None:
                    book.execute("insert or replace into answers values (?, ?, ?)", (request.key, answer, tokens))
            if answer is not None:
                return answer
            if reply.status in (401, 403):
                raise UnavailableError(self._refused(reply.status))
            if 400 <= reply.status < 500 and reply.status not in (408, 409, 429):
                text = f"{self.address} refused the request ({reply.status}): {reply.words}"
                if '"logprobs":true' in request.text:
                    text += "\n  If it has no logprobs: soft=True asks the model for a probability instead."
                raise UnavailableError(text)
            if attempt < self.retries:
                time.sleep(reply.patience(self.wait * 2**attempt))
        raise UnavailableError(
            f"{self.address} did not answer as it should in {self.retries + 1} tries; the last time it said "
            f"({reply.status or 'no answer'}): {reply.words}\n  Answers so far are kept: run again later."
        )

    def _refused(self, status: int) -> str:
        if self.key_env is None:
            return f"{self.address} wants a key ({status}).\n  Name the environment variable that holds it: key_env=..."
        state = "is set" if os.environ.get(self.key_env) else "is not set"
        return f"{self.address} refused the key ({status}); it is read from {self.key_env}, which {state}."

    def _key(self) -> str:
        """The key, empty if there is none; one that no header can hold is refused here, or others would show it."""
        key = (os.environ.get(self.key_env) or "").strip() if self.key_env else ""
        if not (key.isascii() and key.isprintable()):
            raise UnavailableError(f"the key in {self.key_env} must be letters, digits and signs of ASCII on one line.")
        return key

    def _post(self, text: str) -> _Reply:
        """One request, without redirects."""
        parts = urlsplit(self.base_url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        headers = {"Content-Type": "application/json"}
        key = self._key()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        connection = kind(parts.hostname or "", parts.port, timeout=self.timeout)
        sent = False
        try:
            connection.connect()
            sent = True
            path = f"{parts.path.rstrip('/')}/chat/completions"
            connection.request("POST", path, body=text.encode("utf-8", "replace"), headers=headers)
            found = connection.getresponse()
            named = {name.lower(): value for name, value in found.getheaders()}
            payload = found.read()
            # A service may repeat the key in what it says, which is kept and shown.
            payload = payload.replace(key.encode(), b"***") if key else payload
            return _Reply(status=found.status, headers=named, payload=payload, sent=True)
        except (OSError, http.client.HTTPException) as error:
            return _Reply(status=0, headers={}, payload=f"{type(error).__name__}: {error}".encode(), sent=sent)
        finally:
            connection.close()


def _ended(book: sqlite3.Connection, key: str) -> bool:
    """Whether the process that took a request on is known to have ended: nobody waits for it then."""
    asker = book.execute("select machine, process from askers where key = ?", (key,)).fetchone()
    if asker is None or asker[0] != _machine() or os.name != "posix":
        return False
    try:
        os.kill(int(asker[1]), 0)  # sends nothing, and says whether there is such a process
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and somebody else's
    return False


@cache
def _machine() -> str:
    """Name of the machine, and of the container where processes are numbered by themselves."""
    try:
        return f"{platform.node()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _are_prices(given: Any) -> bool:
    pair = given if isinstance(given, tuple | list) else ()
    return len(pair) == 2 and all(isinstance(one, int | float) and 0 <= one < math.inf for one in pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One request: its hash, the model that is asked, its text, and the tokens that a try can cost at most."""

    key: str
    model: str
    text: str
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """What came back; status 0 if nothing did. `sent` tells whether the request can have been billed all the same."""

    status: int
    headers: Mapping[str, str]
    payload: bytes
    sent: bool

    @property
    def words(self) -> str:
        """The beginning of what was said, on one line."""
        return " ".join(self.payload.decode("utf-8", "replace").split())[:200] or "nothing"

    def read(self, most: int) -> tuple[Mapping[str, Any] | None, int, int]:
        """The first answer with what belongs to it, and the tokens that were sent and that came back.

        Where the service does not say, they are all that they could be, and came back: the dearer kind.
        """
        if self.status != 200:
            return None, 0, most if self.status == 0 and self.sent else 0
        try:
            plain = json.loads(self.payload)
            choice, used = plain["choices"][0], plain.get("usage") or {}
            choice = choice if isinstance(choice["message"]["content"], str) else None
            total = min(max(int(used.get("total_tokens") or most), 0), most)
            sent = min(max(int(used.get("prompt_tokens") or 0), 0), total)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError):
            return None, 0, most
        return choice, sent, total - sent

    def patience(self, otherwise: float) -> float:
        """Seconds to wait before the next try: what ``Retry-After`` says (seconds or a date), at most ten minutes."""
        said = self.headers.get("retry-after", "")
        try:
            seconds = float(said)
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
            except (ValueError, TypeError):
                seconds = otherwise
        return min(max(seconds, 0.0), 600.0)
