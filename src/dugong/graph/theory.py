"""What the theorems of the paper promise: how many sources are needed, and how fast the error falls.

Plain formulas in the number of sequences n, of sources m and of elements T. Every function names its theorem. The
bounds are worst cases, far above the errors that users meet: `worlds.planner` simulates a given configuration instead.

Differs from the paper: the bound of Theorem 1 uses ||B_2^-1||, not ||B_2T^-1|| as printed, because a tied
table has one vote and one label (docs/differences.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isfinite, lgamma, log, log2, prod, sqrt
from typing import Literal, Required, TypedDict, Unpack

from dugong.exceptions import GraphError

Target = Literal["accuracies", "correlations"]
_EXACT_WINDOW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralMinimum:
    """Sources that suffice for generic identifiability when labels do not factorise over time.

    Attributes
    ----------
    free : as printed: the labels of elements, windows and the sequence are free of each other
    linked : the labels of windows and the sequence follow from those of the elements, so that only r^T patterns exist
    """

    free: int
    linked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainMinimum:
    """Sources that suffice for generic identifiability when groups of elements form a Markov chain.

    Attributes
    ----------
    as_printed : the paper's reading: k is the number of windows
    as_cited : int or None
        The reading of the theorem that the paper cites (Allman, Matias and Rhodes 2009, Theorem 6), which
        is about 2k + 1 consecutive windows. None: no number of sources suffices (fewer than three windows).
    """

    as_printed: int | None
    as_cited: int | None


def minimum_sources(n_elements: int, window: int, *, n_classes: int = 2, longest_vote: int = 1) -> GeneralMinimum:
    """Sources that suffice in the general case: ``2 ceil(log_v |labels|) + 1`` (appendix, "General case").

    Parameters
    ----------
    n_elements : int
        T, the length of the sequences.
    window : int
        g, the size of the one resolution between element and sequence.
    n_classes : int
        r, the labels of one task.
    longest_vote : int
        w: a source votes on every window of up to w elements, which gives ``v = r^T + ... + r^(T-w+1)`` votes.

    Examples
    --------
    >>> minimum_sources(5, 2)
    GeneralMinimum(free=5, linked=3)
    """
    if not 1 <= window <= n_elements or not 1 <= longest_vote <= n_elements or n_classes < 2:
        raise GraphError(
            "a minimum number of sources needs 1 <= window <= n_elements, 1 <= longest_vote <= n_elements "
            f"and two classes; found window={window}, longest_vote={longest_vote}, n_elements={n_elements}, "
            f"n_classes={n_classes}."
        )
    n_votes = sum(n_classes ** (n_elements - shorter) for shorter in range(longest_vote))
    free = n_classes ** (2 * n_elements + 2 - window)
    return GeneralMinimum(
        free=2 * _ceil_log(free, n_votes) + 1,
        linked=2 * _ceil_log(n_classes**n_elements, n_votes) + 1,
    )


def minimum_chain_sources(
    n_windows: int, window: int, *, n_votes: int | None = None, n_classes: int = 2
) -> ChainMinimum:
    """Sources that suffice in the HMM-style case (appendix, "Parameter Reduction").

    The smallest m with ``binom(k + v^m - 1, v^m - 1) >= r^(2^u)``, for both readings of k.

    Parameters
    ----------
    n_windows : int
        Groups of u elements in a sequence; the paper writes (2T + 1) / u.
    window : int
        u, elements in a group.
    n_votes : int, optional
        v, different votes that a source can give on a group; r^u by default.
    n_classes : int
        r
    """
    votes = n_classes**window if n_votes is None else n_votes
    if n_windows < 1 or window < 1 or votes < 2 or n_classes < 2:
        raise GraphError(
            "a minimum number of sources needs a window, two votes and two classes; found "
            f"n_windows={n_windows}, window={window}, n_votes={votes}, n_classes={n_classes}."
        )
    return ChainMinimum(
        as_printed=_fewest_sources(n_windows, votes, n_classes, window),
        as_cited=_fewest_sources((n_windows - 1) // 2, votes, n_classes, window),
    )


def _ceil_log(value: int, base: int) -> int:
    """Smallest k with base^k >= value, without rounding errors."""
    power, k = 1, 0
    while power < value:
        power, k = power * base, k + 1
    return k


def _fewest_sources(k: int, n_votes: int, n_classes: int, window: int) -> int | None:
    if k < 1:
        return None
    high = 1
    while not _enough(k, n_votes, high, n_classes, window):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _enough(k, n_votes, middle, n_classes, window) else (middle, high)
    return high


def _enough(k: int, n_votes: int, n_sources: int, n_classes: int, window: int) -> bool:
    """Whether binom(k + v^m - 1, k) >= r^(2^u): exactly for small windows, by logarithms for large ones."""
    if window > _EXACT_WINDOW:
        return _log2_choose(k, n_sources * log2(n_votes)) >= 2.0**window * log2(n_classes)
    alphabet, target, value = n_votes**n_sources, n_classes ** (2**window), 1
    for i in range(1, k + 1):
        value = value * (alphabet - 1 + i) // i
        if value >= target:
            return True
    return False


def _log2_choose(k: int, log2_alphabet: float) -> float:
    """log2 of binom(k + alphabet - 1, k)."""
    if log2_alphabet > 40:
        return k * log2_alphabet - lgamma(k + 1) / log(2)
    alphabet = 2.0**log2_alphabet
    return (lgamma(k + alphabet) - lgamma(alphabet) - lgamma(k + 1)) / log(2)


def products_to_joints_norm(n_variables: int) -> float:
    """||B_t^-1||, the norm of the inverse products-to-joints matrix: 1.366 for t = 2, 1.112 for t = 4.

    B_t = (H_t + 11^T) / 2 leaves the plane of 11^T and the first unit vector invariant, and is H_t / 2 on
    the rest; its smallest singular value lies in the plane, which gives ``(1 + sqrt(1 + 8 / 2^t)) / 2``.
    """
    return (1 + sqrt(1 + 8 * 2.0**-n_variables)) / 2


def incidence_norm(n_sources: int) -> float:
    """||M^+|| for all pairs of c independent sources: ``1 / sqrt(c - 2)``."""
    if n_sources < 3:
        raise GraphError(f"agreements determine accuracies from three sources on; found {n_sources}.")
    return 1 / sqrt(n_sources - 2)


class Margins(TypedDict, total=False):
    """What the bounds ask of a configuration beside its size.

    Attributes
    ----------
    smallest_prior : p_min, the smallest entry of the prior
    smallest_agreement : b_min, the smallest size of an expected agreement E[a_j(U, V)]
    of : mu (the default): grows with sqrt(m T) and ||B_2^-1||; phi: with m T and ||B_4^-1||
    independent : c, mutually independent sources behind every system; three by default, where ||M^+|| = 1
    """

    smallest_prior: Required[float]
    smallest_agreement: Required[float]
    of: Target
    independent: int


def tied_error_bound(n_sequences: int, n_sources: int, n_elements: int, **margins: Unpack[Margins]) -> float:
    """Theorem 1: bound on the expected norm of the error with one table per source for all positions."""
    scale, slack = _tied(n_sources, n_elements, margins)
    return scale * _concentration(slack, n_sequences)


def untied_error_bound(n_sequences: int, n_sources: int, n_elements: int, **margins: Unpack[Margins]) -> float:
    """Theorem 2: as `tied_error_bound`, with full tables over all label patterns; exponential in T."""
    single = margins.get("of", "accuracies") == "accuracies"
    power = n_elements if single else 2 * n_elements
    growth = sqrt(n_sources) if single else float(n_sources)
    slack = log(6) + power * log(2)
    rest = growth * 6 * _conditioning(margins)
    rest *= products_to_joints_norm(2 * power) * _concentration(slack, n_sequences)
    exponent = 2 * power + log2(rest)
    return exp(exponent * log(2)) if exponent < 1000 else float("inf")


def tied_sequences_needed(error: float, n_sources: int, n_elements: int, **margins: Unpack[Margins]) -> int:
    """Sequences from which on the bound of Theorem 1 is at most `error`."""
    if not error > 0:
        raise GraphError(f"the error must be positive; found {error}.")
    scale, slack = _tied(n_sources, n_elements, margins)
    # scale * (sqrt(18 s) x + 2 s x^2) = error with x = 1 / sqrt(n)
    linear, square = sqrt(18 * slack), 2 * slack
    x = 2 * (error / scale) / (linear + sqrt(linear**2 + 4 * square * error / scale))
    n = max(int(1 / x**2), 1)
    return n if scale * _concentration(slack, n) <= error else n + 1


def end_model_bound(accuracy_error: float, correlation_error: float = 0.0, *, optimisation: float = 0.0) -> float:
    """Excess risk of an end model trained on our labels: ``gamma + 8 (||mu error|| + ||phi error||)``.

    (Paper, section 3.2; `optimisation` is gamma, what the end model would lose with true labels.)
    """
    return optimisation + 8 * (accuracy_error + correlation_error)


def _tied(n_sources: int, n_elements: int, margins: Margins) -> tuple[float, float]:
    """What multiplies the concentration in Theorem 1, and the logarithm in that."""
    tables, single = n_sources * n_elements, margins.get("of", "accuracies") == "accuracies"
    growth = sqrt(tables) if single else float(tables)
    return growth * 24 * _conditioning(margins) * products_to_joints_norm(2 if single else 4), log(12)


def _conditioning(margins: Margins) -> float:
    """How much errors of moments grow on the way through M l = q and Bayes' law."""
    smallest = {name: margins[name] for name in ("smallest_prior", "smallest_agreement")}
    for what, value in smallest.items():
        if not isfinite(value) or not 0 < value <= 1:
            raise GraphError(f"{what} must lie in (0, 1]; found {value}.")
    return incidence_norm(margins.get("independent", 3)) / prod(smallest.values())


def _concentration(slack: float, n_sequences: int) -> float:
    """Matrix Bernstein with `slack` the logarithm in it."""
    if n_sequences < 1:
        raise GraphError(f"a bound needs at least one sequence; found {n_sequences}.")
    return sqrt(18 * slack / n_sequences) + 2 * slack / n_sequences
