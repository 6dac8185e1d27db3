"""Who calls: tokens for people and for the agent, as a managed identity or a service principal gets them.

A token is a JWT without a signature; it says who asked for it, and opens nothing but the sandbox.
"""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import parse_qsl

from fractal_sandbox.azure import SUBSCRIPTION, TENANT
from fractal_sandbox.calls import Actor
from fractal_sandbox.real_postgres import REAL_POSTGRES
from fractal_sandbox.rest import Draft, Refused, Reply, Request

__all__ = [
    "actor_of",
    "caller",
    "is_public",
    "managed_identity",
    "metadata",
    "openid",
    "service_principal",
    "subscriptions",
]

_SECONDS = 86_400
_DATABASES = "ossrdbms-aad.database"
_CALLERS: dict[str, Actor] = {"agent": "agent", "person": "person"}


def _encoded(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _token(caller: Actor, audience: str) -> str:
    now = int(time.time())
    claims = {"aud": audience, "iss": f"https://sts/{TENANT}/", "iat": now, "nbf": now, "exp": now + _SECONDS}
    claims |= {"tid": TENANT, "oid": caller, "appid": caller, "sub": caller}
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}.sandbox"


def is_public(path: str) -> bool:
    """Whether a path needs no token: it is where tokens come from."""
    return path.startswith(("/msi/", "/metadata/")) or "/oauth2/" in path or "/.well-known/" in path


def caller(token: str, audience: str) -> Actor | None:
    """Who a token was made for; None where it is none, or for somebody else than that audience (any, if empty)."""
    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return _CALLERS[claims["oid"]] if audience in ("", claims["aud"]) else None
    except (IndexError, KeyError, ValueError, TypeError):
        return None


def actor_of(request: Request) -> Actor:
    """Who a token was made for; refuses any other."""
    actor = caller(request.headers.get("authorization", "").removeprefix("Bearer "), "")
    if actor is None:
        raise Refused(
            401,
            "InvalidAuthenticationToken",
            "The access token is missing or none of the sandbox's: `fractal sandbox env` says where to get one.",
        )
    return actor


def managed_identity(request: Request, draft: Draft) -> Reply:
    """A token for the machine's own identity; the header says which one that is here."""
    caller = _CALLERS.get(request.headers.get("x-identity-header", ""))
    if caller is None:
        raise Refused(400, "invalid_request", "X-IDENTITY-HEADER must be what IDENTITY_HEADER says.")
    audience = request.query.get("resource", "")
    token = _token(caller, audience)
    if _DATABASES in audience:
        _let_in(draft, caller, token)
    content = {
        "access_token": token,
        "expires_on": str(int(time.time()) + _SECONDS),
        "resource": audience,
        "token_type": "Bearer",
        "client_id": caller,
    }
    return Reply(200, content)


def _let_in(draft: Draft, caller: Actor, token: str) -> None:
    """Have the real server take a token for the password of whoever is an administrator of servers here."""
    for _, child in draft.everything("children"):
        if child["parent"].endswith("/administrators") and child["name"] == caller:
            REAL_POSTGRES.let_in(str(child["properties"]["principalName"]), token)


def service_principal(request: Request, _: Draft) -> Reply:
    """A token for a service principal: its client id is `agent` or `person`, its secret anything."""
    given = dict(parse_qsl(request.body.decode()))
    caller = _CALLERS.get(given.get("client_id", ""))
    if caller is None:
        raise Refused(401, "invalid_client", "The sandbox knows the client ids `agent` and `person`.")
    content = {
        "token_type": "Bearer",
        "expires_in": _SECONDS,
        "ext_expires_in": _SECONDS,
        "access_token": _token(caller, given.get("scope", "").removesuffix("/.default")),
    }
    return Reply(200, content)


def openid(request: Request, _: Draft) -> Reply:
    """Where the vendor's library of credentials learns its addresses."""
    tenant = f"{request.base}/{request.words['tenant']}"
    content = {
        "issuer": f"{tenant}/v2.0",
        "authorization_endpoint": f"{tenant}/oauth2/v2.0/authorize",
        "token_endpoint": f"{tenant}/oauth2/v2.0/token",
        "device_authorization_endpoint": f"{tenant}/oauth2/v2.0/devicecode",
        "tenant_region_scope": "EU",
    }
    return Reply(200, content)


def metadata(request: Request, _: Draft) -> Reply:
    """What `az cloud register` asks of a cloud it does not know."""
    content = {
        "name": "fractal-sandbox",
        "resourceManager": request.base,
        "authentication": {
            "loginEndpoint": request.base,
            "audiences": [request.base],
            "tenant": TENANT,
            "identityProvider": "AAD",
        },
        "suffixes": {"storage": "core.windows.net"},
    }
    return Reply(200, [content])


_ONE = {
    "id": f"/subscriptions/{SUBSCRIPTION}",
    "subscriptionId": SUBSCRIPTION,
    "tenantId": TENANT,
    "displayName": "sandbox",
    "state": "Enabled",
}


def subscriptions(_: Request, __: Draft) -> Reply:
    """The one subscription there is."""
    return Reply(200, {"value": [_ONE]})


def subscription(request: Request, _: Draft) -> Reply:
    """One subscription by its id."""
    asked = request.words["subscription"]
    if asked.lower() != SUBSCRIPTION:
        raise Refused(404, "SubscriptionNotFound", f"The subscription '{asked}' could not be found.")
    return Reply(200, _ONE)
