"""Secrets for what runs in a declared cluster are sealed to agents whose token is bound to that cluster (A5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fractal_cloud.control.store import sealing_keys
from fractal_cloud.offers.secret import SealingKey
from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox
from tests.clusters.worlds import eks, network, web, with_clusters


@pytest.mark.rule("A5")
def test_a_token_for_another_cluster_gets_no_box_whatever_its_agent_calls_this_one(
    session_sandbox: Sandbox, tmp_path: Path
) -> None:
    with with_clusters(session_sandbox, tmp_path) as world:
        world.deploy("ls-a", *network(), eks(), web())
        world.settle(20)
        agents = world.api.get("/agents").json()["items"]
        (reach,) = [one for agent in agents for one in agent["reaches"] if one["name"].startswith("declared:")]
        stranger = SealingKey()
        token = agent_token(world.api, "stolen", providers=["kubernetes"], realms=["ls-a/another", "ls-b/*"])
        body = {
            "agentId": "stranger",
            "environment": "default",
            "reaches": [reach],
            "cycleSeconds": 60,
            "publicKey": stranger.public,
        }
        world.api.post("/agent/register", json=body, headers={"Authorization": f"Bearer {token}"})
        place = ("default", "kubernetes", reach["realm"])
        with world.app.state.store.read() as tx:
            keys = sealing_keys.of_places(tx, [place])[place]
        assert keys == [world.other_agent._sealing.key.public]
