"""Eight sources for the broadcasts of `standard`: plain functions of a few lines, at three resolutions."""

from __future__ import annotations

from dugong.sources import WindowView, source
from dugong.types import ABSTAIN, NEGATIVE, POSITIVE
from dugong.worlds.standard import BROADCAST, CAPTIONS, Frame


@source
def host_on_screen(frame: Frame) -> int:
    """The host's face, if the recogniser is sure."""
    confidence = frame.faces.get("host", 0.0)
    if 0 < confidence < 0.65:
        return ABSTAIN
    return POSITIVE if confidence else NEGATIVE


@source
def guest_on_screen(frame: Frame) -> int:
    """A known guest; that nobody is recognised says nothing."""
    return POSITIVE if frame.faces.get("guest", 0.0) > 0.65 else ABSTAIN


@source
def two_people(frame: Frame) -> int:
    """An interview shows two people; a crowd is hard to count."""
    if frame.people > 2:
        return ABSTAIN
    return POSITIVE if frame.people == 2 else NEGATIVE


@source
def close_up(frame: Frame) -> int:
    """Interviews are filmed from near by."""
    if frame.face_height > 0.365:
        return POSITIVE
    return NEGATIVE if frame.face_height < 0.19 else ABSTAIN


@source
def studio_light(frame: Frame) -> int:
    """A studio is bright, the street in the evening news is not."""
    if frame.brightness > 0.525:
        return POSITIVE
    return NEGATIVE if frame.brightness < 0.375 else ABSTAIN


def spoken(window: WindowView) -> str:
    """All words said during a window."""
    return " ".join(frame.caption for frame in window)


@source(resolution=CAPTIONS)
def thank_you(window: WindowView) -> int:
    """Guests are thanked."""
    words = spoken(window)
    return POSITIVE if "thank you" in words or "many thanks" in words else ABSTAIN


@source(resolution=CAPTIONS)
def small_talk(window: WindowView) -> int:
    """Questions to a guest, or the phrases of the news desk."""
    words = spoken(window)
    if any(phrase in words for phrase in ("do you", "let me ask")):
        return POSITIVE
    return NEGATIVE if any(phrase in words for phrase in ("breaking", "weather", "markets")) else ABSTAIN


@source(resolution=BROADCAST)
def interview_programme(broadcast: list[Frame]) -> int:
    """Some programmes are interviews, some never are."""
    title = broadcast[0].programme
    if title in ("One on One", "The Evening Interview"):
        return POSITIVE
    return NEGATIVE if title in ("Weather Now", "Market Hour") else ABSTAIN


SOURCES = (
    host_on_screen,
    guest_on_screen,
    two_people,
    close_up,
    studio_light,
    thank_you,
    small_talk,
    interview_programme,
)
