"""Who votes: small rules that say whether an animal calls. Each may be wrong, and often is."""

import numpy as np

import dugong as dg
from dugong.sources import WindowView
from dugong.types import AnyArray


@dg.source
def loud(samples: AnyArray) -> int:
    """Listen to half a second: calls are louder than the wind, but so are gusts."""
    return dg.POSITIVE if np.sqrt(np.mean(samples**2)) > 0.075 else dg.NEGATIVE


@dg.source
def has_a_pitch(samples: AnyArray) -> int:
    """A call is a tone: one frequency stands out of the spectrum."""
    spectrum = np.abs(np.fft.rfft(samples))
    peak = spectrum.max() / (np.median(spectrum) + 1e-9)
    return dg.POSITIVE if peak > 7 else dg.ABSTAIN if peak > 5 else dg.NEGATIVE


@dg.source(resolution=dg.Window(seconds=2, link="any"))
def in_the_voice_band(window: WindowView) -> int:
    """Listen to two seconds: positive if somebody calls in any part of them."""
    spectrum = np.abs(np.fft.rfft(np.concatenate(list(window)))) ** 2
    share = spectrum[800:1800].sum() / spectrum.sum()  # 400 to 900 Hz: there are two lines of the spectrum per Hz
    return dg.POSITIVE if share > 0.33 else dg.NEGATIVE
