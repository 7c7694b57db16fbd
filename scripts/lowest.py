"""Print the lowest versions that pyproject.toml declares, as constraints for pip: ``make test-lowest`` installs these.

What has no bound of its own (the dependencies of our dependencies) is left to pip.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def lowest() -> list[str]:
    """``name==version`` for every requirement with a lower bound: core, extras and development groups."""
    plain = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = plain["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *plain["dependency-groups"].values()]
    texts = {one for some in lists for one in some if isinstance(one, str)}
    return sorted(text.replace(">=", "==") for text in texts if ">=" in text)


if __name__ == "__main__":
    print("\n".join(lowest()))
