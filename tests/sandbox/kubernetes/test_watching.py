"""Watches report what happens as it happens, to whom it fits, and end when they should."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes import PERSON_TOKEN
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.offers.kubernetes.real import KUBECONFIG
from tests.sandbox.kubernetes.conftest import CONFIG_MAPS, DEPLOYMENTS, MACHINES, Api, deployment, machine

ON_A_REAL_SERVER = True


class Watch:
    """One open watch; `next` waits for its next event."""

    def __init__(self, sandbox: Sandbox, path: str, **query: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(sandbox.url).netloc, timeout=10)
        words = "&".join(f"{key}={quote(value)}" for key, value in {"watch": "1", **query}.items())
        headers = {"Authorization": f"Bearer {PERSON_TOKEN}"}
        self._connection.request("GET", f"/kubernetes{path}?{words}", headers=headers)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status

    def next(self) -> tuple[str, Any] | None:
        line = self._answer.readline()
        return (read["type"], read["object"]) if line and (read := json.loads(line)) else None

    def read_events(self, count: int) -> list[tuple[str, str]]:
        """The next events: type and name."""
        found = []
        for _ in range(count):
            event = self.next()
            assert event is not None, "the watch ended early"
            found.append((event[0], event[1]["metadata"]["name"]))
        return found

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def watches(sandbox: Sandbox) -> Iterator[Any]:
    opened: list[Watch] = []

    def begin(path: str, **query: str) -> Watch:
        opened.append(Watch(sandbox, path, **query))
        return opened[-1]

    yield begin
    for watch in opened:
        watch.close()


def config(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def test_a_watch_begins_with_what_is_there_and_goes_on_with_what_happens(person: Api, watches: Any) -> None:
    person.make(CONFIG_MAPS, config("a"))
    watch = watches(CONFIG_MAPS)
    person.make(CONFIG_MAPS, config("b"))
    person.patch(f"{CONFIG_MAPS}/a", {"data": {"some": "thing"}})
    person.delete(f"{CONFIG_MAPS}/b")
    assert watch.read_events(4) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def test_a_watch_from_a_version_reports_what_came_after_it(person: Api, watches: Any) -> None:
    person.make(CONFIG_MAPS, config("a"))
    version = person.get(CONFIG_MAPS).json["metadata"]["resourceVersion"]
    person.make(CONFIG_MAPS, config("b"))
    watch = watches(CONFIG_MAPS, resourceVersion=version, timeoutSeconds="1")
    assert watch.read_events(1) == [("ADDED", "b")]
    assert watch.next() is None, "it ends when its time is over"


def test_what_no_longer_fits_the_selector_is_deleted_to_the_watch(person: Api, watches: Any) -> None:
    person.make(CONFIG_MAPS, config("a", team="blue"))
    person.make(CONFIG_MAPS, config("b"))
    watch = watches(CONFIG_MAPS, labelSelector="team=blue")
    person.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"team": None}}})
    person.patch(f"{CONFIG_MAPS}/b", {"metadata": {"labels": {"team": "blue"}}})
    assert watch.read_events(3) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


def test_a_version_from_before_everything_is_gone(sandbox: Sandbox, person: Api, watches: Any) -> None:
    if KUBECONFIG:
        pytest.skip("a real server forgets old versions only after some minutes")
    kind, status = watches(CONFIG_MAPS, resourceVersion="1").next()
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")


def test_what_only_time_brings_about_is_reported_too(person: Api, watches: Any, cluster: KubernetesCloud) -> None:
    cluster.knobs.slow_creation(seconds=0.3)
    watch = watches(MACHINES)
    person.make(MACHINES, machine("box"))
    shown = [watch.next()[1].get("status", {}).get("printableStatus") for _ in range(3)]
    assert shown == [None, "Provisioning", "Running"]


def test_the_state_can_be_asked_for_with_a_mark_at_its_end(person: Api, watches: Any) -> None:
    if int(person.get("/version").json["minor"].rstrip("+")) < 27:
        pytest.skip("sendInitialEvents came with Kubernetes 1.27")
    person.make(CONFIG_MAPS, config("a"))
    asked = {"sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    watch = watches(CONFIG_MAPS, resourceVersionMatch="NotOlderThan", **asked)
    assert watch.next()[0] == "ADDED"
    kind, mark = watch.next()
    assert (kind, mark["metadata"]["annotations"]) == ("BOOKMARK", {"k8s.io/initial-events-end": "true"})


def test_the_state_is_refused_to_a_watch_that_does_not_say_how_old_it_may_be(person: Api) -> None:
    if int(person.get("/version").json["minor"].rstrip("+")) < 27:
        pytest.skip("sendInitialEvents came with Kubernetes 1.27")
    answer = person.get(f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true")
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert "requires setting resourceVersionMatch to NotOlderThan" in answer.json["message"]
    answer = person.get(f"{CONFIG_MAPS}?watch=1&resourceVersionMatch=NotOlderThan")
    assert answer.status == 422


def test_a_server_keeps_config_maps_of_its_own(person: Api) -> None:
    if int(person.get("/version").json["minor"].rstrip("+")) < 27:
        pytest.skip("an older server may keep none")
    found = person.get("/api/v1/namespaces/kube-system/configmaps").json["items"]
    assert "extension-apiserver-authentication" in {one["metadata"]["name"] for one in found}


def test_an_open_watch_does_not_hold_the_sandbox_up() -> None:
    sandbox = Sandbox(port=0).start()
    watch = Watch(sandbox, CONFIG_MAPS)
    began = time.monotonic()
    sandbox.stop()
    assert time.monotonic() - began < 2
    watch.close()


def test_a_watch_ends_when_its_client_goes_away(person: Api, watches: Any) -> None:
    before = threading.active_count()
    for _ in range(3):
        watches(CONFIG_MAPS).close()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_a_table_is_watched_with_its_columns_once(person: Api, sandbox: Sandbox, cluster: KubernetesCloud) -> None:
    person.make(DEPLOYMENTS, deployment("web"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    answer = person.get(DEPLOYMENTS, accept=accept, watch="1", timeoutSeconds=1)
    (event,) = [json.loads(line) for line in answer.text.splitlines()]
    assert event["object"]["kind"] == "Table"
    assert event["object"]["rows"][0]["cells"][:2] == ["web", "1/1"]
