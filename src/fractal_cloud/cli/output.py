"""How things are printed: tables for people that fit 80 columns, JSON and YAML for programs, errors on their own way.

Text from elsewhere is shown as text: it can neither colour nor command the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.options import Output

STYLES: Final = {
    "Active": "green",
    "Completed": "green",
    "ExternallyManaged": "cyan",
    "ManualOverride": "yellow",
    "ReconcileRequested": "blue",
    "Instantiating": "blue",
    "Mutating": "blue",
    "InProgress": "blue",
    "Deleting": "magenta",
    "Deleted": "dim",
    "Missing": "red",
    "Failed": "bold red",
    "Cancelled": "red",
}


def console() -> Console:
    """Where results go."""
    return Console(highlight=False, emoji=False)


def say(line: object = "") -> None:
    """Print one line of text as it is, however long."""
    console().print(plain(line), soft_wrap=True)


def plain(value: object, style: str = "") -> Text:
    """Anything as text that only shows itself."""
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    return Text(
        "".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text), style
    )


def status(word: object) -> Text:
    """A status in its colour."""
    return plain(word, STYLES.get(str(word), ""))


def compact(value: object) -> str:
    """A parameter's value on one line: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> Table:
    """A table in which nothing is cut off: what is too long is wrapped."""
    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        pad_edge=False,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        show_header=any(columns),
    )
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else plain("" if cell is None else cell) for cell in row))
    return made


def emit(data: Any, output: Output) -> None:
    """Print data for programs."""
    if output is Output.JSON:
        text = json.dumps(data, indent=2, ensure_ascii=False)
    else:
        import yaml

        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True).rstrip("\n")
    sys.stdout.write(text + "\n")


def show_error(error: CommandError) -> None:
    """Print why a command failed: the cause, each detail on its line, and what to do."""
    errors = Console(stderr=True, highlight=False, emoji=False)
    errors.print(Text("error: ", "bold red") + plain(error.cause), soft_wrap=True)
    for detail in error.details:
        errors.print(plain(f"  {detail}"), soft_wrap=True)
    if error.advice:
        errors.print(plain(error.advice), soft_wrap=True)


def warn(message: str) -> None:
    """Print something the person should know, beside the results."""
    errors = Console(stderr=True, highlight=False, emoji=False)
    errors.print(Text("warning: ", "yellow") + plain(message), soft_wrap=True)
