"""The editor: one function is replaced, everything else stays byte by byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dugong.studio import StudioError
from dugong.studio.editing import EditError, SourceFile
from studio_client import SOURCES

NEW = "@dg.source\ndef low(value):\n    return 0\n"


def make(tmp_path: Path, text: str = SOURCES) -> SourceFile:
    file = tmp_path / "sources.py"
    file.write_bytes(text.encode())
    return SourceFile.read(file)


def test_functions_come_with_decorators_and_without_comments_around(tmp_path: Path) -> None:
    found = make(tmp_path).functions()
    assert list(found) == ["high", "low", "some"]
    assert found["low"].text == "@dg.source\ndef low(value):   # not low\n    return -1 if value < 0.4 else 0\n"
    assert found["low"].first == 13


def test_only_the_function_changes(tmp_path: Path) -> None:
    file = make(tmp_path)
    whole, found = file.with_function("low", NEW)
    old = file.functions()["low"].text
    assert whole == SOURCES.replace(old, NEW)
    written = file.write(whole)
    assert (tmp_path / "sources.py").read_text() == whole
    assert SourceFile.read(tmp_path / "sources.py").digest == written.digest
    assert found.first == 13


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_ends_of_line_stay(tmp_path: Path, end: str, last: bool) -> None:
    text = SOURCES.replace("\n", end) if last else SOURCES.replace("\n", end).rstrip()
    file = make(tmp_path, text)
    same, _ = file.with_function("some", file.functions()["some"].text.replace("\r\n", "\n"))
    assert same == text
    other, _ = file.with_function("low", NEW.replace("\n", "\r\n"))
    assert other.count("\r\n") == (other.count("\n") if end == "\r\n" else 0)


def test_a_new_function_is_added_at_the_end(tmp_path: Path) -> None:
    file = make(tmp_path)
    whole, found = file.with_function("fresh", NEW.replace("low", "fresh"))
    assert whole == SOURCES + "\n\n" + NEW.replace("low", "fresh")
    assert whole.splitlines()[found.first] == "@dg.source"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "one function"),
        ("x = 1\n", "one function"),
        (NEW + "\nimport os\n", "one function"),
        (NEW + NEW.replace("low", "two"), "one function"),
        ("def low(:\n    pass\n", "line 1"),
        ("def low(value):\n    return 1 +\n", "line 2"),
        (NEW.replace("low", "high"), "already"),
        ("def low(v):\n    '''\x00'''\n", "null bytes"),
        ("    " + NEW, "unexpected indent"),
    ],
)
def test_what_is_no_function_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(EditError, match=words):
        make(tmp_path).with_function("low", text)


def test_a_file_that_somebody_else_changed_is_left_alone(tmp_path: Path) -> None:
    file = make(tmp_path)
    whole, _ = file.with_function("low", NEW)
    (tmp_path / "sources.py").write_text(SOURCES + "# mine\n")
    with pytest.raises(StudioError, match="somebody else") as caught:
        file.write(whole)
    assert caught.value.kind == "changed"
    assert (tmp_path / "sources.py").read_text() == SOURCES + "# mine\n"


def test_a_link_and_its_rights_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.py"
    real.write_text(SOURCES)
    real.chmod(0o640)
    link = tmp_path / "sources.py"
    link.symlink_to(real)
    file = SourceFile.read(link)
    file.write(file.with_function("low", NEW)[0])
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "return 0" in real.read_text()


NAMES = st.sampled_from(["a", "b", "c"])


@given(
    st.lists(
        st.sampled_from(
            [
                "x = 1\n",
                "\x0c\n",
                "s = '\u2028 \x85'\n",
                "# words\n",
                "\n",
                "if x:\n    y = 2\n",
                "class C:\n    def a(self): ...\n",
            ]
        )
    ),
    st.sampled_from(["def a(v):\n    return 1\n", "@d\n@e(1)\ndef a(v):\n    # why\n    return (\n        2\n    )\n"]),
    st.lists(st.sampled_from(["z = '''\ndef a(v): no\n'''\n", "# end\n", "\n"])),
)
def test_the_rest_of_any_file_stays(before: list[str], function: str, after: list[str]) -> None:
    head, tail = "".join(before), "".join(after)
    file = SourceFile(path=Path("sources.py"), text=head + function + tail, digest="")
    found = file.functions()["a"]
    assert found.text == function
    whole, _ = file.with_function("a", "def a(v):\n    return 3\n")
    assert whole == head + "def a(v):\n    return 3\n" + tail


def test_sources_are_told_from_helpers(tmp_path: Path) -> None:
    text = (
        "import dugong as dg\nfrom dugong import source\n\n@dg.source\ndef a(x): ...\n\n@source(vectorized=True)\n"
        "def b(x): ...\n\n@dg.source(name='other')\ndef c(x): ...\n\ndef d(x): ...\n\n@dg.resource\ndef e(x): ...\n"
    )
    (tmp_path / "sources.py").write_text(text)
    file = SourceFile.read(tmp_path / "sources.py")
    assert [name for name, one in file.functions().items() if one.source] == ["a", "b"]
    assert file.trouble is None
    (tmp_path / "sources.py").write_text(text + "while\n")
    assert "(line 17)" in str(SourceFile.read(tmp_path / "sources.py").trouble)
