"""What `ignoreDrift` names inside a value is left to whoever else sets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.families.world import queue, world


@pytest.mark.rule("G15")
def test_a_path_below_a_parameter_is_ignored_and_another_is_corrected(tmp_path: Path) -> None:
    policy = {"deadLetterTargetArn": "toy:dead", "maxReceiveCount": 3}
    ignored = ["RedrivePolicy.maxReceiveCount"]
    with world(tmp_path) as made:
        made.deploy(queue(QueueName="orders", RedrivePolicy=policy, ignoreDrift=ignored))
        made.settle()
        made.cloud.named("orders").actual["RedrivePolicy"] = {**policy, "maxReceiveCount": 7}
        made.settle()
        assert made.cloud.named("orders").actual["RedrivePolicy"]["maxReceiveCount"] == 7
        assert "drift" not in made.fields("jobs")
        answer = made.put("shop", queue(QueueName="orders", ignoreDrift=["Nothing.inside"]))
        assert answer.status_code == 422
        assert "is no parameter of this type" in answer.text or "Nothing.inside" in answer.text
