"""Cases about files: ours, those of other tools, and loaders."""

from __future__ import annotations

import contextlib
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dugong as dg
from dugong import formats
from dugong.archives import open_archive, write_archive
from dugong.cli import exit_code as command
from dugong.cli.gold import read_gold
from dugong.cli.settings import read_prior
from dugong.sums import Moments
from format_cases import EXTRAS, OPTIONS, truth
from fuzz.material import PRIOR, models, votes, written
from fuzz.mutations import deep, flipped, spoiled, spoiled_array, spoiled_text
from fuzz.running import Case, ForeignError


# --- what is done with a file that was read ------------------------------------------------------------------------
def use_model(path: Path, given: dg.Votes) -> Any:
    model = dg.LabelModel.load(path)
    found = model.predict_proba(given)
    model.decode(given)
    str(model.summary())
    return found


def use_votes(path: Path) -> Any:
    found = dg.Votes.read(path)
    if found.n_elements > 100_000:  # few bytes may truly speak of long sequences; what follows takes its time
        return None
    str(found.summary())
    with contextlib.suppress(dg.NotIdentifiableError):
        return dg.MajorityVote().fit(found).predict_proba(found)
    return None


def use_moments(path: Path) -> Any:
    found = Moments.load(path)
    model = dg.LabelModel(prior=PRIOR, dependencies=())
    return model.fit_moments(found, votes()).predict_proba(votes())


def told(*words: object) -> None:
    """Run the command line; it must end with 0, 1 or 2, and with a traceback never."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = command([str(word) for word in words])
    theirs = "sources.py" in said.getvalue() or "loader.py" in said.getvalue()  # the user's own code may raise
    if code not in (0, 1, 2) or ("Traceback (most recent" in said.getvalue() and not theirs):
        raise ForeignError(f"dugong {' '.join(map(str, words))[:200]} ended with {code}: {said.getvalue()[-400:]}")


# --- models, votes, moments ----------------------------------------------------------------------------------------
def models_spoiled(rng: random.Random, folder: Path) -> Case:
    plain, given = models()[rng.choice(list(models()))]
    path = folder / "model.json"
    text = json.dumps(spoiled(plain, rng))
    path.write_text(text)
    return lambda: use_model(path, given), len(text)


def bytes_spoiled(rng: random.Random, folder: Path) -> Case:
    name = rng.choice(list(written()))
    path = folder / name
    data = flipped(written()[name], rng)
    path.write_bytes(data)
    if path.suffix == ".json":
        return lambda: use_model(path, models()[path.stem][1]), len(data)
    return (lambda: use_moments(path)) if "moments" in name else (lambda: use_votes(path)), len(data)


def archives_spoiled(rng: random.Random, folder: Path) -> Case:
    """Votes and moments as archives whose header or one array was replaced."""
    name = rng.choice([one for one in written() if one.endswith(".npz")])
    path = folder / name
    path.write_bytes(written()[name])
    with open_archive(path) as archive:
        header, arrays = archive.header, {one: archive.read(one, "iufU") for one in archive.names}
    if rng.random() < 0.5:
        header = spoiled(header, rng)
    else:
        chosen = rng.choice(list(arrays))
        arrays[chosen] = spoiled_array(arrays[chosen], rng)
    _write_spoiled(path, header, arrays)
    return (lambda: use_moments(path)) if "moments" in name else (lambda: use_votes(path)), path.stat().st_size


def _write_spoiled(path: Path, header: Any, arrays: dict[str, Any]) -> None:
    text = np.frombuffer(json.dumps(header).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in {"header": text, **arrays}.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def parquet_spoiled(rng: random.Random, folder: Path) -> Case:
    """Votes in Parquet whose header or one column was replaced."""
    kind = rng.choice(("elements", "windows", "classes", "everything"))
    path = folder / f"{kind}.parquet"
    table = pq.read_table(io.BytesIO(written()[path.name]))
    about = table.schema.metadata[b"dugong"]
    if rng.random() < 0.5:
        about = json.dumps(spoiled(json.loads(about), rng)).encode("utf-8", "surrogatepass")
    else:
        table = _other_column(table, rng)
    pq.write_table(table.replace_schema_metadata({b"dugong": about}), path)
    return lambda: use_votes(path), path.stat().st_size


def _other_column(table: pa.Table, rng: random.Random) -> pa.Table:
    place = rng.randrange(table.num_columns)
    name, n, old = table.column_names[place], table.num_rows, table.column(place)
    makers = (
        lambda: pa.array([0.9] * n),
        lambda: pa.array(["1"] * n),
        lambda: pa.array([257] * n),
        lambda: pa.array([None] * n, old.type),
        lambda: pa.array([True] * n),
        lambda: pa.array([[1]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.chunked_array([pa.nulls(1, old.type), *old.slice(1).chunks]),
        old.dictionary_encode,
    )
    choice = rng.randrange(len(makers) + 2)
    if choice == len(makers):
        return table.remove_column(place)
    if choice > len(makers):
        return table.append_column(name, old)
    return table.set_column(place, name, rng.choice(makers)())


# --- priors, stamps, projects --------------------------------------------------------------------------------------
PRIORS = [
    PRIOR,
    dg.priors.Uniform(),
    dg.priors.Markov(initial=[0.7, 0.3], transition=[[0.9, 0.1], [0.2, 0.8]]),
    dg.priors.Patterns({(1, 1, 1): 0.2, (-1, -1, -1): 0.5, (1, -1, -1): 0.3}),
]


def priors_spoiled(rng: random.Random, folder: Path) -> Case:
    plain = spoiled(rng.choice(PRIORS).to_dict(), rng)
    path = folder / "prior.json"
    data = json.dumps(plain).encode()
    path.write_bytes(flipped(data, rng) if rng.random() < 0.2 else data)

    def use() -> Any:
        found = read_prior(str(path))
        model = dg.LabelModel(prior=found, dependencies=())
        return None if isinstance(found, str) else model.fit(votes()).predict_proba(votes())

    return use, len(data)


LOADER = "def sequences():\n    return {f'q{i}': [i % 3, i % 2, 1, 0] for i in range(12)}\n"
SOURCES = """
import dugong as dg

@dg.source
def one(x):
    return 1 if x else -1

@dg.source
def two(x):
    return 1 if x > 1 else -1

@dg.source(resolution=dg.Window(size=2))
def three(x):
    return 1 if max(x) else -1
"""
PROJECT = {
    "data": "loader:sequences",
    "sources": "sources.py",
    "output": "out",
    "prior": {"kind": "markov", "positive": 0.4, "stay": 0.8},
    "dependencies": [["one", "two"], "one@1"],
    "gold": "gold.csv",
    "train_gold": "gold.csv",
    "export": ["out/x.csv"],
    "media": "m",
    "spans": {"shot": "loader:sequences"},
    "classes": ["no", "yes"],
    "background": "no",
    "resolutions": ["element"],
    "sharing": "tied",
    "estimator": "centred",
    "signs": "group",
    "jobs": 1,
    "on_fault": "raise",
    "rate": 10,
    "timeout": 5,
}
GOLD = "sequence,start,end,label\nq0,0,2,1\nq1,1,3,-1\n"


def write_project(folder: Path, plain: dict[str, Any]) -> Path:
    for name, text in {"loader.py": LOADER, "sources.py": SOURCES, "gold.csv": GOLD}.items():
        (folder / name).write_text(text)
    lines = [f"{json.dumps(key)} = {_toml(one)}" for key, one in plain.items()]
    place = folder / "project.toml"
    place.write_text("\n".join(lines), errors="replace")
    return place


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return '""' if value is None else json.dumps(value)


def projects_spoiled(rng: random.Random, folder: Path) -> Case:
    keys = ["data", "sources", "output", *rng.sample(list(PROJECT)[3:], rng.randrange(6))]
    plain = spoiled({key: PROJECT[key] for key in keys}, rng)
    place = write_project(folder, plain if isinstance(plain, dict) else {})
    if rng.random() < 0.2:
        place.write_bytes(flipped(place.read_bytes(), rng))
    verb = rng.choice(("check", "apply", "run"))
    return (lambda: told(verb, place)), place.stat().st_size


def stamps_spoiled(rng: random.Random, folder: Path) -> Case:
    """Runs over shards that find spoiled stamps, sums and votes of an earlier run."""
    place = write_project(folder, {key: PROJECT[key] for key in ("data", "sources", "prior")})
    words = ("apply", place, "--shard-size", "4", "-o", folder / "votes")
    fit = ("fit", folder / "votes", "-o", folder / "model.json", "--prior", "uniform", "--dependencies", "none")
    told(*words)
    told(*fit)
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".json", ".npz", ".parquet"))
    files = [file for file in files if file.name != "model.json"]
    for file in rng.sample(files, 2):
        if file.suffix == ".json" and rng.random() < 0.7:
            file.write_text(json.dumps(spoiled(json.loads(file.read_bytes()), rng)))
        else:
            file.write_bytes(flipped(file.read_bytes(), rng))

    def use() -> None:
        for line in (words, fit, ("info", *files[:2])):
            told(*line)

    return use, 0


# --- gold ----------------------------------------------------------------------------------------------------------
def gold_spoiled(rng: random.Random, folder: Path) -> Case:
    given = votes(rng.choice(("elements", "classes")))
    path = folder / f"gold.{rng.choice(('npy', 'csv', 'parquet'))}"
    names = given.sequence_ids.tolist()[:3]
    table = {"sequence": list(map(str, names)), "start": [0, 1, 2], "end": [2, 3, 4], "label": [1, 1, 1]}
    if path.suffix == ".npy":
        array = np.ones(given.n_elements, dtype=np.int8)
        handle = io.BytesIO()
        np.save(handle, spoiled_array(array, rng))
        data = handle.getvalue()
    elif path.suffix == ".csv":
        rows = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
        data = spoiled_text("\n".join(rows), rng).encode(rng.choice(("utf-8", "utf-16", "latin-1")), "replace")
    else:
        handle = io.BytesIO()
        pq.write_table(_other_column(pa.table(table), rng), handle)
        data = handle.getvalue()
    path.write_bytes(flipped(data, rng) if rng.random() < 0.4 else data)
    return lambda: read_gold(path, given) is None, len(data)


# --- other tools' files --------------------------------------------------------------------------------------------
HERE_NOW = [name for name in formats.names() if name not in EXTRAS or name == "edf"]


def formats_spoiled(rng: random.Random, folder: Path) -> Case:
    name = rng.choice(HERE_NOW)
    ending = formats.of_name(name).suffixes[0]
    first = formats.write(truth(name), folder / f"r1{ending}", name, **OPTIONS.get(name, {}))[0]
    path = Path(str(first))
    data = path.read_bytes()
    if rng.random() < 0.6:
        with contextlib.suppress(UnicodeDecodeError):
            data = spoiled_text(data.decode(), rng).encode("utf-8", "surrogatepass")
            with contextlib.suppress(ValueError):
                data = json.dumps(spoiled(json.loads(path.read_bytes()), rng)).encode()
    else:
        data = flipped(data, rng)
    path.write_bytes(data)
    wanted = name if rng.random() < 0.7 else None

    def use() -> None:
        found = formats.read(path, wanted)
        dg.Votes.from_segments(found, lengths=dict.fromkeys(found.recordings, 100), rate=10.0)

    return use, len(data)


# --- loaders -------------------------------------------------------------------------------------------------------
CSV = "t,x,y\n0.0,1,a\n0.5,2,b\n1.0,3,c\n1.5,4,d\n"
CONLL = "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP B-PER\n"


def loaders_spoiled(rng: random.Random, folder: Path) -> Case:
    kind = rng.choice(("csv", "conll", "txt", "npy", "parquet"))
    inner = folder / "data"
    inner.mkdir()
    for place in range(2):
        _loadable(inner / f"f{place}.{kind}", kind, rng, spoil=place == 1)

    def use() -> None:
        found = {
            "csv": lambda: dg.loaders.csv_folder(inner, time="t", every="1s"),
            "conll": lambda: dg.loaders.conll(inner / "f1.conll"),
            "txt": lambda: dg.loaders.text_folder(inner),
            "npy": lambda: dg.loaders.npy_folder(inner),
            "parquet": lambda: dg.loaders.parquet_folder(inner),
        }[kind]()
        for _, sequence in found.items() if hasattr(found, "items") else found:
            if len(sequence):
                _ = sequence[0], sequence[0 : min(2, len(sequence))]

    return use, (inner / f"f1.{kind}").stat().st_size


def _loadable(path: Path, kind: str, rng: random.Random, *, spoil: bool) -> None:
    if kind in ("csv", "conll", "txt"):
        text = CONLL if kind == "conll" else CSV
        path.write_bytes((spoiled_text(text, rng) if spoil else text).encode("utf-8", "surrogatepass"))
    elif kind == "npy":
        array = np.arange(12.0).reshape(4, 3)
        np.save(path, spoiled_array(array, rng) if spoil else array)
    else:
        table = pa.table({"x": [1, 2, 3], "y": [0.5, 0.25, 0.1]})
        pq.write_table(_other_column(table, rng) if spoil else table, path)
    if spoil and rng.random() < 0.5:
        path.write_bytes(flipped(path.read_bytes(), rng))


# --- bombs ---------------------------------------------------------------------------------------------------------
def bombs(rng: random.Random, folder: Path) -> Case:
    """Small files that claim to be large, or are deep."""
    kind = rng.choice(("npz", "shape", "parquet", "json", "toml", "header", "npy", "xml", "moments", "lengths"))
    return BOMBS[kind](rng, folder)


def _npz_bomb(rng: random.Random, folder: Path, what: str = "votes") -> Case:
    """Zeros, which a thousandth of their size can hold."""
    path, n = folder / "bomb.npz", rng.choice((1 << 24, 1 << 25))
    source = "moments0.npz" if what == "moments" else "elements.npz"
    path.write_bytes(written()[source])
    with open_archive(path) as archive:
        header, arrays = archive.header, {one: archive.read(one, "iufU") for one in archive.names}
    chosen = rng.choice(list(arrays))
    shape = (n, *arrays[chosen].shape[1:]) if what == "moments" else (n,)
    arrays[chosen] = np.broadcast_to(np.zeros((), arrays[chosen].dtype), (n // max(shape[1:], default=1), *shape[1:]))
    if what == "votes" and rng.random() < 0.5:
        place = list(arrays).index(chosen)
        name = list(header["arrays"])[place]
        header["arrays"][name]["length"] = len(arrays[chosen])
    with path.open("wb") as handle:
        write_archive(handle, header, arrays)
    return (lambda: use_moments(path)) if what == "moments" else (lambda: use_votes(path)), path.stat().st_size


def _shape_bomb(rng: random.Random, folder: Path) -> Case:
    path = folder / "bomb.npz"
    claim = str(rng.choice(((10**13,), (2**62,), (10**6, 10**9), (-1,), (2**64,)))).encode()
    with zipfile.ZipFile(io.BytesIO(written()["elements.npz"])) as archive, zipfile.ZipFile(path, "w") as liar:
        for name in archive.namelist():
            data = archive.read(name)
            if name != "header.npy":
                head = b"{'descr': '|i1', 'fortran_order': False, 'shape': " + claim + b", }"
                data = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data[-20:]
            liar.writestr(name, data)
    return lambda: use_votes(path), path.stat().st_size


def _parquet_bomb(rng: random.Random, folder: Path) -> Case:
    """A column of equal values costs nothing in a file."""
    path, n = folder / "bomb.parquet", rng.choice((10**7, 3 * 10**7))
    about = json.loads(pq.read_schema(io.BytesIO(written()["elements.parquet"])).metadata[b"dugong"])
    for name in about["arrays"]:
        if rng.random() < 0.7:
            about["arrays"][name]["length"] = n
    kinds = {"int8": pa.int8(), "int64": pa.int64()}
    value = rng.choice((0, 1, 2))
    columns = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(n, np.int8)), pa.array([value], kinds[one["dtype"]])
        ).cast(kinds[one["dtype"]])
        for name, one in list(about["arrays"].items())[-2:]
    }
    table = pa.table(columns).replace_schema_metadata({b"dugong": json.dumps(about).encode()})
    pq.write_table(table, path, compression="zstd")
    return lambda: use_votes(path), path.stat().st_size


def _deep_json(rng: random.Random, folder: Path) -> Case:
    path, levels = folder / "model.json", rng.choice((100, 5_000, 200_000))
    text = rng.choice(("[" * levels, "[" * levels + "]" * levels, '{"a":' * levels))
    plain, given = models()["given"]
    if rng.random() < 0.5:
        text = json.dumps(plain)[:-1] + ', "law": ' + text + "}"
    path.write_text(text)
    return lambda: use_model(path, given), len(text)


def _deep_toml(rng: random.Random, folder: Path) -> Case:
    levels = rng.choice((100, 5_000, 100_000))
    text = rng.choice(("a = " + "[" * levels + "]" * levels, "a" + ".a" * levels + " = 1", "a = " + "{a=" * levels))
    place = folder / "project.toml"
    place.write_text(text)
    (folder / "prior.toml").write_text(text)
    return rng.choice((lambda: told("check", place), lambda: read_prior(str(folder / "prior.toml")) and None)), len(
        text
    )


def _deep_header(rng: random.Random, folder: Path) -> Case:
    path = folder / "votes.npz"
    with open_archive(_put(folder, "elements.npz")) as archive:
        header, arrays = archive.header, {one: archive.read(one, "iufU") for one in archive.names}
    header[rng.choice(list(header))] = deep(rng.choice((100, 400)))
    _write_spoiled(path, header, arrays)
    return lambda: use_votes(path), path.stat().st_size


def _put(folder: Path, name: str) -> Path:
    (folder / name).write_bytes(written()[name])
    return folder / name


def _npy_bomb(rng: random.Random, folder: Path) -> Case:
    path = folder / "gold.npy"
    kind = rng.choice(("|i1", "<f8", "|O", "<U1000"))
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({10**12},), }}\n".encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + b"\0" * 100)
    return lambda: read_gold(path, votes()) is None, path.stat().st_size


def _xml_bomb(rng: random.Random, folder: Path) -> Case:
    inner = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    text = (
        f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "lol">{inner}]><ANNOTATION_DOCUMENT>&e11;</ANNOTATION_DOCUMENT>'
    )
    path = folder / f"a{rng.choice(('.eaf', '.xml', '.jams'))}"
    path.write_text(text)
    return lambda: formats.read(path) is None, len(text)


def _long_lengths(rng: random.Random, folder: Path) -> Case:
    """Lengths that claim elements which nobody voted on."""
    with open_archive(_put(folder, "windows.npz")) as archive:
        header, arrays = archive.header, {one: archive.read(one, "iufU") for one in archive.names}
    place = list(header["arrays"]).index("lengths")
    lengths = arrays[f"array{place}"].copy()
    lengths[rng.randrange(len(lengths))] = rng.choice((10**9, 10**13, 2**62, 2**63 - 1))
    arrays[f"array{place}"] = lengths
    if rng.random() < 0.5:
        header["sources"] = [one for one in header["sources"] if one["name"] == "q"]
    path = folder / "votes.npz"
    _write_spoiled(path, header, arrays)
    return lambda: use_votes(path), path.stat().st_size


BOMBS: dict[str, Any] = {
    "npz": _npz_bomb,
    "moments": lambda rng, folder: _npz_bomb(rng, folder, "moments"),
    "shape": _shape_bomb,
    "parquet": _parquet_bomb,
    "json": _deep_json,
    "toml": _deep_toml,
    "header": _deep_header,
    "npy": _npy_bomb,
    "xml": _xml_bomb,
    "lengths": _long_lengths,
}
