"""Who votes: small rules that say whether somebody walks. Each may be wrong, and often is."""

import numpy as np

import dugong as dg
from dugong.sources import WindowView
from dugong.sources.loaders import Row, Rows


@dg.source
def moves(second: Row) -> int:
    """Look at one second."""
    return dg.POSITIVE if second.movement > 0.6 else dg.NEGATIVE


@dg.source(resolution=dg.Window(size=10, link="any"))
def steps_heard(window: WindowView) -> int:
    """Look at ten seconds: positive if somebody walks in any of them."""
    loud = sum(second.steps > 0.8 for second in window)
    return dg.POSITIVE if loud >= 3 else dg.NEGATIVE if loud == 0 else dg.ABSTAIN


@dg.source(resolution=dg.Sequence(link="any"))
def heart_is_fast(recording: Rows) -> int:
    """Look at the whole recording: positive if somebody walks at all."""
    fastest = np.sort(recording["heart"])[-5:].mean()
    return dg.POSITIVE if fastest > 1.2 else dg.NEGATIVE
