"""What the agent may do in a project, as `fractal agent policy --provider gcp` prints it, and every published way from
there to more rights (A7).

All other tests of this provider run under the printed rights too: see ``rights.py``.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any, Final
from urllib.error import HTTPError

import pytest
import yaml

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.gcp.policy import policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.gcp import OTHER_PROJECT, PROJECT, TOKENS
from fractal_sandbox.gcp.permissions import Need, default_account
from tests.offers.gcp.escalations import ACT_AS, PATHS
from tests.offers.gcp.examples import ACCOUNT
from tests.offers.gcp.person import REGION, ZONE, GcpPerson
from tests.offers.gcp.rights import FLAGS, granted, printed_rights

VICTIM: Final = f"admin@{PROJECT}.iam.gserviceaccount.com"
HERE, LINKS_HOME = f"projects/{PROJECT}", f"projects/{OTHER_PROJECT}"
LINKS: Final = PolicyOptions(with_links=True, buckets=("shop-*",), link_project=OTHER_PROJECT)


def _account(email: str) -> str:
    return f"projects/-/serviceAccounts/{email}"


# --- what is printed


@pytest.mark.rule("S21", "A7")
def test_the_role_holds_no_more_than_verbs_that_are_called() -> None:
    rights = yaml.safe_load(policy())["includedPermissions"]
    assert rights == sorted(set(rights))
    assert all(re.fullmatch(r"[a-z]+\.[A-Za-z]+\.[A-Za-z]+", right) for right in rights)
    assert [right for right in rights if right.endswith(("IamPolicy", "getAccessToken", "actAs"))] == []
    assert [right for right in rights if right.startswith(("iam.", "storage.hmacKeys", "storage.objects"))] == []
    unlabelled = [right for right in rights if re.match(r"compute\.(networks|subnetworks|firewalls)\.", right)]
    assert {right.rpartition(".")[2] for right in unlabelled} == {
        *("create", "get", "list", "updatePolicy", "use", "useExternalIp")
    }


@pytest.mark.rule("A7")
def test_what_links_need_is_printed_on_request_only_and_asks_for_its_bounds() -> None:
    with pytest.raises(PolicyOptionError, match="a project of its own"):
        policy(PolicyOptions(with_links=True))
    with pytest.raises(PolicyOptionError, match="a project of its own"):
        policy(PolicyOptions(with_links=True, buckets=("shop-*",)))
    with pytest.raises(PolicyOptionError, match="--bucket is about links"):
        policy(PolicyOptions(buckets=("shop-*",)))
    assert len(list(yaml.safe_load_all(policy(LINKS)))) == 4


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    "account",
    [
        default_account(PROJECT),
        f"{PROJECT}@appspot.gserviceaccount.com",
        "100000000001@cloudservices.gserviceaccount.com",
    ],
)
def test_a_default_service_account_is_refused(account: str) -> None:
    with pytest.raises(PolicyOptionError, match="may change the whole project"):
        policy(PolicyOptions(service_accounts=(ACCOUNT, account)))


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    ("options", "meant"),
    [
        (PolicyOptions(service_accounts=("*",)), "email of a service account"),
        (PolicyOptions(service_accounts=("a b@c.iam.gserviceaccount.com",)), "email of a service account"),
        (PolicyOptions(service_accounts=(f"{ACCOUNT}\nx",)), "email of a service account"),
        (PolicyOptions(service_accounts=("$(id)@x.iam.gserviceaccount.com",)), "email of a service account"),
        (PolicyOptions(with_links=True, buckets=("*",), link_project=OTHER_PROJECT), "name of a bucket"),
        (PolicyOptions(with_links=True, buckets=('a" || true',), link_project=OTHER_PROJECT), "name of a bucket"),
        (PolicyOptions(with_links=True, buckets=("shop-*",), link_project="$(id)"), "id of a project"),
    ],
)
def test_what_is_not_meant_by_an_option_is_refused(options: PolicyOptions, meant: str) -> None:
    with pytest.raises(PolicyOptionError, match=meant):
        policy(options)


def test_more_buckets_than_fit_into_a_condition_are_refused() -> None:
    with pytest.raises(PolicyOptionError, match="at most 8 buckets"):
        policy(PolicyOptions(with_links=True, buckets=tuple(f"shop-{n}" for n in range(9)), link_project=OTHER_PROJECT))


# --- what the published ways take, and what is granted of it


@pytest.mark.rule("A7")
@pytest.mark.parametrize("flags", [(), FLAGS], ids=["plain", "with-links"])
@pytest.mark.parametrize("path", PATHS)
def test_no_published_way_leads_to_an_account_that_was_not_named(path: str, flags: tuple[str, ...]) -> None:
    iam = granted(*flags)
    has = {one for one in iam.on(HERE) | iam.on(_account(VICTIM)) if iam.allows(Need(one, HERE))}
    assert not PATHS[path] <= has


@pytest.mark.rule("A7")
def test_a_named_account_is_acted_as_and_no_other_in_no_project() -> None:
    iam = granted(*FLAGS)
    assert iam.allows(Need(ACT_AS, _account(ACCOUNT)))
    for email in (VICTIM, default_account(PROJECT), f"admin@{OTHER_PROJECT}.iam.gserviceaccount.com"):
        assert not iam.allows(Need(ACT_AS, _account(email)))


@pytest.mark.rule("A7")
def test_in_the_project_of_links_only_keys_of_accounts_are_within_reach() -> None:
    """The one way that stays, and what bounds it: nothing but links has accounts in that project."""
    iam = granted(*FLAGS)
    home = f"admin@{OTHER_PROJECT}.iam.gserviceaccount.com"
    has = iam.on(LINKS_HOME) | iam.on(_account(home))
    assert [path for path, needed in PATHS.items() if needed <= has] == ["Rhino: CreateServiceAccountHMACKey"]


@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    ("bucket", "roles", "is_allowed"),
    [
        ("shop-files", ("roles/storage.objectUser",), True),
        ("shop-files", ("roles/storage.objectUser", "roles/storage.objectViewer"), True),
        ("shop-files", ("roles/storage.admin",), False),
        ("shop-files", ("roles/storage.objectUser", "roles/owner"), False),
        ("terraform-state", ("roles/storage.objectUser",), False),
        ("my-shop-files", ("roles/storage.objectUser",), False),
    ],
)
def test_links_open_the_named_buckets_to_readers_and_writers_of_objects_and_nothing_else(
    bucket: str, roles: tuple[str, ...], is_allowed: bool
) -> None:
    need = Need("storage.buckets.setIamPolicy", f"projects/_/buckets/{bucket}", roles)
    assert granted(*FLAGS).allows(need) is is_allowed
    assert not granted().allows(need)


# --- what is tried, with the agent's own credentials


class AsTheAgent:
    """Requests with the agent's token, straight to Google."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._url = f"{sandbox.url}/gcp"

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """The status and the text of the answer."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKENS['agent']}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refusal:
            return refusal.code, refusal.read().decode()


MACHINES: Final = f"/compute/v1/{HERE}/zones/{ZONE}/instances"
SERVICES: Final = f"/v2/{HERE}/locations/{REGION}/services"
CLUSTERS: Final = f"/v1/{HERE}/locations/{REGION}/clusters"


def _machine(name: str, *accounts: str) -> dict[str, Any]:
    made_of = {"sourceImage": "projects/debian-cloud/global/images/debian-12"}
    return {
        "name": name,
        "machineType": f"zones/{ZONE}/machineTypes/e2-medium",
        "disks": [{"boot": True, "initializeParams": made_of}],
        "networkInterfaces": [{"network": f"{HERE}/global/networks/default"}],
        "serviceAccounts": [{"email": email, "scopes": []} for email in accounts],
    }


ATTEMPTS: Final[dict[str, tuple[str, str, Any]]] = {
    "a machine that acts as an admin": ("POST", MACHINES, _machine("evil", VICTIM)),
    "a machine that acts as the default account": ("POST", MACHINES, _machine("evil", default_account(PROJECT))),
    "have an admin's machine run something": (
        "POST",
        f"{MACHINES}/admins/setMetadata",
        {"items": [{"key": "startup-script", "value": "id"}]},
    ),
    "give a machine an admin's account": ("POST", f"{MACHINES}/admins/setServiceAccount", {"email": VICTIM}),
    "a service that acts as an admin": (
        "POST",
        f"{SERVICES}?serviceId=evil",
        {"template": {"serviceAccount": VICTIM, "containers": [{"image": "x"}]}},
    ),
    "a service that acts as the default account": (
        "POST",
        f"{SERVICES}?serviceId=evil",
        {"template": {"containers": [{"image": "x"}]}},
    ),
    "a cluster whose nodes act as the default account": ("POST", CLUSTERS, {"cluster": {"name": "evil"}}),
    "a cluster whose nodes act as an admin": (
        "POST",
        CLUSTERS,
        {"cluster": {"name": "evil", "nodePools": [{"name": "p", "config": {"serviceAccount": VICTIM}}]}},
    ),
    "a key of an admin": ("POST", f"/storage/v1/{HERE}/hmacKeys?serviceAccountEmail={VICTIM}", None),
    "an account": ("POST", f"/v1/{HERE}/serviceAccounts", {"accountId": "evil-one", "serviceAccount": {}}),
    "delete an admin": ("DELETE", f"/v1/{HERE}/serviceAccounts/{VICTIM}", None),
    "open somebody's bucket": (
        "PUT",
        "/storage/v1/b/terraform-state/iam",
        {"bindings": [{"role": "roles/storage.objectUser", "members": ["allUsers"]}]},
    ),
    "own a bucket that links may open": (
        "PUT",
        "/storage/v1/b/shop-files-1/iam",
        {"bindings": [{"role": "roles/storage.admin", "members": ["allUsers"]}]},
    ),
    "open somebody's bucket to the public": (
        "PATCH",
        "/storage/v1/b/terraform-state",
        {"iamConfiguration": {"publicAccessPrevention": "inherited"}},
    ),
    "list somebody's objects": ("GET", "/storage/v1/b/terraform-state/o", None),
}


def _furnish(sandbox: Sandbox) -> None:
    """An admin's machine, and two buckets."""
    sandbox.gcp.reset()
    person = GcpPerson(sandbox.url)
    person.call("POST", MACHINES, _machine("admins", VICTIM))
    for name in ("terraform-state", "shop-files-1"):
        person.call("POST", "/storage/v1/b", {"name": name, "location": "EU"}, project=PROJECT)


@pytest.fixture(scope="module")
def refused(session_sandbox: Sandbox) -> Iterator[AsTheAgent]:
    """The agent with what links need, beside what is not its own."""
    _furnish(session_sandbox)
    with printed_rights(session_sandbox):
        yield AsTheAgent(session_sandbox)


@pytest.mark.rule("A7")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_way_to_more_rights_is_granted(refused: AsTheAgent, attempt: str) -> None:
    status, text = refused.ask(*ATTEMPTS[attempt])
    assert status == 403, text
    assert "PERMISSION_DENIED" in text


@pytest.mark.rule("A7")
def test_a_call_whose_right_nobody_knows_is_refused(refused: AsTheAgent) -> None:
    status, text = refused.ask("GET", f"/v1/{HERE}/locations/{REGION}/operations/some")
    assert status == 403, text
    assert "unknown permission" in text


def test_the_same_calls_succeed_where_nothing_restricts_them(session_sandbox: Sandbox) -> None:
    """An attempt that fails for another reason proves nothing about the rights."""
    _furnish(session_sandbox)
    with session_sandbox.gcp.restrict_agent(lambda *_: ""):
        for name, attempt in ATTEMPTS.items():
            status, text = AsTheAgent(session_sandbox).ask(*attempt)
            assert status != 403, (name, text)
