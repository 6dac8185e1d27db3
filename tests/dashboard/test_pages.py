"""What the pages say; a browser is not needed for that."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from fractal_cloud.control.dashboard import filters
from fractal_cloud.control.store import livesystems
from tests.dashboard.conftest import Visitor
from tests.world import ADMIN_TOKEN, World, subnet, vpc

NET = "/ui/livesystems/team/components/net"
EVIL = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def text_of(page: str) -> str:
    """What a person reads: tags taken out, blanks joined."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_nothing_deployed_yet_says_what_to_do(visitor: Visitor) -> None:
    page = visitor.page("/ui")
    assert "Nothing is deployed yet" in page
    assert "fractal deploy FILE" in page


def test_the_overview_names_every_livesystem_with_its_status(api: TestClient, visitor: Visitor) -> None:
    api.post("/livesystems", json={"id": "team", "description": "Ours", "components": [vpc(), subnet()]})
    text = text_of(visitor.page("/ui"))
    assert "team Ours … Instantiating 2 Instantiating" in text
    assert "Deployed team by admin generation 1" in text


@pytest.mark.parametrize("path", ["/ui/nowhere", "/ui/livesystems/none", "/ui/livesystems/NO", f"{NET}/nothing"])
def test_what_is_not_there_gets_a_page_that_says_so(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "there is no" in text_of(answer.text)
    assert "GET /" not in answer.text


def test_an_address_that_makes_no_sense_is_no_fault_of_ours(visitor: Visitor) -> None:
    answer = visitor.get(f"/ui?search={'x' * 201}")
    assert answer.status_code == 422
    assert "go back, and choose it again" in answer.text


def test_a_page_that_fails_is_a_page_without_the_cause(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret inner life")

    monkeypatch.setattr(livesystems, "list_page", fail)
    answer = visitor.get("/ui")
    assert answer.status_code == 500
    assert "its log says why" in answer.text
    assert "inner life" not in answer.text


def test_every_answer_forbids_what_no_page_needs(visitor: Visitor) -> None:
    for path in ("/ui", "/ui/login", "/ui/nowhere", "/ui/static/live.js", "/ui/static/style.css"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_hold_no_inline_script_no_foreign_host_and_no_token(api: TestClient, visitor: Visitor) -> None:
    api.post("/livesystems", json={"id": "team", "components": [vpc(), subnet()]})
    for path in ("/ui", "/ui/livesystems/team", NET, f"{NET}/break", "/ui/livesystems/team/delete", "/ui/login"):
        page = visitor.page(path)
        assert not re.search(r"<script(?! src=\"/ui/static/)|<style|\sstyle=|\son\w+=|https?://", page)
        assert ADMIN_TOKEN not in page
        assert len(page) < 50_000


def test_static_files_are_asked_for_again_only_when_they_changed(app: FastAPI) -> None:
    client = TestClient(app)
    first = client.get("/ui/static/style.css")
    assert first.headers["content-type"].startswith("text/css")
    again = client.get("/ui/static/style.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for elsewhere in ("../routes.py", "%2e%2e%2froutes.py", "none.css"):
        assert client.get(f"/ui/static/{elsewhere}", follow_redirects=False).status_code in (303, 404)


def test_what_people_wrote_is_shown_as_text(api: TestClient, visitor: Visitor) -> None:
    evil = vpc(name="x'\"<b>bold</b>")
    api.post("/livesystems", json={"id": "team", "description": EVIL, "components": [evil]})
    for path in ("/ui", "/ui/livesystems/team", NET, f"{NET}/break"):
        page = visitor.page(path)
        assert "<script>window" not in page
        assert "<img" not in page
        assert "<b>bold" not in page
    assert "&lt;script&gt;window.hacked" in visitor.page("/ui/livesystems/team")


def test_a_long_list_comes_in_pages_and_by_status(api: TestClient, visitor: Visitor) -> None:
    many = [vpc(f"net-{index:03}") for index in range(60)]
    api.post("/livesystems", json={"id": "team", "components": many})
    page = visitor.page("/ui/livesystems/team")
    assert "net-049" in page
    assert "net-050" not in page
    assert "What needs what" not in page
    assert len(page) < 50_000
    assert "1–50 of 60" in page
    following = visitor.page("/ui/livesystems/team?page=2")
    assert "net-059" in following
    assert "net-049</a>" not in following
    assert "51–60 of 60" in following
    assert "net-059" in visitor.page("/ui/livesystems/team?show=Instantiating&page=2")
    assert "No component is like that" in visitor.page("/ui/livesystems/team?show=Failed")
    assert "No component is like that" in visitor.page("/ui/livesystems/team?show=drift")


def broken(world: World) -> Visitor:
    """A VPC that somebody took over on the cloud and changed."""
    world.deploy("team", vpc(enableDnsHostnames=False), subnet())
    world.settle()
    vpc_id = world.output("team", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    world.settle()
    return Visitor(world.app)


@pytest.mark.rule("G12", "G13", "C7")
def test_a_component_taken_over_on_the_cloud_shows_everything(world: World) -> None:
    visitor = broken(world)
    vpc_id = world.output("team", "net", "vpcId")
    page, text = visitor.page(NET), text_of(visitor.page(NET))
    assert f"aws ec2 delete-tags --region=eu-west-1 --resources={vpc_id} --tags Key=managed-by" in page
    assert f"aws ec2 create-tags --region=eu-west-1 --resources={vpc_id} --tags Key=managed-by,Value=" in page
    assert "create create, generation 1 done" in text
    assert "cidrBlock 10.0.0.0/16 10.0.0.0/16" in text
    whole = "/ui/livesystems/team"
    for path in (NET, f"{NET}/readopt", whole, f"{whole}?show=drift", f"{whole}?show=ManualOverride"):
        assert "enableDnsHostnames differs false true" in text_of(visitor.page(path))
    for path in (NET, whole):
        assert "Who took it over is not known: it was found so in the cloud." in text_of(visitor.page(path))


@pytest.mark.rule("G3", "C4")
def test_a_rule_that_somebody_added_is_one_difference_in_pages_messages_and_events(world: World) -> None:
    web = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "0.0.0.0/0"}
    group = {
        "id": "gate",
        "type": "NetworkAndCompute.IaaS.AwsSecurityGroup",
        "provider": "aws",
        "parameters": {"vpc": "net", "description": "gate", "ingress": [web]},
    }
    world.deploy("team", vpc(), group)
    world.settle()
    group_id = world.output("team", "gate", "groupId")
    world.person.break_glass(group_id)
    world.person.ec2.authorize_security_group_ingress(
        GroupId=group_id, IpProtocol="tcp", FromPort=22, ToPort=22, CidrIp="10.0.0.0/8"
    )
    world.settle()
    visitor = Visitor(world.app)
    gate = "/ui/livesystems/team/components/gate"
    for path in (gate, f"{gate}/readopt", "/ui/livesystems/team?show=drift"):
        assert "ingress differs not declared + tcp 22 from 10.0.0.0/8" in text_of(visitor.page(path))
    for path in (gate, "/ui"):
        assert "DriftFound" in (text := text_of(visitor.page(path)))
        assert "ingress: + tcp 22 from 10.0.0.0/8" in text
    found = next(one for one in world.events("team") if one["kind"] == "DriftFound")
    assert found["message"] == "ingress: + tcp 22 from 10.0.0.0/8"
    assert found["after"]["ingress"]["declared"] == [web], "before and after hold the values themselves"


@pytest.mark.rule("S22", "G2")
def test_a_page_says_applied_only_of_what_was(world: World) -> None:
    world.deploy("team", vpc())
    visitor = Visitor(world.app)
    assert "Generation 1, not applied yet Last change" in text_of(visitor.page(NET))
    world.settle()
    assert "Generation 1, applied" in text_of(visitor.page(NET))
    world.person.break_glass(world.output("team", "net", "vpcId"))
    world.settle()
    world.deploy("team", vpc(enableDnsHostnames=True))
    assert "Generation 2, not applied yet (observed: 1)" in text_of(visitor.page(NET))
    world.settle()
    assert "Generation 2, observed" in text_of(visitor.page(NET)), "in override a generation is read and not applied"


@pytest.mark.rule("G13")
def test_breaking_the_glass_from_the_page_shows_who_why_and_until_when(world: World) -> None:
    world.deploy("team", vpc())
    world.settle()
    visitor = Visitor(world.app)
    asked = visitor.send(f"{NET}/break", reason=f"slow {EVIL}", until="2099-01-31T18:00")
    assert asked.headers["location"] == NET
    assert "was asked for by admin" in text_of(visitor.page(NET))
    assert "the agent has not answered it yet" in text_of(visitor.page(NET))
    world.settle()
    page = visitor.page(NET)
    assert "In manual override" in page
    assert "by admin" in text_of(page)
    assert "2099-01-31 18:00:00 UTC" in page
    assert "&lt;script&gt;window.hacked" in page
    assert "<script>window" not in page
    assert "overdue" not in page
    assert "managed-by" not in world.person.tags(world.output("team", "net", "vpcId"))
    world.assert_safe()


@pytest.mark.rule("G13", "G5")
def test_a_date_that_has_passed_is_marked_and_nothing_more(world: World) -> None:
    world.deploy("team", vpc())
    world.settle()
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    assert world.glass("team", "net", "break", until=soon.isoformat()).status_code == 202
    world.settle()
    visitor = Visitor(world.app)
    while datetime.now(UTC) <= soon:
        world.cycle()
    for path in (NET, "/ui/livesystems/team"):
        assert '<strong class="mark">overdue</strong>' in visitor.page(path)
    assert world.status("team", "net") == "ManualOverride"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"until": "2001-01-31T18:00"}, "until lies in the past"),
        ({"until": "tomorrow"}, "give a date and a time"),
        ({"reason": "two\nlines"}, "reason: String should match"),
    ],
)
def test_what_cannot_be_taken_is_said_on_the_page(
    api: TestClient, visitor: Visitor, fields: dict[str, str], said: str
) -> None:
    api.post("/livesystems", json={"id": "team", "components": [vpc()]})
    answer = visitor.send(f"{NET}/break", None, **fields)
    assert answer.status_code == 422
    assert said in text_of(answer.text)


@pytest.mark.rule("G10")
def test_a_force_push_from_the_page_makes_it_as_declared(world: World) -> None:
    visitor = broken(world)
    assert visitor.send(f"{NET}/force-push").headers["location"] == NET
    world.settle()
    assert world.status("team", "net") == "Active"
    assert world.drift("team", "net") is None


@pytest.mark.rule("G10")
def test_a_force_push_of_all_pushes_those_in_override(world: World) -> None:
    visitor = broken(world)
    assert "1 component is" in visitor.page("/ui/livesystems/team/force-push")
    assert visitor.send("/ui/livesystems/team/force-push").status_code == 303
    world.settle()
    assert world.status("team", "net") == "Active"
    assert "nothing is in ManualOverride" in text_of(visitor.send("/ui/livesystems/team/force-push").text)


@pytest.mark.rule("G10")
def test_what_is_refused_at_once_says_why(world: World) -> None:
    world.deploy("owner", vpc())
    world.settle()
    world.deploy("team", vpc())
    world.settle()
    visitor = Visitor(world.app)
    assert "'owner' owns it: only its owner can be pushed" in text_of(visitor.page(NET).replace("&#39;", "'"))
    answer = visitor.send(f"{NET}/force-push")
    assert answer.status_code == 409
    assert "owns it" in answer.text


@pytest.mark.rule("O13")
def test_the_component_page_shows_who_owns_and_who_imports(world: World) -> None:
    world.deploy("team", vpc())
    world.settle()
    world.deploy("guest", vpc("shared", name="net"))
    world.settle()
    visitor = Visitor(world.app)
    for path in (NET, "/ui/livesystems/guest/components/shared"):
        assert "Owner: team . Imported by guest ." in text_of(visitor.page(path))


@pytest.mark.rule("O7", "O14")
def test_a_delete_is_previewed_with_its_warning_and_needs_the_name(world: World) -> None:
    world.deploy("team", vpc(), subnet())
    world.settle()
    world.deploy("guest", vpc("shared", name="net"))
    world.settle()
    visitor = Visitor(world.app)
    text = text_of(visitor.page("/ui/livesystems/team/delete"))
    assert "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem." in text
    assert "Deleted in the cloud: 2" in text
    assert "imported by guest" in text
    refused = visitor.send("/ui/livesystems/team/delete", name="tea")
    assert refused.status_code == 422
    assert "Nothing was deleted" in refused.text
    assert visitor.send("/ui/livesystems/team/delete", name="team").status_code == 303
    assert "It is being deleted" in visitor.page("/ui/livesystems/team")


def test_values_are_shown_as_they_are() -> None:
    assert [filters.plain(value) for value in ("a", "", None, True, 3, ["é"])] == [
        *("a", '""', "null", "true", "3", '["é"]'),
    ]


@pytest.mark.rule("C8")
def test_a_livesystem_says_why_its_last_deploy_failed(world: World) -> None:
    world.cloud.knobs.fail(
        times=None, operation="DescribeVpcs", actor="agent", code="UnauthorizedOperation", status=403
    )
    world.deploy("team", vpc(), subnet())
    world.cycle(2)
    text = text_of(Visitor(world.app).page("/ui/livesystems/team"))
    assert "The last deploy has failed." in text
    assert "net (Instantiating): cannot be read, so nothing is decided:" in text
