"""`fractal who`: who changed a component outside of Fractal Cloud, and when, as far as its cloud records that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fractal_cloud.cli.options import DEFAULT_URL, ComponentId, LiveSystemId, Output, OutputOption, Token, Url


def who(
    live_system: LiveSystemId,
    component: ComponentId,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show who changed which parameter of a component, and when, as far as its cloud records that."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import emit

    with connect(url, token) as control:
        found = control.get(path_of(live_system, component))
    if output is not Output.TABLE:
        shown = {name: found.get(name) for name in ("liveSystemId", "componentId", "status", "owner", "changedBy")}
        emit({**shown, "drift": (found.get("outputFields") or {}).get("drift") or {}}, output)
    else:
        _show(found)


def _show(found: Mapping[str, Any]) -> None:
    from fractal_cloud.cli.output import console, say, table

    name = f"{found['liveSystemId']}/{found['componentId']}"
    changes: Sequence[Mapping[str, Any]] = found.get("changedBy") or ()
    current, past = ([one for one in changes if one["stands"] is stands] for stands in (True, False))
    rows = [*_taken_over(found), *_current(found, current), *_undated(found, current)]
    if found.get("stance") == "imported":
        say(f"{name} is only read here: {found.get('owner') or 'nobody'} owns it, and is asked who changed it.")
    elif not changes and not rows:
        say(f"{name}: nothing was changed outside of Fractal Cloud, as far as the agent saw.")
    if rows:
        console().print(table(("parameter", "who changed it"), rows, f"{name}: {found['status']}"))
    if past:
        earlier = [(one["parameter"], one["text"]) for one in past]
        console().print(table(("no longer so", "who changed it"), earlier, "" if rows else name))
    if any(one["state"] == "denied" and one["source"] == "CloudTrail" for one in changes):
        say("`fractal agent policy --provider aws --with-history` prints the right to read CloudTrail.")


def _taken_over(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who broke the glass through the product, which is known for certain."""
    override = found.get("override") or {}
    if not override.get("by"):
        return []
    since = str(override.get("since") or "")[:19].replace("T", " ")
    reason = f": {override['reason']}" if override.get("reason") else ""
    return [("managed-by", f"{override['by']} broke the glass at {since} UTC{reason}")]


def _current(found: Mapping[str, Any], current: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    from fractal_cloud.rules.diff_words import lines_of

    drift = (found.get("outputFields") or {}).get("drift") or {}
    rows = []
    for one in current:
        name = one["parameter"]
        values = "".join(f"\n{line.text}" for line in lines_of({name: drift[name]} if name in drift else {}))
        where = f"\n{one['identity']}" if one["identity"] not in ("", one["by"]) else ""
        where += f" from {one['address']}" if one["address"] else ""
        rows.append((one["parameter"], f"{one['text']}{where}{values}"))
    return rows


def _undated(found: Mapping[str, Any], current: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What differs and was not changed by anybody since it is watched."""
    drift = (found.get("outputFields") or {}).get("drift") or {}
    named = {one["parameter"] for one in current}
    why = "not changed since it was last as declared: the declaration is newer"
    return [(name, why) for name in drift if name not in named] if found.get("stance") != "imported" else []
