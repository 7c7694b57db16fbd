"""The short form of `make fuzz`: the same groups, about a hundredth of the cases."""

from __future__ import annotations

import pytest

from fuzz import GROUPS, prepare
from fuzz.running import GOOD, run

CASES = {"models": 60, "bytes": 60, "archives": 60, "parquet": 40, "misuse": 120, "gold": 20, "formats": 20, "bombs": 3}


@pytest.mark.parametrize("name", list(GROUPS))
def test_bad_input_is_refused_in_words(name: str) -> None:
    prepare()
    outcomes = list(run({name: GROUPS[name][0]}, {name: CASES.get(name, 6)}, seed=1))
    assert len(outcomes) == CASES.get(name, 6)
    assert [one for one in outcomes if one.what not in GOOD] == []
