"""Tokens for the agents of a test, made by its control plane as an admin makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

EVERY: Final = ("*",)
_EXISTS: Final = 409


def agent_token(
    api: Any,
    name: str = "agents",
    *,
    providers: Sequence[str] = EVERY,
    environments: Sequence[str] = EVERY,
    realms: Sequence[str] = EVERY,
) -> str:
    """A token of an agent, bound to what is given; ``api`` is a client of the control plane with an admin's token.

    Where there is one of that name already, it gets another secret.
    """
    bound = {"providers": [*providers], "environments": [*environments], "realms": [*realms]}
    answer = api.post("/tokens", json={"name": name, "role": "agent", **bound})
    if answer.status_code == _EXISTS:
        answer = api.post(f"/tokens/{name}/rotate")
    if not answer.is_success:
        raise AssertionError(answer.text)
    return str(answer.json()["token"])


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}
