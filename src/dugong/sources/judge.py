"""A model as a source: a question about every element, window or sequence, asked of a chat endpoint.

In: a question, the answers to choose from and what they mean as votes. Out: a `Source` like any other. What is asked is
built by plain rules: words as they are, rows of a table as names and values, pictures as PNG. Structured answers are
demanded (a JSON schema), at temperature 0; an answer outside of the choices is a fault.
"""

from __future__ import annotations

import base64
import inspect
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np

from dugong.exceptions import SourceError
from dugong.sources.asking import Service
from dugong.sources.decorator import Source, source
from dugong.sources.inputs import TaskBounds, by_position
from dugong.tasks import Element, Resolution
from dugong.types import AnyArray

Content = list[dict[str, Any]]
# What a message costs beside its text: roles and separators, generously.
_OVERHEAD = 64


@dataclass(frozen=True, kw_only=True)
class Judge:
    """The function behind a source that `judge` makes; it reads a whole sequence and answers task by task.

    Attributes
    ----------
    choices : mapping of answer to vote
    service : where to ask
    model : name of the model
    by_element : whether a task is a single element rather than a window or a sequence
    show : function from what a task covers to text or a picture, or None for our own
    batch : tasks per request
    parallel : requests under way at once
    soft : whether answers come with how likely they are
    logprobs : whether that is taken from the tokens of the answer, rather than asked for
    most_pictures : pictures per task; windows with more are thinned out evenly
    tokens_per_picture : what a picture may cost, for the budget
    """

    question: str
    choices: Mapping[str, Any]
    service: Service
    model: str
    by_element: bool = True
    show: Callable[[Any], Any] | None = None
    batch: int = 1
    parallel: int = 4
    soft: bool = False
    logprobs: bool = False
    most_pictures: int = 4
    tokens_per_picture: int = 2000

    def __call__(self, sequence: Any, tasks: TaskBounds) -> list[Any]:
        """One vote per task."""
        positions = by_position(sequence)
        bounds = list(zip(tasks.starts.tolist(), tasks.stops.tolist(), strict=True))
        shown = [self._content(positions[a] if self.by_element else positions[a:b]) for a, b in bounds]
        groups = [shown[first : first + self.batch] for first in range(0, len(shown), self.batch)]
        with ThreadPoolExecutor(self.parallel, thread_name_prefix="dugong-judge") as threads:
            return [vote for votes in threads.map(self._ask, groups) for vote in votes]

    @property
    def sends_to(self) -> str:
        """Who gets the data."""
        return self.service.address

    def take_usage(self) -> dict[str, float]:
        """Calls, cached answers, tokens and their cost since this was last asked."""
        return self.service.take_usage()

    # --- one request -------------------------------------------------------------------------------------------------
    def _ask(self, group: list[Content]) -> list[Any]:
        def accept(choice: Mapping[str, Any]) -> str | None:
            text: str = choice["message"]["content"]
            if self.logprobs and _answers(text, len(group)):
                text = self._weighed(text, choice.get("logprobs"))
            return text if self._read(text, len(group)) else None

        answers = self._read(self.service.ask(self.request(group), self._most(group), accept), len(group))
        return [self._vote(*one) for one in answers or ()]

    def _weighed(self, text: str, logprobs: Any) -> str:
        """Answers with the probabilities of their tokens; none where the service gives none."""
        chances, found = token_chances(text, logprobs), []
        for place, answer in enumerate(_answers(text)):
            chance = None if chances is None else chances[place]
            if chance:
                # Among those that are votes; the rest of its probability is shared by all others.
                others = [vote for one, vote in self.choices.items() if one != answer]
                share = sum(1 for vote in others if vote) / max(len(others), 1)
                chance = chance / (chance + (1 - chance) * share)
            found.append({"answer": answer, "probability": chance})
        return json.dumps({"answers": found}, ensure_ascii=False)

    def _vote(self, answer: str, probability: float | None) -> Any:
        """The vote that an answer means; of a soft judge one probability per class, None where it is unsure."""
        vote = self.choices[answer]
        if not self.soft:
            return vote
        n_classes = max(2, *(one for one in self.choices.values() if one is not None))
        if probability is None:
            self.service.note(plain=1)
        if not vote:
            return None
        # A probability of one, if all have it, is worth what the vote is worth.
        probability = 1.0 if probability is None else probability
        rest = np.full(n_classes, (1 - probability) / (n_classes - 1))
        rest[(vote + 1) // 2 if n_classes == 2 else vote - 1] = probability
        return rest.tolist()

    def request(self, group: list[Content]) -> dict[str, Any]:
        """The body of a request about some tasks."""
        words = ", ".join(json.dumps(one, ensure_ascii=False) for one in self.choices)
        many = len(group) > 1
        system = f"{self.question}\nAnswer with one of: {words}."
        if self._stated:
            system += " With each answer give the probability, from 0 to 1, that it is right."
        if many:
            system += f" There are {len(group)} items; give one answer for each, in order."
        content: Content = []
        for place, one in enumerate(group):
            content += [{"type": "text", "text": f"Item {place + 1}:"}, *one] if many else one
        answer: dict[str, Any] = {"type": "string", "enum": list(self.choices)}
        if self._stated:
            answer = _object(answer=answer, probability={"type": "number", "minimum": 0, "maximum": 1})
        items = {"type": "array", "items": answer, "minItems": len(group), "maxItems": len(group)}
        schema = _object(answers=items)
        return {
            **({"logprobs": True} if self.logprobs else {}),
            "model": self.model,
            "temperature": 0,
            "max_tokens": self._reply(len(group)),
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": content}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answers", "strict": True, "schema": schema},
            },
        }

    @property
    def _stated(self) -> bool:
        """Whether the model is asked to say how likely its answer is."""
        return self.soft and not self.logprobs

    def _reply(self, n_tasks: int) -> int:
        """Tokens that the answer may have: one per byte is more than enough."""
        longest = max(len(one.encode()) for one in self.choices)
        return 32 + n_tasks * (longest + 8 + 48 * self._stated)

    def _most(self, group: list[Content]) -> int:
        """Tokens that a request can cost: no tokenizer makes more than one token of a byte."""
        parts = [part for one in group for part in one]
        pictures = [part["type"] for part in parts].count("image_url")
        words = [[part for part in one if part["type"] == "text"] for one in group]
        text: int = len(json.dumps(self.request(words), ensure_ascii=False).encode("utf-8", "replace"))
        return text + pictures * self.tokens_per_picture + self._reply(len(group)) + _OVERHEAD

    def _read(self, text: str, n_tasks: int) -> list[tuple[str, float | None]] | None:
        """The answers in a text with their probabilities, None if it is not what was asked for."""
        found = [self._said(one) for one in _answers(text, n_tasks)]
        return None if not found or None in found else [one for one in found if one is not None]

    def _said(self, one: Any) -> tuple[str, float | None] | None:
        """An answer and its probability, None if it is not what was asked for."""
        answer, probability = one, 1.0
        if self.soft:
            fields = one if isinstance(one, dict) else {}
            answer, probability = fields.get("answer"), fields.get("probability", -1)
        if not (isinstance(answer, str) and answer in self.choices):
            return None
        if probability is None and self.logprobs:
            return answer, None
        number = isinstance(probability, int | float) and not isinstance(probability, bool) and 0 <= probability <= 1
        return (answer, float(probability)) if number else None

    # --- what is shown -----------------------------------------------------------------------------------------------
    def _content(self, item: Any) -> Content:
        """What a task covers, as parts of a message."""
        if self.show is not None:
            item = self.show(item)
        if is_picture(item):
            return [picture_part(item)]
        if isinstance(item, str):
            return [{"type": "text", "text": item}]
        elements = _elements(item)
        if elements and all(map(is_picture, elements)):
            chosen = np.linspace(0, len(elements) - 1, min(self.most_pictures, len(elements))).round().astype(int)
            return [picture_part(elements[place]) for place in chosen]
        return [{"type": "text", "text": _text(item, elements)}]


def _answers(text: str, n_tasks: int | None = None) -> list[Any]:
    """What stands under "answers"; nothing if the text is not so, or there are not as many as tasks."""
    try:
        answers = json.loads(text)["answers"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return answers if isinstance(answers, list) and n_tasks in (None, len(answers)) else []


def token_chances(text: str, logprobs: Any) -> list[float] | None:
    """The probability of every answer in a text: that of all tokens with letters of it; None if they are not given."""
    try:
        rows = logprobs["content"]
        pieces = [bytes(one["bytes"]) if one.get("bytes") else one["token"].encode() for one in rows]
        logs = np.array([float(one["logprob"]) for one in rows])
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    if b"".join(pieces) != text.encode() or np.isnan(logs).any():
        return None
    stops = np.cumsum([len(one) for one in pieces])
    starts = np.append(0, stops[:-1])
    return [float(np.exp(min(logs[(starts < end) & (stops > begin)].sum(), 0.0))) for begin, end in _places(text)]


def _places(text: str) -> list[tuple[int, int]]:
    """Where the letters of every answer begin and end, in bytes, without their quotation marks."""
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    found: list[tuple[int, int]] = []
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" \n\r\t,"))
        if text[at] == "]":
            return found
        _, end = decoder.raw_decode(text, at)
        found.append((len(text[: at + 1].encode()), len(text[: end - 1].encode())))
        at = end


def _object(**properties: Any) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _elements(item: Any) -> list[Any]:
    """The elements of a window or sequence; none for a row, which is one thing."""
    if hasattr(item, "to_dict") and not hasattr(item, "columns"):
        return []
    return list(item) if hasattr(item, "__len__") and hasattr(item, "__getitem__") else []


def _text(item: Any, elements: list[Any]) -> str:
    if elements and all(isinstance(one, str) for one in elements):
        return " ".join(elements)
    return "\n".join(_line(one) for one in elements or [item])


def _line(item: Any) -> str:
    """One element in words."""
    item = item.to_dict() if hasattr(item, "to_dict") else item
    if isinstance(item, str | int | float | np.number):
        return str(item)
    if isinstance(item, Mapping):
        return ", ".join(f"{name}: {value}" for name, value in item.items())
    raise SourceError(
        f"a judge can show words, numbers, rows of a table and pictures; found {type(item).__name__}.\n"
        "  Pass show=, a function from an element or window to text or to a picture."
    )


def is_picture(item: Any) -> bool:
    """Whether something is a picture: bytes of shape (height, width) or (height, width, 3)."""
    if not isinstance(item, np.ndarray) or item.dtype != np.uint8:
        return False
    return item.ndim == 2 or (item.ndim == 3 and item.shape[2] == 3)


def picture_part(picture: AnyArray) -> dict[str, Any]:
    """A picture as a part of a message."""
    data = base64.b64encode(png(picture)).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def png(picture: AnyArray) -> bytes:
    """A picture as the bytes of a PNG file."""
    height, width = picture.shape[:2]
    colours = 2 if picture.ndim == 3 else 0
    # Every row begins with the number of its filter; 0 is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def judge(  # noqa: PLR0913 (a request has many sides, each named by the caller)
    question: str,
    choices: Mapping[str, Any] | None = None,
    *,
    base_url: str,
    model: str,
    resolution: Resolution | None = None,
    name: str = "judge",
    key_env: str | None = None,
    max_tokens_total: int | None = None,
    cache: str | PathLike[str] = "judge.sqlite",
    show: Callable[[Any], Any] | None = None,
    batch: int = 1,
    soft: bool | Literal["logprobs"] = False,
    prices: tuple[float, float] | None = None,
    timeout: float = 60.0,
) -> Source:
    """Make a source of a model that is asked a question: any OpenAI-compatible chat endpoint, a local server as well.

    Nothing is sent before votes are asked for, and every answer is kept on disk: a second run asks nothing twice.

    Parameters
    ----------
    question : str
        What to ask, such as ``"Is somebody speaking?"``.
    choices : mapping of answer to vote, optional
        ``{"yes": 1, "no": -1, "unsure": 0}`` by default; with more than two classes, answers to classes.
    base_url, model : str
        The endpoint, such as ``http://localhost:8000/v1``, and the name of the model there.
    resolution : Element, Window, Sequence or Spans, optional
        What it votes on; every element by default.
    name : str
    key_env : str, optional
        Name of the environment variable that holds the key. The key itself is never written anywhere.
    max_tokens_total : int, optional
        Tokens that all requests may cost together. They are put aside before a request is sent, so that the sum is
        never exceeded, whatever happens.
    cache : str or path
        File for the answers; processes may share it. A relative one counts from the folder of the project whose file
        calls this; outside of any project, from the folder in which you are.
    show : function, optional
        From what a task covers to a text or a picture (bytes, (height, width, 3)).
    batch : int
        Tasks per request.
    soft : bool or "logprobs"
        Ask for a probability with each answer, and vote softly: how far the numbers can be believed is learned. With
        "logprobs" it is that of the tokens of the answer, as far as the endpoint tells: answers without it count as
        plain votes, and the run's table says how many there are.
    prices : (float, float), optional
        What a million tokens cost that are sent, and that come back, in any currency: the run's table says what was
        spent.
    timeout : float
        Seconds for one request.
    """
    votes = {"yes": 1, "no": -1, "unsure": 0} if choices is None else dict(choices)
    if not votes or not all(isinstance(one, str) and one for one in votes):
        raise SourceError(f"choices= must map answers to votes, such as {{'yes': 1, 'no': -1}}; found {choices!r}.")
    if batch < 1:
        raise SourceError(f"batch= must be at least 1 task; found {batch!r}.")
    if soft not in (False, True, "logprobs"):
        raise SourceError(f"soft= must be True, False or 'logprobs'; found {soft!r}.")
    if soft and not all(one is None or (isinstance(one, int) and not isinstance(one, bool)) for one in votes.values()):
        raise SourceError(f"choices= of a soft judge must map answers to votes as numbers; found {choices!r}.")
    found = Element() if resolution is None else resolution
    service = Service(
        base_url=base_url,
        key_env=key_env,
        cache=str(_in_project(cache, inspect.currentframe())),
        max_tokens_total=max_tokens_total,
        timeout=timeout,
        prices=prices,
    )
    function = Judge(
        question=question,
        choices=votes,
        service=service,
        model=model,
        by_element=isinstance(found, Element),
        show=show,
        batch=batch,
        soft=bool(soft),
        logprobs=soft == "logprobs",
    )
    return source(resolution=found, name=name, vectorized=True, soft=bool(soft))(function)


def _in_project(cache: str | PathLike[str], frame: FrameType | None) -> Path:
    """A relative path from the folder of the project whose file is at work one frame up; as it is where there is none.

    By the file and not by who loads it: worker processes import it by name, from wherever they run.
    """
    caller = None if frame is None else frame.f_back
    file = None if caller is None else caller.f_globals.get("__file__")
    folders = () if file is None else Path(file).resolve().parents
    home = next((folder for folder in folders if (folder / "project.toml").is_file()), Path())
    return home / cache
