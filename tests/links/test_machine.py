"""Two LiveSystems, two clouds and two agents that die at random, and people who link, unlink, break and delete.

SAFETY is asked after every step: nothing that is linked and allowed is revoked, and no secret stands anywhere.
LIVENESS is asked at the end: every link that is declared and allowed is provided, and nothing is left that is not
linked, but for what was deleted in override: that is left with all that is in it (O10).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from fractal_cloud.offers import link as offered_links
from fractal_cloud.offers.secret import Secret, seal
from tests.conftest import SOAK
from tests.links.clouds import Role
from tests.links.test_crashes import Dying
from tests.links.world import PROVIDERS, Declaration, World, database, gateway, link, workload

DATABASES = ("orders", "users")
BREAKABLE = ("db", "edge", "shared", "app", "web", "other")
WHERE = {"db": "east", "edge": "east", "shared": "east", "app": "west", "web": "east", "other": "west"}

links_of_app = st.fixed_dictionaries(
    {},
    optional={"db": st.sampled_from(DATABASES), "edge": st.sampled_from(["/a", "/b"]), "web": st.none()},
)


class Histories(RuleBasedStateMachine):
    """One history of one world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.wanted: dict[str, list[Declaration]] = {}
        self.secrets: set[str] = set()
        self.sealed: dict[str, Sequence[str]] = {}
        self.exposed: set[str] = set()
        self.has_broken = self.has_deleted = False
        self._patch = pytest.MonkeyPatch()
        new = Secret.new
        self._patch.setattr(Secret, "new", lambda: self._noted(new()))
        self._patch.setattr(offered_links, "seal", self._sealed)

    def _noted(self, secret: Secret) -> Secret:
        self.secrets.add(secret.reveal())
        return secret

    def _sealed(self, secret: Secret, keys: Sequence[str]) -> str:
        self.sealed[secret.reveal()] = keys
        return seal(secret, keys)

    # --- what people declare

    @initialize()
    def both_are_deployed(self) -> None:
        self._deploy(
            "ls-a", [database(), gateway(), self._shared([]), workload("web", link("db", database="orders"), at="east")]
        )
        self._deploy("ls-b", [database("theirs", parameters={"name": "shared"})])
        self.world.cycle()

    def _shared(self, links_from: list[str]) -> Declaration:
        return {**database("shared"), "linksFrom": links_from}

    def _deploy(self, live_system: str, components: list[Declaration]) -> None:
        response = self.world.put(live_system, *components)
        if response.status_code == 202:
            self.wanted[live_system] = components
        else:
            assert response.status_code == 409, response.text  # it is being deleted

    @rule(links=links_of_app, web=st.booleans(), allowed=st.booleans(), gone=st.booleans())
    def ls_a_is_deployed(self, links: dict[str, Any], *, web: bool, allowed: bool, gone: bool) -> None:
        to = {"db": "database", "edge": "prefix"}
        declared = [link(name, **({to[name]: value} if value else {})) for name, value in links.items()]
        back = [link("db", database="users"), *([] if gone else [link("app")])]
        components = [database(), gateway(), self._shared(["ls-b"] if allowed else [])]
        components.append(workload("web", *(back if web else []), at="east"))
        if not gone:
            components.append(workload("app", *declared))
        self.has_deleted |= gone
        self._deploy("ls-a", components)

    @rule(linked=st.sampled_from([None, *DATABASES]))
    def ls_b_is_deployed(self, linked: str | None) -> None:
        declared = [link("theirs", database=linked)] if linked else []
        theirs = database("theirs", parameters={"name": "shared"})
        self._deploy("ls-b", [theirs, workload("other", *declared)])

    @rule(live_system=st.sampled_from(["ls-a", "ls-b", "ls-b"]))
    def a_live_system_is_deleted(self, live_system: str) -> None:
        if self.world.api.delete(f"/livesystems/{live_system}").status_code == 202:
            self.wanted.pop(live_system, None)
            self.has_deleted = True

    # --- what people do by hand

    @rule(name=st.sampled_from(BREAKABLE))
    def somebody_breaks_the_glass(self, name: str) -> None:
        store = self._store(name)
        if store.has(name):
            store.break_glass(name)
            self.has_broken = True

    @rule(name=st.sampled_from(BREAKABLE))
    def somebody_completes_the_handshake(self, name: str) -> None:
        store = self._store(name)
        if store.has(name):
            store.hand_back(name)

    @rule(name=st.sampled_from(BREAKABLE), which=st.integers(0, 3))
    def somebody_deletes_what_a_link_made(self, name: str, which: int) -> None:
        store = self._store(name)
        made: list[dict[str, Any]] = [store.secrets]
        if store.has(name):
            made += [store.named(name).roles, store.named(name).routes]
        things = [(table, key) for table in made for key in table]
        if things:
            table, key = things[which % len(things)]
            del table[key]

    @rule()
    def somebody_withdraws_the_key_of_the_agent_in_the_west(self) -> None:
        agent = self.world.agents["west"].settings.agent_id
        answer = self.world.api.post(f"/agents/{agent}/rotate-key", json={"reason": "stolen"})
        assert answer.status_code == 200, answer.text
        key = self.world.agents["west"]._sealing.key.public
        self.exposed |= {secret for secret, keys in self.sealed.items() if key in keys}

    def _roles(self) -> Iterator[Role]:
        for thing in self.world.east.things.values():
            yield from thing.roles.values()

    def _store(self, name: str) -> Any:
        return self.world.east if WHERE[name] == "east" else self.world.west

    # --- what the agents do

    @rule(providers=st.lists(st.sampled_from(PROVIDERS), min_size=1, max_size=4))
    def cycles_pass(self, providers: list[str]) -> None:
        self._expect_nothing_revoked(providers)

    @rule(provider=st.sampled_from(PROVIDERS), reports=st.integers(0, 2))
    def an_agent_dies(self, provider: str, reports: int) -> None:
        self.world.restart_agent(provider, lambda plane: Dying(plane, reports))
        self.world.cycle(provider)
        self.world.restart_agent(provider)

    def _expect_nothing_revoked(self, providers: list[str]) -> None:
        """A role of a link that stood all the time, and was there before, is there afterwards."""
        before = self._provided()
        for provider in providers:
            self.world.cycle(provider)
        if not self.exposed:
            assert before <= self._provided(), "what is linked and allowed was taken back"

    def _provided(self) -> set[str]:
        return {mark for mark in self._allowed() if mark in self.world.east.marks()}

    def _allowed(self) -> set[str]:
        """The marks of the inbound handlers whose links are declared and allowed."""
        found: set[str] = set()
        shared = next((c for c in self.wanted.get("ls-a", []) if c["id"] == "shared"), {})
        for live_system, components in self.wanted.items():
            for component in components:
                for one in component.get("links", ()):
                    source = f"{live_system}/{component['id']}"
                    if one["target"] == "theirs" and "ls-b" in shared.get("linksFrom", ()):
                        found.add(f"ls-a/shared<{source}")
                    elif one["target"] in ("db", "edge"):
                        found.add(f"{live_system}/{one['target']}<{source}")
        return found

    # --- what must hold

    @invariant()
    def no_secret_stands_anywhere(self) -> None:
        for live_system in ("ls-a", "ls-b"):
            shown = self.world.api.get(f"/livesystems/{live_system}/components").text
            assert not any(secret in shown for secret in self.secrets)

    def teardown(self) -> None:
        """People hand everything back and stop; then all comes to rest."""
        try:
            self._come_to_rest()
        finally:
            self._patch.undo()
            self.world.close()

    def _come_to_rest(self) -> None:
        for _ in range(2):
            for name in BREAKABLE:
                self.somebody_completes_the_handshake(name)
            self.world.settle(at_most=60)
        # What lost its target, or was left in override, comes back with a deploy after that was said.
        for live_system, components in list(self.wanted.items()):
            self._deploy(live_system, components)
        self.world.settle(at_most=60)
        if "ls-a" not in self.wanted or not self.world.east.has("shared"):
            return  # nobody owns what is shared: what its importer makes of it is the business of other tests
        sealed = {f"{source}>{target}" for source, target in self._databases_from_the_west()}
        assert self.world.east.marks() >= self._allowed()
        assert self.world.west.marks() >= sealed
        if not (self.has_broken and self.has_deleted):
            assert self.world.east.marks() == self._allowed(), "something is left that is not linked"
            assert self.world.west.marks() == sealed, "something is left that is not linked"
            still = self.exposed & {role.password for role in self._roles()}
            assert not still, "what was sealed to a withdrawn key is still valid"

    def _databases_from_the_west(self) -> Iterator[tuple[str, str]]:
        for mark in self._allowed():
            target, _, source = mark.partition("<")
            if source in ("ls-a/app", "ls-b/other") and not target.endswith("edge"):
                yield source, "theirs" if source == "ls-b/other" else target.partition("/")[2]


HISTORIES = settings(
    settings.get_profile("soak" if SOAK else "default"),
    max_examples=int(os.environ.get("FRACTAL_HISTORIES", "2000" if SOAK else "6")),
    stateful_step_count=30 if SOAK else 12,
    derandomize=not SOAK,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.hypothesis
@pytest.mark.timeout(6 * 3_600 if SOAK else 600)
@pytest.mark.rule("L5", "L9", "L10", "L12", "L13", "L14", "S17", "A5")
def test_whatever_people_link_and_break_all_links_come_to_rest_as_declared(tmp_path: Path) -> None:
    numbers = count()

    def new() -> Histories:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return Histories(World(folder))

    run_state_machine_as_test(new, settings=HISTORIES)  # type: ignore[arg-type]
