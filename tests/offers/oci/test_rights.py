"""What OCI says alike of «not there» and «not allowed»: nothing is concluded from it, and nobody is left guessing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.error import HTTPError

import pytest

from fractal_cloud.model.errors import Denied, PolicyOptionError, Unreadable
from fractal_cloud.offers.oci.bucket import OciBucketOffer
from fractal_cloud.offers.oci.calls import Oci
from fractal_cloud.offers.oci.policy import GROUP, policy
from fractal_cloud.offers.oci.vcn import OciVcnOffer
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.oci.cloud import COMPARTMENTS
from fractal_sandbox.oci.policies import Asked, allows, read_statement
from tests.offers.oci.declaring import bucket, vcn
from tests.offers.oci.person import OciPerson
from tests.offers.oci.rights import FLAGS, printed_rights, statements
from tests.offers.oci.worlds import OciWorld

HIDDEN = {"status": 404, "code": "NotAuthorizedOrNotFound", "times": None}


@pytest.mark.rule("S0")
def test_a_list_that_is_not_found_is_denied_and_never_empty(cloud: Oci, tenancy: Sandbox) -> None:
    tenancy.oci.knobs.fail(operation="list*", **HIDDEN)
    for offer in (OciVcnOffer(), OciBucketOffer()):
        with pytest.raises(Denied):
            list(offer.sightings(cloud, Query()))


@pytest.mark.rule("S0")
def test_a_read_that_finds_nothing_is_believed_only_beside_a_list(
    cloud: Oci, tenancy: Sandbox, person: OciPerson
) -> None:
    made = person.create("vcns", cidrBlocks=["10.0.0.0/16"], displayName="net")["id"]
    offer = OciVcnOffer()
    assert offer.read(cloud, f"{made}x") is None
    tenancy.oci.knobs.fail(operation="getVcn", **HIDDEN)
    with pytest.raises(Denied, match="is listed but may not be read"):
        offer.read(cloud, made)
    tenancy.oci.knobs.fail(operation="listVcns", status=500, code="InternalError", times=None)
    with pytest.raises(Unreadable):
        offer.read(cloud, f"{made}x")


@pytest.mark.rule("S0", "S4")
def test_a_vanished_vcn_is_not_made_again_while_it_may_only_be_hidden(world: OciWorld) -> None:
    world.deploy("ls-a", vcn(), bucket())
    world.settle()
    world.cloud.knobs.fail(operation="list*", actor="agent", **HIDDEN)
    world.cloud.knobs.fail(operation="get*", actor="agent", **HIDDEN)
    before = len(world.writes())
    world.cycle(3)
    assert len(world.writes()) == before
    assert world.status("ls-a", "net") == "Active"
    assert "NotAuthorizedOrNotFound" in world.component("ls-a", "net")["message"]


@pytest.mark.rule("S21", "O10")
def test_a_deletion_that_is_not_allowed_is_reported_and_not_taken_for_done(world: OciWorld) -> None:
    world.deploy("ls-a", vcn("net"), bucket())
    world.settle()
    world.cloud.knobs.fail(operation="delete*", actor="agent", **HIDDEN)
    world.delete("ls-a")
    world.cycle(3)
    for component in ("net", "objects"):
        shown = world.component("ls-a", component)
        assert shown["status"] == "Failed", shown
        assert "fractal agent policy --provider oci" in shown["message"]
    world.cloud.knobs.reset()


@pytest.mark.rule("S21")
def test_a_bucket_whose_name_is_taken_elsewhere_says_so(world: OciWorld) -> None:
    elsewhere = {"compartmentId": "ocid1.compartment.oc1..sandboxnetwork", "name": "objects"}
    world.oci.call("POST", "/n/frsandbox/b", elsewhere)
    world.deploy("ls-a", bucket())
    world.cycle(2)
    shown = world.component("ls-a", "objects")
    assert shown["status"] == "Failed"
    assert "already exists or you are not authorized" in shown["message"]
    world.assert_safe()


# --- what is printed, and what is tried with it (all other tests of this provider run under it: see ``rights.py``)

TENANCY: Final = COMPARTMENTS[""]
TEAM, NETWORK = COMPARTMENTS["team"], COMPARTMENTS["team/network"]
LINKS: Final = PolicyOptions(with_links=True, compartments=("team",))
# The known ways to more rights in a tenancy, by the permissions that Oracle's tables say they take, each in the root
# compartment: «Details for IAM», «Details for the Core Services», «Details for the Vault Service».
PATHS: Final[dict[str, tuple[str, ...]]] = {
    "write a policy of the tenancy": ("POLICY_CREATE",),
    "change a policy of the tenancy": ("POLICY_UPDATE",),
    "join the administrators": ("USER_UPDATE", "GROUP_UPDATE"),
    "add a signing key to an administrator": ("USER_UPDATE", "USER_APIKEY_ADD"),
    "reset an administrator's password": ("USER_UPDATE", "USER_UIPASS_RESET"),
    "add a secret key to an administrator": ("USER_UPDATE", "USER_SECRETKEY_ADD"),
    "make a user": ("USER_CREATE",),
    "make a dynamic group": ("DYNAMIC_GROUP_CREATE",),
    "widen a dynamic group": ("DYNAMIC_GROUP_UPDATE",),
    "start a machine that a dynamic group matches": ("INSTANCE_CREATE",),
    "run a command on a machine": ("INSTANCE_AGENT_COMMAND_CREATE",),
    "open a machine's console": ("INSTANCE_CONSOLE_CONNECTION_CREATE",),
    "move a compartment": ("COMPARTMENT_UPDATE",),
    "make an identity provider": ("IDENTITY_PROVIDER_CREATE",),
    "read a secret": ("SECRET_BUNDLE_READ",),
    "use a key": ("KEY_DECRYPT",),
    "read somebody's objects": ("OBJECT_READ",),
    "open a bucket by a pre-authenticated request": ("PAR_MANAGE",),
    "attach somebody's volume": ("VOLUME_ATTACHMENT_CREATE", "VOLUME_WRITE"),
    "read a volume's backup elsewhere": ("VOLUME_BACKUP_READ",),
    "make a function": ("FN_FUNCTION_CREATE",),
    "run a stack": ("ORM_JOB_CREATE",),
}


def _may(flags: tuple[str, ...], permission: str, compartments: set[str], **variables: str) -> bool:
    names = {f"target.{kind}.name": name for kind, name in variables.items()}
    return allows(statements(*flags), Asked(frozenset({GROUP}), frozenset(compartments), permission, names))


@pytest.mark.rule("A7")
@pytest.mark.parametrize("options", [PolicyOptions(), LINKS], ids=["plain", "with-links"])
def test_the_policy_names_what_every_type_needs_and_no_object(options: PolicyOptions) -> None:
    found = policy(options)
    assert all(one.startswith("Allow group fractal-cloud-agent to ") for one in found)
    for words in ("manage vcns", "manage subnets", "manage instances", "inspect compartments", "manage buckets"):
        assert any(words in one for one in found)
    assert not any(" objects " in one or "all-resources" in one or "dynamic-group" in one for one in found)


@pytest.mark.rule("A7")
def test_in_the_tenancy_nothing_is_granted_but_reading_and_what_links_name_alike() -> None:
    plain = [one for one in policy() if " in tenancy" in one]
    assert [one.split(" to ")[1].split(" in ")[0] for one in plain] == [
        *("inspect compartments", "read objectstorage-namespaces"),
    ]
    for one in set(policy(LINKS)) - set(policy(PolicyOptions(compartments=("team",)))):
        assert " to inspect " in one or one.endswith(".name=/fractal-cloud-link-*/"), one


@pytest.mark.rule("A7")
@pytest.mark.parametrize("flags", [("--compartment", "team"), FLAGS], ids=["plain", "with-links"])
@pytest.mark.parametrize("path", PATHS)
def test_no_known_way_leads_out_of_the_compartments(path: str, flags: tuple[str, ...]) -> None:
    names = {"user": "admin", "group": "Administrators", "policy": "everything"}
    assert not all(_may(flags, permission, {TENANCY}, **names) for permission in PATHS[path])


@pytest.mark.rule("A7")
def test_a_path_or_an_id_names_a_compartment_and_neither_names_the_tenancy() -> None:
    assert "in compartment team:network" in policy(PolicyOptions(compartments=("team/network",)))[-1]
    assert f"in compartment id {TEAM}" in policy(PolicyOptions(compartments=(TEAM,)))[-1]
    assert "in compartment fractal-cloud" in policy()[-1], "one of its own, where none is named"
    for wrong in (TENANCY, "tenancy", "a b", "team where any {}", "", "team\nAllow group x to manage all-resources"):
        with pytest.raises(PolicyOptionError, match="compartment"):
            policy(PolicyOptions(compartments=(wrong,)))


GROUPS, USERS, POLICIES = (f"/20160918/{name}" for name in ("groups", "users", "policies"))
MEMBERS: Final = "/20160918/userGroupMemberships"


@pytest.fixture(scope="module")
def refused(session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The agent with what links need, beside an administrator: its calls, and the ids of what is there."""
    session_sandbox.oci.reset()
    folder = tmp_path_factory.mktemp("rights")
    person = OciPerson(session_sandbox.url, folder)
    about = {"compartmentId": TENANCY, "description": "theirs"}
    ids = {
        "admin": person.call("POST", USERS, {**about, "name": "admin"})["id"],
        "admins": person.call("POST", GROUPS, {**about, "name": "Administrators"})["id"],
        "agents": person.call("POST", GROUPS, {**about, "name": GROUP})["id"],
        "own": person.call("POST", USERS, {**about, "name": "fractal-cloud-link-one"})["id"],
        "owns": person.call("POST", GROUPS, {**about, "name": "fractal-cloud-link-one"})["id"],
    }
    everything = {
        **about,
        "name": "everything",
        "statements": ["Allow group Administrators to manage users in tenancy"],
    }
    ids["rule"] = person.call("POST", POLICIES, everything)["id"]
    with printed_rights(session_sandbox):
        yield {"agent": OciPerson(session_sandbox.url, folder, "agent"), **ids}


ATTEMPTS: Final[dict[str, tuple[str, str, dict[str, Any] | None]]] = {
    "a policy of the tenancy": (
        "POST",
        POLICIES,
        {
            "compartmentId": TENANCY,
            "name": "fractal-cloud-link-x",
            "description": "x",
            "statements": [f"Allow group {GROUP} to manage all-resources in tenancy"],
        },
    ),
    "a policy about the tenancy in its own compartment": (
        "POST",
        POLICIES,
        {
            "compartmentId": TEAM,
            "name": "fractal-cloud-link-x",
            "description": "x",
            "statements": [f"Allow group {GROUP} to manage all-resources in tenancy"],
        },
    ),
    "a policy of another name": (
        "POST",
        POLICIES,
        {
            "compartmentId": TEAM,
            "name": "x",
            "description": "x",
            "statements": [f"Allow group {GROUP} to read buckets in compartment id {TEAM}"],
        },
    ),
    "change a policy": ("PUT", f"{POLICIES}/{{rule}}", {"statements": ["Allow any-user to manage users in tenancy"]}),
    "delete a policy": ("DELETE", f"{POLICIES}/{{rule}}", None),
    "itself among the administrators": (
        "POST",
        MEMBERS,
        {"userId": "{own}", "groupId": "{admins}"},
    ),
    "an administrator among its own": (
        "POST",
        MEMBERS,
        {"userId": "{admin}", "groupId": "{owns}"},
    ),
    "a link's user among the agents": (
        "POST",
        MEMBERS,
        {"userId": "{own}", "groupId": "{agents}"},
    ),
    "a key of an administrator": ("POST", f"{USERS}/{{admin}}/customerSecretKeys", {"displayName": "x"}),
    "change an administrator": ("PUT", f"{USERS}/{{admin}}", {"description": "x"}),
    "delete an administrator": ("DELETE", f"{USERS}/{{admin}}", None),
    "a user of another name": ("POST", USERS, {"compartmentId": TENANCY, "name": "x", "description": "x"}),
    "a group of another name": ("POST", GROUPS, {"compartmentId": TENANCY, "name": "x", "description": "x"}),
    "a network outside": (
        "POST",
        "/20160918/vcns",
        {"compartmentId": TENANCY, "cidrBlocks": ["10.0.0.0/16"], "displayName": "x"},
    ),
    "a bucket outside": ("POST", "/n/frsandbox/b", {"compartmentId": TENANCY, "name": "x"}),
    "list machines outside": ("GET", f"/20160918/instances?compartmentId={TENANCY}", None),
}


def _filled(value: Any, ids: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, ids) for key, one in value.items()}
    known = {f"{{{key}}}": one for key, one in ids.items() if isinstance(one, str)}
    for mark, one in known.items():
        value = value.replace(mark, one) if isinstance(value, str) else value
    return value


@pytest.mark.rule("A7")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_way_to_more_rights_is_granted(refused: dict[str, Any], attempt: str) -> None:
    method, path, body = (
        _filled(ATTEMPTS[attempt][0], refused),
        _filled(ATTEMPTS[attempt][1], refused),
        ATTEMPTS[attempt][2],
    )
    with pytest.raises(HTTPError) as refusal:
        refused["agent"].call(method, path, _filled(body, refused))
    text = refusal.value.read().decode()
    assert refusal.value.code in (400, 404), text
    assert "is not granted" in text or "another compartment than the policy's own" in text


@pytest.mark.rule("A7")
def test_in_its_own_compartment_it_could_give_itself_every_right_which_is_why_it_must_be_its_own(
    refused: dict[str, Any],
) -> None:
    """The bound of links on OCI, said in the guide: whoever writes policies in a compartment rules it, and no other."""
    statement = f"Allow group {GROUP} to manage all-resources in compartment id {TEAM}"
    about = {"compartmentId": TEAM, "name": "fractal-cloud-link-x", "description": "x", "statements": [statement]}
    made = refused["agent"].call("POST", POLICIES, about)
    refused["agent"].call("DELETE", f"{POLICIES}/{made['id']}")
    assert read_statement(statement).compartment == TEAM
