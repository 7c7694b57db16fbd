"""Where the sequences come from: one video file each, four pictures per second."""

from pathlib import Path

from dugong.sources.loaders import Folder, video_folder


def sequences() -> Folder:
    """All videos by id; a frame is decoded when it is needed."""
    return video_folder(Path(__file__).parent / "data", every="0.25s")
