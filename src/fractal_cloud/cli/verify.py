"""`fractal verify`: tries the contract of the offers on the account that these credentials reach, and reports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.model.visible_text import visible

if TYPE_CHECKING:
    from fractal_cloud.offers.offer import AnyOffer
    from fractal_cloud.offers.registry import Registry
    from fractal_cloud.verifying.account import Account
    from fractal_cloud.verifying.cleaning import Leftover
    from fractal_cloud.verifying.example import VerificationExample
    from fractal_cloud.verifying.report import Finding, Report


class Printed(StrEnum):
    """How the report is printed."""

    TABLE = "table"
    JSON = "json"


_STYLES = {"held": "green", "not held": "bold red", "not claimed": "dim", "not tried": "yellow"}


def verify(
    provider: Annotated[str, typer.Option("--provider", help="The cloud to try, such as aws.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="KEY=VALUE",
            help="Where: region=eu-west-1, resourceGroup=…, location=…, namespace=…; may be given several times.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only this type, such as AwsVpc; may be given several times."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Only find and delete what a run that was killed has left there.")
    ] = False,
    output: Annotated[Printed, typer.Option("--output", "-o", help="How to print the report.")] = Printed.TABLE,
) -> None:
    """Try what we assume of a cloud on a real account.

    The smallest things of each type are created, changed, handed over and deleted with your own credentials. The
    report says assumption by assumption whether it held, with the vendor's request ids.
    """
    import logging

    from fractal_cloud.cli import logs
    from fractal_cloud.model.errors import RegistrationError
    from fractal_cloud.offers.registry import installed
    from fractal_cloud.verifying.examples import PROVIDERS, examples_of

    try:
        installed().provider(provider)
    except RegistrationError as error:
        raise CommandError(str(error), advice="Install the package that has it.", code=Exit.USAGE) from None
    examples = examples_of(provider)
    if not examples:
        raise CommandError(
            f"nothing can be tried on {provider!r} yet: no type of it has an example",
            advice=f"These have some: {', '.join(PROVIDERS)}.",
            code=Exit.USAGE,
        )
    logs.set_up(logging.ERROR)
    registry = installed(provider)
    words = _words(scope or ())
    chosen, unverified = _chosen(registry.of_provider(provider), examples, kind or (), words)
    account = _account(registry, provider, words)
    if clean:
        _clean(registry, account, list(examples.values()), yes=yes)
        return
    from fractal_cloud.cli.output import console, json_text
    from fractal_cloud.verifying.example import Place

    place = Place(words)
    _warn_of_costs(account, place.run, chosen, words)
    if not yes:
        _ask("Create and delete these?", "nobody is there to answer, so nothing was created", "fractal verify … --yes")
    report = _run(registry, provider, account, chosen, place)
    report.unverified |= unverified
    if output is Printed.JSON:
        sys.stdout.write(json_text(report.to_json(), indent=2) + "\n")
    else:
        for part in _tables(report):
            console().print(part)
    _conclude(report)


def _words(scope: Sequence[str]) -> dict[str, str]:
    words: dict[str, str] = {}
    for one in scope:
        key, is_pair, value = one.partition("=")
        if not is_pair or not key or not value:
            raise CommandError(f"{one!r} is no scope", advice="Write it as --scope region=eu-west-1.", code=Exit.USAGE)
        words[key] = value
    return words


def _chosen(
    every: Sequence[AnyOffer],
    examples: Mapping[str, VerificationExample],
    kinds: Sequence[str],
    words: Mapping[str, str],
) -> tuple[list[VerificationExample], dict[str, str]]:
    """The examples to try, and the types that are not tried, each with the reason."""
    from fractal_cloud.model.wording import unknown
    from fractal_cloud.verifying.example import short_type

    by_name = {name.casefold(): offer.type for offer in every for name in (offer.type, short_type(offer.type))}
    asked: list[str] = []
    for kind in kinds:
        if kind.casefold() not in by_name:
            names = [short_type(offer.type) for offer in every]
            raise CommandError(f"{kind!r} {unknown('type of this provider', kind, names)}", code=Exit.USAGE)
        asked.append(by_name[kind.casefold()])
    reasons = {offer.type: _why_not(examples.get(offer.type), words, is_asked=offer.type in asked) for offer in every}
    refused = [f"{short_type(one)}: {reasons[one]}" for one in asked if reasons[one]]
    wanted = asked or [offer.type for offer in every]
    chosen = [example for name, example in examples.items() if name in wanted and not reasons[name]]
    if refused or not chosen:
        details = refused or [f"{short_type(name)}: {why}" for name, why in reasons.items() if why]
        raise CommandError("this cannot be tried", details=details, code=Exit.USAGE)
    return chosen, {short_type(name): reasons[name] for name in wanted if reasons[name]}


def _why_not(example: VerificationExample | None, words: Mapping[str, str], *, is_asked: bool) -> str:
    if example is None:
        return "no example"
    missing = example.missing(words)
    if example.on_request and not is_asked:
        return f"only with --type {example.short_type}: {example.cost}"
    return f"needs --scope {' --scope '.join(f'{word}=…' for word in missing)}" if missing else ""


def _account(registry: Registry, provider: str, words: Mapping[str, str]) -> Account:
    from fractal_cloud.model.errors import CloudError
    from fractal_cloud.verifying.account import Account

    known = registry.provider(provider)
    try:
        return Account(known.connect(), registry.of_provider(provider), words)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from None
    except CloudError as error:
        raise CommandError(
            f"{known.title} cannot be read: {error.message}",
            advice="Log in with the vendor's own tools, and try again.",
        ) from None


def _warn_of_costs(account: Account, run: str, chosen: Sequence[VerificationExample], words: Mapping[str, str]) -> None:
    from rich.console import Console

    from fractal_cloud.cli.output import table, warn

    where = ", ".join(f"{key}={value}" for key, value in words.items())
    typer.echo(
        visible(f"To be created for some minutes in {account.realm} ({where}), under names with {run}:"), err=True
    )
    rows = [(example.short_type, example.cost) for example in chosen]
    Console(stderr=True, highlight=False, emoji=False).print(table(("type", "costs"), rows))
    warn("you pay for what is created there; prices are the vendor's, and the figures here are no promise")


def _ask(question: str, nobody: str, command: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(nobody, advice=f"Say that you have seen the above: {command}", code=Exit.USAGE)
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was done")


@contextmanager
def _interruptible() -> Iterator[None]:
    """While inside, SIGTERM ends a run as Ctrl-C does: with everything deleted."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before: Any = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(
    registry: Registry, provider: str, account: Account, chosen: Sequence[VerificationExample], place: Any
) -> Report:
    from fractal_cloud.verifying.run import Run

    with _interruptible():
        return Run(
            provider, registry, account, chosen, place, progress=lambda line: typer.echo(visible(line), err=True)
        ).run()


def _tables(report: Report) -> Iterator[Any]:
    from fractal_cloud.cli.output import plain, table

    by_type: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_type.setdefault(finding.type, []).append(finding)
    for name, findings in by_type.items():
        rows = [
            (one.assumption, one.subject, plain(one.verdict, _STYLES[one.verdict]), _remarks(one)) for one in findings
        ]
        yield table(("assumption", "parameter", "", "found; request ids"), rows, name)
    if report.unverified:
        yield table(("type", "reason"), list(report.unverified.items()), "Not verified")


def _remarks(finding: Finding) -> str:
    lines = [finding.detail] if finding.detail else []
    if finding.verdict == "not held":
        lines.insert(0, f"assumed: {finding.text}")
    return "\n".join([*lines, *finding.request_ids])


def _conclude(report: Report) -> None:
    if report.left:
        raise CommandError(
            "not everything that was created could be deleted",
            details=report.left,
            advice="Remove what blocks it, and run the same command with --clean.",
        )
    if report.interrupted:
        raise CommandError("interrupted; everything that was created is deleted")
    if report.error:
        raise CommandError(f"the run ended early, and everything that was created is deleted: {report.error}")
    if not report.all_held:
        wrong = [one for one in report.findings if one.verdict == "not held"]
        untried = [one for one in report.findings if one.verdict == "not tried"]
        raise CommandError(
            f"{len(wrong)} of {len(report.findings)} assumptions did not hold, {len(untried)} could not be tried",
            details=[
                f"{one.type}, {one.assumption}{one.subject and f' ({one.subject})'}: {one.detail}"
                for one in wrong or untried[:1]
            ],
            advice="Please open an issue with this output; until it is closed, do not rely on these types there."
            if wrong
            else "Try it again, with credentials that may do all of it.",
        )
    held = sum(one.verdict == "held" for one in report.findings)
    typer.echo(f"{held} assumptions held, and everything that was created is deleted", err=True)


def _clean(
    registry: Registry,
    account: Account,
    examples: Sequence[VerificationExample],
    *,
    yes: bool,
) -> None:
    from fractal_cloud.cli.output import console, say, table, warn
    from fractal_cloud.verifying import cleaning

    offers = cleaning.offers_of(registry, examples, account)
    found = cleaning.find(account, offers)
    if found.unread:
        raise CommandError("not everything could be read, so nothing was deleted", details=found.unread)
    for one in found.named:
        warn(f"{one} has the name of a run but not its tags: it is left; check it, and delete it by hand")
    if not found.ours:
        say("nothing is left there")
        return
    rows = [(one.offer.type.rpartition(".")[2], one.sighting.name, one.sighting.protocol.owner) for one in found.ours]
    console().print(table(("type", "name", "owner"), rows, "What runs have left"))
    if not yes:
        _ask("Delete these?", "nobody is there to answer, so nothing was deleted", "fractal verify … --clean --yes")
    chosen = {one.sighting.resource_id for one in found.ours}

    def remaining() -> list[Leftover]:
        return [one for one in cleaning.find(account, offers).ours if one.sighting.resource_id in chosen]

    left = cleaning.delete(account, offers, remaining)
    if left:
        raise CommandError("not everything could be deleted", details=left, advice="Remove what blocks it, and repeat.")
    say(f"{len(chosen)} deleted")
