"""Who votes: small rules that say whether the ball is in the picture. Each may be wrong, and often is."""

from itertools import pairwise

import numpy as np

import dugong as dg
from dugong.sources import WindowView
from dugong.types import AnyArray


@dg.source
def something_bright(frame: AnyArray) -> int:
    """Look at one picture: a ball has bright pixels."""
    return dg.POSITIVE if (frame.mean(axis=2) > 190).sum() > 6 else dg.NEGATIVE


@dg.source
def something_red(frame: AnyArray) -> int:
    """Look at its colours: abstain where nothing stands out."""
    redness = np.float64(frame[..., 0]) - frame[..., 2]
    return dg.POSITIVE if redness.max() > 75 else dg.ABSTAIN if redness.max() > 55 else dg.NEGATIVE


@dg.source(resolution=dg.Window(seconds=1, link="any"))
def something_moves(window: WindowView) -> int:
    """Look at one second: positive if the ball is in any of its pictures."""
    pictures = [np.float64(frame).mean(axis=2) for frame in window]
    changes = [np.abs(b - a).max() for a, b in pairwise(pictures)]
    return dg.POSITIVE if max(changes, default=0.0) > 110 else dg.NEGATIVE
