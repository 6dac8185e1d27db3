"""Kinds of objects and of values that the Kubernetes types share; values are checked when they are declared.

A kind of which there is a component type stands in that type's file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from fractal_cloud.model.component import Component
from fractal_cloud.rules.nested.amounts import quantity

Object = dict[str, Any]

_LABEL: Final = r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_KEY: Final = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z")
_VALUE: Final = re.compile(_LABEL + r"\Z")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\Z")
_DNS_1035: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")
MAX_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """One kind of object, and how it is addressed. ``product``: what brings it, where the cluster itself does not."""

    group: str
    version: str
    kind: str
    plural: str
    product: str = ""
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As it stands in an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As kubectl takes it without mistaking it for another: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str, name: str = "") -> str:
        """The path of all objects in a namespace, or of one."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{quote(namespace, safe='')}" if self.is_namespaced else ""
        return f"{root}{place}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


NAMESPACE: Final = ObjectKind("", "v1", "Namespace", "namespaces", is_namespaced=False)
POD: Final = ObjectKind("", "v1", "Pod", "pods")
SECRET: Final = ObjectKind("", "v1", "Secret", "secrets")
VOLUME: Final = ObjectKind("", "v1", "PersistentVolume", "persistentvolumes", is_namespaced=False)
STORAGE_CLASS: Final = ObjectKind("storage.k8s.io", "v1", "StorageClass", "storageclasses", is_namespaced=False)
MAPPING: Final = ObjectKind("getambassador.io", "v3alpha1", "Mapping", "mappings", "Emissary")


def object_name(name: str) -> str:
    """A name most kinds take: a DNS subdomain; raises where it is none."""
    if len(name) > MAX_NAME or not _SUBDOMAIN.match(name):
        raise ValueError(
            f"{name!r} is no name for Kubernetes: take up to 253 of a-z, 0-9, - and ., letter or digit first"
        )
    return name


def label_name(name: str) -> str:
    """A name that also stands in a label; raises where it cannot."""
    if len(object_name(name)) > 63:
        raise ValueError(f"{name!r} is too long: it also stands in a label, which holds 63 characters")
    return name


def service_name(name: str) -> str:
    """A name all versions of Kubernetes take for a Service, because it becomes a DNS label; raises where it is none."""
    if not _DNS_1035.match(name):
        raise ValueError(f"{name!r} is no name for a Service: take up to 63 of a-z, 0-9 and -, with a letter first")
    return name


def is_label(key: str, value: str) -> bool:
    """Whether these may be the key and the value of a label."""
    return _KEY.match(key) is not None and _VALUE.match(value) is not None


def _labels(value: dict[str, str]) -> dict[str, str]:
    for key, text in value.items():
        if not is_label(key, text):
            raise ValueError(f"{key!r}: {text!r} is no label: keys and values are up to 63 letters, digits, -, _ and .")
    return value


def _annotations(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if not is_label(key, ""):
            raise ValueError(f"{key!r} is no key of an annotation: take up to 63 letters, digits, -, _ and .")
    return value


def _port_name(value: str) -> str:
    if value.isdecimal():
        raise ValueError(f"{value!r} is no name of a port: it has a letter in it; write a number without quotes")
    return value


def _amount(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value


def _quantity(text: str) -> str:
    if isinstance(quantity(text), str) or quantity(text) < 0:
        raise ValueError(f"{text!r} is no amount: write it like '500m', '2', '512Mi' or '1Gi'")
    return text


def _reference(value: object) -> object:
    return value.id if isinstance(value, Component) else value


Quantity = Annotated[
    str,
    BeforeValidator(_amount, json_schema_input_type=str | int),
    AfterValidator(_quantity),
]
"""An amount, compared by its value: ``500m`` is ``0.5``."""

Labels = Annotated[dict[str, str], AfterValidator(_labels)]
"""Labels, all of which something must have."""

Port = Annotated[int, Field(ge=1, le=65535)]

PortName = Annotated[
    str,
    AfterValidator(_port_name),
    Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$", examples=["http"]),
]
"""A name of a port: up to 15 of a-z, 0-9 and -, with a letter in it."""

ContainerName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", examples=["main"])]
"""A name of a container or of a volume: a DNS label."""

EnvironmentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_.-][A-Za-z0-9_.-]*$")]

Annotations = Annotated[dict[str, str], AfterValidator(_annotations)]
"""Annotations: text under the keys of labels."""

C = TypeVar("C", bound=Component)
Selected = Annotated[str | Labels | C, BeforeValidator(_reference), WithJsonSchema({"type": "string"})]
"""A component of a type whose pods are meant; once resolved, the labels they have."""

Namespace = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", examples=["default"])]
