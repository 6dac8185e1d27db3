"""The knobs that change an answer, and those that keep it back: on every cloud, until they are removed."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call, Origin
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.fault_settings import Settings
from fractal_sandbox.hetzner import PATH as HETZNER
from fractal_sandbox.hetzner import PERSON_TOKEN
from fractal_sandbox.http_server import ConnectionCut
from fractal_sandbox.kubernetes import CLUSTERS
from tests.sandbox.conftest import Tools
from tests.sandbox.making import make_vpc, vpc_ids

PAGE = "<html><body>Please log in to the guest network</body></html>"
READS = {
    "hetzner": f"{HETZNER}/v1/servers",
    "kubernetes": f"{CLUSTERS['sandbox']}/api/v1/namespaces/default/configmaps",
}


def call(operation: str = "list", *, is_write: bool = False) -> Call:
    origin = Origin()
    return Call("agent", "key", "service", operation, "", {}, is_write, origin, "")


def waits(knobs: Knobs, one: Call) -> tuple[threading.Thread, list[str]]:
    """A call in a thread of its own, and what becomes of it."""
    ends: list[str] = []

    def go() -> None:
        try:
            knobs.wait(one)
            ends.append("carried out")
        except ConnectionCut:
            ends.append("cut")

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    return thread, ends


def test_a_call_hangs_until_its_rule_is_removed_and_is_carried_out_then() -> None:
    knobs = Knobs()
    rule = knobs.hang(operation="create")
    knobs.wait(call("list"))
    thread, ends = waits(knobs, call("create"))
    knobs.wait_until_hanging()
    assert ends == []
    knobs.remove(rule)
    thread.join(60)
    assert ends == ["carried out"]


def test_a_reset_cuts_off_what_hangs() -> None:
    knobs = Knobs()
    knobs.hang()
    thread, ends = waits(knobs, call())
    knobs.wait_until_hanging()
    knobs.reset()
    thread.join(60)
    assert ends == ["cut"]


def test_a_call_that_hangs_after_its_effect_is_cut_off_in_the_end() -> None:
    knobs = Knobs()
    rule = knobs.hang(when="after", times=1)
    interference = knobs.after(call())
    assert interference is not None
    assert interference.cut
    knobs.remove(rule)
    with pytest.raises(ConnectionCut):
        knobs.hold(interference)
    assert knobs.after(call()) is None


def test_answers_and_hangs_travel_over_the_control_surface() -> None:
    knobs = Knobs()
    knobs.answer(PAGE, content_type="text/html", operation="List*", nth=2, times=1)
    knobs.hang(when="after", service="ec2")
    document = knobs.settings.model_dump_json(by_alias=True)
    assert Settings.model_validate_json(document) == knobs.settings
    answers = [knobs.before(call("ListThings")) for _ in range(3)]
    assert [one is None for one in answers] == [True, False, True]


def test_aws_answers_with_what_a_knob_says(sandbox: Sandbox, person: Tools) -> None:
    rule = sandbox.aws.knobs.answer(PAGE, content_type="text/html", operation="DescribeVpcs")
    assert "Vpcs" not in person.ec2.describe_vpcs(), "the SDK takes a page of HTML for an answer without a list"
    sandbox.aws.knobs.remove(rule)
    assert "Vpcs" in person.ec2.describe_vpcs()


def test_aws_changes_its_own_answer_on_the_way(sandbox: Sandbox, person: Tools) -> None:
    before = [make_vpc(person)]
    rewritten = sandbox.aws.knobs.rewrite(
        lambda body: body.replace(before[0].encode(), b"vpc-other"), operation="DescribeVpcs", times=1
    )
    assert vpc_ids(person) == ["vpc-other"]
    assert vpc_ids(person) == before
    sandbox.aws.knobs.remove(rewritten)


@pytest.mark.parametrize("status", [200, 203])
def test_every_cloud_answers_with_what_a_knob_says(sandbox: Sandbox, status: int) -> None:
    for name, path in READS.items():
        cloud: Any = getattr(sandbox, name)
        cloud.knobs.answer(PAGE, content_type="text/html", status=status)
        answer = httpx2.get(f"{sandbox.url}{path}", headers={"authorization": f"Bearer {PERSON_TOKEN}"})
        assert (answer.status_code, answer.headers["content-type"], answer.text) == (status, "text/html", PAGE), name
