"""`dugong formats`: the files of other tools that can be read and written, and what each keeps and loses."""

from __future__ import annotations

import textwrap

import click

from dugong.cli.output import emit, example, json_option


@click.command("formats", epilog=example("dugong formats", "dugong formats elan"))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
def command(*, names: tuple[str, ...], as_json: bool) -> None:
    """List the formats of `export` and `import`: endings, units, what is kept, what is lost, who checked it."""
    from dugong import formats

    found = [formats.of_name(name) for name in names or formats.names()]
    result = {
        one.name: {
            "title": one.title,
            "endings": one.suffixes,
            "unit": one.unit,
            "keeps": one.keeps,
            "loses": one.loses,
            "checked by": one.checked,
            "extra": one.extra,
            "options": one.options,
        }
        for one in found
    }
    blocks = []
    for one in found:
        needs = f"; needs dugong-ws[{one.extra}]" if one.extra else ""
        lines = [f"{one.name:<14}{one.title} ({', '.join(one.suffixes)}{needs})"]
        facts = {"unit": one.unit, "keeps": one.keeps, "loses": one.loses, "checked by": one.checked}
        facts |= {"options": ", ".join(one.options)} if one.options else {}
        for word, text in facts.items():
            lines += textwrap.wrap(f"{word}: {text}", 100, initial_indent=" " * 14, subsequent_indent=" " * 16)
        blocks.append("\n".join(lines))
    emit({"formats": result}, "\n".join(blocks), as_json=as_json)
