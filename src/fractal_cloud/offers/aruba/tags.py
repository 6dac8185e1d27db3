"""How the three tags stand among Aruba's: strings in one list, which every write replaces (T8, T10).

Two spellings are understood. ``colon`` is ``managed-by:fractal-cloud``; ``plain`` has letters, digits and hyphens only,
for where the cloud refuses the colon, and holds the owner as a hash, which is known again by those who may be it.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b32encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal, cast

from fractal_cloud.model.catalog import Entry, GlassCommands
from fractal_cloud.model.commands import Step, Word, output, run, value, variable, word, words
from fractal_cloud.model.errors import Denied, Invalid
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE, ProtocolTags

RULES: Final = TagRules(
    key=r"[^:,\x00-\x1f]{1,64}",
    value=r"[^,\x00-\x1f]{0,128}",
    form="keys of 1 to 64 characters without colons and commas, values of up to 128 without commas",
    most=20,
    written_once=True,
)
STYLE: Final = "FRACTAL_ARUBA_TAG_STYLE"
Style = Literal["colon", "plain"]
PLAIN_MANAGED: Final = f"{MANAGED_BY}-{OURS}"
PLAIN_RECONCILE: Final = f"{RECONCILE}-{RECONCILE_VALUE}"
PLAIN_OWNER: Final = "fc-owner-"
HASH_LENGTH: Final = 20
GUARD: Final = (
    "no precondition: Aruba has none. Every write of a resource says its tags again, so each is read once more right "
    "before the one call, and nothing is written if a tag changed since the guard's read; a tag that is changed within "
    "that one call is lost"
)
_ISSUER: Final = "https://mylogin.aruba.it/auth/realms/cmp-new-apikey/protocol/openid-connect/token"
_BASE: Final = variable("ACLOUD_BASE_URL", "https://api.arubacloud.com")
_BEARER: Final = word("Authorization: Bearer ", variable("token"))
_TOKEN: Final = run(
    [
        *("curl", "-fsS", variable("ACLOUD_TOKEN_ISSUER_URL", _ISSUER)),
        *("-d", "grant_type=client_credentials"),
        *("--data-urlencode", word("client_id=", variable("ACLOUD_CLIENT_ID"))),
        *("--data-urlencode", word("client_secret=", variable("ACLOUD_CLIENT_SECRET"))),
    ],
    ["jq", "-r", ".access_token"],
    sets="token",
)
_VERSION: Final = "?api-version=1.0"
CAVEAT: Final = (
    "Aruba replaces the whole resource: the command reads it, changes the tags and writes it back. Set "
    "ACLOUD_CLIENT_ID and ACLOUD_CLIENT_SECRET first; it needs a POSIX shell, curl and jq"
)


def style() -> Style:
    """How tags are written here."""
    said = os.environ.get(STYLE) or "colon"
    if said not in ("colon", "plain"):
        raise Denied(f"{STYLE} is {said!r}: it is colon or plain")
    return cast("Style", said)


def owner_tag(live_system_id: str) -> str:
    """The owner in the plain style: 29 characters, whatever the id."""
    digest = hashlib.sha256(live_system_id.encode()).digest()
    return f"{PLAIN_OWNER}{b32encode(digest).decode().lower()[:HASH_LENGTH]}"


def protocol_of(tags: Iterable[str], owners: Mapping[str, str]) -> ProtocolTags:
    """What the three tags say. ``owners``: the ids that hashes may stand for; any other owner is reported as its hash.

    A list may say a thing twice: two managers are another manager, and two owners are nobody we know.
    """
    return _protocol(*_read(tuple(tags), owners))


@lru_cache(maxsize=4096)
def _protocol(managed_by: str | None, reconcile: bool, owner: str | None) -> ProtocolTags:
    return ProtocolTags(managed_by, reconcile, owner)


def _read(tags: tuple[str, ...], owners: Mapping[str, str]) -> tuple[str | None, bool, str | None]:
    managers: set[str] = set()
    holders: set[str] = set()
    reconcile = False
    for tag in tags:
        key, colon, value = tag.partition(":")
        if tag == PLAIN_MANAGED:
            managers.add(OURS)
        elif tag == PLAIN_RECONCILE or (key == RECONCILE and value == RECONCILE_VALUE):
            reconcile = True
        elif tag.startswith(PLAIN_OWNER) and not colon:
            holders.add(owners.get(tag, tag))
        elif colon and key == MANAGED_BY:
            managers.add(value)
        elif colon and key == OWNER:
            holders.add(value)
    others = sorted(managers - {OURS})
    manager = others[0] if others else OURS if managers else None
    return manager, reconcile, " and ".join(sorted(holders)) or None


def mapping(tags: Iterable[str]) -> dict[str, str]:
    """Tags as they are shown: by key where they have a colon, by themselves where not."""
    return {key: value for key, _, value in (tag.partition(":") for tag in tags)}


def written(tags: ProtocolTags) -> list[str]:
    """The tags as a write says them: the protocol's, and the user's own that are written with them."""
    if style() == "colon":
        return [f"{key}:{value}" for key, value in tags.to_mapping().items()]
    if tags.declared:
        raise Invalid(
            f"{', '.join(sorted(tags.declared))} cannot be written as tags here: {STYLE} is plain, which has no form "
            "for keys with values. Take them out of tags, or set it to colon"
        )
    found = [PLAIN_MANAGED] if tags.is_managed else []
    found += [PLAIN_RECONCILE] if tags.reconcile else []
    return found + ([owner_tag(tags.owner)] if tags.owner is not None else [])


def rewritten(tags: Iterable[str], add: ProtocolTags, remove: ProtocolTags) -> list[str]:
    """The whole list with protocol tags added or removed, in either spelling; everybody else's are as they were.

    A declared tag takes the place of what bore its key.
    """
    kept = [tag for tag in tags if not _says(tag, remove) and tag.partition(":")[0] not in add.declared]
    return kept + [tag for tag in written(add) if tag not in kept]


def _says(tag: str, tags: ProtocolTags) -> bool:
    plain = {PLAIN_MANAGED: tags.is_managed, PLAIN_RECONCILE: tags.reconcile}
    if tags.owner is not None:
        plain[owner_tag(tags.owner)] = True
    return plain.get(tag, False) or tag in {f"{key}:{value}" for key, value in tags.to_mapping().items()}


def glass(echoed: Iterable[str], spelled: Mapping[str, str] | None = None) -> GlassCommands:
    """The commands for one kind of resource; ``echoed``: which properties a write must say again.

    ``spelled``: how jq finds those of them that an answer spells otherwise than a request.
    """
    paths = {name: f".properties.{name}" for name in echoed} | dict(spelled or {})
    said = ", ".join(f"{name}: {path}" for name, path in paths.items())
    body = (
        "{metadata: {name: .metadata.name, location: {value: .metadata.location.value}, tags: .metadata.tags}, "
        f"properties: {{{said}}}}}"
    )
    ours = f'["{MANAGED_BY}:{OURS}", "{PLAIN_MANAGED}"]'
    marked = f'(if any(.metadata.tags[]; startswith("{PLAIN_OWNER}")) then "-" else ":" end)'
    handshake = f'["{MANAGED_BY}" + $mark + "{OURS}", "{RECONCILE}" + $mark + "{RECONCILE_VALUE}"]'
    return GlassCommands(
        break_glass=[_command(f".metadata.tags -= {ours} | {body}")],
        readopt=[_command(f"{marked} as $mark | .metadata.tags |= (. - {ours}) + {handshake} | {body}")],
        caveat=CAVEAT,
    )


def entry() -> Entry:
    """The commands that let a person into a cluster: its kubeconfig, in a file of its own."""
    url = word(_BASE, value("kaasUri", "path"), f"/download{_VERSION}")
    file = value("id", "file")
    config = run(
        ["curl", "-fsS", "-H", _BEARER, url],
        ["jq", "-r", ".content"],
        ["base64", "-d"],
        ["install", "-m", "600", "/dev/stdin", word(file, ".kubeconfig")],
    )
    current = output(words("kubectl config current-context"))
    return Entry(
        commands=[
            [_TOKEN, config],
            [run(["export", word("KUBECONFIG=", variable("PWD"), "/", file, ".kubeconfig")])],
            [run([*words("kubectl config rename-context --"), current, value("id")])],
        ],
        context="{id}",
    )


def _command(program: str) -> list[Step]:
    url = word(_BASE, value("resourceId", "path"), _VERSION)
    body = variable("body")
    curl: list[Word] = ["curl", "-fsS", "-H", _BEARER]
    put = ["-X", "PUT", "-H", "Content-Type: application/json", "--data-binary", "@-", "-o", "/dev/null"]
    return [
        _TOKEN,
        run([*curl, url], ["jq", "-c", program], sets="body"),
        run(["test", "-n", body]),
        run(["printf", "%s", body], [*curl, *put, url]),
    ]
