"""What `fractal agent policy` may be asked for, whichever cloud the rights are for.

Each provider has a module ``policy`` with a function ``policy(options)``, which checks the options it takes and returns
text or plain data. What a provider grants does not belong here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import Final

from fractal_cloud.model.errors import PolicyOptionError


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """What the printed rights are for. Without any: all that the agent's types need, and no way to more rights (A7).

    ``with_links``: also what links make (users, keys, secrets), which is printed on request only.
    ``with_generated_secrets``: also making, reading and deleting secrets that are generated for components (A8).
    ``with_history``: also reading the cloud's record of who called what, to say who changed a resource.
    ``assume_roles``: the roles of other accounts that it works in, by a file of realms.
    ``pass_roles``: the roles the agent may hand to a service of the cloud.
    ``boundary``: print the limit of the identities that links make, instead of the agent's own rights.
    ``document``: print this one of several documents, counted from 1; None prints all of them.
    ``namespaces``, ``compartments``, ``resource_groups``: the parts of a cluster, tenancy or subscription it works in.
    ``service_accounts``: the identities that what it makes may run as.
    ``buckets``: the buckets that links may lead to, each a name, or its beginning with ``*`` behind it.
    ``link_project``: the project of its own in which links make service accounts and keys.
    ``types``: types that are declared by the vendor's own names.
    ``secrets``: the secrets of the cloud's own store that the agent may read for declarations (A8), by name or id.
    """

    with_links: bool = False
    with_generated_secrets: bool = False
    with_history: bool = False
    assume_roles: tuple[str, ...] = ()
    pass_roles: tuple[str, ...] = ()
    boundary: bool = False
    document: int | None = None
    namespaces: tuple[str, ...] = ()
    compartments: tuple[str, ...] = ()
    resource_groups: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    link_project: str = ""
    secrets: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def check(self, provider: str, known: Collection[str] = ()) -> None:
        """Raise ``PolicyOptionError`` if an option was given that the provider does not take."""
        for one in fields(self):
            if one.name not in known and getattr(self, one.name) != one.default:
                raise PolicyOptionError(f"{flag_of(one.name)} means nothing for {provider!r}: leave it out")


PLAIN: Final = PolicyOptions()


def every_match(values: Iterable[str], option: str, pattern: re.Pattern[str], meant: str) -> None:
    """Raise ``PolicyOptionError`` where a value is not what an option means: nothing of it is printed then."""
    for value in values:
        if not pattern.fullmatch(value):
            raise PolicyOptionError(f"{flag_of(option)} {value!r} is no {meant}")


def flag_of(name: str) -> str:
    """An option as the command line spells it."""
    return "--" + name.removesuffix("s" if not name.startswith("with_") else "").replace("_", "-")
