"""Compiled loops for three neighbouring windows that overlap: their counts jointly, along a chain.

A window (the second), the one before it (the first) and the one after it (the third) are cut where they begin and end.
The state is (count i of what only the first has seen, count j until the third begins, count c since, state s of the
label chain); where the first ends, i is summed out with its factor, and so on. Numbers lie at ((i P + j) S + s) R + c.
"""

from __future__ import annotations

import numpy as np

from dugong.infer.grouped._kernels import BEGIN, END, THRESHOLD, entry, inner
from dugong.types import BoolArray, FloatArray, IntArray


@inner
def advance(
    steps: FloatArray, t: int, counted: BoolArray, old: FloatArray, new: FloatArray, sizes: IntArray, which: int
) -> None:
    """One element further; `which` count it goes to. `sizes`: P, R, and how many of i, j and c are in use."""
    S, P, R, n = len(counted), sizes[0], sizes[1], np.uint64(sizes[4])
    for i in range(sizes[2] + (which == 0)):
        for j in range(sizes[3] + (which == 1)):
            for c in range(((i * P + j) * S) * R, ((i * P + j) * S + S) * R):
                new[c] = 0.0
    for i in range(sizes[2]):
        for j in range(sizes[3]):
            for s in range(S):
                up = counted[s]
                to = (((i + (up and which == 0)) * P + j + (up and which == 1)) * S + s) * R + (up and which == 2)
                for r in range(S):
                    a, b, weight = np.uint64(((i * P + j) * S + r) * R), np.uint64(to), steps[t, r, s]
                    for c in range(n):
                        new[b + c] += weight * old[a + c]
    sizes[2 + which] += 1


@inner
def close(F: FloatArray, S: int, sizes: IntArray, windows: IntArray, factors: FloatArray, which: int) -> None:
    """Sum out what the first or the second window alone has seen, with its factor.

    Of the second it stays known on which side of its threshold it is: that takes the place of j.
    """
    P, R, top = sizes[0], sizes[1], windows[which, THRESHOLD]
    for s in range(S):
        for c in range(sizes[4]):
            if which == 0:
                for j in range(sizes[3]):
                    total = 0.0
                    for i in range(sizes[2]):
                        total += F[((i * P + j) * S + s) * R + c] * factors[0, 1 if i + j + c > top else 0]
                    F[(j * S + s) * R + c] = total
            else:
                below, above = 0.0, 0.0
                for j in range(sizes[3]):
                    if j + c > top:
                        above += F[(j * S + s) * R + c]
                    else:
                        below += F[(j * S + s) * R + c]
                F[s * R + c], F[(S + s) * R + c] = below * factors[1, 0], above * factors[1, 1]
    sizes[2 + which] = 2 if which else 1


@inner
def weigh(
    steps: FloatArray,
    windows: IntArray,
    factors: FloatArray,
    counted: BoolArray,
    F: FloatArray,
    sizes: IntArray,
    begin: int,
    law: FloatArray,
) -> None:
    """Weights of (state before, state after) over a trio: second window negative, positive, and either, as `law`."""
    S, half = len(counted), len(F) // 2
    R = sizes[1]
    for before in range(S):
        old, new = F[:half], F[half:]
        sizes[2], sizes[3], sizes[4] = 1, 1, 1
        for s in range(S):
            old[s * R] = 1.0 if s == before else 0.0
        for t in range(begin, windows[2, END]):
            which = 0 if t < windows[1, BEGIN] else 1 if t < windows[2, BEGIN] else 2
            advance(steps, t, counted, old, new, sizes, which)
            old, new = new, old
            for one in range(2):
                if windows[one, END] == t + 1:
                    close(old, S, sizes, windows, factors, one)
        for z in range(2):
            for s in range(S):
                total = 0.0
                for c in range(sizes[4]):
                    total += old[(z * S + s) * R + c] * factors[2, 1 if c > windows[2, THRESHOLD] else 0]
                law[z, before, s] = total
        for s in range(S):
            law[2, before, s] = law[0, before, s] + law[1, before, s]


@entry
def smooth_trios(
    steps: FloatArray,
    spans: IntArray,
    windows: IntArray,
    factors: FloatArray,
    counted: BoolArray,
    F: FloatArray,
    sizes: IntArray,
    law: FloatArray,
    alpha: FloatArray,
    positive: FloatArray,
) -> None:
    """Probability that the second window of every trio is positive.

    `windows` (U, 3, 3) and `factors` (U, 3, 2) are those of trios that lie apart, `spans` (n_sequences, 4) the elements
    and trios of every sequence. `law` (U, 3, S, S) and `alpha` (U + 2, S) are written to.
    """
    S = len(counted)
    now, then = alpha[len(alpha) - 1], alpha[len(alpha) - 2]
    for q in range(len(spans)):
        t, last = spans[q, 0], spans[q, 3]
        for s in range(S):
            now[s] = 1.0 if s == 0 else 0.0
        for u in range(spans[q, 2], last):
            begin = min(windows[u, 0, BEGIN], windows[u, 1, BEGIN])
            while t < begin:
                pass_on(steps[t], now, then, False)
                t += 1
            weigh(steps, windows[u], factors[u], counted, F, sizes, begin, law[u])
            for s in range(S):
                alpha[u, s] = now[s]
            pass_on(law[u, 2], now, then, False)
            t = windows[u, 2, END]
        for s in range(S):
            now[s] = 1.0
        t = spans[q, 1]
        for u in range(last - 1, spans[q, 2] - 1, -1):
            while t > windows[u, 2, END]:
                t -= 1
                pass_on(steps[t], now, then, True)
            above, total = 0.0, 0.0
            for r in range(S):
                for s in range(S):
                    above += alpha[u, r] * law[u, 1, r, s] * now[s]
                    total += alpha[u, r] * law[u, 2, r, s] * now[s]
            if total > 0.0:
                positive[u] = above / total
            pass_on(law[u, 2], now, then, True)
            t = min(windows[u, 0, BEGIN], windows[u, 1, BEGIN])


@inner
def pass_on(step: FloatArray, now: FloatArray, then: FloatArray, back: bool) -> None:  # noqa: FBT001
    """Weights of the states after a step, or before it; the largest is one."""
    S, most = len(now), 0.0
    for s in range(S):
        then[s] = 0.0
        for r in range(S):
            then[s] += step[s, r] * now[r] if back else now[r] * step[r, s]
        most = max(most, then[s])
    for s in range(S):
        now[s] = then[s] / most
