"""Values of other components stand wherever they are referred to, once they are there; nothing half is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.families import toys
from tests.families.world import World, alarm, queue, world


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def _dead(made: World) -> str:
    return f"toy:{made.cloud.named('dead').id}"


def test_values_of_another_component_are_filled_in_inside_values_and_texts(toy_world: World) -> None:
    policy = {"deadLetterTargetArn": {"$output": "dead.Arn"}, "maxReceiveCount": "${dead.Delay}"}
    environment = {
        "WHERE": "at ${dead.Arn}/${dead.Delay}",
        "LITERAL": "$${dead.Arn} ${HOME}",
        "DOC": '{"a":"${dead.Arn}"}',
    }
    toy_world.deploy(queue("dead", Delay=7), queue("jobs", RedrivePolicy=policy, Environment=environment))
    toy_world.settle()
    arn = _dead(toy_world)
    made = toy_world.cloud.named("jobs").actual
    assert made["RedrivePolicy"] == {"deadLetterTargetArn": arn, "maxReceiveCount": 7}
    assert made["Environment"] == {
        "WHERE": f"at {arn}/7",
        "LITERAL": "${dead.Arn} ${HOME}",
        "DOC": f'{{"a":"{arn}"}}',
    }
    assert toy_world.status("shop", "jobs") == "Active"
    assert toy_world.cloud.calls["create"] == 2


def test_it_waits_for_what_is_not_there_yet_and_says_for_what(toy_world: World) -> None:
    def not_now(operation: str) -> None:
        if operation == "create":
            raise toys.busy()

    toy_world.cloud.before.append(not_now)
    toy_world.deploy(queue("dead"), alarm(QueueArn="${dead.Arn}"))
    toy_world.cycle(2)
    assert toy_world.message("loud") == "waits for dead (Arn)"
    assert toy_world.status("shop", "loud") == "Instantiating"
    toy_world.cloud.before.clear()
    toy_world.settle()
    assert toy_world.cloud.named("loud").actual["QueueArn"] == _dead(toy_world)


def test_what_another_component_is_by_now_is_brought_to_whoever_refers_to_it(toy_world: World) -> None:
    toy_world.deploy(queue("dead", Delay=7), alarm(Threshold="${dead.Delay}"))
    toy_world.settle()
    assert toy_world.cloud.named("loud").actual["Threshold"] == 7
    toy_world.deploy(queue("dead", Delay=8), alarm(Threshold="${dead.Delay}"))
    toy_world.settle()
    assert toy_world.cloud.named("loud").actual["Threshold"] == 8


def test_an_output_that_is_missing_holds_only_its_parameter_back(toy_world: World) -> None:
    toy_world.deploy(queue("dead"), alarm(Threshold=1))
    toy_world.settle()
    toy_world.deploy(queue("dead"), alarm(Threshold=2, QueueArn="${dead.Later}"))
    toy_world.cycle(3)
    assert toy_world.cloud.named("loud").actual == {"Threshold": 2}
    assert "waits for dead (Later)" in toy_world.message("loud")
    assert toy_world.component("shop", "loud")["observedGeneration"] == 1
    assert toy_world.status("shop", "loud") == "Mutating"
    toy_world.cloud.named("dead").routes["Later"] = "by now"
    toy_world.settle()
    assert toy_world.cloud.named("loud").actual == {"Threshold": 2, "QueueArn": "by now"}
    assert toy_world.component("shop", "loud")["observedGeneration"] == 2


def test_what_does_not_fit_is_said_with_its_path_and_nothing_is_written(toy_world: World) -> None:
    toy_world.deploy(queue("dead"), queue("jobs", Entries=[{"Id": "a", "Weight": "${dead.Arn}"}]))
    toy_world.cycle(3)
    assert toy_world.status("shop", "jobs") == "Failed"
    assert "Entries[0].Weight is 'toy:toys-1': must be a number" in toy_world.message("jobs")
    assert "refer to something else" in toy_world.message("jobs")
    assert not toy_world.cloud.has("jobs")


def test_a_list_within_a_longer_text_is_refused(toy_world: World) -> None:
    entries = [{"Id": "a", "Weight": 1}]
    toy_world.deploy(queue("dead", Entries=entries), queue("jobs", Environment={"ALL": "all of ${dead.Entries}"}))
    toy_world.cycle(3)
    assert toy_world.status("shop", "jobs") == "Failed"
    assert "Environment.ALL has dead (Entries) within a longer text, and that is a list" in toy_world.message("jobs")
    toy_world.deploy(queue("dead", Entries=entries), queue("jobs", Environment={"ONE": "id ${dead.Entries.0.Id}"}))
    toy_world.settle()
    assert toy_world.cloud.named("jobs").actual["Environment"] == {"ONE": "id a"}


def test_it_is_read_from_what_is_published_where_it_is_in_another_scope(toy_world: World) -> None:
    toy_world.deploy(queue("dead", region="south"), queue("jobs", Environment={"DEAD": "${dead.Arn}"}))
    toy_world.settle()
    assert toy_world.cloud.named("jobs").actual["Environment"] == {"DEAD": _dead(toy_world)}
    assert toy_world.status("shop", "jobs") == "Active"
    toy_world.deploy(queue("dead", region="south", Delay=9), queue("jobs", Delay="${dead.Delay}"))
    toy_world.settle()
    assert toy_world.cloud.named("jobs").actual["Delay"] == 9


@pytest.mark.rule("A8")
def test_what_may_be_a_secret_is_filled_in_nowhere(toy_world: World) -> None:
    refused = toy_world.put("shop", queue("dead", Password="hunter2-hunter2"), alarm(QueueArn="${dead.Password}"))
    assert refused.status_code == 422
    assert "which may be a secret and is never shown" in refused.text


@pytest.mark.rule("G3", "G6")
def test_an_override_stays_one_whatever_is_missing(toy_world: World) -> None:
    toy_world.deploy(queue("dead"), alarm(Threshold=1))
    toy_world.settle()
    toy_world.cloud.break_glass("loud")
    toy_world.settle()
    toy_world.deploy(queue("dead"), alarm(Threshold=2, QueueArn="${dead.Later}"))
    toy_world.cycle(3)
    assert toy_world.status("shop", "loud") == "ManualOverride"
    assert "waits for dead (Later)" in toy_world.message("loud")
    toy_world.cloud.hand_back("loud")
    toy_world.cycle(3)
    assert toy_world.cloud.named("loud").tags.get("fractal-cloud") == "reconcile", "the handshake is not over"
    assert toy_world.cloud.named("loud").actual["Threshold"] == 2
    toy_world.cloud.named("dead").routes["Later"] = "by now"
    toy_world.settle()
    assert toy_world.cloud.named("loud").actual == {"Threshold": 2, "QueueArn": "by now"}
    assert toy_world.status("shop", "loud") == "Active"
    assert "fractal-cloud" not in toy_world.cloud.named("loud").tags
