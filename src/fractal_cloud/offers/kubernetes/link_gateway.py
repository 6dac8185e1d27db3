"""Links to a gateway: a Mapping of Emissary that leads a host name and a path to the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.kubernetes.ambassador import Ambassador
from fractal_cloud.offers.kubernetes.kinds import MAPPING, Object
from fractal_cloud.offers.kubernetes.linked import bring, mark_of, marked, name_of, remove
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.link import InboundLink, OutboundLink, Published, inbound, outbound
from fractal_cloud.offers.link_types import API_GATEWAY_LINK, ApiGatewayLink


@inbound(source=KubernetesWorkload, target=Ambassador, link_type=API_GATEWAY_LINK, settings=ApiGatewayLink)
def map_path(link: InboundLink[ApiGatewayLink]) -> Published | None:
    """Lead requests for the host name and the path to the source."""
    spec = _spec(link)
    if spec is None:
        return None
    _check_free(link)
    bring(link.cloud, MAPPING, name_of(link), link.mark, {"spec": spec})
    scheme = "https" if link.there.actual.get("tlsSecret") else "http"
    settings = link.settings
    return {"url": f"{scheme}://{settings.hostname}{settings.prefix}", "mapping": name_of(link)}


@map_path.revokes
def unmap_path(link: InboundLink[ApiGatewayLink]) -> None:
    """Take the Mapping away."""
    remove(link.cloud, MAPPING, link.mark)


@map_path.verifies
def still_mapped(links: Sequence[InboundLink[ApiGatewayLink]]) -> Iterator[InboundLink[ApiGatewayLink]]:
    """Those whose Mapping is there and says the same: one list for all."""
    if not links:
        return
    found = marked(links[0].cloud, MAPPING, {link.mark for link in links})
    there = {mark_of(item): item["spec"] for item in found}
    for link in links:
        if _spec(link) in (None, there.get(link.mark)):
            yield link


def _spec(link: InboundLink[ApiGatewayLink]) -> Object | None:
    settings, outputs = link.settings, link.outputs
    port = settings.port or outputs.get("containerPort")
    if not outputs.get("name"):
        return None
    service = f"{outputs['name']}.{outputs['namespace']}" + (f":{port}" if port else "")
    spec: Object = {"hostname": settings.hostname, "prefix": settings.prefix, "service": service}
    if settings.rewrite is not None:
        spec["rewrite"] = settings.rewrite
    if settings.timeout_ms is not None:
        spec["timeout_ms"] = settings.timeout_ms
    ids = link.there.outputs.get("ambassadorId") or ["default"]
    return spec if ids == ["default"] else {**spec, "ambassador_id": list(ids)}


def _check_free(link: InboundLink[ApiGatewayLink]) -> None:
    """Two Mappings of one host name and path share their requests by weight: nobody wants that by accident."""
    settings = link.settings
    for item in link.cloud.list(MAPPING):
        spec = item["spec"]
        same = (spec.get("hostname"), spec.get("prefix")) == (settings.hostname, settings.prefix)
        if same and mark_of(item) != link.mark:
            raise Conflict(
                f"Mapping {item['metadata']['name']!r} leads {settings.hostname}{settings.prefix} somewhere else: "
                "choose another prefix, or delete it"
            )


@outbound(source=KubernetesWorkload, target=Ambassador, link_type=API_GATEWAY_LINK, settings=ApiGatewayLink)
def be_reached(link: OutboundLink[ApiGatewayLink]) -> Published | None:
    """Publish to the workload the address under which the world reaches it."""
    return {"url": link.published["url"]} if "url" in link.published else None
