"""What Hetzner's answers mean in our closed set of errors, by the vendor's own codes: they say more than a status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Protected,
    Throttled,
    Transient,
)
from fractal_cloud.offers.rest import Answer, Dialect

REQUEST_ID: Final = "X-Correlation-Id"

_KINDS: Final[Mapping[str, type[CloudError]]] = {
    "unauthorized": Denied,
    "forbidden": Denied,
    "token_readonly": Denied,
    "not_found": NotFound,
    "rate_limit_exceeded": Throttled,
    # busy, in use, or short of something that may be there later
    "conflict": Conflict,
    "locked": Conflict,
    "resource_locked": Conflict,
    "uniqueness_error": Conflict,
    "resource_in_use": Conflict,
    "resource_unavailable": Conflict,
    "placement_error": Conflict,
    "maintenance": Conflict,
    "no_space_left_in_location": Conflict,
    "server_not_stopped": Conflict,
    "server_already_attached": Conflict,
    "load_balancer_already_attached": Conflict,
    "volume_already_attached": Conflict,
    "server_not_attached_to_network": Conflict,
    "load_balancer_not_attached_to_network": Conflict,
    "firewall_already_applied": Conflict,
    "firewall_already_removed": Conflict,
    "firewall_resource_not_found": Conflict,
    "target_already_defined": Conflict,
    "targets_without_use_private_ip": Conflict,
    "protected": Protected,
    "resource_limit_exceeded": LimitReached,
    # nobody can say what came of it
    "service_error": Transient,
    "server_error": Transient,
    "unknown_error": Transient,
    "unavailable": Transient,
    "robot_unavailable": Transient,
    "bad_gateway": Transient,
    "timeout": Transient,
}


class HetznerDialect(Dialect):
    """Hetzner's HTTP. The vendor's client puts the token into every request."""

    provider = "hetzner"
    request_id_header = REQUEST_ID

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Nothing to add: the vendor's client does it."""
        del method, url, headers, content

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """The code and the words of the error object, which a gateway in between may not have sent."""
        body = answer.body()
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict):
            return "", f"HTTP status {answer.status}"
        return str(error.get("code") or ""), str(error.get("message") or "")

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """By the code; where there is none, or a new one, by the status."""
        found = _KINDS.get(code)
        if found is not None:
            return found
        return Invalid if answer.status == 409 and code else super().kind_of(answer, code)
