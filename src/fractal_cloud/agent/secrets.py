"""The secrets that the components of one scope refer to: resolved once for a cycle, and kept no longer (A8).

What a component declares is compared with its secrets here, in memory; all that leaves says whether they differ. Where
a secret lies, and who may use it, is the business of ``offers.secret_stores``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

from fractal_cloud.agent.generated_secrets import GeneratedSecrets, NotMade, is_lost, with_made
from fractal_cloud.agent.isolation import read_safely
from fractal_cloud.agent.private_file import read_private, write_private
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.errors import CloudError, SecretUnavailable
from fractal_cloud.model.generated import is_generated, place_of
from fractal_cloud.model.reference import SecretReference, references, replaced
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.known_secrets import KNOWN
from fractal_cloud.offers.secret import Secret
from fractal_cloud.offers.secret_stores import Resolve
from fractal_cloud.rules.drift import ComparedType
from fractal_cloud.rules.hiding import OTHER_SECRET, Hiding
from fractal_cloud.rules.judge import Lacking

log = structlog.get_logger()

Name = tuple[str, str]
"""A LiveSystem, and the name of a secret in its declaration."""
Value = Secret | SecretUnavailable
KEY_FILE: Final = "secret-digests.key"
KEY_BYTES: Final = 32
_NO_VALUE: Final = secrets.token_urlsafe(KEY_BYTES)
_THIS_PROCESS: Final = secrets.token_bytes(KEY_BYTES)


class DigestKey:
    """The key by which written values are recognised again; it stays where the agent runs.

    Without it a digest says nothing: not even whether a guessed value is the right one. Agents that take over each
    other's scopes share it with their state folder; a digest of another key is never equal.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._id = hashlib.sha256(b"fractal-cloud digest key\0" + key).hexdigest()[:8]

    @classmethod
    def in_folder(cls, folder: Path | None) -> DigestKey:
        """The key that is kept in a folder, made there when it is first needed; without a folder, one of this process.

        Where the folder cannot be used, the agent says so in its log and goes on: what was written is then written once
        more by whoever comes next.
        """
        if folder is None:
            return cls(secrets.token_bytes(KEY_BYTES))
        path = folder / KEY_FILE
        try:
            kept = read_private(path) or write_private(path, secrets.token_bytes(KEY_BYTES))
            if len(kept) != KEY_BYTES:
                raise OSError(f"it is no key of {KEY_BYTES} bytes")
        except OSError as error:
            log.warning("the key of digests cannot be kept on disk", file=str(path), error=str(error))
            kept = secrets.token_bytes(KEY_BYTES)
        return cls(kept)

    def digest(self, uid: str, name: str, value: Any) -> str:
        """What stands for a value that one parameter of one component was given."""
        text = json.dumps([uid, name, value], sort_keys=True)
        return f"{self._id}:{hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()[:32]}"

    def made(self, digest: str | None) -> bool:
        """Whether a digest is of this key, so that another one of this key means another value."""
        return digest is not None and digest.startswith(f"{self._id}:")


class Secrets:
    """What the cycles of an agent share: how secrets are found, and the key of digests."""

    def __init__(self, resolve: Resolve, key: DigestKey, watchdog: Watchdog, pool: Executor) -> None:
        self.key = key
        self._resolve = resolve
        self._watchdog = watchdog
        self._pool = pool

    def generated(self, held: HeldScope) -> GeneratedSecrets:
        """The secrets that are made for components of a scope."""
        return GeneratedSecrets(held, self._watchdog)

    def resolve_all(self, names: list[Name], generated: GeneratedSecrets) -> dict[Name, Value]:
        """The values of these, each read once and anew; what has none says why."""

        def one(name: Name) -> Value:
            return generated.find(*name) if is_generated(name[1]) else self._one(name)

        if len(names) == 1:
            return {names[0]: one(names[0])}
        return dict(zip(names, self._pool.map(one, names), strict=True))

    def _one(self, name: Name) -> Value:
        what = f"the store of secret {name[1]!r}"
        try:
            found = read_safely(self._watchdog, ("secret", *name), what, lambda _: self._found(name))
        except CloudError as error:  # it hangs, or failed as no store may
            return SecretUnavailable(error.message, is_passing=True)
        if isinstance(found, Secret):
            KNOWN.add(found)
        return found

    def _found(self, name: Name) -> Secret | SecretUnavailable:
        try:
            return self._resolve(*name)
        except SecretUnavailable as error:
            return error


class CycleSecrets:
    """The secrets of one scope in one cycle. Nothing is resolved before ``refresh``."""

    def __init__(self, held: HeldScope, common: Secrets | None = None) -> None:
        self._held = held
        self._common = common
        self._found: dict[Name, Value] = {}
        self._generated = None if common is None else common.generated(held)

    def refresh(self) -> frozenset[str]:
        """Resolve what components of the scope refer to; returns those with a secret that changed since last time."""
        if self._common is None or self._generated is None or not self._held.work.has_secrets:
            return frozenset()
        users = [tracked for tracked in self._held.work.tracked.values() if tracked.secrets]
        names = sorted({(tracked.live_system_id, name) for tracked in users for name in tracked.secrets})
        self._found = self._common.resolve_all(names, self._generated)
        prints = {name: _print(found) for name, found in self._found.items()}
        before, self._held.secret_prints = self._held.secret_prints, prints
        changed = {name for name in names if before.get(name) != prints[name]}
        return frozenset(t.uid for t in users if any((t.live_system_id, name) in changed for name in t.secrets))

    def lacking(self, tracked: Tracked, *, is_there: bool = True) -> Lacking | None:
        """Why a component cannot be written, because a secret of it has no value; None where all have one.

        One that is made by the write itself is none of those. ``is_there``: its resource is, and has the value.
        """
        for name in sorted(tracked.secrets):
            found = self._found.get((tracked.live_system_id, name))
            if not isinstance(found, Secret) and not self._is_to_be_made(tracked, name, is_there=is_there):
                unknown = SecretUnavailable(f"secret {name!r} was not resolved yet", is_passing=True)
                error = found or unknown
                return Lacking(error.message, error.is_passing)
        return None

    def are_unknown(self, tracked: Tracked) -> bool:
        """Whether a secret of a component has no value yet, or none any more."""
        return any(not isinstance(self._found.get((tracked.live_system_id, n)), Secret) for n in tracked.secrets)

    def _is_to_be_made(self, tracked: Tracked, name: str, *, is_there: bool = True) -> bool:
        is_missing = isinstance(self._found.get((tracked.live_system_id, name)), NotMade)
        return is_missing and not (is_there and is_lost(tracked, name))

    # --- those that are made (A8)

    def to_make(self, tracked: Tracked, *, is_there: bool) -> list[str]:
        """The generated secrets of a component that its next write has to make first."""
        return [name for name in sorted(tracked.secrets) if self._is_to_be_made(tracked, name, is_there=is_there)]

    def make(self, tracked: Tracked, name: str) -> None:
        """Make one: only once it is published that it will be, and right before the write that needs it."""
        assert self._generated is not None, "what is to be made was looked for"
        self._found[tracked.live_system_id, name] = self._generated.make(tracked, name)

    def made(self, tracked: Tracked) -> tuple[str, ...]:
        """What is remembered of a component's generated secrets now, so that they end with it."""
        found = (n for n in tracked.secrets if isinstance(self._found.get((tracked.live_system_id, n)), Secret))
        return with_made(tracked, [place_of(name) for name in found if is_generated(name)])

    def drop(self, tracked: Tracked) -> str:
        """Delete the secrets that were made for a component; returns why one is still there, empty where none is."""
        return self._generated.drop(tracked) if self._generated is not None else ""

    # --- values

    def resolved(self, tracked: Tracked, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters with the values of secrets in them: for the call that writes them, and for nothing else."""
        return {name: replaced(value, lambda one: self._value(tracked, one)) for name, value in parameters.items()}

    def _value(self, tracked: Tracked, reference: SecretReference) -> str:
        found = self._found.get((tracked.live_system_id, reference.name))
        if not isinstance(found, Secret):
            raise found or SecretUnavailable(f"secret {reference.name!r} was not resolved")
        return found.reveal()

    # --- what may be seen of a component

    def hiding(self, tracked: Tracked, compared: ComparedType, *, is_importer: bool = False) -> Hiding:
        """How the parameters of a component are hidden."""
        names = ((name, self._found.get((tracked.live_system_id, name))) for name in tracked.secrets)
        values = {name: found.reveal() for name, found in names if isinstance(found, Secret)}
        # What is not made yet is no value of the resource: it differs, and is written.
        values |= {name: _NO_VALUE for name in tracked.secrets if self._is_to_be_made(tracked, name)}
        former = [path for path in tracked.memory.secrets if path] if compared.holds_secrets else []
        return Hiding(compared, values, is_importer=is_importer, former=former)

    def hidden(
        self, tracked: Tracked, compared: ComparedType, sighting: Sighting, declared: Mapping[str, Any]
    ) -> Sighting:
        """What was seen of a component's resource, without what nobody may see; ``declared``: with all filled in."""
        owner = sighting.protocol.owner
        is_others = owner is not None and owner != tracked.live_system_id
        is_importer = is_others or tracked.import_only or tracked.memory.stance is Stance.IMPORTED
        hiding = self.hiding(tracked, compared, is_importer=is_importer)
        if not (hiding.is_needed or compared.write_only):
            return sighting
        actual = dict(hiding.actual(declared, sighting.actual))
        if not is_importer:
            actual |= self._last_written(tracked, compared, hiding, declared)
        return replace(sighting, actual=actual, detail=KNOWN.redact(sighting.detail))

    def _last_written(
        self, tracked: Tracked, compared: ComparedType, hiding: Hiding, declared: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What stands for parameters that the cloud never returns: as declared, or another value (A8).

        What only the creation can set is another value only where a digest of the same key says so: nothing else could
        ever show it, and it cannot be written once more.
        """
        found: dict[str, Any] = {}
        shown = compared.write_only_values(hiding.declared(declared)) if compared.write_only else {}
        for name, value in compared.write_only_values(declared).items():
            digest = self._digest(tracked, name, value)
            if any(self._is_to_be_made(tracked, one.name) for _, one in references(value)):
                found[name] = OTHER_SECRET
            elif digest is not None:
                kept = tracked.memory.secrets.get(name)
                is_unknown = compared.is_immutable(name) and not self._is_of_this_key(kept)
                found[name] = shown[name] if kept == digest or is_unknown else OTHER_SECRET
        return found

    def _is_of_this_key(self, digest: str | None) -> bool:
        return self._common is not None and self._common.key.made(digest)

    def _digest(self, tracked: Tracked, name: str, value: Any) -> str | None:
        """What stands for the declared value of a parameter; None where a secret in it has no value."""
        if self._common is None or self.are_unknown(tracked):
            return None
        return self._common.key.digest(tracked.uid, name, self.resolved(tracked, {name: value})[name])

    def written(self, tracked: Tracked, values: Mapping[str, Any]) -> Mapping[str, str]:
        """What is remembered after these values, which the cloud never returns, were written; by name."""
        digests = {name: self._digest(tracked, name, value) or "" for name, value in values.items()}
        return {**tracked.memory.secrets, **digests}


def _print(found: Secret | SecretUnavailable) -> str:
    """By what a changed secret is noticed in the next cycle, in this process alone."""
    if isinstance(found, SecretUnavailable):
        return f"!{found.message}"
    return hmac.new(_THIS_PROCESS, found.reveal().encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
