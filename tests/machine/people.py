"""The people of the random histories: they act, and remember which foreign tags must still be there.

What they are refused (a VPC that is not empty, a LiveSystem that is just being deleted) they leave.
"""

from __future__ import annotations

import threading
from typing import Any

from botocore.exceptions import ClientError

from fractal_sandbox.aws.resources import Ref, find, live, tags_of
from tests.machine.actions import NET, Action
from tests.world import REGION, World

Identity = tuple[str, str, str, str]
KINDS = ("vpc", "subnet", "security-group")
MAKING = {"CreateVpc": "vpc-", "CreateSubnet": "subnet-", "CreateSecurityGroup": "sg-"}


def resources() -> list[Ref]:
    """Every VPC, subnet and security group but those that AWS makes by itself, oldest first."""
    found: list[Ref] = []
    for kind in KINDS:
        found.extend(ref for ref in live(kind, REGION) if not _is_made_by_aws(ref))
    return found


def _is_made_by_aws(ref: Ref) -> bool:
    thing = find(ref)
    if thing is None:
        return True
    if ref.kind == "vpc":
        return bool(thing.is_default in (True, "true"))
    if ref.kind == "security-group" and thing.name == "default":
        return True
    return _is_made_by_aws(Ref("vpc", thing.vpc_id, ref.region))


def name_of(ref: Ref) -> tuple[str, str, str]:
    """Kind, scope and name: of what the agent made there is never more than one."""
    thing = find(ref)
    assert thing is not None
    if ref.kind == "security-group":
        return ref.kind, str(thing.vpc_id), str(thing.name)
    scope = str(thing.vpc_id) if ref.kind == "subnet" else ""
    return ref.kind, scope, (tags_of(ref) or {}).get("Name", "")


class People:
    """Everybody but the agent."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self.foreign: dict[str, dict[str, str]] = {}
        self.renamed: dict[str, str] = {}
        self.reowned: set[str] = set()
        self.parted: set[str] = set()
        self.occupants: list[str] = []

    def do(self, action: Action) -> None:
        """Do one action; refusals are no fault."""
        with self._lock:
            if action.body:
                getattr(self, f"_{action.word}")(**action.body)
                return
            existing = resources()
            if existing:
                self._on_resource(action.word, existing[action.number % len(existing)], action.number)

    def do_to(self, action: Action, resource_id: str) -> None:
        """Do one action to one resource, if it is still there."""
        with self._lock:
            for ref in resources():
                if ref.id == resource_id:
                    self._on_resource(action.word, ref, action.number)

    def _on_resource(self, word: str, ref: Ref, number: int) -> None:
        try:
            getattr(self, f"_{word}")(ref, number)
        except ClientError as refusal:
            if not refusal.response["Error"]["Code"].startswith(("DependencyViolation", "Invalid")):
                raise

    # --- with a console

    def _tag_foreign(self, ref: Ref, number: int) -> None:
        self._world.person.tag(ref.id, team=f"team-{number}")
        self.foreign.setdefault(ref.id, {})["team"] = f"team-{number}"

    def _untag(self, ref: Ref, _: int) -> None:
        self._world.person.untag(ref.id, "managed-by")

    def _wipe(self, ref: Ref, _: int) -> None:
        keys = list(tags_of(ref) or {})
        self.foreign.pop(ref.id, None)
        self.reowned.add(ref.id)
        self._note_name(ref)
        if keys:
            self._world.person.untag(ref.id, *keys)

    def _give_to_terraform(self, ref: Ref, _: int) -> None:
        self._world.person.tag(ref.id, managed_by="terraform")

    def _hand_back(self, ref: Ref, _: int) -> None:
        self._world.person.hand_back(ref.id)

    def _ask_reconcile(self, ref: Ref, _: int) -> None:
        self._world.person.tag(ref.id, fractal_cloud="reconcile")

    def _put_managed_by(self, ref: Ref, _: int) -> None:
        self._world.person.tag(ref.id, managed_by="fractal-cloud")

    def _own_a(self, ref: Ref, _: int) -> None:
        self.reowned.add(ref.id)
        self._world.person.tag(ref.id, fractal_cloud_owner="ls-a")

    def _own_b(self, ref: Ref, _: int) -> None:
        self.reowned.add(ref.id)
        self._world.person.tag(ref.id, fractal_cloud_owner="ls-b")

    def _disown(self, ref: Ref, _: int) -> None:
        self.reowned.add(ref.id)
        self._world.person.untag(ref.id, "fractal-cloud-owner")

    def _rename(self, ref: Ref, number: int) -> None:
        if ref.kind != "security-group":
            self._note_name(ref)
            self._world.person.tag(ref.id, Name=f"renamed-{number}")

    def _note_name(self, ref: Ref) -> None:
        self.renamed.setdefault(ref.id, name_of(ref)[2])

    def _name_back(self, _: Ref, number: int) -> None:
        """Give the first name back to one of those that lost it; their number is not that of all resources."""
        lost = [ref for ref in resources() if ref.id in self.renamed and name_of(ref)[2] != self.renamed[ref.id]]
        if lost:
            ref = lost[number % len(lost)]
            self._world.person.tag(ref.id, Name=self.renamed[ref.id])

    def _make_twin(self, _: Ref, __: int) -> None:
        tags = [{"Key": "Name", "Value": NET}]
        self._world.person.ec2.create_vpc(
            CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags}]
        )

    def _remove_twins(self, _: Ref, __: int) -> None:
        """Take away the VPCs of the name but the first; those that are not empty stay."""
        for ref in [ref for ref in resources() if name_of(ref) == ("vpc", "", NET)][1:]:
            self._world.person.ec2.delete_vpc(VpcId=ref.id)

    def _edit(self, ref: Ref, number: int) -> None:
        ec2 = self._world.person.ec2
        if ref.kind == "vpc":
            now = ec2.describe_vpc_attribute(VpcId=ref.id, Attribute="enableDnsHostnames")["EnableDnsHostnames"]
            ec2.modify_vpc_attribute(VpcId=ref.id, EnableDnsHostnames={"Value": not now["Value"]})
        elif ref.kind == "subnet":
            now = ec2.describe_subnets(SubnetIds=[ref.id])["Subnets"][0]
            ec2.modify_subnet_attribute(SubnetId=ref.id, MapPublicIpOnLaunch={"Value": not now["MapPublicIpOnLaunch"]})
        else:
            port = 8000 + number
            rule = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
            ec2.authorize_security_group_ingress(GroupId=ref.id, IpPermissions=[rule])

    def _occupy(self, ref: Ref, _: int) -> None:
        """Put something into a subnet, so that it cannot be deleted until that is gone."""
        if ref.kind == "subnet":
            made = self._world.person.ec2.create_network_interface(SubnetId=ref.id)
            self.occupants.append(made["NetworkInterface"]["NetworkInterfaceId"])

    def _vacate(self, _: Ref, __: int) -> None:
        """Take away what people put into subnets."""
        while self.occupants:
            self._world.person.ec2.delete_network_interface(NetworkInterfaceId=self.occupants.pop())

    def _destroy(self, ref: Ref, _: int) -> None:
        ec2 = self._world.person.ec2
        if ref.kind == "vpc":
            ec2.delete_vpc(VpcId=ref.id)
        elif ref.kind == "subnet":
            ec2.delete_subnet(SubnetId=ref.id)
        else:
            ec2.delete_security_group(GroupId=ref.id)

    # --- through the product

    def _deploy(self, **declaration: Any) -> None:
        named = {component["parameters"].get("name", component["id"]) for component in declaration["components"]}
        self._part(declaration["id"], named)
        self._call("PUT", f"/livesystems/{declaration['id']}", declaration)

    def _deploy_elsewhere(self, **declaration: Any) -> None:
        """Say another environment of what stands: that is refused, and changes nothing (C10)."""
        path = f"/livesystems/{declaration['id']}"
        if self._world.api.get(path).status_code == 200:
            response = self._world.api.put(path, json={**declaration, "environment": "elsewhere"})
            assert response.status_code in (409, 422), response.text

    def _delete(self, id: str) -> None:
        self._part(id, set())
        self._call("DELETE", f"/livesystems/{id}")

    def _part(self, live_system: str, named: set[str]) -> None:
        """A LiveSystem no longer declares some of what it owns: what is left of that stands in nobody's way (O10)."""
        made = self._made()
        self.parted |= {one for one, (_, owner, _, name) in made.items() if owner == live_system and name not in named}

    def _force_push(self, about: str) -> None:
        live_system, component = about.split("/")
        self._call("POST", f"/livesystems/{live_system}/components/{component}/force-push")

    def _break_glass(self, about: str) -> None:
        live_system, component = about.split("/")
        body = {"action": "break", "reason": "a test"}
        self._call("POST", f"/livesystems/{live_system}/components/{component}/glass", body)

    def _call(self, method: str, path: str, body: Any = None) -> None:
        response = self._world.api.request(method, path, json=body)
        assert response.status_code in (200, 202, 404, 409), response.text

    # --- what must hold

    def assert_foreign_tags_survive(self) -> None:
        """SAFETY: nobody else's tags are touched (T1)."""
        for ref in resources():
            expected = self.foreign.get(ref.id, {})
            found = tags_of(ref) or {}
            lost = {key: value for key, value in expected.items() if found.get(key) != value}
            assert not lost, f"{ref} lost {lost}: it has {found}"

    def _made(self) -> dict[str, Identity]:
        """All that the agent ever made, by id: its kind, for whom, where, and the name it was given."""
        made: dict[str, Identity] = {}
        for operation, prefix in MAKING.items():
            for recorded in self._world.sandbox.aws.calls.find(operation=operation, actor="agent"):
                sent = recorded.call.parameters
                tags = {tag["Key"]: tag["Value"] for one in sent["TagSpecifications"] for tag in one["Tags"]}
                name = sent.get("GroupName") or tags["Name"]
                identity = (prefix, recorded.origin.live_system, str(sent.get("VpcId", "")), str(name))
                found = (one for one in recorded.resource_ids if one.startswith(prefix))
                made.update({one: identity for one in found if recorded.effect})
        return made

    def assert_nothing_exists_twice(self) -> None:
        """SAFETY: of what the agent made there is one of a name (S17), also beside what people renamed (S15)."""
        made = self._made()
        existing = [ref for ref in resources() if ref.id in made]
        names = [(name_of(ref), ref.id) for ref in existing if ref.id not in self.renamed]
        assert len({name for name, _ in names}) == len(names), f"made twice by the agent: {sorted(names)}"
        owned = [ref for ref in existing if ref.id not in self.reowned | self.parted]
        given = [(made[ref.id], ref.id) for ref in owned]
        assert len({identity for identity, _ in given}) == len(given), f"made beside what it owns: {sorted(given)}"
