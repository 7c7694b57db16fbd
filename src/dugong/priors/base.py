"""What every prior can be asked, whatever it is made of.

A prior is a law over the labels of a sequence. The questions (probability of a pattern, moments of tasks,
shorter lengths, samples) are answered here from `chain()`, the one form that inference reads as well;
`Joint`, which has no chain, answers them from its own table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from dugong.codec import decode, encode
from dugong.contract import typed
from dugong.exceptions import PriorError
from dugong.priors._kernels import class_count_moments, sample_states
from dugong.priors.chain import Edges, GivenSpans, LabelChain, Task, chain_law, class_index, piece_of
from dugong.texts import counted
from dugong.types import FloatArray, Int8Array, IntArray, class_values

if TYPE_CHECKING:
    from dugong.priors.patterns import Patterns

SHORT = 16

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")
OfPrior = Callable[Concatenate["Prior", ParamsT], ResultT]


class Prior(ABC):
    """A law over the labels of a sequence of any length."""

    __slots__ = ()

    n_classes: int

    @abstractmethod
    def chain(self) -> LabelChain:
        """The law as a homogeneous Markov chain over label states."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `priors.from_dict` turns back into the same prior."""
        return dict(encode(self))

    @property
    def classes(self) -> tuple[int, ...]:
        """Class values of element labels: (-1, 1), or 1..K."""
        return class_values(self.n_classes)

    def joint_law(
        self,
        tasks: tuple[Task, ...] | list[Task],
        length: int,
        spans: GivenSpans | None = None,
        class_names: tuple[str, ...] | None = None,
    ) -> FloatArray:
        """Joint law of the labels of some tasks of one sequence, exact; one axis per task, in class order.

        Parameters
        ----------
        tasks : list of (resolution, index)
        length : int
            Elements of the sequence.
        spans : mapping of name to list of (start, stop), optional
            The pieces of this sequence, for tasks at a `Spans` resolution.
        class_names : tuple of str, optional
            Needed when a resolution names its class (``of="REM"``).
        """
        pieces = [piece_of(task, length, self.n_classes, spans, class_names) for task in tasks]
        return chain_law(self.chain(), pieces)

    def probability(self, pattern: tuple[int, ...] | list[int] | Int8Array) -> float:
        """Probability that a sequence begins with (for its own length: is) this pattern of class values."""
        chain = self.chain()
        places = [class_index(label, self.n_classes, "a pattern") for label in pattern]
        law = chain.initial
        for position, place in enumerate(places):
            law = np.where(chain.labels == place, law if position == 0 else law @ chain.transition, 0.0)
        return float(law.sum()) if places else 1.0

    def mean(self, task: Task, length: int, spans: GivenSpans | None = None) -> float:
        """E[y] of a task, with y = +1 if it is positive and -1 otherwise; exact at any length."""
        return float(self.joint_law([task], length, spans) @ _values(self, task))

    def cov(self, task_a: Task, task_b: Task, length: int, spans: GivenSpans | None = None) -> float:
        """Cov(y, y') of two tasks, at the same or different resolutions; costs the elements between them."""
        law = self.joint_law([task_a, task_b], length, spans)
        table = law - np.outer(law.sum(axis=1), law.sum(axis=0))
        return float(_values(self, task_a) @ table @ _values(self, task_b))

    def shorter(self, length: int) -> Patterns:
        """The law of the first `length` labels as a table of patterns."""
        from dugong.priors.patterns import Patterns

        if length < 1 or self.n_classes**length > 2**SHORT:
            raise PriorError(
                f"a table of patterns needs a length from 1 with at most {2**SHORT} patterns; "
                f"found {counted(length, 'element')} of {self.n_classes} classes."
            )
        return Patterns(self.joint_law([("element", place) for place in range(length)], length))

    def count_moments(self, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
        """E[n_c] and E[n_c n_d] of the numbers of elements of each class, for sorted lengths; (n, K), (n, K, K)."""
        chain = self.chain()
        lengths = np.ascontiguousarray(lengths, dtype=np.int64)
        first, second = class_count_moments(chain.initial.copy(), *Edges.of(chain), self.n_classes, lengths)
        return first, second

    def sample(self, length: int, rng: np.random.Generator) -> Int8Array:
        """Class values of one sequence, shape (length,)."""
        return self.sample_lengths(np.array([length]), rng)

    def sample_lengths(self, lengths: IntArray, rng: np.random.Generator) -> Int8Array:
        """Class values of many sequences, flat, sequence after sequence."""
        chain = self.chain()
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        # One uniform number per element, so that a sample does not depend on how sequences are grouped.
        places = sample_states(
            np.cumsum(chain.initial),
            np.cumsum(chain.transition, axis=1),
            chain.labels,
            offsets,
            rng.random(int(offsets[-1])),
        )
        return np.array(self.classes, dtype=np.int8)[places]


@typed(PriorError)
def from_dict(plain: Mapping[str, Any]) -> Prior:
    """The prior that `to_dict` described."""
    found: Prior = decode(Prior, plain)
    return found


def _values(prior: Prior, task: Task) -> FloatArray:
    """Value y of each class of a task: +1 if it is positive and -1 otherwise (METHOD section 3.3).

    An element with K > 2 classes needs the class that counts as a third entry: ``("element", 3, 2)`` is +1 where
    element 3 has class 2.
    """
    if len(task) == 3:
        classes = prior.n_classes
        counted = class_index(task[2], classes, "a task")
    else:
        classes = prior.n_classes if getattr(task[0], "kind", task[0]) == "element" else 2
        counted = 1
        if classes > 2:
            raise PriorError(
                f"the value of an element with {classes} classes needs the class that counts; "
                f"found {task!r}.\n  Give it as a third entry: ('element', {task[1]}, class)."
            )
    values = np.full(classes, -1.0)
    values[counted] = 1.0
    return values


def sample_balance_covariance(
    prior: Prior, lengths: IntArray, counts: IntArray | FloatArray | None = None
) -> FloatArray:
    """Covariance under the prior of the share of each class among all elements of a sample, shape (K, K).

    A sample of sequences has its own share of each class; with few long sequences it differs from the prior's by more
    than its size suggests (METHOD section 3.3, "balance of the sample").

    Parameters
    ----------
    prior : Prior
    lengths, counts : (n,) arrays
        Elements of the sequences, and how many (independent) sequences have each length; one by default.
    """
    lengths = np.atleast_1d(np.asarray(lengths, dtype=np.int64))
    weights = np.ones(len(lengths)) if counts is None else np.asarray(counts, dtype=np.float64)
    total = float(lengths @ weights)
    if total == 0:
        raise PriorError("the balance of a sample needs at least one element; found none.")
    distinct, inverse = np.unique(lengths, return_inverse=True)
    first, second = prior.count_moments(distinct)
    spread = second - first[:, :, None] * first[:, None, :]
    numbers = np.bincount(inverse, weights=weights, minlength=len(distinct))
    return np.asarray(np.tensordot(numbers, spread, axes=1) / total**2)


def sample_balance_variance(
    prior: Prior, lengths: IntArray, counts: IntArray | FloatArray | None = None, *, positive: int = 1
) -> float:
    """Variance under the prior of the mean of y over all elements; y is +1 at class `positive`, else -1."""
    return 4.0 * float(sample_balance_covariance(prior, lengths, counts)[positive, positive])


def kept_by_prior(maxsize: int) -> Callable[[OfPrior[ParamsT, ResultT]], OfPrior[ParamsT, ResultT]]:
    """Keep what a function found about a prior, where priors that are equal have equal laws."""

    def decorate(function: OfPrior[ParamsT, ResultT]) -> OfPrior[ParamsT, ResultT]:
        kept = lru_cache(maxsize)(function)

        @wraps(function)
        def answer(prior: Prior, /, *args: ParamsT.args, **options: ParamsT.kwargs) -> ResultT:
            asked: OfPrior[ParamsT, ResultT] = kept if _is_a_value(prior) else function
            return asked(prior, *args, **options)

        return answer

    return decorate


def _is_a_value(prior: Prior) -> bool:
    """Whether a prior is known by its numbers: a user's own may have no hash, or be one object whose numbers change."""
    if type(prior).__eq__ is object.__eq__:
        return False
    try:
        hash(prior)
    except TypeError:
        return False
    return True
