"""Fitted models in files: plain JSON, versioned, never code.

In: the parts of a fitted label model and a path, or a path. Out: a file that is complete or not there at all, or the
same parts, every number exactly as it was. Numbers that JSON does not know are the strings "nan", "inf" and "-inf".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from importlib import metadata
from math import isfinite
from os import PathLike
from typing import Any

import numpy as np

from dugong.exceptions import DugongError
from dugong.fit.result import Diagnostics, Note
from dugong.graph import TemporalDependency
from dugong.law.parameters import Parameters
from dugong.paths import Place, place_of, write_atomically
from dugong.priors import Prior
from dugong.priors import from_dict as prior_from_dict
from dugong.summary import Seen
from dugong.tasks import resolution_from_dict, resolution_to_dict
from dugong.types import FloatArray, read_only
from dugong.votes import SourceInfo

__all__ = ["FORMAT", "VERSION", "ModelFileError", "StoredModel", "load_model", "save_model"]

FORMAT = "dugong-model"
VERSION = 1
Edge = tuple[str, str]


class ModelFileError(DugongError, ValueError):
    """A file that holds no model, or one that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredModel:
    """The parts of a fitted label model.

    Attributes
    ----------
    settings : keyword arguments of the constructor
    n_classes, class_names, sources, prior, parameters
    accuracies, correlations : tables by source and by pair of sources
    errors : standard errors, as plain data
    diagnostics : Diagnostics
    seen : what the model was fitted on
    learned : the learned defaults, as plain data; None where prior and dependencies were given
    """

    settings: Mapping[str, Any]
    n_classes: int
    class_names: tuple[str, ...] | None
    sources: tuple[SourceInfo, ...]
    prior: Prior
    parameters: Parameters
    accuracies: Mapping[str, FloatArray]
    correlations: Mapping[Edge, FloatArray]
    errors: Mapping[str, Any]
    diagnostics: Diagnostics
    seen: Seen
    learned: Mapping[str, Any] | None = None


def save_model(model: StoredModel, path: str | PathLike[str]) -> None:
    """Write a model; the file appears under its name only when it is complete."""
    if place_of(path).suffix != ".json":
        raise ModelFileError(f"models are kept in .json files; found {str(path)!r}.")
    text = json.dumps(_pack(model), ensure_ascii=False, allow_nan=False, indent=1).encode()
    write_atomically(path, lambda handle: handle.write(text))


def load_model(path: str | PathLike[str]) -> StoredModel:
    """Read what `save_model` wrote; a truncated, foreign or newer file is an error that says so."""
    place = place_of(path)
    if not place.is_file():
        raise ModelFileError(f"there is no file {place}.")
    try:
        plain = json.loads(place.read_bytes())
    except ValueError as error:
        raise ModelFileError(
            f"{place} cannot be read: {error}.\n  The file is truncated, damaged, or no JSON: fit again."
        ) from None
    _check_header(plain, place)
    try:
        return _unpack(plain)
    except (KeyError, TypeError, IndexError) as error:
        raise ModelFileError(f"{place} cannot be read: it lacks {error}.\n  The file is damaged: fit again.") from error


def _check_header(plain: Any, place: Place) -> None:
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise ModelFileError(f"{place} cannot be read: it holds something else than a model of Dugong.")
    if not isinstance(plain.get("version"), int) or plain["version"] > VERSION:
        raise ModelFileError(
            f"{place} was written by a newer version of Dugong (file version {plain.get('version')}; this one reads up "
            f"to version {VERSION}).\n  Upgrade with: pip install --upgrade dugong-ws"
        )


# --- plain data ----------------------------------------------------------------------------------------------------
def _pack(model: StoredModel) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "dugong": metadata.version("dugong-ws"),
        "settings": {name: _pack_setting(value) for name, value in model.settings.items()},
        "n_classes": model.n_classes,
        "class_names": None if model.class_names is None else list(model.class_names),
        "sources": [
            {"name": one.name, "resolution": resolution_to_dict(one.resolution), "shares": one.shares}
            for one in model.sources
        ],
        "prior": tree(model.prior.to_dict()),
        "parameters": tree(model.parameters.to_dict()),
        "accuracies": tree(model.accuracies),
        "correlations": [[*edge, tree(table)] for edge, table in model.correlations.items()],
        "errors": tree(model.errors),
        "diagnostics": _pack_diagnostics(model.diagnostics),
        "seen": tree(model.seen.to_dict()),
        "learned": None if model.learned is None else tree(model.learned),
    }


def _unpack(plain: Mapping[str, Any]) -> StoredModel:
    return StoredModel(
        settings={name: _unpack_setting(value) for name, value in plain["settings"].items()},
        n_classes=plain["n_classes"],
        class_names=None if plain["class_names"] is None else tuple(plain["class_names"]),
        sources=tuple(
            SourceInfo(name=one["name"], resolution=resolution_from_dict(one["resolution"]), shares=one["shares"])
            for one in plain["sources"]
        ),
        prior=prior_from_dict(plain["prior"]),
        parameters=Parameters.from_dict(plain["parameters"]),
        accuracies={name: array(table) for name, table in plain["accuracies"].items()},
        correlations={(first, second): array(table) for first, second, table in plain["correlations"]},
        errors=plain["errors"],
        diagnostics=_unpack_diagnostics(plain["diagnostics"]),
        seen=Seen.from_dict(plain["seen"]),
        learned=plain.get("learned"),
    )


def tree(value: Any) -> Any:
    """Nested lists, dictionaries and numbers of nested arrays and mappings."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): tree(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [tree(one) for one in value]
    return repr(value) if isinstance(value, float) and not isfinite(value) else value


def array(plain: Any) -> FloatArray:
    """The array of nested lists of numbers."""
    return read_only(np.array(plain, dtype=np.float64))


def _pack_diagnostics(diagnostics: Diagnostics) -> dict[str, Any]:
    plain: dict[str, Any] = {
        name: tree(getattr(diagnostics, name)) for name in ("signs", "condition", "projections", "learned")
    }
    plain["notes"] = [tree(asdict(note)) for note in diagnostics.notes]
    for name in ("residuals", "support"):
        plain[name] = [[*edge, tree(value)] for edge, value in getattr(diagnostics, name).items()]
    return plain


def _unpack_diagnostics(plain: Mapping[str, Any]) -> Diagnostics:
    return Diagnostics(
        notes=tuple(Note(**{**note, "size": float(note["size"])}) for note in plain["notes"]),
        residuals={(first, second): float(value) for first, second, value in plain["residuals"]},
        support={(first, second): value for first, second, value in plain["support"]},
        signs=plain["signs"],
        condition={name: float(value) for name, value in plain["condition"].items()},
        projections={name: float(value) for name, value in plain["projections"].items()},
        learned=plain["learned"],
    )


# --- settings: what the constructor takes --------------------------------------------------------------------------
def _pack_setting(value: Any) -> Any:
    """A setting as plain data; what is no plain value becomes a dictionary with one key that says what it is."""
    if isinstance(value, Prior):
        return {"prior": tree(value.to_dict())}
    if isinstance(value, TemporalDependency):
        return {"temporal": [value.source, value.lag]}
    if isinstance(value, np.ndarray):
        return {"table": tree(value)}
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _pack_setting(one) for key, one in value.items()}}
    if isinstance(value, list | tuple | set | frozenset):
        return [_pack_setting(one) for one in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value):
        options = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"estimator": type(value).__name__, "settings": _pack_setting(options)}
    raise ModelFileError(f"a model with the setting {value!r} cannot be saved: files hold plain data only.")


def _unpack_setting(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_unpack_setting(one) for one in plain)
    if not isinstance(plain, Mapping):
        return plain
    if "prior" in plain:
        return prior_from_dict(plain["prior"])
    if "temporal" in plain:
        return TemporalDependency(*plain["temporal"])
    if "table" in plain:
        return array(plain["table"])
    if "estimator" in plain:
        return _estimator(plain["estimator"], _unpack_setting(plain["settings"]))
    return {key: _unpack_setting(one) for key, one in plain["mapping"].items()}


def _estimator(name: str, settings: Mapping[str, Any]) -> Any:
    """One of our own estimators by name; a file can name nothing else."""
    from dugong import estimators

    if name not in estimators.__all__:
        raise ModelFileError(f"the model names the estimator {name!r}, which this version of Dugong does not have.")
    return getattr(estimators, name)(**settings)
