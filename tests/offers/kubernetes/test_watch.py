"""A watch begins a cycle early; it never stands for one, and ends with the agent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.kubernetes import cloud as cloud_module
from fractal_cloud.offers.kubernetes import watching
from fractal_cloud.offers.kubernetes.calls import Call, Kubernetes
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_cloud.offers.kubernetes.errors import Answer
from fractal_cloud.offers.kubernetes.service import SERVICE
from fractal_cloud.offers.kubernetes.watching import Watch
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.kubernetes.declaring import workload
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

SLEEPY = 60.0


@pytest.fixture
def sleepy(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """A world whose cycles are a minute apart: whatever happens sooner was woken."""
    with (
        kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, cycle_seconds=SLEEPY) as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(cloud_module.WATCH, "1")
        yield made


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]


@pytest.mark.rule("G1")
def test_breaking_the_glass_is_seen_long_before_the_next_cycle(sleepy: KubernetesWorld) -> None:
    thread = threading.Thread(target=sleepy.agent.run, daemon=True)
    thread.start()
    try:
        sleepy.deploy("ls-a", workload())
        wait_for(lambda: sleepy.status("ls-a", "web") == "Active")
        wait_for(lambda: bool(watchers()))
        time.sleep(0.2)
        sleepy.kube.break_glass("deployments", "web")
        wait_for(lambda: sleepy.status("ls-a", "web") == "ManualOverride", 10)
        before = len(sleepy.cloud.calls)
        for number in range(20):
            sleepy.kube.merge("deployments", "web", {"metadata": {"labels": {"n": str(number)}}})
        sleepy.kube.hand_back("deployments", "web")
        wait_for(lambda: sleepy.status("ls-a", "web") == "Active", 10)
        listed = [one for one in sleepy.cloud.calls.all()[before:] if one.operation == "list" and one.actor == "agent"]
        assert len(listed) < 20, "twenty changes do not make twenty cycles"
    finally:
        sleepy.agent.stop()
        thread.join(30)
    assert not thread.is_alive()
    wait_for(lambda: not watchers())
    sleepy.assert_safe()


def test_a_watch_survives_refusals_and_ends_when_it_is_stopped(
    session: KubernetesSession, person: KubernetesPerson, clusters: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BACKOFF", Backoff.in_seconds(0.05, 60.0))
    woken = threading.Event()
    scope = Scope("kubernetes", session.realms()[""], "default")
    clusters.kubernetes.knobs.fail(status=403, code="Forbidden", times=2, actor="agent")
    stop = session.watch(scope, installed().of_provider("kubernetes"), woken.set)
    assert stop is not None

    def touch() -> bool:
        item = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": {"ports": [{"port": 80}]}}
        if person.get("services", "front") is None:
            person.create("services", item)
        person.merge("services", "front", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "fractal-cloud"}}})
        person.break_glass("services", "front")
        return woken.wait(0.1)

    wait_for(touch)
    assert isinstance(getattr(stop, "__self__", None), Watch)
    stop()
    wait_for(lambda: not watchers())


def test_a_watch_that_is_stopped_while_it_opens_a_stream_ends(
    session: KubernetesSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, may_go_on = threading.Event(), threading.Event()
    really_open = cloud_module.Cluster.open

    def open_slowly(cluster: cloud_module.Cluster, call: Call) -> cloud_module.Lines:
        lines = really_open(cluster, call)
        opened.set()
        assert may_go_on.wait(10)
        return lines

    monkeypatch.setattr(cloud_module.Cluster, "open", open_slowly)
    scope = Scope("kubernetes", session.realms()[""], "default")
    stop = session.watch(scope, installed().of_provider("kubernetes"), lambda: None)
    assert stop is not None
    assert opened.wait(10)
    stop()
    may_go_on.set()
    wait_for(lambda: not watchers())


def test_a_watch_can_be_switched_off(session: KubernetesSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cloud_module.WATCH, "off")
    scope = Scope("kubernetes", session.realms()[""], "default")
    assert session.watch(scope, [], lambda: None) is None
    assert not watchers()


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}',
        '{"type": "ERROR", "object": {"kind": "Status", "code": 410}}',
        "[]",
        "",
    ],
)
def test_a_stream_that_begins_with_an_error_or_ends_at_once_is_not_opened_again_at_once(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BACKOFF", Backoff.in_seconds(30.0, 60.0))
    server = OneLine(line)
    woken = threading.Event()
    watch = Watch(Kubernetes(server, Scope("kubernetes", "uid", "default")), [SERVICE], woken.set)
    try:
        assert server.closed.wait(10)
        [thread] = watchers()
        assert thread.is_alive(), "the watch goes on, later"
        assert server.opened == 1
        assert not woken.is_set()
    finally:
        watch.stop()
    wait_for(lambda: not watchers())


class OneLine:
    """A server whose streams have one line."""

    context = "one"

    def __init__(self, line: str) -> None:
        self.line, self.opened, self.closed = line, 0, threading.Event()

    def send(self, call: Call) -> Answer:
        return Answer(200, '{"metadata": {"resourceVersion": "1"}}', "", str(call), is_read=True)

    def open(self, call: Call) -> OneLine:
        del call
        self.opened += 1
        return self

    def __iter__(self) -> Iterator[str]:
        return iter([self.line] if self.line else [])

    def close(self) -> None:
        self.closed.set()


class Streams:
    """A server whose streams are written beforehand; after the last one it is closed."""

    context = "streams"

    def __init__(self, *streams: list[str]) -> None:
        self._streams = list(streams)
        self.asked: list[Call] = []
        self.done = threading.Event()

    def send(self, call: Call) -> Answer:
        self.asked.append(call)
        return Answer(200, '{"metadata": {"resourceVersion": "10"}}', "", str(call), is_read=True)

    def open(self, call: Call) -> Streams:
        self.asked.append(call)
        return self

    def __iter__(self) -> Iterator[str]:
        if not self._streams:
            self.done.set()
            return iter([])
        return iter(self._streams.pop(0))

    def close(self) -> None:
        pass

    def places(self) -> list[str]:
        """Where each stream began; "now" for what was asked to find a beginning."""
        return [call.query.get("resourceVersion", "now") for call in self.asked]


def event(kind: str, version: int) -> str:
    return json.dumps({"type": kind, "object": {"metadata": {"name": "x", "resourceVersion": str(version)}}})


def watched(server: Streams, monkeypatch: pytest.MonkeyPatch) -> int:
    """Watch until the streams are used up; returns how often it woke."""
    monkeypatch.setattr(watching, "BACKOFF", Backoff.in_seconds(0.01, 0.01))
    monkeypatch.setattr(watching, "SPACING", 0.0)
    woken: list[int] = []
    watch = Watch(Kubernetes(server, Scope("kubernetes", "uid", "default")), [SERVICE], lambda: woken.append(1))
    assert server.done.wait(10)
    watch.stop()
    wait_for(lambda: not watchers())
    return len(woken)


def test_a_new_stream_continues_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Streams([event("MODIFIED", 12)], [event("BOOKMARK", 40)], [])
    assert watched(server, monkeypatch) == 1, "a bookmark is no change"
    assert server.places()[:5] == ["now", "10", "12", "40", "40"]
    assert all(call.query.get("allowWatchBookmarks") for call in server.asked[1:])
    assert all("PartialObjectMetadata" in call.accept for call in server.asked), "nothing but metadata is read"


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "ERROR", "object": {"kind": "Status", "code": 410}}',
        '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}',
    ],
)
def test_a_place_that_the_server_has_forgotten_is_read_anew_and_wakes(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Streams([line], [])
    assert watched(server, monkeypatch) == 1, "what was missed meanwhile is read"
    assert server.places()[:4] == ["now", "10", "now", "10"]


def test_a_storm_of_changes_wakes_once_and_not_for_each_of_them() -> None:
    woken: list[int] = []
    spaced = watching.Spaced(lambda: woken.append(1), 3600.0)
    for _ in range(200):
        spaced()
    assert len(woken) == 1, "at once, and the next time much later"
    spaced.stop()
    spaced()
    assert len(woken) == 1


def test_the_last_change_of_a_storm_is_never_without_a_wake_after_it() -> None:
    woken_after: list[int] = []
    changes: list[int] = []
    spaced = watching.Spaced(lambda: woken_after.append(len(changes)), 0.01)
    for number in range(200):
        changes.append(number)
        spaced()
    wait_for(lambda: woken_after[-1] == 200)
    spaced.stop()
