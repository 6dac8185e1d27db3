"""How the three tags stand among OCI's free-form tags: in one map, written whole and only as it was read (T10).

Keys are compared without regard to case, as OCI does. Defined tags are never sent, and so never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.commands import Output, Step, Word, output, run, variable, words
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE, ProtocolTags

RULES: Final = TagRules(
    key=r"[^.\s\x00-\x1f]{1,100}",
    value=r".{0,256}",
    form="keys of 1 to 100 characters without dots and blanks, values of up to 256",
    most=7,
    caseless=True,
)
GUARD: Final = (
    "atomic: every change, deletion and tag write carries the etag of the guard's own read, which every edit of a tag "
    "changes; a person who removes the tag before the write wins, always"
)
CAVEAT: Final = (
    "OCI replaces the whole map of free-form tags: the command reads it first, keeps the others, and writes only if "
    "nobody changed anything in between (else it fails, and you run it again). It needs a POSIX shell"
)
_KEYS: Final = frozenset({MANAGED_BY, RECONCILE, OWNER})
# Some pages name a defined tag instead, ``fractal.managed-by``: its namespace and its key.
_MISTAKEN: Final = ("fractal", MANAGED_BY)
WARNING: Final = "what is misleading about its tags, where something is"


def protocol_of(tags: Mapping[str, str]) -> ProtocolTags:
    """What the three tags say."""
    return ProtocolTags.from_mapping({key.lower(): value for key, value in tags.items() if key.lower() in _KEYS})


def warning(item: Mapping[str, Any]) -> dict[str, str]:
    """The output that warns of a tag which is taken for one of ours and is none (T8)."""
    namespace, key = _MISTAKEN
    spaces = {name.lower(): keys for name, keys in (item.get("definedTags") or {}).items()}
    if key not in {name.lower() for name in spaces.get(namespace) or ()}:
        return {}
    text = f"the defined tag {namespace}.{key} means nothing: what counts is the free-form tag {key}"
    return {"warning": text}


def rewritten(tags: Mapping[str, str], add: ProtocolTags, remove: ProtocolTags) -> dict[str, str]:
    """The whole map with protocol tags added or removed; everybody else's are as they were."""
    adding, removing = add.to_mapping(), remove.to_mapping()
    if adding and removing:
        raise ValueError(f"tags are added or removed in one call, not both: {sorted(adding)} and {sorted(removing)}")
    changed = {key.lower() for key in (*adding, *removing)}
    return {**{key: value for key, value in tags.items() if key.lower() not in changed}, **adding}


def glass(resource: str, option: str, what: str = "{resourceId}") -> GlassCommands:
    """The commands for one type of resource, such as ``network vcn`` and ``--vcn-id``."""
    at = words(f"--region={{region}} {option}={what}")
    get: list[Word] = ["oci", *words(resource), "get", *at]
    force: list[Word] = [] if resource == "os bucket" else ["--force"]
    update: list[Word] = ["oci", *words(resource), "update", *at, "--if-match", variable("etag"), *force]
    tags = 'data."freeform-tags"'
    without = f's/,?"[Mm]anaged-[Bb]y":"{OURS}"//; s/^[{{],/{{/'
    handshake = f'{{"{MANAGED_BY}":"{OURS}","{RECONCILE}":"{RECONCILE_VALUE}"}}'

    def query(text: str) -> list[Word]:
        return [*get, "--query", text, "--raw-output"]

    def command(kept: Output) -> list[Step]:
        return [run(query("etag"), sets="etag"), run([*update, "--freeform-tags", kept])]

    return GlassCommands(
        break_glass=[command(output(query(f"to_string({tags})"), ["sed", "-E", without]))],
        readopt=[command(output(query(f"to_string(merge({tags}, `{handshake}`))")))],
        caveat=CAVEAT,
    )
