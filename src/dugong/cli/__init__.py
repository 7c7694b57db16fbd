"""The command line: its verbs, loaded when they are called, and what becomes of an error.

``dugong --help`` imports click and this file, and nothing else: numpy, scipy, numba and pyarrow wait until a verb needs
them. Exit codes: 0 fine, 1 the data or the settings (``error: ...``, no traceback), 2 usage, 3 our bug (with its
traceback), 130 interrupted. Results go to the standard output, everything else to the standard error.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from dugong import __version__
from dugong.exceptions import DugongError

__all__ = ["main"]

OK, DATA_ERROR, BUG, INTERRUPTED = 0, 1, 3, 130

# Every verb in the order of a job: where it is, and what it does. The studio stands on top of the other verbs.
_VERBS = {
    "init": ("cli.init:command", "Write a working project to start from."),
    "demo": ("cli.worlds:demo", "Do the whole job on simulated raw data; nothing to prepare."),
    "run": ("cli.run:command", "Apply, fit, label and report, as a project.toml says."),
    "studio": ("studio.command:command", "Look, write sources, correct and export in the browser."),
    "apply": ("cli.run:apply", "Let the sources of a project vote on its sequences."),
    "check": ("cli.check:command", "Say what is in votes, and what is wrong with them."),
    "fit": ("cli.fit:command", "Estimate a label model from votes."),
    "label": ("cli.fit:label", "Turn votes into probabilities of labels."),
    "review": ("cli.review:review", "Say which labels are worth a person's minute."),
    "suggest": ("cli.review:suggest", "Propose rules that would complement the sources of a project."),
    "drift": ("cli.review:drift", "Say whether new votes still look like those of the fit."),
    "export": ("cli.exchange:export", "Write labels as files of another tool."),
    "import": ("cli.exchange:take_in", "Read what people marked in another tool."),
    "formats": ("cli.exchange:list_formats", "List the formats of export and import."),
    "report": ("cli.fit:report", "Show a model and its labels as one page."),
    "simulate": ("cli.worlds:simulate", "Draw votes and their true labels from a known world."),
    "plan": ("cli.worlds:plan_sizes", "Say how many sequences are needed, by simulation."),
    "reproduce": ("cli.worlds:reproduce", "Make the tables and figures of the paper."),
    "info": ("cli.info:command", "Show versions, and what is in files of votes, models and labels."),
}
VERBS = {name: text for name, (_, text) in _VERBS.items()}


class Verbs(click.Group):
    """A group that imports the file of a verb when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """All verbs, in the order of a job."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one verb."""
        if cmd_name not in VERBS:
            return None
        file, _, name = _VERBS[cmd_name][0].partition(":")
        command = getattr(import_module(f"dugong.{file}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without loading any of them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Each verb explains itself and shows an example: dugong run --help",
)
@click.version_option(__version__, prog_name="dugong")
def dugong() -> None:
    """Weak supervision for sequences: noisy sources at several resolutions in, probabilistic labels out.

    Start with `dugong demo`, or with `dugong init my-project` and `dugong run my-project/project.toml`.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(exit_code(argv))


def exit_code(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        _check_words(sys.argv[1:] if argv is None else argv)
        code = dugong.main(args=None if argv is None else list(argv), prog_name="dugong", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted: files that are not finished were not written.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return DATA_ERROR
    except (DugongError, OSError) as error:
        from dugong.cli.output import fit_width

        hint = "" if isinstance(error, DugongError) else "\n  Name a place that is there and that you may use."
        head, traced, frames = f"error: {error}{hint}".partition("\n  Traceback")
        click.echo(f"{fit_width(head) if sys.stderr.isatty() else head}{traced}{frames}", err=True)
        return DATA_ERROR
    except Exception:
        traceback.print_exc()
        click.echo("This is a bug in Dugong, not in your data. Please report it with the lines above.", err=True)
        return BUG
    return code if isinstance(code, int) else OK  # a verb may leave with a code of its own


def _check_words(words: Sequence[str]) -> None:
    """Refuse words that no file can be named by, before anybody looks for such a file."""
    for word in words:
        try:
            if b"\0" in os.fsencode(word):
                raise click.UsageError(f"a word of the command must be without NUL; found {word!r}.")
        except UnicodeEncodeError:
            raise click.UsageError(f"a word of the command must be text that can be encoded; found {word!r}.") from None


def _drop_output() -> None:
    """Let the interpreter end quietly after the reader of our output has gone (``dugong info | head -1``)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
