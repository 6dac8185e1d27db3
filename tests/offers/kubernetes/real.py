"""The product over a real kube-apiserver (``KUBECONFIG_REAL``), which has no controllers: they are played here.

The contract, the crashes, the glass and the links inside a cluster run there unchanged. Nobody judges the writes of the
agent there; what the monitor of the sandbox says of them it says of the sandbox only.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from fractal_cloud.offers.acting import current_act
from fractal_cloud.offers.kubernetes import cloud as cloud_module
from fractal_cloud.offers.kubernetes.calls import Call
from fractal_cloud.offers.kubernetes.cloud import Cluster
from fractal_cloud.offers.kubernetes.faults import Answer, error_of
from fractal_cloud.sandbox import Sandbox
from fractal_cloud.sandbox.knobs import Knobs
from fractal_cloud.sandbox.kubernetes.kinds import DEFINITIONS
from fractal_cloud.testing import Write
from tests.faults.effects import Effects
from tests.offers.kubernetes.person import PATHS, KubernetesPerson
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

IS_REAL = bool(os.environ.get("KUBECONFIG_REAL"))
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
STANDARD = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard"},
    "provisioner": "example.com/none",
    "allowVolumeExpansion": True,
}
EMPTIED = tuple(plural for plural in PATHS if plural != "namespaces")
Json = dict[str, Any]


class RealPerson(KubernetesPerson):
    """Somebody at a real cluster; whatever they or the agent wrote, the controllers come after it."""

    def __init__(self, path: str) -> None:
        config = yaml.safe_load(Path(path).read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._token = config["users"][0]["user"]["token"]
        authority = cluster.get("certificate-authority-data")
        self._tls = ssl.create_default_context(cadata=base64.b64decode(authority).decode() if authority else None)
        if not authority:
            self._tls.load_verify_locations(cluster["certificate-authority"])
        self.env = {"KUBECONFIG": path}
        self.context = config["current-context"]
        self.busy_for = 0.0
        self._new: dict[str, float] = {}

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        answer = self.send(method, path, body, kind)
        if method != "GET":
            self.control()
        return answer

    def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind, "Authorization": f"Bearer {self._token}"}
        request = Request(f"{self._url}{path}", data, headers, method=method)
        with urlopen(request, timeout=20, context=self._tls) as answer:
            return json.loads(answer.read())

    def items(self, plural: str) -> list[Json]:
        found: list[Json] = self.send("GET", self.path(plural))["items"] or []
        return [one for one in found if one["metadata"]["name"] != "kubernetes"]

    def control(self) -> None:
        """Do what the controllers of a cluster would do by now."""
        for plural, status_of in (
            ("deployments", _deployment),
            ("persistentvolumeclaims", _claim),
            ("virtualmachines", _machine),
            ("services", _service),
        ):
            for item in self.items(plural):
                born = self._new.setdefault(item["metadata"]["uid"], time.monotonic() + self.busy_for)
                wanted = status_of(item)
                if wanted is None or time.monotonic() < born:
                    continue
                shown = {key: (item.get("status") or {}).get(key) for key in wanted}
                if shown != wanted:
                    path = self.path(plural, item["metadata"]["name"]) + "/status"
                    try:
                        self.send("PATCH", path, {"status": wanted}, "application/merge-patch+json")
                    except HTTPError as error:
                        if error.code not in (404, 409):
                            raise

    def empty(self) -> None:
        """Take everything away, and define what the examples need."""
        for path, one in [*((CRDS, definition) for definition in DEFINITIONS), (CLASSES, STANDARD)]:
            try:
                self.send("POST", path, one)
            except HTTPError as error:
                if error.code != 409:
                    raise
        for plural in EMPTIED:
            for item in self._served(plural):
                self.delete(plural, item["metadata"]["name"])

    def _served(self, plural: str) -> list[Json]:
        """All objects of a kind; a definition takes a moment until it is served."""
        for _ in range(100):
            try:
                return self.items(plural)
            except HTTPError:
                time.sleep(0.1)
        raise AssertionError(f"{plural} are not served")


def _deployment(item: Json) -> Json:
    wanted = item["spec"].get("replicas", 1)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
    return {"observedGeneration": item["metadata"]["generation"], **counts}


def _claim(item: Json) -> Json:
    return {"phase": "Bound", "capacity": {"storage": item["spec"]["resources"]["requests"]["storage"]}}


def _machine(item: Json) -> Json:
    runs = item["spec"].get("runStrategy") == "Always"
    return {"printableStatus": "Running" if runs else "Stopped", "created": True, "ready": runs}


def _service(item: Json) -> Json | None:
    if item["spec"].get("type") != "LoadBalancer":
        return None
    return {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}


class Losses(Knobs):
    """Calls, or answers to them, that get lost on the way to a real server: the next writing one."""

    def __init__(self) -> None:
        super().__init__()
        self._when = ""

    def fail(self, *, when: str = "before", **_: Any) -> Any:
        """Lose the next writing call, before it arrives or after it was carried out."""
        self._when = when

    def take(self) -> str:
        """What is lost now, once."""
        when, self._when = self._when, ""
        return when


class RealCluster:
    """What a world asks of the sandbox's cloud, of a real one."""

    def __init__(self, person: RealPerson) -> None:
        self._person = person
        self.knobs = self
        self.writes: list[Write] = []

    def slow_creation(self, seconds: float) -> float:
        self._person.busy_for = seconds / 2  # counted from when it was first seen
        return seconds

    def remove(self, _: float) -> None:
        self._person.busy_for = 0.0

    def reset(self) -> None:
        self._person.empty()
        self.writes.clear()


class RealWorld(KubernetesWorld):
    """A world over a real API server."""

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        super().__init__(sandbox, folder, effects, **settings)
        self.person_there = RealPerson(os.environ["KUBECONFIG_REAL"])
        self.kube = self.person_there
        self.real = RealCluster(self.person_there)

    @property
    def cloud(self) -> Any:
        return self.real

    def cycle(self, times: int = 1) -> Any:
        """Controllers are at work between two cycles."""
        self.person_there.control()
        return super().cycle(times)

    def writes(self) -> list[Write]:
        return list(self.real.writes)

    def assert_safe(self) -> None:
        """Nobody judges here."""


@contextmanager
def cluster_world(sandbox: Sandbox, folder: Path) -> Iterator[KubernetesWorld]:
    """A world over the sandbox, or over a real cluster where ``KUBECONFIG_REAL`` names one."""
    make = real_world(sandbox, folder) if IS_REAL else kubernetes_world(sandbox, folder, KubernetesWorld)
    with make as made:
        yield made


@contextmanager
def real_world(sandbox: Sandbox, folder: Path) -> Iterator[RealWorld]:
    """A world over the API server of ``KUBECONFIG_REAL``, emptied."""
    losses = Losses()
    effects = Effects(losses)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", os.environ["KUBECONFIG_REAL"])
        patch.setenv(cloud_module.WATCH, "0")
        made = RealWorld(sandbox, folder, effects)
        plain = Cluster.send

        def send(cluster: Cluster, call: Call) -> Answer:
            if call.is_read:
                return plain(cluster, call)
            answer: Answer = effects.write(f"{call.method} {call.path.split('/')[-1]}", lambda: write(cluster, call))
            return answer

        def write(cluster: Cluster, call: Call) -> Answer:
            lost = losses.take()
            gone = error_of(Answer(0, "the test lost it on its way", "", str(call), is_read=False))
            if lost == "before":
                raise gone
            answer = plain(cluster, call)
            act = current_act()
            if answer.is_good and act is not None:
                made.real.writes.append(Write(act.live_system_id, act.component_id, act.reason, str(call)))
                made.person_there.control()
            if lost:
                raise gone
            return answer

        patch.setattr(Cluster, "send", send)
        made.real.reset()
        try:
            yield made
        finally:
            made.close()
