"""What people may do at any moment, as plain values: drawn beforehand, done later, and printed as a history.

An action names what it is about by a number, not by an id: which resource that is, is found out when it is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.world import Declaration, security_group, subnet, vpc

LIVE_SYSTEMS = ("ls-a", "ls-b")
NET = "shared-net"
COMPONENTS = ("net", "web", "group", "own", "theirs")

# The words of the cloud: each is a method of `People`, and takes the number of a resource. What people do often
# stands here more than once. What would end a history early (a name that is gone, a twin) can be undone by others.
ON_RESOURCES = (
    *("edit", "edit", "edit", "untag", "untag", "hand_back", "hand_back", "hand_back"),
    *("tag_foreign", "wipe", "give_to_terraform", "ask_reconcile", "put_managed_by"),
    *("own_a", "own_b", "disown", "rename", "name_back", "name_back", "destroy", "make_twin", "remove_twins"),
    *("occupy", "occupy", "vacate"),
)


# What hurts most when it is done to a resource that the agent is about to change.
AT_THE_WRONG_MOMENT = ("untag", "untag", "give_to_terraform", "own_a", "own_b", "disown", "wipe", "rename", "destroy")


@dataclass(frozen=True)
class Action:
    """One thing somebody does: a word, and what it is about."""

    word: str
    number: int = 0
    body: dict[str, Any] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        about = f", {self.number}" if self.number else ""
        return f"Action({self.word!r}{about}{f', body={self.body!r}' if self.body else ''})"


def on_resources() -> SearchStrategy[Action]:
    """Somebody with a console of their own does something to one resource, or makes a second VPC of the name."""
    return st.builds(Action, st.sampled_from(ON_RESOURCES), st.integers(0, 7))


def through_the_product() -> SearchStrategy[Action]:
    """An operator deploys, deletes, pushes or breaks the glass."""
    components = st.sampled_from([f"{ls}/{component}" for ls in LIVE_SYSTEMS for component in COMPONENTS])
    asked = st.builds(
        lambda word, about: Action(word, body={"about": about}),
        st.sampled_from(["force_push", "break_glass"]),
        components,
    )
    deleted = st.sampled_from(LIVE_SYSTEMS).map(lambda ls: Action("delete", body={"id": ls}))
    elsewhere = deployments().map(lambda action: Action("deploy_elsewhere", body=action.body))
    ways = {"deploy": deployments(), "ask": asked, "delete": deleted, "elsewhere": elsewhere}
    words = ("deploy", "deploy", "deploy", "ask", "ask", "ask", "delete", "delete", "elsewhere")
    return st.sampled_from(words).flatmap(ways.__getitem__)


def anything() -> SearchStrategy[Action]:
    """Two actions of three are done with a console. (``one_of`` alone would count the branches of its branches.)"""
    ways = (on_resources(), on_resources(), through_the_product())
    return st.sampled_from(range(len(ways))).flatmap(ways.__getitem__)


@dataclass(frozen=True)
class Interruption:
    """An action done in the middle of a cycle, right before one of the agent's calls.

    ``before``: any call, one that reads a resource by its id (the guard's look), or one that writes. With ``aimed`` the
    action is done to the very resource that call is about.
    """

    before: Literal["call", "look", "write"]
    nth: int
    action: Action
    aimed: bool


def interruptions() -> SearchStrategy[list[Interruption]]:
    """What people do during a cycle: often to what the agent works on at that moment."""
    aimed = st.builds(
        Interruption,
        st.sampled_from(["look", "write"]),
        st.integers(1, 3),
        st.builds(Action, st.sampled_from(AT_THE_WRONG_MOMENT), st.integers(0, 7)),
        st.just(True),
    )
    anyhow = st.builds(Interruption, st.just("call"), st.integers(1, 12), anything(), st.just(False))
    ways = (aimed, aimed, anyhow)
    return st.lists(st.sampled_from(range(len(ways))).flatmap(ways.__getitem__), max_size=2)


def deployments() -> SearchStrategy[Action]:
    """A declaration of one of the two LiveSystems; they overlap in the VPC, a subnet and a security group."""
    return st.builds(_deployment, st.sampled_from(LIVE_SYSTEMS), _choices())


def _choices() -> SearchStrategy[dict[str, Any]]:
    flag = st.booleans()
    maybe = st.sampled_from([True, False, True, False, None])
    return st.fixed_dictionaries(
        {
            "dns": maybe,
            "web": st.sampled_from([True, True, False]),
            "public": maybe,
            "group": flag,
            "open": maybe,
            "own": flag,
            "theirs": st.sampled_from([False, False, True]),
            "tag": st.sampled_from([False, False, True]),
            "import_only": st.sampled_from([False, False, False, True]),
            "other_id": st.sampled_from([False, False, True]),
        }
    )


def _deployment(live_system: str, choices: dict[str, Any]) -> Action:
    return Action("deploy", body=declaration(live_system, **choices))


def declaration(
    live_system: str,
    *,
    dns: bool | None = None,
    web: bool = True,
    public: bool | None = None,
    group: bool = True,
    open: bool | None = None,  # noqa: A002
    own: bool = True,
    theirs: bool = False,
    tag: bool = False,
    import_only: bool = False,
    other_id: bool = False,
) -> Declaration:
    """One LiveSystem: its VPC, and what of the rest is chosen. None means that a parameter is not declared."""
    net_id = "network" if other_id else "net"
    dns_parameters = {} if dns is None else {"enableDnsHostnames": dns}
    components = [{**vpc(net_id, name=NET, **dns_parameters), "importOnly": import_only}]
    if web:
        components.append(subnet("web", vpc=net_id, **({} if public is None else {"mapPublicIpOnLaunch": public})))
    if group:
        components.append(security_group("group", vpc=net_id, **({} if open is None else {"ingress": RULES[open]})))
    other = next(name for name in LIVE_SYSTEMS if name != live_system)
    for component_id, whose in (("own", live_system), ("theirs", other)):
        if own if component_id == "own" else theirs:
            block = "10.0.2.0/24" if whose == "ls-a" else "10.0.3.0/24"
            components.append(subnet(component_id, vpc=net_id, name=f"own-{whose}", cidrBlock=block))
    return {"id": live_system, "readoption": "tag" if tag else "handshake", "components": components}


HTTPS = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "0.0.0.0/0"}
RULES: dict[bool, list[dict[str, Any]]] = {True: [HTTPS], False: []}
