"""The whole product over the sandbox's Kubernetes: two clusters, an agent that may be ended at any effect, people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fractal_cloud.offers.kubernetes import cloud as cloud_module
from fractal_cloud.offers.kubernetes.calls import Call
from fractal_cloud.offers.kubernetes.cloud import Cluster, KubernetesSession
from fractal_cloud.offers.kubernetes.errors import Answer
from fractal_sandbox import Sandbox, agent_env
from tests.faults.effects import Effects
from tests.faults.worlds import FaultyWorld
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.rights import printed_rights

W = TypeVar("W", bound="KubernetesWorld")
_send = Cluster.send
_connect = KubernetesSession.__init__


class KubernetesWorld(FaultyWorld):
    """A world whose agent serves the clusters of the sandbox."""

    providers = ("kubernetes",)

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.kube = KubernetesPerson(sandbox.url, folder)
        super().__init__(sandbox, folder, effects, **settings)

    @property
    def cloud(self) -> Any:
        """The cluster that is meant where none is named."""
        return self.sandbox.kubernetes

    def start_over(self) -> None:
        """The other cluster begins anew as well."""
        self.sandbox.kubernetes_2.reset()
        super().start_over()

    def assert_safe(self) -> None:
        """SAFETY, and more: with an atomic guard there are no lost races either (S16)."""
        for cluster in (self.sandbox.kubernetes, self.sandbox.kubernetes_2):
            monitor = cluster.monitor
            assert not monitor.violations, "\n".join(map(str, monitor.violations))
            assert not monitor.lost_races, "\n".join(map(str, monitor.lost_races))


@contextmanager
def kubernetes_world(
    sandbox: Sandbox, folder: Path, kind: type[W], *, has_all_rights: bool = False, **settings: Any
) -> Iterator[W]:
    """A world over clusters that were reset, with the agent's credentials in the environment and the rights printed."""
    sandbox.kubernetes.reset()
    sandbox.kubernetes_2.reset()
    rights = nullcontext() if has_all_rights else printed_rights(sandbox)
    with pytest.MonkeyPatch.context() as patch, rights:
        for name, value in agent_env(sandbox.url, folder).items():
            patch.setenv(name, value)
        patch.setenv(cloud_module.WATCH, "0")
        patch.setattr(cloud_module, "READ_ATTEMPTS", 1)  # how often the SDK tries is tested with the session
        effects = Effects(sandbox.kubernetes.knobs)
        gate(patch, effects)
        made = kind(sandbox, folder, effects, **settings)
        try:
            yield made
        finally:
            made.close()


def gate(patch: pytest.MonkeyPatch, effects: Effects) -> None:
    """Have every writing call of an agent in this process counted as an effect; the connections are kept."""
    kept: dict[str, Any] = {}

    def send(cluster: Cluster, call: Call) -> Answer:
        if call.is_read:
            return _send(cluster, call)
        answer: Answer = effects.write(f"{call.method} {call.path.split('/')[-1]}", lambda: _send(cluster, call))
        return answer

    def connect(session: KubernetesSession) -> None:
        if not kept:
            _connect(session)
            kept.update(vars(session))
        vars(session).update(kept)

    patch.setattr(Cluster, "send", send)
    patch.setattr(KubernetesSession, "__init__", connect)
