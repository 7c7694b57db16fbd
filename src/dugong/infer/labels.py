"""Labels for people and programs: one tidy table of probabilities, to Parquet or CSV.

One row per task: sequence, start and end in elements (half open), resolution, one probability per class, and start and
end in seconds where the votes have a time axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dugong.exceptions import LabelError
from dugong.paths import write_atomically
from dugong.tasks import Element, Resolution
from dugong.types import FloatArray
from dugong.votes import Votes


def label_table(votes: Votes, probabilities: Mapping[Resolution, FloatArray]) -> pa.Table:
    """Put the probabilities of some resolutions into one table; columns that a resolution does not have are null."""
    return pa.concat_tables(
        [_one_resolution(votes, resolution, values) for resolution, values in probabilities.items()],
        promote_options="default",
    )


def write_labels(table: pa.Table, path: str | PathLike[str]) -> None:
    """Write a table of labels as ``.parquet`` or ``.csv``, moved into place when it is whole."""
    suffix = Path(path).suffix
    if suffix == ".parquet":
        write_atomically(path, lambda handle: pyarrow.parquet.write_table(table, handle))
    elif suffix == ".csv":
        write_atomically(path, lambda handle: pyarrow.csv.write_csv(table, handle))
    else:
        raise LabelError(f"labels are written as .parquet or .csv; found {str(path)!r}.")


def class_columns(votes: Votes, resolution: Resolution) -> list[str]:
    """Names of the probability columns of a resolution: ``p_<class>``."""
    if isinstance(resolution, Element):
        return [f"p_{name}" for name in votes.class_names or votes.classes]
    if votes.n_classes == 2:
        return class_columns(votes, Element())
    return ["p_negative", "p_positive"]


def _one_resolution(votes: Votes, resolution: Resolution, values: FloatArray) -> pa.Table:
    layout = votes.layout(resolution)
    starts, stops = layout.bounds()
    owners = layout.owners()
    ids = pa.array(votes.sequence_ids).take(pa.array(owners))
    columns = {
        "sequence": ids,
        "start": pa.array(starts),
        "end": pa.array(stops),
        "resolution": pa.array(np.full(len(starts), resolution.name)),
    }
    for place, name in enumerate(class_columns(votes, resolution)):
        columns[name] = pa.array(values[:, place])
    if votes.time is not None:
        columns["start_seconds"] = pa.array(votes.time.seconds(owners, starts))
        columns["end_seconds"] = pa.array(votes.time.seconds(owners, stops))
    return pa.table(columns)
