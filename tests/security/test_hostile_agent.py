"""A hostile agent with a stolen token of another realm, provider or environment gets nowhere (A1 to A5).

Beside it honest agents hold leases of a world that is declared and settled. It knows all there is to know of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.security.hostile_agent import HostileAgent, Own, dumped
from tests.security.stage import OWN, Stage, stage

HONEST = {("east", "account-east"), ("west", "account-west")}
REFUSALS = {"ReportRefused", "RegistrationRefused", "AgentRefused"}


def _kept(dump: dict[str, list[dict[str, Any]]], hostile: Own) -> dict[str, list[str]]:
    """Every row, but for events, their number, when tokens were used, and what is the hostile agent's own.

    That is its sign of life, and the lease of its own realm, which it gives back whenever it registers.
    """
    kept: dict[str, list[str]] = {}
    is_apart = (hostile.provider, hostile.realm) not in HONEST
    for table in dump.keys() - {"events", "counters"}:
        rows = [row for row in dump[table] if hostile.agent_id not in (row.get("agent_id"), row.get("id"))]
        if table == "scopes" and is_apart:
            rows = [row for row in rows if (row["provider"], row["realm"]) != (hostile.provider, hostile.realm)]
        kept[table] = sorted(dumped({k: v for k, v in row.items() if k != "last_used_at"}) for row in rows)
    return kept


def _new_events(stage: Stage, before: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    known = {event["seq"] for event in before["events"]}
    return [event for event in stage.dump()["events"] if event["seq"] not in known]


@pytest.mark.rule("A1", "A3", "A4", "A5")
@pytest.mark.parametrize("differs_in", sorted(OWN))
def test_a_stolen_token_reads_nothing_changes_nothing_and_gets_no_lease(tmp_path: Path, differs_in: str) -> None:
    with stage(tmp_path) as honest:
        hostile = honest.hostile(differs_in)
        before = honest.dump()
        held = {key: lease for key, lease in honest.holders().items() if lease[0] != hostile.own.agent_id}
        got = {name: gained for name, attempt in hostile.attempts() if (gained := attempt())}
        hostile.close()
        assert got == {}
        assert _kept(honest.dump(), hostile.own) == _kept(before, hostile.own)
        assert held.items() <= honest.holders().items()
        assert {holder for holder, _ in held.values()} == {"east-agent", "west-agent"}
        events = _new_events(honest, before)
        assert {event["kind"] for event in events} <= REFUSALS
        assert events, "what was refused is recorded"
        assert all(f"token '{hostile.own.agent_id}'" in event["message"] for event in events)
        honest.settle()
        assert honest.get("/livesystems/ls-shop")["counts"] == {"Active": 4, "ManualOverride": 1}


@pytest.mark.rule("A3")
def test_the_hostile_agent_tries_all_it_can_think_of() -> None:
    assert sum(name.startswith("try_") for name in dir(HostileAgent)) >= 45
