"""Gateways: an Emissary ``Host``, to which Mappings attach by their hostname. The decision page says why a Host."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind, object_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State, readable
from fractal_cloud.offers.kubernetes.service import SERVICE, ingress_of
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.offer import Wanted

HOST: Final = ObjectKind("getambassador.io", "v3alpha1", "Host", "hosts", "Emissary")

# The label that Emissary puts on the Service through which the world comes in.
FRONT: Final = "app.kubernetes.io/component=ambassador-service"


class Ambassador(ObjectComponent):
    """A gateway through which the world reaches workloads: a hostname of Emissary, to which Mappings attach."""

    type = "APIManagement.CaaS.Ambassador"

    hostname: str = parameter(
        default="*",
        pattern=r"^(\*|(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)$",
        description="The name under which it is reached; * for all.",
        examples=["api.example.com"],
    )
    tls_secret: str | None = parameter(default=None, description="Name of the secret with its certificate.")
    insecure_action: Literal["Redirect", "Reject", "Route"] | None = parameter(
        default=None, description="What becomes of requests without TLS; Emissary redirects them."
    )
    acme_authority: str | None = parameter(
        default=None, description="Who issues its certificate, an ACME directory; `none` where nobody shall."
    )
    ambassador_id: list[str] | None = parameter(
        default=None,
        compare="unordered",
        min_length=1,
        description="Which installations of Emissary serve it; `default`.",
    )
    _check_name = field_validator("name")(object_name)


class AmbassadorOffer(ObjectOffer[Ambassador]):
    """How Hosts are read and changed."""

    component = Ambassador
    title = "Gateway (Emissary, once Ambassador)"
    object_kind = HOST
    vendor_type = "getambassador.io/v3alpha1/Host"
    listed_everywhere = (SERVICE,)  # through which the world comes in, wherever Emissary is
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "hostname": "the name under which it is reached",
        "ambassadorId": "the installations of Emissary that serve it",
        "state": "what Emissary says of it",
        "address": "address or name at which the world reaches Emissary, where the cluster shows it",
    }
    glass = glass(HOST)

    def actual(self, item: Object) -> dict[str, Any]:
        """Its spec, flat."""
        spec = item["spec"]
        policy = (spec.get("requestPolicy") or {}).get("insecure") or {}
        return {
            "hostname": spec.get("hostname"),
            "tlsSecret": (spec.get("tlsSecret") or {}).get("name"),
            "insecureAction": policy.get("action"),
            "acmeAuthority": (spec.get("acmeProvider") or {}).get("authority"),
            "ambassadorId": spec.get("ambassador_id"),
        }

    def apply(self, item: Object, wanted: Wanted[Ambassador], names: Collection[str]) -> None:
        """Write what is declared."""
        declared, spec = wanted.component, item["spec"]
        if "hostname" in names:
            spec["hostname"] = declared.hostname
        if "tlsSecret" in names:
            spec["tlsSecret"] = {**(spec.get("tlsSecret") or {}), "name": declared.tls_secret}
        if "insecureAction" in names:
            policy = spec.get("requestPolicy") or {}
            insecure = {**(policy.get("insecure") or {}), "action": declared.insecure_action}
            spec["requestPolicy"] = {**policy, "insecure": insecure}
        if "acmeAuthority" in names:
            spec["acmeProvider"] = {**(spec.get("acmeProvider") or {}), "authority": declared.acme_authority}
        if "ambassadorId" in names:
            spec["ambassador_id"] = declared.ambassador_id

    def beside(self, cloud: Kubernetes, items: Sequence[Object]) -> list[Object]:
        """The Services through which the world comes in, in whichever namespace Emissary is."""
        return readable(lambda: cloud.select(SERVICE, FRONT)) if items else []

    def state(self, item: Object, beside: Any) -> State:
        """What Emissary says; where it says nothing, the Host is as good as it gets."""
        del beside
        status = item.get("status") or {}
        if status.get("state") == "Error":
            return Condition.BROKEN, str(status.get("errorReason") or "Emissary says Error")
        if status.get("state") == "Pending":
            phase = status.get("phasePending") or "Pending"
            return Condition.CHANGING, f"Emissary is at work: {phase}"
        return SETTLED

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """How it is reached."""
        spec = item["spec"]
        address = _address(item, beside)
        return {
            "hostname": spec.get("hostname", "*"),
            "ambassadorId": spec.get("ambassador_id") or ["default"],
            "state": (item.get("status") or {}).get("state", ""),
            **({"address": address} if address else {}),
        }


def _address(item: Object, fronts: Sequence[Object]) -> str:
    """The outside address of the Service in front of a Host: that of its own namespace, or the only one there is."""
    near = [front for front in fronts if front["metadata"]["namespace"] == item["metadata"]["namespace"]]
    chosen = near or list(fronts)
    ingress = ingress_of(chosen[0]) if len(chosen) == 1 else []
    return ingress[0] if ingress else ""
