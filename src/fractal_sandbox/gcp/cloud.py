"""Google Cloud in the sandbox: its callers, its refusals, and its APIs put together. Each API has a file of its own."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import parse_qs
from uuid import uuid4

from fractal_sandbox.calls import Actor
from fractal_sandbox.gcp import NUMBERS, TOKENS
from fractal_sandbox.gcp.common import OPERATION, Service, good, stated
from fractal_sandbox.gcp.compute_operations import Compute
from fractal_sandbox.gcp.container import CLUSTER, Container
from fractal_sandbox.gcp.identities import ACCOUNT, HMAC_KEY, IAM_POLICY, Identities
from fractal_sandbox.gcp.instances import DISK, INSTANCE, Instances
from fractal_sandbox.gcp.knative import Knative
from fractal_sandbox.gcp.networks import FIREWALL, NETWORK, SUBNETWORK, Networks
from fractal_sandbox.gcp.run import RUN_SERVICE, Run
from fractal_sandbox.gcp.sql import BACKUP, DATABASE, Sql
from fractal_sandbox.gcp.storage import BUCKET, OBJECT, Storage
from fractal_sandbox.gcp.storage_as_s3 import StorageAsS3
from fractal_sandbox.rest import Draft, Kind, Refused, Reply, Request, RestCloud, Route
from fractal_sandbox.s3_signatures import key_id_of

__all__ = ["GcpCloud"]

_TOKEN_PATH = "/token"
_PLACE = re.compile(r"/(?:zones|regions|locations)/([^/:]+)")


class GcpCloud(RestCloud):
    """Two projects. `exhausted_zones`: where a machine's creation is accepted and then fails for want of capacity."""

    name = "gcp"
    kinds: ClassVar[tuple[Kind, ...]] = (
        INSTANCE,
        DISK,
        NETWORK,
        SUBNETWORK,
        FIREWALL,
        BUCKET,
        OBJECT,
        RUN_SERVICE,
        CLUSTER,
        DATABASE,
        BACKUP,
        OPERATION,
        ACCOUNT,
        HMAC_KEY,
        IAM_POLICY,
    )

    def __init__(self) -> None:
        self.exhausted_zones: set[str] = set()
        super().__init__()

    def routes(self) -> list[Route]:
        services: list[Service] = [
            Instances(self.knobs, self.exhausted_zones),
            Networks(self.knobs),
            Compute(self.knobs),
            Storage(self.knobs),
            Run(self.knobs),
            Knative(self.knobs),
            Container(self.knobs),
            Sql(self.knobs),
            Identities(self.knobs),
            StorageAsS3(self.knobs),  # last: it takes any path for a bucket's
        ]
        own = [
            Route("POST", _TOKEN_PATH, "sts", "exchangeToken", self._exchange, read="a token, which is no resource"),
            Route("GET", "/v3/projects/{project}", "cloudresourcemanager", "getProject", self._project),
            Route("GET", "/v1/projects/{project}", "cloudresourcemanager", "getProject", self._project),
        ]
        return [*own, *(route for service in services for route in service.routes())]

    def reset(self) -> None:
        self.exhausted_zones.clear()
        super().reset()

    def begin(self, draft: Draft) -> None:
        """Networks are there from the start, because the agent cannot make any."""
        Networks.make_defaults(draft, NUMBERS)

    def actor_of(self, request: Request) -> Actor:
        if request.path == _TOKEN_PATH:
            return "person"
        if key_id_of(request):
            return "person"  # what runs somewhere, with a key that is checked there
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        for actor, known in TOKENS.items():
            if token == known:
                return actor
        raise stated(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")

    def refusal(self, refused: Refused) -> Reply:
        """The older APIs give a reason, the newer ones a status."""
        error = {"code": refused.status, "message": refused.message}
        if refused.code.isupper():
            error["status"] = refused.code
        else:
            error["errors"] = [{"message": refused.message, "domain": "global", "reason": refused.code}]
        return Reply(refused.status, {"error": error})

    def throttled(self) -> Refused:
        """Google throttles with 403 as often as with 429, and says no time."""
        return Refused(403, "rateLimitExceeded", "Rate Limit Exceeded")

    def denied(self, missing: str) -> Refused:
        return stated(403, "PERMISSION_DENIED", f"Permission {missing!r} denied on resource (or it may not exist).")

    def headers(self) -> tuple[tuple[str, str], ...]:
        return (("x-guploader-uploadid", uuid4().hex),)

    def page_of(self, request: Request) -> int:
        return int((request.query.get("pageToken") or "1").partition(".")[0])

    def region_of(self, request: Request) -> str:
        found = _PLACE.search(request.path)
        return found.group(1) if found else "global"

    def _exchange(self, request: Request, draft: Draft) -> Reply:
        del draft
        token = parse_qs(request.body.decode()).get("subject_token", [""])[0].strip()
        if token not in TOKENS.values():
            return Reply(400, {"error": "invalid_grant", "error_description": "the sandbox does not know this token"})
        return good(
            {
                "access_token": token,
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "token_type": "Bearer",
                "expires_in": 3600,
            }
        )

    def _project(self, request: Request, draft: Draft) -> Reply:
        del draft
        wanted = request.words["project"]
        for project, number in NUMBERS.items():
            if wanted in (project, number):
                name = f"projects/{number}"
                return good(
                    {
                        "name": name,
                        "projectId": project,
                        "state": "ACTIVE",
                        "displayName": project,
                    }
                )
        raise stated(403, "PERMISSION_DENIED", f"Permission denied on project '{wanted}' (or it may not exist).")
