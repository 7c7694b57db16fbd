"""Labels shard by shard: one file of labels for every file of votes, each whole or not there.

In: a fitted model and a folder of votes. Out: a folder of labels with the same file names. A shard whose labels are
there already, from the same model and the same votes, is left as it is: after a crash the same call continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike

import pyarrow.csv
import pyarrow.parquet

from dugong.engines import Engine, Serial
from dugong.exceptions import LabelError
from dugong.model import LabelModel
from dugong.paths import Place, place_of
from dugong.shards.folder import (
    Shard,
    State,
    VoteShards,
    digest_file,
    drop_others,
    read_state,
    refuse_others,
    settle,
    unfinished,
    write_stamped,
)
from dugong.shards.sampling import check_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledShard:
    """One file of labels: its rows, and whether it was there already."""

    path: Place
    n_rows: int
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledShards:
    """A folder of labels: rows, shards that were labelled now, shards that were there already."""

    folder: Place
    n_rows: int
    n_done: int
    n_kept: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Label:
    """From a shard to its file of labels."""

    model: LabelModel
    digest: str
    folder: Place
    resolutions: tuple[str, ...] | None
    suffix: str
    restart: bool
    groups: Mapping[str, str]

    def __call__(self, shard: Shard) -> LabelledShard:
        path = self.folder / f"{shard.name}{self.suffix}"
        wanted: State = {
            "model": self.digest,
            "votes": digest_file(shard.path),
            "resolutions": None if self.resolutions is None else list(self.resolutions),
        }
        groups = None
        if self.groups:
            names = [str(one) for one in shard.read().sequence_ids.tolist()]
            groups = wanted["groups"] = [self.groups.get(one, "") for one in names]
        state = None if self.restart else read_state(path)
        if state is not None and state == wanted | {"rows": state.get("rows")} and isinstance(state["rows"], int):
            settle(path, state)
            return LabelledShard(path=path, n_rows=state["rows"], kept=True)
        table = self.model.labels(shard.read(), self.resolutions, groups).table
        write = pyarrow.csv.write_csv if self.suffix == ".csv" else pyarrow.parquet.write_table
        write_stamped(path, partial(write, table), {**wanted, "rows": table.num_rows})
        return LabelledShard(path=path, n_rows=table.num_rows, kept=False)


def label_shards(
    model: LabelModel,
    shards: VoteShards,
    folder: str | PathLike[str],
    *,
    resolutions: Iterable[str] | None = None,
    engine: Engine | None = None,
    suffix: str = ".parquet",
    restart: bool = False,
    groups: Mapping[str, str] | None = None,
    memory: str | int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LabelledShards:
    """Write the labels of every shard.

    Parameters
    ----------
    model, shards : a fitted model and votes
    folder : where the labels go; one file per shard, under the same name
    resolutions : names, optional
        All resolutions of the votes by default.
    engine : Engine, optional
        Where shards are labelled; this process by default. Workers write into `folder` themselves.
    suffix : ".parquet" or ".csv"
    restart : bool
        Label all shards anew.
    groups : mapping of sequence id to group, for a model with tables by group
    memory : bytes, or a size such as "2GB", optional
        The largest shard must fit into it.
    progress : function of (shards done, shards in all), optional
    """
    if suffix not in (".parquet", ".csv"):
        raise LabelError(f"labels are written as .parquet or .csv; found {suffix!r}.")
    check_memory(shards, memory)
    place = place_of(folder).absolute()
    if place in (shards.folder, shards.folder.absolute()):
        raise LabelError(f"labels need a folder of their own; {folder} holds the votes.")
    step = _Label(
        model=model,
        digest=model.law_.fingerprint,
        folder=place,
        resolutions=None if resolutions is None else tuple(resolutions),
        suffix=suffix,
        restart=restart,
        groups={str(one): str(name) for one, name in (groups or {}).items()},
    )
    n_rows = n_kept = 0
    names = {f"{shard.name}{suffix}" for shard in shards.shards}
    with unfinished(place):
        refuse_others(place / name for name in sorted(names))
        drop_others(place, names)
        for number, done in enumerate((engine or Serial()).map(step, shards.shards, describe=str), start=1):
            n_rows += done.n_rows
            n_kept += done.kept
            if progress is not None:
                progress(number, len(shards))
    return LabelledShards(folder=place_of(folder), n_rows=n_rows, n_done=len(shards) - n_kept, n_kept=n_kept)
