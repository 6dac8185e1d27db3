"""Cloud Run services: found by their name, unique in project and region.

Every write carries the etag that was read. A change of the container makes a new revision, to which traffic goes once
it is ready; until then the old one serves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.referable import SensitiveText
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.resources import GcpOffer, Raw
from fractal_cloud.offers.gcp.tags import check_unchanged, glass, interned, labels_of, relabelled
from fractal_cloud.offers.gcp.value_types import GcpComponent, Region, last_of, run_name
from fractal_cloud.offers.link_types import WorkloadSource
from fractal_cloud.offers.offer import Wanted

Ingress = Literal["INGRESS_TRAFFIC_ALL", "INGRESS_TRAFFIC_INTERNAL_ONLY", "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"]
_UPDATE: Final = "gcloud run services update {serviceName} --project={project} --region={region}"
_CONTAINER: Final = ("image", "containerPort", "env", "cpu", "memory", "command")
_TEMPLATE: Final = (*_CONTAINER, "minInstances", "maxInstances", "concurrency", "timeoutSeconds", "serviceAccount")


class GcpCloudRun(GcpComponent, WorkloadSource):
    """A container that Google runs, and scales with its requests."""

    type = "CustomWorkloads.PaaS.GcpCloudRun"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in project and region; the component's id if not given.",
    )
    region: Region = parameter(immutable=True, description="Region it runs in.")
    image: str = parameter(
        description="The image of its container.", examples=["europe-docker.pkg.dev/shop/images/shop:1.4"]
    )
    container_port: int | None = parameter(
        default=None, ge=1, le=65_535, description="Port it listens at; Google starts with 8080."
    )
    env: Mapping[str, SensitiveText] | None = parameter(
        default=None,
        holds_secrets=True,
        description="Its environment; variables that come from secrets are left alone.",
    )
    cpu: str | None = parameter(default=None, compare="quantity", description="Processors, such as 1 or 500m.")
    memory: str | None = parameter(default=None, compare="quantity", description="Memory, such as 512Mi.")
    command: list[str] | None = parameter(
        default=None, description="What is run instead of the image's own entry point."
    )
    min_instances: int | None = parameter(
        default=None, ge=0, description="Instances that are kept even without requests."
    )
    max_instances: int | None = parameter(default=None, ge=1, description="Instances at most.")
    concurrency: int | None = parameter(
        default=None, ge=1, le=1000, description="Requests that one instance takes at a time."
    )
    timeout_seconds: int | None = parameter(default=None, ge=1, le=3600, description="How long a request may take.")
    service_account: str | None = parameter(
        default=None, pattern=r"^[^@\s]+@[^@\s]+$", description="Email of the service account it acts as."
    )
    ingress: Ingress | None = parameter(
        default=None, description="Where requests may come from; Google starts with all."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return run_name(name)


class GcpCloudRunOffer(GcpOffer[GcpCloudRun]):
    """How services are read and changed, through version 2 of the API."""

    component = GcpCloudRun
    title = "Cloud Run service"
    service = "run"
    rights = tuple(f"run.services.{verb}" for verb in ("create", "delete", "get", "list", "update"))
    place = ("region",)
    outputs: ClassVar[Mapping[str, str]] = {
        "serviceName": "name of the service",
        "servicePath": "the service as `projects/…`",
        "region": "region it runs in",
        "project": "project it is in",
        "uid": "id that no other service will ever have",
        "uri": "address it is reached at, once it has one",
        "latestReadyRevision": "the revision that serves",
        "serviceAccountEmail": "the service account it acts as, where one is set",
    }
    glass = glass(
        f"{_UPDATE} --remove-labels",
        f"{_UPDATE} --update-labels",
        caveat="gcloud copies the labels to the template, and so makes a new revision of the same container",
    )
    guard = "the service's etag on every write: there is no window"

    def collection(self, cloud: Gcp) -> str:
        """All services of the region."""
        return f"/v2/projects/{cloud.project}/locations/{cloud.place}/services"

    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All services of the region; Google has no larger page than it gives by itself."""
        for page in cloud.pages(self.service, self.collection(cloud), "services", pageSize="1000"):
            yield from page

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting:
        """What a service shows."""
        name = last_of(raw["name"])
        labels = labels_of(raw.get("labels"))
        condition, detail = _state(raw)
        region = interned(cloud.place)
        optional = {
            "uri": raw.get("uri"),
            "latestReadyRevision": last_of(raw.get("latestReadyRevision")),
            "serviceAccountEmail": (raw.get("template") or {}).get("serviceAccount"),
        }
        return Sighting(
            type=GcpCloudRun.type,
            name=name,
            resource_id=name,
            incarnation=raw.get("uid", ""),
            protocol=ProtocolTags.from_mapping(labels),
            tags=labels,
            actual={"region": region, **_actual(raw)},
            outputs={
                "serviceName": name,
                "servicePath": raw["name"],
                "region": region,
                "project": interned(cloud.project),
                "uid": raw.get("uid", ""),
                **{key: value for key, value in optional.items() if value},
            },
            condition=condition,
            revision=raw.get("etag", ""),
            detail=detail,
            is_open=True,
        )

    def create(self, cloud: Gcp, wanted: Wanted[GcpCloudRun], tags: ProtocolTags) -> Sighting:
        """Create it with everything."""
        service = wanted.component
        body: dict[str, Any] = {"labels": tags.to_mapping(), "template": {"containers": [{}]}}
        _apply(body, service, [*_TEMPLATE, "ingress"])
        path = self.collection(cloud)
        cloud.write(self.service, "POST", path, body, {"serviceId": service.name})
        begun = {**body, "name": f"{path.removeprefix('/v2/')}/{service.name}", "reconciling": True}
        return self.sighting(cloud, begun)

    def update(self, cloud: Gcp, sighting: Sighting, wanted: Wanted[GcpCloudRun], drift: Collection[str]) -> None:
        """Change everything in one call, on the template as it was read: what else stands in it is somebody else's."""
        raw = self.raw_or_gone(cloud, sighting.name)
        check_unchanged(sighting, raw.get("labels") or {})
        changed = {"etag": raw["etag"], "template": deepcopy(raw.get("template") or {"containers": [{}]})}
        changed["template"].pop("revision", None)  # a new revision cannot have an old one's name
        _apply(changed, wanted.component, drift)
        mask = [*(["template"] if any(name in _TEMPLATE for name in drift) else []), *_outer(drift)]
        if mask:
            body = {key: changed[key] for key in ("etag", *mask)}
            cloud.write(self.service, "PATCH", self.path(cloud, sighting.name), body, {"updateMask": ",".join(mask)})

    def delete(self, cloud: Gcp, sighting: Sighting) -> None:
        """Delete it as it was read."""
        cloud.remove(self.service, self.path(cloud, sighting.name), {"etag": sighting.revision or ""})

    def tag(self, cloud: Gcp, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write the whole map, made of the labels that were just read, with the etag of that read (T10)."""
        raw = self.raw_or_gone(cloud, sighting.name)
        labels = raw.get("labels") or {}
        check_unchanged(sighting, labels)
        body = {"etag": raw["etag"], "labels": relabelled(labels, add, remove)}
        cloud.write(self.service, "PATCH", self.path(cloud, sighting.name), body, {"updateMask": "labels"})


def _outer(drift: Collection[str]) -> list[str]:
    return [name for name in ("ingress",) if name in drift]


def _apply(body: dict[str, Any], service: GcpCloudRun, names: Collection[str]) -> None:
    """Write the declared values of these parameters into a service; None where nothing is declared changes nothing."""
    template = body["template"]
    container = template["containers"][0]
    wanted = service.model_dump(mode="json", by_alias=True)
    for name in names:
        value = wanted.get(name)
        if value is None:
            continue
        match name:
            case "containerPort":
                container["ports"] = [{"containerPort": value}]
            case "env":
                kept = [one for one in container.get("env") or () if "valueSource" in one and one["name"] not in value]
                container["env"] = [*({"name": key, "value": text} for key, text in value.items()), *kept]
            case "cpu" | "memory":
                container.setdefault("resources", {}).setdefault("limits", {})[name] = value
            case "minInstances" | "maxInstances":
                template.setdefault("scaling", {})[f"{name[:3]}InstanceCount"] = value
            case "concurrency":
                template["maxInstanceRequestConcurrency"] = value
            case "timeoutSeconds":
                template["timeout"] = f"{value}s"
            case "serviceAccount":
                template["serviceAccount"] = value
            case "ingress":
                body["ingress"] = value
            case _:
                container[name] = value


def _actual(raw: Raw) -> dict[str, Any]:
    template = raw.get("template") or {}
    container: Raw = next(iter(template.get("containers") or ()), {})
    limits = (container.get("resources") or {}).get("limits") or {}
    scaling = template.get("scaling") or {}
    ports = container.get("ports") or ()
    return {
        "image": container.get("image"),
        "containerPort": next((port.get("containerPort") for port in ports), None),
        "env": {one["name"]: one.get("value", "") for one in container.get("env") or () if "valueSource" not in one},
        "cpu": limits.get("cpu"),
        "memory": limits.get("memory"),
        "command": list(container.get("command") or ()),
        "minInstances": scaling.get("minInstanceCount", 0),
        "maxInstances": scaling.get("maxInstanceCount"),
        "concurrency": template.get("maxInstanceRequestConcurrency"),
        "timeoutSeconds": _seconds(template.get("timeout")),
        "serviceAccount": template.get("serviceAccount"),
        "ingress": raw.get("ingress"),
    }


def _seconds(text: str | None) -> int | None:
    return int(float(text.removesuffix("s"))) if text else None


def _state(raw: Raw) -> tuple[Condition, str]:
    """What the service's condition means. A new revision that fails leaves the old one serving, and takes changes."""
    if raw.get("deleteTime"):
        return Condition.DYING, "is being deleted"
    condition = raw.get("terminalCondition") or {}
    if raw.get("reconciling"):
        made = raw.get("latestReadyRevision")
        return (Condition.CHANGING if made else Condition.CREATING), "is being rolled out"
    if condition.get("state") == "CONDITION_FAILED":
        return Condition.BROKEN, str(condition.get("message") or condition.get("reason") or "failed")
    return Condition.SETTLED, ""
