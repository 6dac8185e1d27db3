"""Values with an inner structure: what of an object they speak of, what is written, and that all else is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.offers.kubernetes.nested import as_far_as_declared, with_declared

Json = Any

PROBE = {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
SAME: list[tuple[str, str, Json, Json]] = [
    ("what the server fills in is no difference", "livenessProbe", PROBE, {"httpGet": {"port": 8080}}),
    ("a default may be declared", "ports", [{"containerPort": 80}], [{"containerPort": 80, "protocol": "TCP"}]),
    ("protocols have no case", "ports", [{"port": 53, "protocol": "UDP"}], [{"port": 53, "protocol": "udp"}]),
    ("amounts are compared by value", "limits", {"cpu": "500m", "memory": "1Gi"}, {"cpu": "0.5"}),
    ("ports have no order", "ports", [{"port": 1}, {"port": 2}], [{"port": 2}, {"port": 1}]),
    ("ports of others stand beside ours", "ports", [{"port": 1, "name": "x"}, {"port": 2}], [{"port": 2}]),
    ("false is what it is without it", "volumeMounts", [{"name": "a", "mountPath": "/a"}], [
        {"name": "a", "mountPath": "/a", "readOnly": False}
    ]),
    ("nothing is like an empty list", "containers", [{"name": "a", "image": "b"}], [{"name": "a", "args": []}]),
    ("a volume has the server's mode", "volumes", [{"name": "a", "configMap": {"name": "b", "defaultMode": 420}}], [
        {"name": "a", "configMap": {"name": "b"}}
    ]),
    ("how it is rolled out has defaults", "strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, {
        "type": "RollingUpdate"
    }),
]  # fmt: skip
OTHER: list[tuple[str, str, Json, Json]] = [
    ("another value", "livenessProbe", PROBE, {"httpGet": {"port": 8081}}),
    ("a check in another way", "livenessProbe", PROBE, {"tcpSocket": {"port": 8080}}),
    ("a number is no text", "livenessProbe", PROBE, {"httpGet": {"port": "8080"}}),
    ("one that is missing", "volumes", [], [{"name": "a", "emptyDir": {}}]),
    ("a volume of another kind", "volumes", [{"name": "a", "secret": {"secretName": "b"}}], [
        {"name": "a", "emptyDir": {}}
    ]),
    ("true is not what it is without it", "volumeMounts", [{"name": "a", "mountPath": "/a"}], [
        {"name": "a", "mountPath": "/a", "readOnly": True}
    ]),
    ("nobody is root by default", "securityContext", {}, {"runAsUser": 0}),
    ("containers that run first have an order", "initContainers", [{"name": "b"}, {"name": "a"}], [
        {"name": "a"}, {"name": "b"}
    ]),
    ("the only port was changed", "ports", [{"containerPort": 81}], [{"containerPort": 80}]),
    ("at once, and not some at a time", "strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, {
        "type": "Recreate"
    }),
]  # fmt: skip


@pytest.mark.rule("G3")
@pytest.mark.parametrize(("reason", "name", "actual", "declared"), SAME, ids=[row[0] for row in SAME])
def test_what_means_the_same_is_shown_as_it_is_declared(reason: str, name: str, actual: Json, declared: Json) -> None:
    assert as_far_as_declared(name, actual, declared) == declared, reason
    again = with_declared(name, actual, declared)
    assert as_far_as_declared(name, again, declared) == declared, "writing it makes it no other"


@pytest.mark.rule("G3", "S12")
@pytest.mark.parametrize(("reason", "name", "actual", "declared"), OTHER, ids=[row[0] for row in OTHER])
def test_what_differs_is_seen_and_one_write_brings_it_back(
    reason: str, name: str, actual: Json, declared: Json
) -> None:
    seen = as_far_as_declared(name, actual, declared)
    assert seen != declared, reason
    written = with_declared(name, actual, declared, seen)
    assert as_far_as_declared(name, written, declared) == declared


def test_an_entry_that_was_declared_and_is_no_longer_is_taken_out_and_nothing_else() -> None:
    actual = [{"port": 1, "name": "theirs"}, {"port": 2, "name": "ours"}, {"port": 3, "name": "old", "nodePort": 3}]
    declared, before = [{"port": 2, "name": "ours"}], [{"port": 2, "name": "ours"}, {"port": 3, "name": "old"}]
    seen = as_far_as_declared("ports", actual, declared, before)
    assert seen == [{"port": 2, "name": "ours"}, {"port": 3, "name": "old"}]
    assert with_declared("ports", actual, declared, seen) == actual[:2]
    assert as_far_as_declared("ports", actual[:2], declared, before) == declared


def test_what_nobody_remembers_to_have_declared_stays() -> None:
    actual = [{"name": "a", "image": "a:1"}, {"name": "injected", "image": "proxy:1"}]
    declared = [{"name": "a", "image": "a:2"}]
    seen = as_far_as_declared("containers", actual, declared)
    assert with_declared("containers", actual, declared, seen) == [{"name": "a", "image": "a:2"}, actual[1]]


def test_only_what_is_declared_of_a_container_is_written() -> None:
    actual = [{"name": "a", "image": "a:1", "terminationMessagePath": "/x", "livenessProbe": PROBE}]
    declared = [{"name": "a", "livenessProbe": {"tcpSocket": {"port": 1}}}]
    assert with_declared("containers", actual, declared) == [
        {
            "name": "a",
            "image": "a:1",
            "terminationMessagePath": "/x",
            "livenessProbe": {"periodSeconds": 10, "timeoutSeconds": 1, "tcpSocket": {"port": 1}},
        }
    ]


def test_labels_of_pods_that_are_no_longer_declared_go_and_those_of_others_stay() -> None:
    actual = {"app": "a", "old": "1", "theirs": "2"}
    seen = as_far_as_declared("podLabels", actual, {"app": "a"}, {"app": "a", "old": "1"})
    assert seen == {"app": "a", "old": "1"}
    assert with_declared("podLabels", actual, {"app": "a"}, seen) == {"app": "a", "theirs": "2"}
