"""`fractal notify`: who is notified, where and of what."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url
from fractal_cloud.model.notification import SUBSCRIBABLE

notify_app = typer.Typer(
    help="Have overrides, drift, failures and the like sent to a webhook or to Slack.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The subscription, as the list shows it.")]
# In `add`, --url is where notifications go.
ControlPlane = Annotated[
    str, typer.Option("--control-plane", envvar="FRACTAL_URL", help="Address of the control plane.")
]
_TEST_SECONDS: Final = 30.0
_MOST_SECRET: Final = 1_000


class Format(StrEnum):
    """In which form notifications are sent."""

    CLOUDEVENTS = "cloudevents"
    SLACK = "slack"


@notify_app.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    address: Annotated[str, typer.Option("--url", help="Where notifications are sent: an https address.")] = "",
    address_file: Annotated[
        Path | None, typer.Option("--url-file", help="A file that holds the address, where it is a secret itself.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help=f"A kind of: {', '.join(SUBSCRIBABLE)}; may be given several times. Without it: all of them.",
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", help="Only what happens there; may be given several times."),
    ] = None,
    live_system: Annotated[
        list[str] | None,
        typer.Option("--live-system", help="Only what happens to this one; may be given several times."),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="Signed CloudEvents, or messages as Slack takes them.")
    ] = Format.CLOUDEVENTS,
    secret_file: Annotated[
        Path | None,
        typer.Option("--secret-file", help="A file with the secret to sign with (whsec_…); without it, one is made."),
    ] = None,
    output: OutputOption = Output.TABLE,
    control_plane: ControlPlane = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Notify somebody from now on. A secret that is made for it is shown once, now, and never again."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    if bool(address) is (address_file is not None):
        raise CommandError("where to send is not said once", advice="Give --url or --url-file.", code=Exit.USAGE)
    body: dict[str, Any] = {
        "name": name,
        "url": address if address_file is None else _line(address_file, "the address"),
        "format": form.value,
        "kinds": kind or [],
        "environments": environment or [],
        "liveSystems": live_system or [],
    }
    if secret_file is not None:
        body["secret"] = _line(secret_file, "the secret")
    with connect(control_plane, token) as control:
        made = control.post("/notifications", body)
    if output is not Output.TABLE:
        emit(made, output)
        return
    say(f"{name}: notified at {made['address']} of {', '.join(made['kinds']) or 'everything'}.")
    if made["secret"]:
        say(f"secret: {made['secret']}")
        say("It signs every notification, and is not shown again.")
    say(f"Try it: fractal notify test {name}")


def _line(file: Path, what: str) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_MOST_SECRET * 4).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise CommandError(f"{str(file)!r} cannot be read: {why}", code=Exit.USAGE) from None
    if not text or "\n" in text:
        raise CommandError(f"{str(file)!r} does not hold one line", advice=f"Put {what} into it.", code=Exit.USAGE)
    return text


_TITLES: Final = ("name", "sent to", "of", "state")


@notify_app.command("list")
def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show who is notified, and how sending goes; neither secrets nor whole addresses."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/notifications"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    console().print(table(_TITLES, [_row(one) for one in found]))


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    asked = [", ".join(one[name]) for name in ("kinds", "environments", "liveSystems")]
    about = "; ".join(filter(None, asked)) or "everything"
    return one["name"], f"{one['format']} {one['address']}", about, _state(one)


def _state(one: Mapping[str, Any]) -> str:
    numbers = f"{one['sent']} sent"
    numbers += f", {one['pending']} pending" if one["pending"] else ""
    numbers += f", {one['givenUp']} given up" if one["givenUp"] else ""
    if one["failures"]:
        since, following = str(one["failingSince"])[:16], str(one["nextTry"])[:19]
        return f"{numbers}; failing since {since} UTC: {one['lastError']}; next try {following} UTC"
    return f"{numbers}, last {str(one['lastSentAt'])[:16]} UTC" if one["lastSentAt"] else numbers


@notify_app.command("test")
def send_test(name: Name, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Send a test, and say whether it was accepted."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        started = control.post(_path(name, "/test"))
        result = _awaited(control, name, started)
    if output is not Output.TABLE:
        emit(result, output)
    elif result["outcome"] == "sent":
        say(f"{name}: the test was accepted.")
    if result["outcome"] != "sent":
        what = "was not accepted" if result["outcome"] == "failed" else f"was not sent within {_TEST_SECONDS:g} s"
        error = f": {result['error']}" if result["error"] else ""
        raise CommandError(f"{name}: the test {what}{error}", advice="Check the receiver, then test it again.")


def _awaited(control: Any, name: str, started: Mapping[str, Any]) -> Mapping[str, Any]:
    import time

    until = time.monotonic() + _TEST_SECONDS
    result: Mapping[str, Any] = started
    while result["outcome"] == "pending" and time.monotonic() < until:
        time.sleep(0.2)
        result = control.get(_path(name))["test"] or started
    return result


@notify_app.command("remove")
def remove(name: Name, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Notify somebody no longer; what was still to be sent is dropped."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import say

    with connect(url, token) as control:
        control.delete(_path(name))
    say(f"{name}: removed")


def _path(name: str, rest: str = "") -> str:
    from urllib.parse import quote

    return f"/notifications/{quote(name, safe='')}{rest}"
