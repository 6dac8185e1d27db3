"""One region of a tenancy: identity, core services, Object Storage and Resource Search at one address."""

from __future__ import annotations

import re
from typing import ClassVar, Final
from uuid import uuid4

from fractal_sandbox.calls import Actor
from fractal_sandbox.oci import REGION, TENANCY, buckets, common, identities, instances, networks, storage_as_s3
from fractal_sandbox.oci.core import BASE, COMPARTMENT, TOKEN, existing
from fractal_sandbox.oci.signatures import signer_of
from fractal_sandbox.rest import Body, Draft, Kind, Refused, Reply, Request, RestCloud, Route

__all__ = ["COMPARTMENTS", "OciCloud"]

# What there is from the start, by path: ids are plain, so that examples can name them.
COMPARTMENTS: Final = {
    "": TENANCY,
    "team": "ocid1.compartment.oc1..sandboxteam",
    "team/network": "ocid1.compartment.oc1..sandboxnetwork",
}
_SEARCHED: Final = {
    "vcn": (networks.VCN, "Vcn", "displayName"),
    "subnet": (networks.SUBNET, "Subnet", "displayName"),
    "instance": (instances.INSTANCE, "Instance", "displayName"),
    "bucket": (buckets.BUCKET, "Bucket", "name"),
}
_QUERY: Final = re.compile(
    r"\s*query\s+(?P<types>[\w ,]+?)\s+resources(?:\s+where\s+(?P<where>.+?))?\s*", re.IGNORECASE
)
_CLAUSE: Final = re.compile(r"\s*freeformTags\.(key|value)\s*=\s*'([^']*)'\s*", re.IGNORECASE)


class OciCloud(RestCloud):
    """A tenancy with three compartments, in one region. `domain`: what its identity domain asks of users."""

    name: ClassVar[str] = "oci"
    kinds: ClassVar[tuple[Kind, ...]] = (
        networks.VCN,
        networks.SUBNET,
        networks.GATEWAY,
        networks.VNIC,
        *(networks.part_kind(path) for path in networks.PARTS),
        instances.INSTANCE,
        instances.REMAINS,
        instances.BOOT_VOLUME,
        instances.ATTACHMENT,
        buckets.BUCKET,
        buckets.OBJECT,
        COMPARTMENT,
        TOKEN,
        *identities.KINDS,
    )

    def __init__(self) -> None:
        self.domain = identities.Domain()
        super().__init__()

    def reset(self) -> None:
        self.domain.needs_email = False
        super().reset()

    def routes(self) -> list[Route]:
        return [
            Route("GET", f"{BASE}/compartments", "identity", "listCompartments", self._compartments),
            Route("GET", f"{BASE}/compartments/{{id}}", "identity", "getCompartment", _compartment),
            Route("GET", f"{BASE}/availabilityDomains", "identity", "listAvailabilityDomains", _domains),
            *networks.routes(self.knobs),
            *instances.routes(self.knobs),
            *buckets.routes(self.knobs),
            *identities.routes(self.knobs, self.domain),
            *storage_as_s3.routes(),
            Route("POST", "/20180409/resources", "search", "searchResources", self._search, read="a search"),
        ]

    def actor_of(self, request: Request) -> Actor:
        if request.path.startswith(f"{storage_as_s3.PATH}/"):
            return "person"  # what runs somewhere, with a key that is checked there
        return signer_of(request.method, request.target, request.headers, request.body)

    def refusal(self, refused: Refused) -> Reply:
        return Reply(refused.status, {"code": refused.code, "message": refused.message})

    def throttled(self) -> Refused:
        return Refused(429, "TooManyRequests", "Too many requests for the user.")

    def denied(self, missing: str) -> Refused:
        """OCI says the same of what is not there; which right was missing, only the sandbox adds."""
        hidden = common.not_found()
        return Refused(hidden.status, hidden.code, f"{hidden.message} ({missing} is not granted)")

    def begin(self, draft: Draft) -> None:
        for path, compartment in COMPARTMENTS.items():
            above, _, name = path.rpartition("/")
            body = {
                "id": compartment,
                "name": name or "sandbox",
                "description": name or "the tenancy",
                "timeCreated": common.now(),
                "compartmentId": COMPARTMENTS[above] if path else None,
                "lifecycleState": "ACTIVE",
                common.VERSION: 1,
            }
            draft.put(COMPARTMENT.name, compartment, body)

    def page_of(self, request: Request) -> int:
        return common.page_number(request)

    def region_of(self, request: Request) -> str:
        del request
        return REGION

    def headers(self) -> tuple[tuple[str, str], ...]:
        return (("opc-request-id", f"{uuid4().hex.upper()}/{uuid4().hex.upper()}/{uuid4().hex.upper()}"),)

    def _compartments(self, request: Request, draft: Draft) -> Reply:
        above = request.query.get("compartmentId", "")
        existing(draft, COMPARTMENT.name, above)
        whole = request.query.get("compartmentIdInSubtree") == "true"
        every = [common.shown(body) for _, body in draft.everything(COMPARTMENT.name)]
        below = [one for one in every if one["compartmentId"] and (whole or one["compartmentId"] == above)]
        return common.page(request, self.knobs, below)

    def _search(self, request: Request, draft: Draft) -> Reply:
        """Resources by their free-form tags, across types; a clause may fit one tag and another clause another one."""
        given = common.check_fields(request.json(), ("type", "query", "matchingContextType"))
        asked = _QUERY.fullmatch(str(given.get("query", "")))
        if given.get("type") != "Structured" or asked is None:
            raise common.invalid(f"the query {given.get('query')!r} cannot be understood here")
        types = [word.strip().lower() for word in asked["types"].split(",")]
        clauses = [_CLAUSE.fullmatch(part) for part in re.split(r"&&", asked["where"])] if asked["where"] else []
        wanted = [(clause[1].lower(), clause[2]) for clause in clauses if clause is not None]
        if len(wanted) < len(clauses):
            raise common.invalid(f"the clauses of {given.get('query')!r} cannot be understood here")
        found = [
            _summary(noun, body, body[name])
            for word, (kind, noun, name) in _SEARCHED.items()
            if types == ["all"] or word in types
            for _, body in draft.everything(kind.name)
            if all(_fits(body, part, value) for part, value in wanted)
        ]
        page = common.page(request, self.knobs, found)
        return Reply(200, {"items": page.content}, page.headers)


def _fits(body: Body, part: str, value: str) -> bool:
    tags = body["freeformTags"]
    return value.lower() in {key.lower() for key in tags} if part == "key" else value in tags.values()


def _summary(noun: str, body: Body, name: str) -> Body:
    return {
        "resourceType": noun,
        "identifier": body["id"],
        "displayName": name,
        **{key: body.get(key) for key in ("compartmentId", "lifecycleState", "freeformTags", "definedTags")},
    }


def _compartment(request: Request, draft: Draft) -> Reply:
    return common.answer(existing(draft, COMPARTMENT.name, request.words["id"]))


def _domains(request: Request, draft: Draft) -> Reply:
    del request, draft
    return Reply(200, [{"name": name, "compartmentId": TENANCY} for name in instances.DOMAINS])
