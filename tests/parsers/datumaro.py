"""What datumaro reads in the CVAT files that we wrote."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from pathlib import Path

sys.path.pop(0)  # this file has the name of the package
logging.disable(logging.CRITICAL)
datumaro = importlib.import_module("datumaro")
image = importlib.import_module("PIL.Image")

folder = Path(sys.argv[1])
found: dict[str, object] = {}
for kind in ("images", "video"):
    home = folder / f"cvat-{kind}"
    (home / "images").mkdir()  # it looks there for the pictures that a file of tags names
    for frame in range(100):
        image.new("RGB", (64, 48)).save(home / "images" / f"frame_{frame:06d}.png")
    dataset = datumaro.Dataset.import_from(str(home), "cvat")
    names = [one.name for one in dataset.categories()[datumaro.AnnotationType.label]]
    rows = []
    for item in dataset:
        for one in item.annotations:
            shown = not one.attributes.get("outside", False)
            rows.append([int(item.attributes["frame"]), names[one.label], one.attributes.get("p"), shown])
    found[f"cvat-{kind}"] = sorted(rows)
print(json.dumps(found))
