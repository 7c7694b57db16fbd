"""What Hugging Face datasets reads in the Parquet and JSON lines files that we wrote."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

sys.path.pop(0)  # this file has the name of the package
datasets = importlib.import_module("datasets")
folder = Path(sys.argv[1])
found: dict[str, object] = {}
for name in ("r1", "n1"):
    made = datasets.load_dataset(
        "parquet", data_files=str(folder / f"{name}.parquet"), split="train", cache_dir=str(folder / "cache")
    )
    found[name] = [dict(row) for row in made]
    features = made.features
    labels = features["label"] if name == "r1" else features["ner_tags"].feature
    found[f"{name}-names"] = labels.names
lines = datasets.load_dataset(
    "json", data_files=str(folder / "n1.doccano.jsonl"), split="train", cache_dir=str(folder / "cache")
)
found["doccano"] = [row["text"] for row in lines]
print(json.dumps(found))
