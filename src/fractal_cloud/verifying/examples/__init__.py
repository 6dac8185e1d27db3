"""The verification examples of all providers that have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from fractal_cloud.verifying.example import VerificationExample

PROVIDERS: Final = ("aws", "azure", "hetzner", "kubernetes")


def examples_of(provider: str) -> Mapping[str, VerificationExample]:
    """The examples of a provider by component type; none where nobody wrote any."""
    if provider not in PROVIDERS:
        return {}
    found: Sequence[VerificationExample] = import_module(f"{__name__}.{provider}").EXAMPLES
    return {example.kind.type: example for example in found}
