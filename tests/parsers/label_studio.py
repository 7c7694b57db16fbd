"""Whether label-studio-sdk accepts every prediction that we wrote, under the labelling interface that we wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from label_studio_sdk.label_interface import LabelInterface

folder = Path(sys.argv[1])
found = {}
for place in sorted(folder.glob("ls-*.json")):
    interface = LabelInterface(place.with_suffix(".xml").read_text(encoding="utf-8"))
    interface.validate()
    tasks = json.loads(place.read_text(encoding="utf-8"))
    found[place.stem] = [
        bool(interface.validate_prediction(prediction)) for task in tasks for prediction in task["predictions"]
    ]
    broken = json.loads(json.dumps(tasks[0]["predictions"][0]))
    broken["result"][0]["from_name"] = "nobody"
    found[f"{place.stem}-broken"] = [bool(interface.validate_prediction(broken))]
print(json.dumps(found))
