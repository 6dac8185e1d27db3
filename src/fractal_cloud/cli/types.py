"""`fractal types`: which component types there are, what each of them is, and giving one to another token (A4)."""

from __future__ import annotations

from typing import Annotated

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

types_app = typer.Typer(help="Find component types, see what they are and whose, and move one.", no_args_is_help=True)

Types = Annotated[list[str], typer.Argument(metavar="TYPE...", help="Component types, like AWS::SQS::Queue.")]


@types_app.command("list")
def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show all component types, and whose each of them is."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/types"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    rows = [(one["type"], one["provider"], _owner(one["owner"], installed=one["installed"])) for one in found]
    console().print(table(("type", "provider", "owner"), rows))


def _owner(owner: str | None, *, installed: bool) -> str:
    if installed:
        return "installed package"
    return f"token {owner}" if owner else "nobody yet"


@types_app.command("search")
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="What stands in its name or description.")],
    provider: Annotated[str, typer.Option(help="Types of this provider alone.")] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Find component types, also those that no class was written for, as this installation knows them."""
    from fractal_cloud.cli.errors import CommandError
    from fractal_cloud.cli.output import console, emit, table
    from fractal_cloud.cli.type_facts import search as found_by

    found = list(found_by(words, provider))
    if output is not Output.TABLE:
        emit(found, output)
        return
    if not found:
        raise CommandError(f"no component type has {' '.join(words)!r} in its name or description")
    rows = [(one["type"], one["provider"], one["description"] or one["title"]) for one in found]
    console().print(table(("type", "provider", "what it is"), rows))


@types_app.command("show")
def show(
    component_type: Annotated[str, typer.Argument(metavar="TYPE", help="A component type, like AWS::SQS::Queue.")],
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show a component type: its parameters and outputs, how its resources are found, and whose they are."""
    from fractal_cloud.cli.output import console, emit, say, table
    from fractal_cloud.cli.type_facts import find_types, how_found, rows_of

    [facts] = find_types([component_type], url, token)
    if output is not Output.TABLE:
        emit(facts.to_json(), output)
        return
    say(f"{facts.type} ({facts.provider}): {facts.description or facts.title}")
    say(f"Found {how_found(facts)}.")
    console().print(table(("parameter", "must be", "", "what for"), rows_of(facts)))
    console().print(table(("output", "what it is"), sorted(facts.outputs.items())))


@types_app.command("stub")
def stub(component_types: Types, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Write typed Python classes for component types, for your own repository: > my_types.py."""
    import sys

    from fractal_cloud.cli.type_facts import find_types
    from fractal_cloud.cli.type_stubs import stub_of

    sys.stdout.write(stub_of(find_types(list(dict.fromkeys(component_types)), url, token)))


@types_app.command("move")
def move(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="A type that an agent brought along.")],
    to: Annotated[str, typer.Option("--to", help="The name of the token whose agents say what the type is.")],
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Give a type to another token, as an admin: what that token's agents register next is what the type is."""
    from urllib.parse import quote

    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        done = control.post(f"/tokens/{quote(to, safe='')}/types", {"type": name})
    if output is not Output.TABLE:
        emit(done, output)
        return
    before = f"it belonged to token {done['before']}" if done["before"] else "it belonged to nobody"
    say(f"{name} belongs to token {done['owner']} from now on; {before}.")
