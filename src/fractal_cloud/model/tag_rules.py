"""Which tags people may declare for a component type (`tags`), as plain data: what keys and values may be there, which
keys are not theirs to say, and what the drift of one tag is called.

How a provider stores tags does not belong here, nor what the three protocol tags mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pydantic import Field

from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.tags import MANAGED_BY, OWNER, RECONCILE, ProtocolTags

TAGS: Final = "tags"
"""The name under which a declaration says them, and under which all of them are left alone by `ignoreDrift`."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+\Z")
_PATH: Final = re.compile(r'tags(?:\.(?P<plain>[A-Za-z0-9_-]+)|\[(?P<quoted>".*")\])\Z', re.DOTALL)
_PROTOCOL: Final = (MANAGED_BY, RECONCILE, OWNER)
_SEVERAL: Final = " / "
_WRITTEN_BY_US: Final = "belongs to the product: it is written for you, and cannot be declared. Take it out"


class TagRules(Wire):
    """What one component type takes as the user's own tags.

    ``key`` and ``value``: what each must match as a whole; ``form`` says so in words. ``most``: how many fit beside the
    three. ``reserved``: keys, and ``reserved_prefixes``: what keys may not begin with, each with the reason and what to
    do. ``caseless``: the provider compares keys without regard to case. ``written_once``: every write of a tag replaces
    all of them without a precondition, so that they are written at creation and in re-adoption alone (T10).
    """

    key: str = r".{1,128}"
    value: str = r".{0,256}"
    form: str = "keys of 1 to 128 characters, values of up to 256"
    most: int = 47
    reserved: dict[str, str] = Field(default_factory=dict)
    reserved_prefixes: dict[str, str] = Field(default_factory=dict)
    caseless: bool = False
    written_once: bool = False

    def folded(self, key: str) -> str:
        """A key as the provider compares it with others."""
        return key.casefold() if self.caseless else key

    def protocol(self, tags: Mapping[str, str]) -> ProtocolTags:
        """What the three tags say, their keys compared as the provider compares them (T8).

        Where several spellings of one key say different things, none of them is ours: another manager's stands (T7).
        """
        if not self.caseless:
            return ProtocolTags.from_mapping(tags)
        found = {key: {text for one, text in tags.items() if self.folded(one) == key} for key in _PROTOCOL}
        return ProtocolTags.from_mapping({key: _SEVERAL.join(sorted(texts)) for key, texts in found.items() if texts})

    def errors(self, tags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Everything that is wrong with declared tags, by key; the key is empty where it is about all of them."""
        if len(tags) > self.most:
            yield "", f"has {len(tags)} entries: {self.most} are allowed beside the product's own"
        seen: dict[str, str] = {}
        for key, value in tags.items():
            other = seen.setdefault(self.folded(key), key)
            refusal = self._refusal(key, value)
            if refusal:
                yield key, refusal
            elif other != key:
                yield key, f"is the same key as {other!r} to this provider: declare it once"

    def _refusal(self, key: str, value: str) -> str:
        folded = self.folded(key)
        if folded in _PROTOCOL:
            return _WRITTEN_BY_US
        for reserved, why in self.reserved.items():
            if folded == self.folded(reserved):
                return why
        for prefix, why in self.reserved_prefixes.items():
            if key.casefold().startswith(prefix.casefold()):  # in whatever case: vendors reserve them so
                return why
        if not re.fullmatch(self.key, key, re.DOTALL):
            return f"is no key that this type takes: {self.form}"
        if not re.fullmatch(self.value, value, re.DOTALL):
            return f"is {value!r}, a value that this type does not take: {self.form}"
        return ""

    def actual(self, tags: Mapping[str, str], declared: Collection[str]) -> dict[str, str]:
        """The values of the declared keys among all tags of a resource, by the declared spelling; absent ones lack."""
        if not self.caseless:
            return {key: tags[key] for key in declared if key in tags}
        by_folded = {self.folded(key): value for key, value in tags.items()}
        return {key: by_folded[self.folded(key)] for key in declared if self.folded(key) in by_folded}


def tag_path(key: str) -> str:
    """What the drift of one tag is called: ``tags.team``, ``tags["example.com/team"]``."""
    return f"{TAGS}.{key}" if _PLAIN.match(key) else f"{TAGS}[{json.dumps(key, ensure_ascii=False)}]"


def tag_key(name: str) -> str | None:
    """The key of the tag whose drift bears this name; None where the name is no tag's."""
    found = _PATH.match(name)
    if found is None:
        return None
    if found["plain"] is not None:
        return str(found["plain"])
    try:
        key = json.loads(found["quoted"])
    except ValueError:
        return None
    return key if isinstance(key, str) else None


def ignored_keys(ignored: Collection[str], declared: Collection[str]) -> frozenset[str]:
    """The declared keys that `ignoreDrift` leaves alone (G15): all of them by ``tags``, or each by its name."""
    if TAGS in ignored:
        return frozenset(declared)
    return frozenset(key for key in declared if tag_path(key) in ignored)
