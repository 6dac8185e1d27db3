"""The services of load balancers, flat and in one spelling, so that declared and actual ones can be compared.

What has the vendor's default is left out of the spelling, on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from fractal_cloud.offers.hetzner.value_types import Part, Port, snake

Service = dict[str, Any]

_HTTP: Final[Mapping[str, Any]] = {
    "cookieName": "HCLBSTICKY",
    "cookieLifetime": 300,
    "certificates": [],
    "redirectHttp": False,
    "stickySessions": False,
}
_CHECK: Final[Mapping[str, Any]] = {"protocol": "tcp", "interval": 15, "timeout": 10, "retries": 3}
_CHECK_HTTP: Final[Mapping[str, Any]] = {
    "domain": "",
    "path": "/",
    "response": "",
    "statusCodes": ["2??", "3??"],
    "tls": False,
}


class HetznerLoadBalancerService(Part):
    """One service: a port that is listened on, and where what comes in is sent."""

    protocol: Literal["tcp", "http", "https"] = Field(description="What is spoken.")
    listen_port: Port = Field(description="The port that is listened on; each only once.")
    destination_port: Port = Field(description="The port of the targets.")
    proxyprotocol: bool | None = Field(
        default=None, description="Whether targets learn who called, by the PROXY protocol."
    )
    certificates: list[int] | None = Field(default=None, description="Ids of the certificates; for https.")
    redirect_http: bool | None = Field(default=None, description="Whether port 80 is redirected to it; for https.")
    sticky_sessions: bool | None = Field(
        default=None, description="Whether a caller stays with one target; for http, https."
    )
    cookie_name: str | None = Field(default=None, description="The cookie that does it.")
    cookie_lifetime: int | None = Field(default=None, description="Its lifetime in seconds.", ge=1)
    health_check_protocol: Literal["tcp", "http"] | None = Field(
        default=None, description="How targets are asked: tcp."
    )
    health_check_port: Port | None = Field(default=None, description="At which port; the destination's if not given.")
    health_check_interval: int | None = Field(default=None, description="Every how many seconds: 15.", ge=3, le=60)
    health_check_timeout: int | None = Field(
        default=None, description="For how many seconds one may take: 10.", ge=1, le=60
    )
    health_check_retries: int | None = Field(default=None, description="How often one may fail: 3.", ge=1, le=5)
    health_check_domain: str | None = Field(default=None, description="The host that is asked for; for http.")
    health_check_path: str | None = Field(default=None, description="The path that is asked for: /; for http.")
    health_check_response: str | None = Field(default=None, description="Text that an answer must hold; for http.")
    health_check_status_codes: list[str] | None = Field(default=None, description="Good answers: 2??, 3??; for http.")
    health_check_tls: bool | None = Field(default=None, description="Whether it is asked with TLS; for http.")

    @model_validator(mode="after")
    def _is_one_service(self) -> Self:
        given = {name for name, value in self.model_dump(by_alias=True).items() if value is not None}
        if self.protocol == "tcp" and (foreign := sorted(given & set(_HTTP))):
            raise ValueError(f"a service for tcp has no {', '.join(foreign)}")
        if self.protocol == "https" and not self.certificates:
            raise ValueError("a service for https needs certificates")
        asked = {f"healthCheck{name[0].upper()}{name[1:]}" for name in _CHECK_HTTP}
        if self.health_check_protocol != "http" and (foreign := sorted(given & asked)):
            raise ValueError(f"a health check by tcp has no {', '.join(foreign)}: set healthCheckProtocol to http")
        return self

    def flat(self) -> Service:
        """The service as it is compared."""
        return spelled(super().flat())


def spelled(service: Mapping[str, Any]) -> Service:
    """A flat service without what has the vendor's default."""
    defaults = {
        "proxyprotocol": False,
        **_HTTP,
        **{_checked(name): value for name, value in {**_CHECK, **_CHECK_HTTP}.items()},
        "healthCheckPort": service["destinationPort"],
    }
    return {
        name: sorted(value) if isinstance(value, list) else value
        for name, value in service.items()
        if value is not None and (name not in defaults or _plain(value) != _plain(defaults[name]))
    }


def each_once(services: list[HetznerLoadBalancerService] | None) -> list[HetznerLoadBalancerService] | None:
    """The services; raises where two listen on one port, which Hetzner refuses."""
    ports = [service.listen_port for service in services or ()]
    for number, port in enumerate(ports):
        if port in ports[:number]:
            raise ValueError(f"two services listen on port {port}: keep one of them")
    return services


def from_answer(item: Mapping[str, Any]) -> Service:
    """A service of an answer, flat."""
    check = item.get("health_check") or {}
    nested = check.get("http") or {} if check.get("protocol") == "http" else {}
    http = item.get("http") or {} if item["protocol"] != "tcp" else {}
    return spelled(
        {
            "protocol": item["protocol"],
            "listenPort": item["listen_port"],
            "destinationPort": item["destination_port"],
            "proxyprotocol": item.get("proxyprotocol"),
            **{name: http.get(snake(name)) for name in _HTTP},
            "healthCheckPort": check.get("port"),
            **{_checked(name): check.get(name) for name in _CHECK},
            **{_checked(name): nested.get(snake(name)) for name in _CHECK_HTTP},
        }
    )


def to_request(service: Service) -> dict[str, Any]:
    """A service as a request has it, whole: what has a default is said too, so that an update resets it."""
    is_web = service["protocol"] != "tcp"
    check = {name: service.get(_checked(name), default) for name, default in _CHECK.items()}
    check["port"] = service.get("healthCheckPort", service["destinationPort"])
    if check["protocol"] == "http":
        check["http"] = {snake(name): service.get(_checked(name), default) for name, default in _CHECK_HTTP.items()}
    http = {snake(name): service.get(name, default) for name, default in _HTTP.items()}
    return {
        "protocol": service["protocol"],
        "listen_port": service["listenPort"],
        "destination_port": service["destinationPort"],
        "proxyprotocol": service.get("proxyprotocol", False),
        "health_check": check,
        **({"http": http} if is_web else {}),
    }


def _checked(name: str) -> str:
    return f"healthCheck{name[0].upper()}{name[1:]}"


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value
