"""Versions of managed Kubernetes clusters: every vendor raises them one minor version at a time, and lowers none."""

from __future__ import annotations

from collections.abc import Collection

from fractal_cloud.model.errors import Invalid


def next_version(actual: str, declared: str, parameter: str = "version") -> str:
    """The version to go to now; raises ``Invalid`` where the declared one cannot be reached."""
    here, there = _numbers(actual), _numbers(declared)
    if there < here[: len(there)]:
        raise Invalid(
            f"{parameter} cannot fall from {actual!r} to {declared!r}: declare {actual!r} or newer, or a new cluster"
        )
    return declared if there[1] <= here[1] + 1 else f"{here[0]}.{here[1] + 1}"


def version_warnings(drift: Collection[str], parameter: str = "version") -> list[str]:
    """What a change of the version means."""
    if parameter not in drift:
        return []
    return ["the version is raised one minor version at a time, each takes minutes and none can be taken back"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
