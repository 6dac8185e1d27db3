"""Where secrets are kept, and which name leads where: said where an agent runs, and never by a declaration (A8).

    {"$secret": "db-password"}  ──▶  binding of «db-password»  ──▶  store (environment, file, kubernetes, aws, …)

Whoever may deploy chooses the name. Whoever runs the agent chooses what it stands for, and for which LiveSystems:
without that, a declaration could read whatever the agent can.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from fractal_cloud.model.errors import SecretUnavailable
from fractal_cloud.model.identity import ID_RULE, is_id
from fractal_cloud.model.wording import listed, shown
from fractal_cloud.offers.secret import Secret

ENTRY_POINTS: Final = "fractal_cloud.secret_stores"
VARIABLE: Final = "FRACTAL_SECRET_"
GUIDE: Final = "docs/operating.md#secrets"
MAX_BYTES: Final = 65_536
"""More than any parameter that takes a secret can hold."""

_OURS: Final[Mapping[str, str]] = {
    "environment": "fractal_cloud.offers.secret_stores:EnvironmentStore",
    "file": "fractal_cloud.offers.secret_stores:FileStore",
    "kubernetes": "fractal_cloud.offers.kubernetes.secret_store:KubernetesSecretStore",
    "aws": "fractal_cloud.offers.aws.secret_store:SecretsManagerStore",
}
_KEYS: Final = ("store", "liveSystems")


class SecretStore(ABC):
    """One kind of store. ``required`` and ``optional``: the keys by which a binding says where in it a secret lies."""

    required: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def read(self, where: Mapping[str, str]) -> str | bytes:
        """The value that lies there now. Raises ``SecretUnavailable``, whose message never quotes a value."""


class EnvironmentStore(SecretStore):
    """Environment variables of the agent: ``variable``."""

    required = ("variable",)

    def read(self, where: Mapping[str, str]) -> str:
        """The variable's value."""
        found = os.environ.get(where["variable"])
        if found is None:
            raise SecretUnavailable(f"the environment variable {where['variable']} is not set")
        return found


class FileStore(SecretStore):
    """Files that the agent can read: ``path``. One line break at the end is not part of the value."""

    required = ("path",)

    def read(self, where: Mapping[str, str]) -> bytes:
        """The file's content."""
        path = where["path"]
        try:
            with Path(path).open("rb") as file:
                found = file.read(MAX_BYTES + 2)
        except OSError as error:
            raise SecretUnavailable(f"the file {path!r} cannot be read ({error.strerror})") from None
        return found.removesuffix(b"\r\n" if found.endswith(b"\r\n") else b"\n")


@cache
def store(name: str) -> SecretStore:
    """The store of that name: ours, or one that another package announces; made when first asked for."""
    known = {**{entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}, **_OURS}
    if name not in known:
        raise SecretUnavailable(f"there is no secret store {name!r}: installed are {listed(sorted(known))}")
    module, _, attribute = known[name].partition(":")
    try:
        made: SecretStore = getattr(import_module(module), attribute)()
    except Exception as error:  # whatever a package of somebody else's raises
        raise SecretUnavailable(
            f"the secret store {name!r} cannot be used ({type(error).__name__}: {error})"
        ) from error
    return made


@dataclass(frozen=True, slots=True)
class Binding:
    """What one name stands for, and the LiveSystems that may use it, as patterns (``shop``, ``shop-*``)."""

    store: str
    where: Mapping[str, str]
    live_systems: tuple[str, ...]

    def allows(self, live_system_id: str) -> bool:
        """Whether a LiveSystem may use it."""
        return any(fnmatchcase(live_system_id, pattern) for pattern in self.live_systems)


class BadBindings(Exception):
    """A file of bindings cannot be used; the message says why."""


def parse_bindings(text: str) -> dict[str, Binding]:
    """The bindings in a file: YAML or JSON, ``secrets: {name: {store: …, liveSystems: […], …}}``."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        problem = getattr(error, "problem", None) or "it is nested too deeply"
        raise BadBindings(f"is no YAML: {problem}") from None
    secrets = document.get("secrets") if isinstance(document, dict) and set(document) == {"secrets"} else None
    if not isinstance(secrets, dict):
        raise BadBindings("must be an object with the one key `secrets`, an object of bindings by name")
    return {name: _binding(name, given) for name, given in secrets.items()}


def _binding(name: object, given: object) -> Binding:
    if not isinstance(name, str) or not is_id(name):
        raise BadBindings(f"binds {shown(name)}: a name is {ID_RULE}")
    at = f"secrets.{name}"
    if not isinstance(given, dict) or not isinstance(given.get("store"), str):
        raise BadBindings(f"{at} must be an object with `store` and `liveSystems`")
    try:
        kept = store(given["store"])
    except SecretUnavailable as error:
        raise BadBindings(f"{at}.store: {error.message}") from None
    patterns = given.get("liveSystems")
    if not isinstance(patterns, list) or not patterns or not all(isinstance(one, str) and one for one in patterns):
        raise BadBindings(f"{at}.liveSystems must list who may use it, as ids or patterns such as `shop-*`")
    where = {key: value for key, value in given.items() if key not in _KEYS}
    unknown = [key for key in where if key not in (*kept.required, *kept.optional)]
    lacking = [key for key in kept.required if key not in where]
    if unknown or lacking:
        keys = listed((*kept.required, *(f"{key} (optional)" for key in kept.optional)))
        what = f"has {listed(map(str, unknown))}" if unknown else f"lacks {listed(lacking)}"
        raise BadBindings(f"{at} {what}: the store {given['store']!r} takes {keys}")
    if not all(isinstance(value, str) and value for value in where.values()):
        raise BadBindings(f"{at}: give texts that are not empty")
    return Binding(given["store"], where, tuple(patterns))


class SecretSource:
    """Finds secrets for one agent.

    ``file``: its bindings; where there is one, nothing else counts. It is read again when it changes. Without it, a
    secret is the file ``folder``/LiveSystem/name, which that LiveSystem alone can use, else the environment variable
    ``FRACTAL_SECRET_NAME``, which everybody can whom this agent serves. ``who``: what the agent is called in messages.
    """

    def __init__(self, who: str = "this agent", file: Path | None = None, folder: Path | None = None) -> None:
        self._who = who
        self._file = file
        self._folder = folder
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] = ()
        self._bindings: Mapping[str, Binding] = {}

    def check(self) -> None:
        """Raise ``BadBindings`` where the file of bindings cannot be used."""
        if self._file is not None:
            self._loaded(self._file)

    def resolve(self, live_system_id: str, name: str) -> Secret:
        """The value of a secret for a LiveSystem, read anew; raises ``SecretUnavailable`` with what to do."""
        if self._file is not None:
            return self._bound(self._file, live_system_id, name)
        if self._folder is not None:
            path = self._folder / live_system_id / name
            if path.exists():
                return self._read(name, "file", {"path": str(path)})
        variable = variable_of(name)
        if variable in os.environ:
            return self._read(name, "environment", {"variable": variable})
        put = f"put it into {str(self._folder / live_system_id / name)!r}, " if self._folder is not None else ""
        raise SecretUnavailable(
            f"secret {name!r} is not bound at agent {self._who!r}: {put}set {variable} where the agent runs, or bind "
            f"it in a file for --secrets ({GUIDE})"
        )

    def _bound(self, file: Path, live_system_id: str, name: str) -> Secret:
        try:
            binding = self._loaded(file).get(name)
        except BadBindings as error:
            raise SecretUnavailable(
                f"secret {name!r} cannot be looked up at agent {self._who!r}, because its file of bindings {error}"
            ) from None
        if binding is None:
            raise SecretUnavailable(
                f"secret {name!r} is not bound at agent {self._who!r}: bind it in {str(file)!r} ({GUIDE})"
            )
        if not binding.allows(live_system_id):
            raise SecretUnavailable(
                f"secret {name!r} is not for LiveSystem {live_system_id!r}: list it in `liveSystems` of its binding in "
                f"{str(file)!r} at agent {self._who!r}"
            )
        return self._read(name, binding.store, binding.where)

    def _read(self, name: str, kind: str, where: Mapping[str, str]) -> Secret:
        try:
            return _checked(store(kind).read(where))
        except SecretUnavailable as error:
            raise SecretUnavailable(
                f"secret {name!r} has no value at agent {self._who!r}: {error.message}", is_passing=error.is_passing
            ) from None
        except Exception as error:  # noqa: BLE001  # somebody else's store: what it raised may quote anything
            raise SecretUnavailable(
                f"secret {name!r} has no value at agent {self._who!r}: its store {kind!r} failed "
                f"({type(error).__name__})",
                is_passing=True,
            ) from None

    def _loaded(self, file: Path) -> Mapping[str, Binding]:
        """The bindings, read again where the file changed."""
        try:
            with self._lock:
                found = file.stat()
                stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
                if stamp != self._stamp:
                    self._bindings, self._stamp = parse_bindings(file.read_text(encoding="utf-8")), stamp
                return self._bindings
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise BadBindings(f"{str(file)!r} cannot be read: {reason}") from None
        except BadBindings as error:
            raise BadBindings(f"{str(file)!r} cannot be used: {error}") from None


def variable_of(name: str) -> str:
    """The environment variable that holds a secret by default."""
    return VARIABLE + name.upper().replace("-", "_")


def _checked(found: Any) -> Secret:
    """What a store returned, if it is a text that can be written anywhere."""
    if isinstance(found, bytes):
        try:
            found = found.decode("utf-8")
        except UnicodeDecodeError:
            raise SecretUnavailable("what is kept there is no text in UTF-8") from None
    if not isinstance(found, str) or not found:
        raise SecretUnavailable("what is kept there is empty")
    if len(found.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise SecretUnavailable(f"what is kept there is longer than {MAX_BYTES} bytes")
    if "\0" in found or any("\ud800" <= char <= "\udfff" for char in found):
        raise SecretUnavailable("what is kept there holds characters that no text may hold")
    return Secret(found)


Resolve = Callable[[str, str], Secret]
"""Finds the value of a secret: for which LiveSystem, and by which name."""
