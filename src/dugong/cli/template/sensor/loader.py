"""Where the sequences come from: one file per recording, one row per second."""

from pathlib import Path

from dugong.sources.loaders import Folder, csv_folder


def sequences() -> Folder:
    """All recordings by id; a file is read when it is needed."""
    return csv_folder(Path(__file__).parent / "data")
