"""Tags and existence of the resources of one type in bulk: the tagging API's list, joined with what is known of each.

The tagging API lags behind, and knows resources by their ARN only. Whatever in it does not look like a settled managed
resource is read by itself (`reading`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import OWNER
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.resources import calls
from fractal_cloud.offers.aws.resources.sighting import Shown, last_word, without_stars
from fractal_cloud.offers.aws.resources.tables.arns import ARNS
from fractal_cloud.offers.aws.services.tagging import TAGGING_API
from fractal_cloud.offers.aws.tags import NAME, from_list
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.seen_pages import SeenPages

_KEY: Final = "ResourceTagMappingList"
_PAGE: Final = 100
_LISTED: Final = Resource(
    service=TAGGING_API,
    kind="tagged resource",
    named_by=("ResourceARN",),
    creates={},
    listings=(Listing(operation="GetResources", path=_KEY, id="ResourceARN", is_by_name=True),),
    not_found=("", 404, ""),
)


class Bulk:
    """What the tagging API shows of one type in one reading."""

    def __init__(self, shown: Shown, query: Query) -> None:
        self._shown = shown
        self._query = query
        self._listed: dict[str, Sighting] | None = None
        self._unknown: dict[str, str] = {}
        self._all: list[str] | None = None

    def listed(self) -> Mapping[str, Sighting]:
        """By identifier, everything that LiveSystems own and that is known; listed once."""
        if self._listed is None:
            self._listed = {one.resource_id: one for one in self._read_list()}
        return self._listed

    def is_calm(self, identifier: str) -> bool:
        """Whether the list suffices for a resource: it is managed, nobody asks for anything, AWS is not at work."""
        sighting = self.listed().get(identifier)
        if sighting is None or self._shown.memory.requests.has_any(sighting.type, identifier):
            return False
        return sighting.protocol.is_managed and not sighting.protocol.reconcile

    def _read_list(self) -> Iterator[Sighting]:
        known = self._shown.known
        about = known.version, self._query.live_systems
        recall = self._query.seen_pages if known.listed == about else SeenPages()
        asked: dict[str, Any] = {"TagFilters": [{"Key": OWNER}]}
        items = self._shown.cloud.sightings(
            replace(self._query, seen_pages=recall), _LISTED, self._sightings, **asked, **self._filter()
        )
        yield from (item for item in items if isinstance(item, Sighting))
        known.listed = about
        self._query.seen_pages.pages.update(recall.pages)

    def _sightings(self, answer: Mapping[str, Any]) -> Iterator[Sighting]:
        known = self._shown.known
        for arn, tags in _mappings(answer[_KEY]):
            identifier = known.by_arn.get(arn)
            if identifier is not None:
                yield self._shown.sighting(known.by_id[identifier], tags, {})
            elif tags.get(OWNER) in self._query.live_systems and arn not in known.foreign and self._may_be_of_type(arn):
                self._unknown[arn] = ""

    def _filter(self) -> dict[str, Any]:
        """What the list is limited to: the service, and the kind of resource where ARNs have one."""
        arn = next(iter(self._shown.known.by_arn), "") or self._template()
        service, kind = _service_and_kind(arn)
        if not service:
            create = self._shown.described.type.handlers.get("create", ())
            service = next((one.partition(":")[0] for one in create), "")
        types = f"{service}:{kind}" if kind and not _resource(arn).startswith("/") else service
        return {"ResourcesPerPage": _PAGE, **({"ResourceTypeFilters": [types]} if types else {})}

    def _template(self) -> str:
        known = ARNS.get(self._shown.described.type.name)
        if known is None:
            return ""
        return f"arn:aws:{known[0]}:{known[1]}"

    # --- what is not known yet

    def unknown(self) -> Iterator[str]:
        """The identifiers that the ARNs of unknown resources may mean, for what LiveSystems of this scope own."""
        self.listed()
        for arn in list(self._unknown):
            identifier = self._identifier(arn)
            if identifier:
                self._unknown[arn] = identifier
                yield identifier

    def conclude(self, identifier: str) -> None:
        """A resource was read: an ARN that it does not have is of another type."""
        known = self._shown.known
        for arn, meant in self._unknown.items():
            if meant == identifier and arn not in known.by_arn:
                known.foreign.add(arn)

    def named(self, name: str) -> Iterable[str]:
        """The identifiers of all resources that bear this tag ``Name``."""
        asked = {"TagFilters": [{"Key": NAME, "Values": [name]}], **self._filter()}
        pages = self._shown.cloud.pages(TAGGING_API.name, "get_resources", _KEY, **asked)
        arns = [arn for page in pages for arn, _ in _mappings(page) if self._may_be_of_type(arn)]
        return [found for arn in arns if (found := self._shown.known.by_arn.get(arn) or self._identifier(arn))]

    def _may_be_of_type(self, arn: str) -> bool:
        pattern = next(iter(self._shown.known.by_arn), "") or self._template()
        kind = _service_and_kind(arn)[1]
        if pattern:
            return _service_and_kind(pattern) == _service_and_kind(arn)
        noun = self._shown.described.type.name.rpartition("::")[2].casefold()
        return not kind or kind.replace("-", "").casefold() in noun or noun in kind.replace("-", "").casefold()

    def _identifier(self, arn: str) -> str:
        """The identifier of the resource of an ARN: the ARN itself, its last word, or one of the type that ends so."""
        kind = self._shown.described.type
        if kind.identifier == (self._shown.described.arn,):
            return arn
        if len(kind.identifier) == 1 and (self._template() or kind.named_by == "identifier"):
            return last_word(arn)
        if kind.list_parents:
            return ""
        if self._all is None:
            self._all = [one for one, _ in calls.listed(self._shown.cloud, kind.name, {})]
        word = last_word(arn)
        return next((one for one in self._all if word in (*one.split("|"), one.rpartition("/")[2])), "")


def _mappings(page: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for one in page:
        yield without_stars(str(one["ResourceARN"])), from_list(one.get("Tags"))


def _resource(arn: str) -> str:
    return arn.split(":", 5)[-1] if arn.count(":") >= 5 else ""


def _service_and_kind(arn: str) -> tuple[str, str]:
    """The service of an ARN, and the kind of its resource: what stands before the first ``/`` or ``:``, if anything."""
    resource = _resource(arn).lstrip("/")
    ends = [place for mark in "/:" if (place := resource.find(mark)) >= 0]
    service = arn.split(":")[2] if arn.startswith("arn:") and arn.count(":") >= 5 else ""
    return service, resource[: min(ends)] if ends else ""


__all__ = ["Bulk"]
