"""The fuzz suite: groups of cases, each with its share of all cases."""

import random
import tempfile
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from warnings import catch_warnings, simplefilter

from fuzz import calls, files
from fuzz.material import models, written
from fuzz.running import Group

GROUPS: dict[str, tuple[Group, int]] = {
    "models": (files.models_spoiled, 24),
    "bytes": (files.bytes_spoiled, 12),
    "archives": (files.archives_spoiled, 12),
    "parquet": (files.parquet_spoiled, 8),
    "priors": (files.priors_spoiled, 5),
    "projects": (files.projects_spoiled, 4),
    "stamps": (files.stamps_spoiled, 1),
    "gold": (files.gold_spoiled, 5),
    "formats": (files.formats_spoiled, 8),
    "loaders": (files.loaders_spoiled, 5),
    "bombs": (files.bombs, 1),
    "misuse": (calls.misuse, 10),
    "arguments": (calls.arguments, 2),
    "votes": (calls.strange_votes, 2),
    "sources": (calls.strange_sources, 3),
}


def prepare() -> None:
    """Make, and compile, what all cases need, before there are children: each would do it again."""
    models()
    written()
    calls.doors()
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(StringIO()), catch_warnings():
        simplefilter("ignore")
        for number in range(40):  # kernels that only some votes need: compiled in a case, they would pass for a hang
            case, _ = calls.strange_votes(random.Random(number), Path(folder))
            with suppress(Exception):
                case()
