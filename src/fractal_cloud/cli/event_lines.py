"""Events as lines of text: one whole line each, or as many short ones as a terminal is wide for. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.visible_text import visible
from fractal_cloud.rules.diff_words import event_text

_INDENT: Final = "    "
_MOST_LINES: Final = 4


def one_line(event: Mapping[str, Any], *, with_live_system: bool = False) -> str:
    """An event with all that it says, on one line however long."""
    said = _why(event)
    line = f"{_when(event)}  {event.get('kind', '')}  {_where(event, with_live_system=with_live_system)}"
    line += (f" {change}" if (change := _change(event)) else "") + (f": {said}" if said else "")
    return visible(line + (f"  by {event['by']}" if event.get("by") else ""))


def columns(events: Sequence[Mapping[str, Any]], *, with_live_system: bool = False) -> Iterator[str]:
    """Events with all that they say, one line each however long, below a line that names the columns."""
    rows = [("when", "what", "who", "where and why")]
    for event in events:
        where = _where(event, with_live_system=with_live_system)
        why = (f" {change}" if (change := _change(event)) else "") + (f": {said}" if (said := _why(event)) else "")
        rows.append((_when(event), str(event.get("kind", "")), str(event.get("by") or ""), f"{where}{why}"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [f"{text:<{width}}" for text, width in zip(row, widths, strict=False)]
        yield visible("   ".join([*cells, row[3]]))


def short_lines(event: Mapping[str, Any], width: int, *, with_live_system: bool = False) -> Iterator[str]:
    """An event on lines no longer than ``width``: when, what and where first; who and why below, cut with «…»."""
    head = f"{_when(event)}  {event.get('kind', '')}"
    where = visible(_where(event, with_live_system=with_live_system))
    change = visible(_change(event))
    lines = [head]
    for part in filter(None, (where, change)):
        if len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(f"{_INDENT}{part}")
    yield from (_cut(line, width) for line in lines)
    who = f"by {event['by']}" if event.get("by") else ""
    said = ": ".join(filter(None, (who, _why(event))))
    yield from textwrap.wrap(
        visible(said),
        width,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        max_lines=_MOST_LINES,
        placeholder=" …",
        break_on_hyphens=False,
    )


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _when(event: Mapping[str, Any]) -> str:
    return str(event.get("at", ""))[:19].replace("T", " ")


def _where(event: Mapping[str, Any], *, with_live_system: bool) -> str:
    live_system, component = event.get("liveSystemId") or "", event.get("componentId") or ""
    return "/".join(filter(None, (live_system, component))) if with_live_system else component or live_system


def _change(event: Mapping[str, Any]) -> str:
    before, after = event.get("before"), event.get("after")
    return f"{before} → {after}" if isinstance(before, str) and isinstance(after, str) else ""


def _why(event: Mapping[str, Any]) -> str:
    """Why it happened; of a drift, what differs, also of events that only named the parameters."""
    found = event_text(str(event.get("kind")), event.get("before"), event.get("after"))
    return found or str(event.get("message") or "")
