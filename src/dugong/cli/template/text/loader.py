"""Where the sequences come from: one note per line, one element per word."""

from pathlib import Path

from dugong.sources.loaders import TextLines, text_lines


def sequences() -> TextLines:
    """All notes by number; a line is read when it is needed."""
    return text_lines(Path(__file__).parent / "data" / "notes.txt")
