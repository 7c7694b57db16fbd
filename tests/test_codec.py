"""The codec: values and back, and every way in which plain data can be wrong is said with its place."""

from __future__ import annotations

import copy
import json
import random
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

import dugong as dg
from dugong.archives import open_archive, write_archive
from dugong.codec import Numbers, decode, encode, parse, to_plain
from dugong.exceptions import FileError
from dugong.sums import Moments
from dugong.types import FloatArray, Int8Array, Probabilities
from fuzz.material import models

FILES = Path(__file__).parent / "files" / "version1"


@dataclass(frozen=True)
class Circle:
    radius: Annotated[float, Numbers(low=0)]
    kind: ClassVar[str] = "circle"


@dataclass(frozen=True)
class Square:
    side: int
    kind: ClassVar[str] = "square"


@dataclass(frozen=True, eq=False)
class Drawing:
    shapes: tuple[Circle | Square, ...]
    table: FloatArray
    name: str | None = None
    law: Probabilities | None = None
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)
    codes: Mapping[int, Int8Array] = field(default_factory=dict)
    size: Annotated[float, Numbers(finite=False)] = 0.0
    rule: Literal["any", "all"] = "any"
    n_shapes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        if len(self.shapes) > 3:
            raise dg.TaskError(f"a drawing has at most 3 shapes; found {len(self.shapes)}.")


DRAWING = Drawing(
    shapes=(Circle(1.5), Square(2)),
    table=np.arange(6.0).reshape(2, 3) / 7,
    law=np.array([[0.25, 0.75]]),
    pairs={("a", "b"): 0.1},
    codes={3: np.array([1, -1], dtype=np.int8)},
    size=float("inf"),
)


def test_values_come_back_through_json() -> None:
    again = decode(Drawing, parse(json.dumps(encode(DRAWING), allow_nan=False)))
    assert again.shapes == DRAWING.shapes
    np.testing.assert_array_equal(again.table, DRAWING.table)
    assert (again.pairs, again.size, again.name) == (DRAWING.pairs, DRAWING.size, None)
    assert again.codes[3].tolist() == [1, -1]
    assert not again.table.flags.writeable


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 2, 2)])
def test_empty_tables_keep_their_axes(shape: tuple[int, ...]) -> None:
    assert decode(FloatArray, encode(np.zeros(shape))).shape == shape


def test_plain_data_for_people_have_text_as_keys_and_null_for_nan() -> None:
    assert to_plain({("a", 1): np.nan, 2: Path("x"), "s": {1.5}}) == {"a,1": None, "2": "x", "s": [1.5]}
    assert to_plain(DRAWING)["size"] is None


def changed(**changes: Any) -> Any:
    return {**encode(DRAWING), **changes}


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (changed(shapes=[{"kind": "circle", "radius": -1}]), r"shapes\[0\]\.radius must be a number from 0 to inf"),
        (changed(shapes=[{"kind": "cube"}]), r"shapes\[0\]\.kind must be one of 'circle', 'square'; found 'cube'"),
        (changed(shapes=[{"kind": ["square"]}]), r"shapes\[0\]\.kind must be one of"),
        (changed(shapes=[{"kind": "square"}]), r"shapes\[0\] lacks 'side'"),
        (changed(shapes=[{"kind": "square", "side": True}]), r"shapes\[0\]\.side must be a whole number; found True"),
        (changed(shapes=[{"kind": "square", "side": 1.0}]), r"side must be a whole number; found 1\.0"),
        (changed(shapes=[{"kind": "square", "side": 10**400}]), "side must be a whole number; found .* beyond 64 bits"),
        (changed(shapes=[{"kind": "square", "side": 1}] * 4), "at most 3 shapes; found 4"),
        (changed(shapes={}), "shapes must be a list; found an object with 0 entries"),
        (changed(colour=1), "must be an object with shapes, table, .*; found 'colour'"),
        (changed(table=[[1.0], [1.0, 2.0]]), "table must be a table whose rows have one length"),
        (changed(table=[[1.0], 2.0]), "table must be a table whose rows have one length"),
        (changed(table=["1" * 100_000]), "table must be a number; found '1111"),
        (changed(table=[10**400]), "table must be a number; found a number beyond 64 bits"),
        (changed(table=["nan"]), "table must be a number; found 'nan'"),
        (changed(table=3), "table must be a list of numbers; found 3"),
        (changed(table={"shape": [10**13]}), "table must be a list of numbers"),
        (changed(table={"shape": [0, -1]}), r"table\.shape\[1\] must be a number from 0"),
        (changed(law=[[0.5, 0.6]]), "law must be probabilities that sum to one over the last axis"),
        (changed(law=[[1.5, -0.5]]), "law must be a number from 0 to 1; found 1.5"),
        (changed(pairs={"a": 1.0}), "pairs must be a list of rows"),
        (changed(pairs=[["a", 1.0]]), r"pairs\[0\] must be a list of 3"),
        (changed(codes=[[3, [1, 200]]]), r"codes\[0\]\[1\] must be numbers from -128 to 127"),
        (changed(size="12"), "size must be a number; found '12'"),
        (changed(rule="some"), "rule must be one of 'any', 'all'; found 'some'"),
        (changed(name=3), "name must be text; found 3"),
        ([], "it lacks 'shapes'"),
        ("text", "it must be an object; found 'text'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(plain: Any, message: str) -> None:
    with pytest.raises(FileError, match=message):
        decode(Drawing, plain)


@pytest.mark.parametrize(
    "text", ["", "{", "[NaN]", "[1e999]x", b"\xff\xfe", "[" * 100_000, "[" * 70 + "]" * 70, "1" * 5000]
)
def test_text_that_is_no_json_of_ours(text: str | bytes) -> None:
    with pytest.raises(FileError, match=r"no JSON|levels deep"):
        parse(text)


# --- archives ------------------------------------------------------------------------------------------------------
def test_an_archive_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with path.open("wb") as handle:
        write_archive(
            handle, {"n": 3}, {"x": np.arange(6).reshape(2, 3), "y": np.array(1.5), "z": np.asfortranarray(np.eye(2))}
        )
    with open_archive(path) as archive:
        assert archive.header == {"n": 3}
        assert archive.read("x", "i", (2, None)).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert archive.read("y") == 1.5
        for wrong in (("x", "f"), ("x", "i", (3,)), ("w",)):
            with pytest.raises(FileError, match=r"must|lacks"):
                archive.read(*wrong)
    assert np.load(path)["z"].tolist() == [[1, 0], [0, 1]]


def test_an_archive_that_claims_more_than_it_has(tmp_path: Path) -> None:
    with (tmp_path / "a.npz").open("wb") as handle:
        write_archive(handle, {}, {"x": np.zeros(8)})
    with zipfile.ZipFile(tmp_path / "a.npz") as archive, zipfile.ZipFile(tmp_path / "b.npz", "w") as liar:
        for name in archive.namelist():
            liar.writestr(name, archive.read(name).replace(b"(8,), }        ", b"(10000000000,)}"))
    with (
        open_archive(tmp_path / "b.npz") as archive,
        pytest.raises(FileError, match="x must have 80,000,000,000 bytes"),
    ):
        archive.read("x")


# --- attacks on real files -----------------------------------------------------------------------------------------
JUNK = (
    None,
    True,
    -1,
    0.5,
    10**30,
    "text",
    "1" * 100_000,
    "nan",
    [],
    {},
    [[]],
    [1, [2]],
    {"kind": "element"},
    ["a"] * 3,
)


def paths(plain: Any) -> list[tuple[Any, ...]]:
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    return [(), *((key, *rest) for key, one in inner for rest in paths(one))]


def damaged(plain: Any, rng: random.Random, where: tuple[Any, ...]) -> Any:
    whole = copy.deepcopy(plain)
    if not where:
        return rng.choice(JUNK)
    part = whole
    for key in where[:-1]:
        part = part[key]
    if rng.random() < 0.25:
        del part[where[-1]]
    else:
        part[where[-1]] = rng.choice(JUNK)
    return whole


@pytest.mark.filterwarnings("ignore:this model was learned by an earlier version")
@pytest.mark.parametrize("name", ["resolutions", "temporal", "learned", "joint", "patterns"])
def test_a_damaged_model_is_refused_or_labels_with_probabilities(name: str, tmp_path: Path) -> None:
    votes, plain = dg.Votes.read(FILES / f"{name}.npz"), json.loads((FILES / f"{name}.json").read_text())
    rng, file, refused = random.Random(1), tmp_path / "model.json", 0
    for where in rng.sample(paths(plain), 60):
        file.write_text(json.dumps(damaged(plain, rng, where)))
        try:
            found = dg.LabelModel.load(file).predict_proba(votes)
        except dg.DugongError as error:
            refused += str(error).startswith(str(file))
        else:
            assert np.isfinite(found).all()
            np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-6)
    assert refused > 20


COARSE = ("law", "tempering", "coarse", "sources", 0)


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ((*COARSE, "resolution", "size"), 3, "must ask sources of its parameters, where they vote; found 'w'"),
        ((*COARSE, "name"), "nobody", "must ask sources of its parameters, where they vote; found 'nobody'"),
        ((*COARSE, "learned", "table"), [[0.5, 0.5]], r"table must have the shape \(2, 3\); found \(1, 2\)"),
        ((*COARSE, "learned", "table"), [[0.5, 0.5, 0.5]] * 2, "probabilities that sum to one"),
        ((*COARSE, "learned", "slope"), -1.0, "slope must be a number from 0 to"),
        ((*COARSE, "trust"), -1, "trust must be a number from 0 to 1; found -1"),
        ((*COARSE, "weight"), 2, "weight must be a number from 0 to 1; found 2"),
        ((*COARSE, "composition"), [[1.0], [1.0]], r"composition of 'w' must be \(2, 2\); found \(2, 1\)"),
        (("law", "tempering", "answer", "sources", 0, "name"), "nobody", "found 'nobody' on element"),
        (("sources", 4, "resolution", "size"), 3, "'w' must vote on .*size=3.* in the law; found .*size=2"),
    ],
)
def test_tables_of_a_model_are_of_its_sources(where: tuple[Any, ...], value: Any, message: str, tmp_path: Path) -> None:
    plain = part = copy.deepcopy(models()["learned-windows"][0])
    for key in where[:-1]:
        part = part[key]
    assert where[-1] in part
    part[where[-1]] = value
    (tmp_path / "model.json").write_text(json.dumps(plain))
    with pytest.raises(FileError, match=message):
        dg.LabelModel.load(tmp_path / "model.json")


@pytest.mark.parametrize("name", ["votes.npz", "votes.parquet", "moments.npz"])
def test_bytes_that_changed_are_noticed(name: str, tmp_path: Path) -> None:
    data, rng, unnamed = (FILES / name).read_bytes(), random.Random(2), 0
    read = Moments.load if name == "moments.npz" else dg.Votes.read
    for place in rng.sample(range(len(data)), 150):
        broken = bytearray(data)
        broken[place] ^= rng.randrange(1, 256)
        (tmp_path / name).write_bytes(broken)
        try:
            read(tmp_path / name)
        except dg.DugongError as error:
            unnamed += name not in str(error)
    assert unnamed == 0


@pytest.mark.parametrize("name", ["votes.npz", "moments.npz"])
def test_headers_that_were_changed_are_refused_with_their_place(name: str, tmp_path: Path) -> None:
    read = Moments.load if name == "moments.npz" else dg.Votes.read
    with open_archive(FILES / name) as archive:
        plain = archive.header
        arrays = {one: archive.read(one, "iufU") for one in archive.names}
    rng, refused = random.Random(3), 0
    for where in rng.choices(paths(plain), k=150):
        with (tmp_path / name).open("wb") as handle:
            write_archive(handle, damaged(plain, rng, where), arrays)
        try:
            read(tmp_path / name)
        except dg.DugongError as error:
            refused += name in str(error)
    assert refused > 90


@pytest.mark.parametrize("given", [[5], ["a", "a"], []])
def test_given_values_must_be_as_many_as_classes(given: list[Any], tmp_path: Path) -> None:
    votes = dg.Votes.from_classes(np.array([[0, 1], [1, 0]]), lengths=[2], n_classes=2)
    votes.write(tmp_path / "votes.npz")
    with open_archive(tmp_path / "votes.npz") as archive:
        plain, arrays = archive.header, {one: archive.read(one, "iufU") for one in archive.names}
    assert plain["given"] == [0, 1]
    with (tmp_path / "votes.npz").open("wb") as handle:
        write_archive(handle, plain | {"given": given}, arrays)
    with pytest.raises(dg.VoteError, match=r"votes\.npz cannot be read: there must be 2 different values as given"):
        dg.Votes.read(tmp_path / "votes.npz")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("row0", -1, "row0 must hold counts of at least 0; found -1"),
        ("row0", 2**62, r"row0 must hold at most 9,007,199,254,740,992 in all; found "),
        ("shape_counts", np.nan, "shape_counts must hold counts of at least 0; found nan"),
        ("shape_counts", 2**62, "shape_counts must hold at most"),
        ("lengths", -1, "lengths must be from 0 to 1,073,741,824"),
    ],
)
def test_counts_that_cannot_be_are_refused(name: str, value: float, message: str, tmp_path: Path) -> None:
    with open_archive(FILES / "moments.npz") as archive:
        plain, arrays = archive.header, {one: archive.read(one, "iufU") for one in archive.names}
    arrays[name] = arrays[name].astype(np.asarray(value).dtype)
    arrays[name].flat[0] = value
    with (tmp_path / "moments.npz").open("wb") as handle:
        write_archive(handle, plain, arrays)
    with pytest.raises(dg.VoteError, match=rf"moments\.npz cannot be read: {message}"):
        Moments.load(tmp_path / "moments.npz")
