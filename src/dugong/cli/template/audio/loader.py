"""Where the sequences come from: one sound file each, cut into half seconds."""

from pathlib import Path

from dugong.sources.loaders import Folder, audio_folder


def sequences() -> Folder:
    """All recordings by id; a piece of sound is read when it is needed."""
    return audio_folder(Path(__file__).parent / "data", every="0.5s")
