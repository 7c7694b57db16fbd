"""Who votes: small rules that say whether a word names a drug. Each may be wrong, and often is."""

import dugong as dg
from dugong.sources import WindowView

LEXICON = {"aspirin", "insulin", "warfarin", "lisinopril", "metoprolol", "simvastatin", "mile"}
ENDINGS = ("pril", "olol", "statin", "cillin", "azole", "lin")
PLAIN = {"the", "a", "was", "is", "with", "for", "and", "in", "given", "patient", "started", "on", "daily", "after"}


@dg.source
def in_lexicon(word: str) -> int:
    """Known names, and words that are certainly none."""
    lower = word.lower().strip(".,")
    return dg.POSITIVE if lower in LEXICON else dg.NEGATIVE if lower in PLAIN else dg.ABSTAIN


@dg.source
def ends_like_a_drug(word: str) -> int:
    """Endings that drugs have."""
    return dg.POSITIVE if word.lower().strip(".,").endswith(ENDINGS) else dg.NEGATIVE


@dg.source
def looks_unusual(word: str) -> int:
    """Long words without a capital: often names of substances, and often not."""
    lower = word.strip(".,")
    return dg.POSITIVE if len(lower) >= 7 and lower.islower() else dg.NEGATIVE


@dg.source(resolution=dg.Sequence(link="any"))
def mentions_a_dose(note: WindowView) -> int:
    """Whole notes: where there is a dose, there is a drug."""
    return dg.POSITIVE if any(word.strip(".,") in ("mg", "units") for word in note) else dg.ABSTAIN
