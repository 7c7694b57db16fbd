"""What jams and sed_eval (through dcase_util) read in the files that we wrote."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import dcase_util  # noqa: E402
import jams  # noqa: E402
import sed_eval  # noqa: E402

folder = Path(sys.argv[1])
found: dict[str, object] = {}
jam = jams.load(str(folder / "r1.jams"), validate=True, strict=True)
found["jams"] = [[one.time, one.time + one.duration, one.value, one.confidence] for one in jam.annotations[0].data]
events = dcase_util.containers.MetaDataContainer().load(str(folder / "r1.tsv"))
found["dcase"] = [[one["onset"], one["offset"], one["event_label"], one["filename"]] for one in events]
metric = sed_eval.sound_event.EventBasedMetrics(event_label_list=events.unique_event_labels, t_collar=0.01)
metric.evaluate(reference_event_list=events, estimated_event_list=events)
found["sed_eval"] = metric.results_overall_metrics()["f_measure"]["f_measure"]
print(json.dumps(found))
