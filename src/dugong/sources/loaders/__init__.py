"""Sequences from files: folders of tables, arrays, video or sound, and text by line; all of them lazy."""

from dugong.exceptions import LoaderError
from dugong.sources.loaders.annotated import Epochs, TextLines, Token, conll, edf_folder, text_folder, text_lines
from dugong.sources.loaders.arrow import Row, Rows
from dugong.sources.loaders.blocks import Blocks
from dugong.sources.loaders.folders import Folder, csv_folder, folder, npy_folder, parquet_folder
from dugong.sources.loaders.media import Audio, Video, audio_folder, video_folder

__all__ = [
    "Audio",
    "Blocks",
    "Epochs",
    "Folder",
    "LoaderError",
    "Row",
    "Rows",
    "TextLines",
    "Token",
    "Video",
    "audio_folder",
    "conll",
    "csv_folder",
    "edf_folder",
    "folder",
    "npy_folder",
    "parquet_folder",
    "text_folder",
    "text_lines",
    "video_folder",
]
