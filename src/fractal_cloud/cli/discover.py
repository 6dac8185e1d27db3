"""`fractal discover`: existing resources as a ready declaration, read with the operator's own credentials (G11)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fractal_cloud.cli.errors import CommandError, Exit

if TYPE_CHECKING:
    from fractal_cloud.offers.offer import AnyOffer


class Written(StrEnum):
    """What a declaration is written in."""

    PYTHON = "python"
    YAML = "yaml"


def discover(
    provider: Annotated[str, typer.Option("--provider", help="The cloud to read, such as aws.")],
    region: Annotated[
        list[str] | None, typer.Option("--region", help="A region to read; may be given several times.")
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", help="A namespace of a cluster to read; may be given several times."),
    ] = None,
    location: Annotated[
        list[str] | None,
        typer.Option("--location", help="A location to read, where a cloud calls it so; may be given several times."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only this type, such as AwsVpc or AWS::SQS::Queue; may be given several times.",
        ),
    ] = None,
    live_system: Annotated[str, typer.Option("--id", metavar="LS", help="Id of the LiveSystem.")] = "discovered",
    output: Annotated[Written, typer.Option("--output", "-o", help="What to write it in.")] = Written.PYTHON,
) -> None:
    """Print existing resources as a declaration; nothing is changed. The cloud is read with your own credentials."""
    from fractal_cloud.cli.discovery.drafting import draft
    from fractal_cloud.cli.discovery.reading import places_of, survey, with_referenced
    from fractal_cloud.cli.discovery.writing import to_python, to_yaml
    from fractal_cloud.cli.output import warn
    from fractal_cloud.model.errors import CloudError, RegistrationError
    from fractal_cloud.model.identity import ID_RULE, is_id
    from fractal_cloud.offers.registry import installed

    if not is_id(live_system):
        raise CommandError(f"{live_system!r} is no id", advice=f"An id is {ID_RULE}.", code=Exit.USAGE)
    try:
        cloud = installed().provider(provider)
    except RegistrationError as error:
        raise CommandError(str(error), advice="Install the package that has it.", code=Exit.USAGE) from None
    every = installed().of_provider(provider)
    chosen = _chosen(every, kind or ())
    places = [{"region": name} for name in dict.fromkeys(region or ())]
    places += [{"namespace": name} for name in dict.fromkeys(namespace or ())]
    places += [{"location": name} for name in dict.fromkeys(location or ())]
    places = places or [{}]
    read = with_referenced(chosen, installed().get)
    _check_listed(chosen, read)
    nowhere = sorted(offer.type.rpartition(".")[2] for offer in chosen if not places_of(offer, places))
    if nowhere:
        raise CommandError(
            f"where to look for {', '.join(nowhere)} is not said",
            advice="Name a region (--region …), a namespace (--namespace …) or a location (--location …).",
            code=Exit.USAGE,
        )
    try:
        found = survey(cloud.connect(), read, places)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from None
    except CloudError as error:
        raise CommandError(
            f"{cloud.title} cannot be read: {error.message}",
            advice="Log in with the vendor's own tools, and try again.",
        ) from None
    wanted = {offer.type for offer in chosen}
    made = draft(live_system, found.seen, wanted | {one.type for one in read if one.vendor_type in wanted})
    sys.stdout.write(to_python(made) if output is Written.PYTHON else to_yaml(made))
    sys.stdout.flush()
    if not made.components:
        warn("nothing was found that can be declared")
    if found.unread:
        raise CommandError(
            "not everything could be read: what is written is not complete",
            details=found.unread,
            advice="Allow these calls to your credentials, or leave the types out with --type.",
        )


def _chosen(every: Sequence[AnyOffer], kinds: Iterable[str]) -> list[AnyOffer]:
    """The offers meant: by their type or its last word, whatever the case; all where none is named."""
    from fractal_cloud.model.wording import unknown

    by_name: dict[str, AnyOffer] = {}
    for offer in every:
        by_name[offer.type.casefold()] = by_name[offer.type.rpartition(".")[2].casefold()] = offer
    chosen: dict[str, AnyOffer] = {}
    for kind in kinds:
        found = by_name.get(kind.casefold()) or _of_family(kind, every[0].provider)
        if found is None:
            words = [offer.type.rpartition(".")[2] for offer in every]
            raise CommandError(f"{kind!r} {unknown('type of this provider', kind, words)}", code=Exit.USAGE)
        chosen[found.type] = found
    return list(chosen.values()) or list(every)


def _of_family(kind: str, provider: str) -> AnyOffer | None:
    """The offer of a type by the vendor's own name; None where it has not the form of one of this provider."""
    from fractal_cloud.offers.registry import installed

    family = installed().family_of(kind)
    if family is None or family.provider != provider:
        return None
    found = installed().get(kind)
    if found is None:
        raise CommandError(
            f"{kind!r} {family.refusal(kind)}", advice="fractal types search WORDS finds types.", code=Exit.USAGE
        )
    return found


def _check_listed(chosen: Sequence[AnyOffer], read: Sequence[AnyOffer]) -> None:
    """Refuse types that no list shows, also where parts that are to be read lie in them."""
    for offer in read:
        if offer.unlisted:
            named = "" if offer in chosen else ", and what is to be read lies in such"
            raise CommandError(
                f"{offer.type} cannot be discovered: it {offer.unlisted}{named}",
                advice=f"Declare yours by name: fractal types show {offer.type} says what names one.",
                code=Exit.USAGE,
            )
