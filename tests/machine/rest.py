"""LIVENESS: when people stop and the cloud is quick again, everything comes to rest, and then nothing is written.

How long that may take is counted in settled cycles. Three for the work itself; and what SPEC itself delays: S12a shows
what would change for one settled cycle before it is written or deleted; S17 waits two cycles (here three, because the
worlds' visibility window is three of their short cycles) before a creation whose answer was lost is tried again; and
S21 pauses for one cycle after the only refusal that the knobs ever give to one component. These delays can follow each
other for one component, and run side by side for several.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sqlalchemy import inspect, text

from fractal_cloud.control.store.driver import connect
from fractal_sandbox.aws.resources import Ref, tags_of
from tests.machine.actions import NET
from tests.machine.people import name_of, resources
from tests.world import World

WORK, NOTICE, WINDOW, REFUSAL = 3, 1, 3, 1
_NEXT_TRY = re.compile(r"next try at [0-9:]+ UTC")
AT_MOST = WORK + NOTICE + WINDOW + REFUSAL


def come_to_rest(world: World) -> None:
    """Let settled cycles pass until one is silent, at most as many as may be needed; then hold one more against it."""
    _wait_for_throttled(world)
    for _ in range(AT_MOST):
        if _is_silent(world):
            break
    before, shown = _database(world), _shown(world)
    since = len(world.cloud.calls)
    results = world.cycle()
    written = [call for call in world.cloud.calls.all()[since:] if call.is_write and call.actor == "agent"]
    stuck = _stuck(world)
    for call in written:
        about = (call.origin.live_system, call.origin.component)
        assert about in stuck, f"{about} still writes ({call.operation}, {call.error}): {_statuses(world)}"
        assert not call.effect, f"{about} still changes the cloud by {call.operation}: {_statuses(world)}"
    is_tried = any(result.writes for result in results)
    assert stuck or not is_tried, f"still tries to write: {_statuses(world)}"
    if not written:
        # What is refused before any call is tried again all the same: that is in the journal, and the component says
        # when the next try is (S21). Nothing else of it changes, and nothing of any other.
        is_only_later = is_tried and _shown(world) == shown
        assert is_only_later or not any(result.changes for result in results), f"still publishes: {_statuses(world)}"
        after = _database(world)
        if is_only_later:
            before, after = _but_for(stuck, before), _but_for(stuck, after)
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        assert not changed, f"the control plane wrote to {sorted(changed)} in a silent cycle: {_statuses(world)}"


_IS_STALENESS = re.compile(r"'Scope(?:Unread|Read)'")
_OF_TIME = ("lastUpdated", "lastRead", "stale")


def _shown(world: World) -> list[dict[str, Any]]:
    """Every component as people see it, but for when something is tried next, and when it was read or published."""
    return [
        {**component, "message": _NEXT_TRY.sub("", component["message"]), **dict.fromkeys(_OF_TIME)}
        for component in components(world)
    ]


def _but_for(tried: Collection[tuple[str, str]], stored: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is stored, without the journal and without the components that are tried again and again.

    Their LiveSystems say when anything of them was last updated.
    """
    names = [f"{live_system!r}, {component!r}, " for live_system, component in tried]
    others = [row for row in stored["components"] if not any(name in row for name in names)]
    updated = tuple(f"({live_system!r}," for live_system, _ in tried)
    live_systems = [row for row in stored["live_systems"] if not row.startswith(updated)]
    return {**stored, "journal": [], "components": others, "live_systems": live_systems}


def _is_silent(world: World) -> bool:
    results = world.cycle()
    return all(result.settled and not result.writes and not result.changes for result in results)


def _wait_for_throttled(world: World) -> None:
    """A service that asked for fewer calls is left alone for a time of its own, not counted in cycles."""
    now = world.agent._clock.now()
    held = [leased.held for leased in world.agent._leases.scopes.values()]
    until = [t for one in held for t in one.backoff.throttled_until.values()]
    refusals = [tracked.memory.refusal for one in held for tracked in one.work.tracked.values()]
    until += [one.until for one in refusals if one is not None and one.until is not None and not one.failed]
    time.sleep(max([0.0, *((moment - now).total_seconds() for moment in until)]))


def _stuck(world: World) -> dict[tuple[str, str], str]:
    return {
        (component["liveSystemId"], component["componentId"]): component["message"]
        for component in components(world)
        if component["status"] in ("Deleting", "Failed")
    }


def components(world: World) -> Iterator[dict[str, Any]]:
    """Every component of every LiveSystem, as the API shows it."""
    for live_system in world.api.get("/livesystems").json()["items"]:
        yield from world.api.get(f"/livesystems/{live_system['id']}/components").json()["items"]


def _statuses(world: World) -> str:
    shown = [f"{c['liveSystemId']}/{c['componentId']} {c['status']} ({c['message']})" for c in components(world)]
    return "; ".join(shown)


def _database(world: World) -> dict[str, list[str]]:
    """Everything that is stored, by table, but for what no change of the world brings about.

    The agents' own rows are changed by their heartbeat (S20); in the counters a server notes its turns at keeping
    house, and the number of the newest event, which would be among the events. What is stale follows from time alone:
    a cycle lasts a fraction of a second here, and nobody reads between two of them (C11).
    """
    stored: dict[str, list[str]] = {}
    engine = connect(str(world._settings.database_url))
    try:
        with engine.connect() as connection:
            for name in inspect(connection).get_table_names():
                if name not in ("agents", "counters", "scope_reads"):
                    rows = connection.execute(text(f'SELECT * FROM "{name}"')).mappings()
                    known = (tuple(value for key, value in row.items() if key != "unread") for row in rows)
                    stored[name] = sorted(row for row in map(repr, known) if not _IS_STALENESS.search(row))
    finally:
        engine.dispose()
    return stored


def assert_truth(world: World) -> None:
    """At rest every status says what the cloud shows (S1 to S12), judged from names and tags alone.

    Where two VPCs share the name, which one is meant depends on who asks (S14), and in a VPC that lost its name nothing
    is known from its name (S0): nothing is said of those here.
    """
    nets = [ref for ref in resources() if name_of(ref) == ("vpc", "", NET)]
    if len(nets) > 1:
        return
    for component in components(world):
        is_inside = not component["type"].endswith("AwsVpc")
        if component["deleting"] or (is_inside and not nets):
            continue
        found = [ref for ref in resources() if name_of(ref) == _identity(component, nets)]
        if len(found) == 1:
            assert_fits(component, str(found[0]), tags_of(found[0]) or {})
        elif not found:
            allowed = ("Missing", "ManualOverride", "Failed", "Instantiating")
            assert component["status"] in allowed, f"absent, yet {line(component)}"


def _identity(component: dict[str, Any], nets: list[Ref]) -> tuple[str, str, str]:
    live_system, component_id = component["liveSystemId"], component["componentId"]
    if component["type"].endswith("AwsVpc"):
        return "vpc", "", NET
    if component["type"].endswith("AwsSecurityGroup"):
        return "security-group", nets[0].id, component_id
    others = {"own": f"own-{live_system}", "theirs": "own-ls-b" if live_system == "ls-a" else "own-ls-a"}
    return "subnet", nets[0].id, others.get(component_id, component_id)


def assert_fits(component: dict[str, Any], where: str, tags: Mapping[str, str]) -> None:
    """The table of SPEC read backwards: which status these tags allow."""
    owner, ours = tags.get("fractal-cloud-owner"), tags.get("managed-by") == "fractal-cloud"
    is_mine, is_asked = owner == component["liveSystemId"], tags.get("fractal-cloud") == "reconcile"
    shown = f"{line(component)} on {where} with {tags}"
    if component["message"] == "read only: importOnly" or (owner is not None and not is_mine):
        allowed = {"ExternallyManaged"}
    elif not ours:
        allowed = {"ManualOverride"}
    elif not is_mine:
        allowed = {"ManualOverride", "ExternallyManaged"}
    elif is_asked:
        allowed = {"Failed"}
    elif component["stance"] == "managed":
        allowed = {"Active", "Failed"}
    else:
        allowed = {"ManualOverride", "Failed"}
    assert component["status"] in allowed, shown
    if component["status"] == "Active":
        assert "drift" not in component["outputFields"], shown


def line(component: dict[str, Any]) -> str:
    where = f"{component['liveSystemId']}/{component['componentId']}"
    return f"{where} is {component['status']} ({component['stance']}: {component['message']})"
