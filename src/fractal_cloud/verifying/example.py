"""The smallest declaration of a type with which its offer is tried on a real account. Plain data, no calls."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_cloud.model.component import Component

PREFIX: Final = "fractal-verify-"
OWNER_OF_A_RUN: Final = re.compile(r"fractal-verify-[0-9a-f]{6}(-[a-z0-9-]+)?\Z")
"""The ids of the LiveSystems of all runs, which the owner tags hold."""

Declaration = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where and under which names a run creates what it tries: the words of `--scope`, and a random prefix."""

    words: Mapping[str, str]
    run: str = field(default_factory=lambda: f"{PREFIX}{secrets.token_hex(3)}")

    def __getitem__(self, word: str) -> str:
        return self.words[word]

    def name(self, short: str) -> str:
        """The name and the id of a component of this run."""
        return f"{self.run}-{short}"

    def compact_name(self, short: str) -> str:
        """The same for clouds that take only letters and digits."""
        return self.name(short).replace("-", "")

    def is_name_of_run(self, name: str) -> bool:
        """Whether a resource bears a name that this run gave it."""
        return name.startswith((f"{self.run}-", self.run.replace("-", "")))

    def declare(self, kind: type[Component], short: str, **parameters: Any) -> Declaration:
        """Declare one component."""
        return {"id": self.name(short), "type": kind.type, "provider": kind.provider, "parameters": parameters}


@dataclass(frozen=True, slots=True)
class VerificationExample:
    """How one type is tried.

    ``declare``: the declarations in dependency order; the last one is tried. ``changes``: another value for every
    parameter that costs nothing to change; never a protection from deletion, which would outlive a run that is killed.
    ``needs``: the words of `--scope` without which it cannot be declared.
    ``guarded``: the parameter whose change carries a precondition, if the offer claims one. ``cost``: what a run costs,
    in words. ``on_request``: tried only where `--type` names it. ``minutes``: how long the cloud may take for one step.
    """

    kind: type[Component]
    declare: Callable[[Place], Sequence[Declaration]]
    needs: tuple[str, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    guarded: str = ""
    cost: str = "free"
    on_request: bool = False
    minutes: float = 5.0

    @property
    def short_type(self) -> str:
        """The type without its category: ``AwsVpc``."""
        return short_type(self.kind.type)

    def missing(self, words: Mapping[str, str]) -> list[str]:
        """The words of `--scope` that it needs and that are not given."""
        return [word for word in self.needs if word not in words]


def short_type(component_type: str) -> str:
    """The last word of a type: ``AwsVpc``."""
    return component_type.rpartition(".")[2]
