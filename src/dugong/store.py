"""Fitted models in files: plain JSON, versioned, never code.

In: the parts of a fitted label model and a path, or a path. Out: a file that is complete or not there at all, or the
same parts, every number exactly as it was.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import metadata
from os import PathLike
from typing import Annotated, Any, get_origin

from dugong.codec import Numbers, check_version, decode, encode, parse, reading
from dugong.drift import DriftFeature
from dugong.exceptions import FileError
from dugong.fit.beliefs import Belief
from dugong.fit.errors import StandardErrors
from dugong.fit.result import Diagnostics
from dugong.graph import SourceGraph, TemporalDependency
from dugong.law import Law
from dugong.paths import place_of, write_atomically
from dugong.priors import Prior
from dugong.summary import Seen
from dugong.tasks import describe
from dugong.types import FloatArray
from dugong.votes import SourceInfo

FORMAT = "dugong-model"
VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredModel:
    """The parts of a fitted label model.

    Attributes
    ----------
    settings : keyword arguments of the constructor
    n_classes, class_names, sources
    law : what answers questions about labels
    graph : which sources depend on each other, given or learned
    accuracies, correlations : tables by source and by pair of sources
    errors : standard errors
    seen : what the model was fitted on
    reference : what drift is measured against; None in files of earlier versions
    """

    settings: Mapping[str, Any]
    n_classes: Annotated[int, Numbers(low=2, high=126)]
    class_names: tuple[str, ...] | None
    sources: tuple[SourceInfo, ...]
    law: Law
    graph: SourceGraph
    accuracies: Mapping[str, FloatArray]
    correlations: Mapping[tuple[str, str], FloatArray]
    errors: StandardErrors
    diagnostics: Diagnostics
    seen: Seen
    reference: tuple[DriftFeature, ...] | None = None

    def __post_init__(self) -> None:
        if {self.n_classes} != {self.law.prior.n_classes, self.law.parameters.n_classes}:
            raise FileError(f"law must be of {self.n_classes} classes; found others")
        if self.class_names is not None and len(self.class_names) != self.n_classes:
            raise FileError(f"class_names must be {self.n_classes}; found {len(self.class_names)}")
        names = sorted(one.name for one in self.sources)
        of = {"law": self.law.parameters.sources, "graph": self.graph.names, "accuracies": self.accuracies}
        of |= {"seen.balance": self.seen.balance, "seen.coverage": self.seen.coverage}
        for part, found in of.items():
            if sorted(found) != names:
                raise FileError(f"{part} must be of the sources {names}; found {sorted(found)}")
        for one in self.sources:
            where = self.law.parameters[one.name].resolution
            if where != one.resolution:
                raise FileError(f"{one.name!r} must vote on {describe(one.resolution)} in the law; found {where}")


def save_model(model: StoredModel, path: str | PathLike[str]) -> None:
    """Write a model; the file appears under its name only when it is complete."""
    if place_of(path).suffix != ".json":
        raise FileError(f"models are kept in .json files; found {str(path)!r}.")
    header = {"format": FORMAT, "version": VERSION, "dugong": metadata.version("dugong-ws")}
    plain = encode(replace(model, settings={name: _pack_setting(one) for name, one in model.settings.items()}))
    text = json.dumps(header | plain, ensure_ascii=False, allow_nan=False, indent=1).encode()
    write_atomically(path, lambda handle: handle.write(text))


def load_model(path: str | PathLike[str]) -> StoredModel:
    """Read what `save_model` wrote; a truncated, foreign or newer file is an error that says so."""
    place = place_of(path)
    if not place.is_file():
        raise FileError(f"there is no file {place}.")
    with reading(place, FileError, "The file is truncated, damaged, or no model: fit again."):
        plain = parse(place.read_bytes())
        if check_version(plain, VERSION, "a model", FORMAT) == 1:
            plain = _from_version_1(plain)
        parts = {name: one for name, one in plain.items() if name not in ("format", "version", "dugong")}
        stored = decode(StoredModel, parts)
        return replace(stored, settings={name: _unpack_setting(one) for name, one in stored.settings.items()})


# --- version 1 -----------------------------------------------------------------------------------------------------
def _from_version_1(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A file of the first version as one of the second: the law was in parts, and what was learned was apart."""
    old = ("prior", "parameters", "learned", "errors")
    try:
        newer = {"law": _law_1(plain), "graph": _graph_1(plain), "errors": _errors_1(plain["errors"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"it is not as version 1 was: {error!r}") from error
    return {name: one for name, one in plain.items() if name not in old} | newer


def _graph_1(plain: Mapping[str, Any]) -> Any:
    if plain.get("learned") is not None:
        return plain["learned"]["graph"]
    names = [one["name"] for one in plain["sources"]]
    return encode(SourceGraph.of(names, _unpack_setting(plain["settings"]["dependencies"])))


def _law_1(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The model of the file; the answer that some of the learned ones averaged it with is no longer made."""
    robust = (plain.get("learned") or {"robust": None})["robust"]
    if robust is not None:
        warnings.warn(
            "this model was learned by an earlier version, which averaged it with a second answer that is no longer "
            "made: its labels are now those of the fitted model alone. Fit again for the present defaults.",
            stacklevel=2,
        )
    return {"parameters": plain["parameters"], "prior": plain["prior"]}


def _errors_1(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 kept an error and its raw estimate side by side, and infinity as null."""
    tables, pairs = plain["accuracies"], plain["correlations"]
    return {
        "n_groups": plain["n_groups"],
        "accuracies": {name: _infinite(error) for name, error, _ in tables},
        "raw": {name: _infinite(raw) for name, _, raw in tables},
        "correlations": [[*pair, _infinite(error)] for pair, error, _ in pairs],
        "raw_correlations": [[*pair, _infinite(raw)] for pair, _, raw in pairs],
    }


def _infinite(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_infinite(one) for one in plain]
    return "inf" if plain is None else plain


# --- settings: what the constructor takes --------------------------------------------------------------------------
_KINDS: dict[str, tuple[Any, str]] = {
    "prior": (Prior, "settings.prior"),
    "belief": (Belief, "settings.beliefs"),
    "temporal": (TemporalDependency, "settings.dependencies"),
    "table": (FloatArray, "settings.accuracies"),
}


def _pack_setting(value: Any) -> Any:
    """A setting as plain data; what is no plain value becomes a dictionary with one key that says what it is."""
    for name, (kind, _) in _KINDS.items():
        if isinstance(value, get_origin(kind) or kind):
            plain = encode(value)
            return {name: list(plain.values()) if name == "temporal" else plain}
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _pack_setting(one) for key, one in value.items()}}
    if isinstance(value, list | tuple | set | frozenset):
        return [_pack_setting(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        options = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"estimator": type(value).__name__, "settings": _pack_setting(options)}
    return encode(value)


def _unpack_setting(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_unpack_setting(one) for one in plain)
    if not isinstance(plain, Mapping):
        return plain
    for name, (kind, where) in _KINDS.items():
        if name in plain:
            return decode(kind, plain[name], where)
    if "estimator" in plain:
        return _estimator(plain["estimator"], _unpack_setting(plain.get("settings")))
    mapping = decode(Mapping[str, Any], plain.get("mapping"), "settings")
    return {key: _unpack_setting(one) for key, one in mapping.items()}


def _estimator(name: str, settings: Any) -> Any:
    """One of our own estimators by name; a file can name nothing else."""
    from dugong import estimators

    if name not in estimators.__all__:
        raise FileError(f"it names the estimator {name!r}, which this version of Dugong does not have")
    try:
        return getattr(estimators, name)(**settings)
    except (TypeError, ValueError) as error:
        raise FileError(f"settings.estimator: {error}") from error
