"""What every Hetzner project finds there: places, sizes and images; a few of each."""

from __future__ import annotations

from typing import Any

from fractal_sandbox.rest import Body, Refused

__all__ = ["CATALOG", "choose"]


def _location(number: int, name: str, city: str, country: str, zone: str) -> Body:
    return {
        "id": number,
        "name": name,
        "description": f"{city} DC Park {number}",
        "country": country,
        "city": city,
        "latitude": 0.0,
        "longitude": 0.0,
        "network_zone": zone,
    }


def _server_type(number: int, name: str, cores: int, memory: int, disk: int, architecture: str) -> Body:
    return {
        "id": number,
        "name": name,
        "description": name.upper(),
        "category": "cost_optimized",
        "cores": cores,
        "memory": float(memory),
        "disk": disk,
        "storage_type": "local",
        "cpu_type": "shared",
        "architecture": architecture,
        "prices": [],
        "deprecated": False,
        "deprecation": None,
        "locations": [],
    }


def _image(number: int, name: str, flavor: str, version: str) -> Body:
    return {
        "id": number,
        "name": name,
        "type": "system",
        "status": "available",
        "description": name,
        "os_flavor": flavor,
        "os_version": version,
        "architecture": "x86",
        "disk_size": 5.0,
        "image_size": None,
        "rapid_deploy": True,
        "labels": {},
        "protection": {"delete": False},
        "created": "2026-01-01T00:00:00+00:00",
        "created_from": None,
        "bound_to": None,
        "deprecated": None,
        "deleted": None,
    }


def _load_balancer_type(number: int, name: str, services: int, targets: int) -> Body:
    return {
        "id": number,
        "name": name,
        "description": name.upper(),
        "max_connections": 10_000 * number,
        "max_services": services,
        "max_targets": targets,
        "max_assigned_certificates": 10 * number,
        "prices": [],
        "deprecated": None,
    }


CATALOG: dict[str, list[Body]] = {
    "locations": [
        _location(1, "fsn1", "Falkenstein", "DE", "eu-central"),
        _location(2, "nbg1", "Nuremberg", "DE", "eu-central"),
        _location(3, "hel1", "Helsinki", "FI", "eu-central"),
        _location(4, "ash", "Ashburn, VA", "US", "us-east"),
        _location(5, "hil", "Hillsboro, OR", "US", "us-west"),
        _location(6, "sin", "Singapore", "SG", "ap-southeast"),
    ],
    "server_types": [
        _server_type(114, "cx23", 2, 4, 40, "x86"),
        _server_type(115, "cx33", 4, 8, 80, "x86"),
        _server_type(116, "cx43", 8, 16, 160, "x86"),
        _server_type(45, "cax11", 2, 4, 40, "arm"),
    ],
    "images": [
        _image(310557660, "debian-13", "debian", "13"),
        _image(114690389, "debian-12", "debian", "12"),
        _image(161547269, "ubuntu-24.04", "ubuntu", "24.04"),
    ],
    "load_balancer_types": [
        _load_balancer_type(1, "lb11", 5, 25),
        _load_balancer_type(2, "lb21", 15, 75),
        _load_balancer_type(3, "lb31", 30, 150),
    ],
}


def choose(plural: str, wanted: Any) -> Body:
    """One entry by its name or its id; refuses, as Hetzner does, what is not there."""
    for entry in CATALOG[plural]:
        if str(wanted) in (entry["name"], str(entry["id"])):
            return entry
    noun = plural.removesuffix("s").replace("_", " ")
    raise Refused(422, "invalid_input", f"{noun} {wanted!r} not found")
