"""What makes moto quick enough for a sandbox: lookups it does anew for every request, resource or reset.

No answer that an offer depends on changes here; that is what `moto_fixes` is for.
"""

from __future__ import annotations

import functools
from typing import Any

import moto.core.responses
from moto.core.parse import default_timestamp_parser
from moto.core.utils import method_names_from_class
from moto.ec2.models.amis import AMIS, Ami, AmiBackend
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

__all__ = ["Moto", "hurry"]


class Moto(DomainDispatcherApplication):
    """moto's server application, which finds the backend of a host without listing its own folders each time."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._known_hosts: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:
        if host not in self._known_hosts:
            self._known_hosts[host] = super().get_backend_for_host(host)
        return self._known_hosts[host]


def hurry() -> None:
    """Replace moto's slow lookups; doing it again changes nothing."""
    # Inspects a whole class for every call.
    moto.core.responses.method_names_from_class = _method_names  # type: ignore[attr-defined]
    # Matches the tags of all resources against patterns to find those of one, so listing is quadratic.
    setattr(TaggedEC2Resource, "get_tags", _get_tags)  # noqa: B010
    # Makes more than a thousand images with every reset, and searches them for every new instance.
    setattr(AmiBackend, "_load_amis", _load_amis)  # noqa: B010


def _load_amis(ec2: Any) -> None:
    """Make moto's own short list of images, without those of each region; instances start from any id anyway."""
    for description in AMIS:
        created = description.get("creation_date")
        if isinstance(created, str):
            description["creation_date"] = default_timestamp_parser(created)
        ec2.amis[description["ami_id"]] = Ami(ec2, **{**description, "owner_alias": "amazon"})


@functools.cache
def _method_names(cls: type) -> list[str]:
    return method_names_from_class(cls)


def _get_tags(resource: Any) -> list[dict[str, str]]:
    return [
        {
            "resource_id": resource.id,
            "key": key,
            "value": value,
            "resource_type": EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), ""),
        }
        for key, value in dict(resource.ec2_backend.tags.get(resource.id, {})).items()
    ]
