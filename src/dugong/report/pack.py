"""Small numbers as short text: what keeps a page with a million votes below five megabytes.

Values of b bits become characters of a 64-letter alphabet that needs no escaping: three 2-bit codes or two 3-bit codes
per character, or one, two or three characters per value. ``assets/data.js`` reads it back.
"""

from __future__ import annotations

import numpy as np

from dugong.types import AnyArray, FloatArray

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BYTES = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
_SIZES = (2, 3, 6, 12, 18)

LOG_BITS = 18
LOG_CHARS = 3
LOG_STEP = 0.001
LOG_LIMIT = (2 ** (LOG_BITS - 1) - 1) * LOG_STEP
"""Log-odds are kept to 0.001, and to 131 at most; what lies beyond is shown as "more than"."""


def bits_for(n_values: int) -> int:
    """Bits per value, of those that pack well."""
    return next(bits for bits in _SIZES if n_values <= 2**bits)


def chars_per_code(n_values: int) -> float:
    """Characters that one value takes."""
    return bits_for(n_values) / 6


def pack(values: AnyArray, bits: int) -> str:
    """Numbers from 0 to 2**bits - 1 as text."""
    numbers = np.asarray(values, dtype=np.int64)
    if bits >= 6:
        digits = np.stack([(numbers >> shift) & 63 for shift in range(bits - 6, -1, -6)], axis=-1).reshape(-1)
    else:
        per = 6 // bits
        padded = np.zeros(-(-len(numbers) // per) * per, dtype=np.int64)
        padded[: len(numbers)] = numbers
        digits = np.zeros(len(padded) // per, dtype=np.int64)
        for place in range(per):
            digits = (digits << bits) | padded[place::per]
    return _BYTES[digits].tobytes().decode("ascii")


def pack_logs(values: FloatArray) -> str:
    """Log-odds or log-probabilities as text, rounded to 0.001 and limited to 131."""
    limited = np.clip(np.nan_to_num(values, nan=0.0, posinf=LOG_LIMIT, neginf=-LOG_LIMIT), -LOG_LIMIT, LOG_LIMIT)
    return pack(np.rint((limited + LOG_LIMIT) / LOG_STEP), LOG_BITS)
