"""Where Hetzner's users keep their tokens: the environment, or a context of the vendor's own command line.

A token belongs to one project, and the API never says to which: a person may give the project its name. How the token
is used does not belong here.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from fractal_cloud.model.errors import Denied

TOKEN: Final = "HCLOUD_TOKEN"
ENDPOINT: Final = "HCLOUD_ENDPOINT"
CONTEXT: Final = "HCLOUD_CONTEXT"
CONFIG: Final = "HCLOUD_CONFIG"
PROJECT: Final = "FRACTAL_HETZNER_PROJECT"
DEFAULT_ENDPOINT: Final = "https://api.hetzner.cloud/v1"
_ADVICE: Final = f"set {TOKEN}, or make a context with `hcloud context create`"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What opens one project. ``realm``: what distinguishes that project from every other."""

    token: str = field(repr=False)
    endpoint: str
    realm: str


def config_path() -> Path:
    """The file in which the vendor's command line keeps its contexts."""
    given = os.environ.get(CONFIG)
    if given:
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "hcloud" / "cli.toml"


def credentials() -> Credentials:
    """The token that the vendor's command line would use; raises ``Denied``, saying what to do, where there is none."""
    token, context = os.environ.get(TOKEN, ""), {}
    if not token:
        context = _context()
        token = str(context.get("token") or "")
    if not token:
        raise Denied(f"no Hetzner project is named: {_ADVICE}")
    endpoint = os.environ.get(ENDPOINT) or context.get("endpoint") or DEFAULT_ENDPOINT
    return Credentials(token, str(endpoint).rstrip("/"), os.environ.get(PROJECT) or _stand_in(token))


def _context() -> dict[str, Any]:
    path = config_path()
    try:
        config = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Denied(f"{path} cannot be read: {error}; fix it, or set {TOKEN}") from error
    wanted = os.environ.get(CONTEXT) or config.get("active_context") or ""
    for context in config.get("contexts") or []:
        if context.get("name") == wanted:
            preferences = {**(config.get("preferences") or {}), **(context.get("preferences") or {})}
            return {**context, "endpoint": preferences.get("endpoint")}
    if os.environ.get(CONTEXT):
        raise Denied(f"{path} has no context {wanted!r}, which {CONTEXT} names: correct it, or {_ADVICE}")
    return {}


def _stand_in(token: str) -> str:
    """What stands for a project that nobody named: the same for every agent with this token, and it opens nothing."""
    return f"token-{sha256(b'fractal-cloud hetzner project ' + token.encode()).hexdigest()[:16]}"
