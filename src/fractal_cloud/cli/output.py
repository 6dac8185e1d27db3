"""How things are printed: tables for people that fit 80 columns, JSON and YAML for programs, errors on their own way.

Text from elsewhere is shown as text: it can neither colour nor command the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.options import Output
from fractal_cloud.model.visible_text import escaped_json, is_hidden, visible
from fractal_cloud.rules.staleness import stale_words

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
STALE: Final = "bold yellow"


def console() -> Console:
    """Where results go."""
    return Console(highlight=False, emoji=False)


def say(line: object = "") -> None:
    """Print one line of text as it is, however long."""
    console().print(plain(line), soft_wrap=True)


def plain(value: object, style: str = "") -> Text:
    """Anything as text that only shows itself."""
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    return Text(visible(text, keep="\n"), style)


def status(word: object, of: Mapping[str, Any] | None = None) -> Text:
    """A status in its colour; of something that nobody has read for two cycles, with that, and never plain green."""
    if of is None or not of.get("stale"):
        return plain(word, STYLES.get(str(word), ""))
    return plain(f"{word} ({stale(of)})", STALE)


def stale(of: Mapping[str, Any]) -> str:
    """Since when nobody has read something that is stale (C11)."""
    at = of.get("lastRead")
    return stale_words(None if at is None else datetime.fromisoformat(str(at)), datetime.now(UTC))


def compact(value: object) -> str:
    """A parameter's value on one line: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


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
        text = json_text(data, indent=2)
    else:
        import yaml

        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
        if any(is_hidden(char) for char in text if not char.isprintable() and char != "\n"):
            text = yaml.safe_dump(data, sort_keys=False)
    sys.stdout.write(text.rstrip("\n") + "\n")


def json_text(data: Any, indent: int | None = None) -> str:
    """Data as JSON that shows itself: what a terminal would act upon is escaped, all else stays readable."""
    return escaped_json(json.dumps(data, indent=indent, ensure_ascii=False))


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
