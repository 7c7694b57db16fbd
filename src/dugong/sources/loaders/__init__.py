"""Sequences from files: folders of CSV, Parquet or npy files, and text by line; all of them lazy."""

from dugong.sources.loaders.errors import LoaderError
from dugong.sources.loaders.folders import Folder, csv_folder, folder, npy_folder, parquet_folder
from dugong.sources.loaders.rows import Row, Rows
from dugong.sources.loaders.text import TextLines, text_lines

__all__ = [
    "Folder",
    "LoaderError",
    "Row",
    "Rows",
    "TextLines",
    "csv_folder",
    "folder",
    "npy_folder",
    "parquet_folder",
    "text_lines",
]
