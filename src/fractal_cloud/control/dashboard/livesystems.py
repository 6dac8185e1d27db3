"""The pages of LiveSystems: all of them, one of them, and what deleting one would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import StringConstraints

from fractal_cloud.control.api import livesystems as api
from fractal_cloud.control.api.filters import LiveSystemFilters
from fractal_cloud.control.api.routing import LiveSystemId, TheStore
from fractal_cloud.control.auth.sensitive_texts import SensitiveTexts
from fractal_cloud.control.dashboard import approvals, attention, graph, paging
from fractal_cloud.control.dashboard.pages import PageRoute, render, see
from fractal_cloud.control.dashboard.sessions import ActingForm, TheVisitor, Visitor, enter_by_link, find_visitor
from fractal_cloud.control.store import (
    Store,
    components,
    events,
    livesystems,
    mutations,
    previews,
    recovery,
    visibility,
)
from fractal_cloud.control.store.attention import needed
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.graph import Vertex, edges, vertices
from fractal_cloud.control.store.listing import Order
from fractal_cloud.rules import acts

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
LIVE_SYSTEMS: Final = 50
COMPONENTS: Final = 50
EVENTS_OF_ONE: Final = 100
ACTS: Final = 10
DRIFT, STALE = "drift", "stale"
OpenGroup = Annotated[str, StringConstraints(max_length=200)]
NEWEST: Final = 10
MOST_ENVIRONMENTS: Final = 50
"""So many are offered to choose from; of more, one is typed."""

After = Annotated[str | None, Query(max_length=100)]


@router.get("")
@router.get("/")
def overview(
    request: Request,
    store: TheStore,
    filters: LiveSystemFilters,
    token: str = "",
    sort: Order = Order.WORST,
    page: paging.Number = 1,
) -> Response:
    """What needs a person, and all LiveSystems, the worst first; with ``?token=`` the page a printed link leads to."""
    if token:
        return enter_by_link(request, token)
    visitor = find_visitor(request)
    sees = visitor.who.sees
    with store.read() as tx:
        seen = SensitiveTexts(visitor.who, lambda: store.catalog(tx))
        found = livesystems.list_page(tx, paging.place(page, LIVE_SYSTEMS), filters, sort, sees)
        values: dict[str, Any] = {
            "needed": attention.worded(needed(tx, sees, attention.FEW), seen),
            "events": events.list_page(tx, None, NEWEST, None, sees),
            "recovery": recovery.status(tx, sees),
            "unapproved": approvals.waiting(tx, visitor),
            "environments": visibility.environments(tx, sees, MOST_ENVIRONMENTS),
        }
    here = paging.Paging.of(request, page, LIVE_SYSTEMS, found)
    return render("livesystems.html", visitor=visitor, live_systems=found.items, here=here, sort=sort, **values)


@router.get("/livesystems/{id}")
def one(
    live_system_id: LiveSystemId,
    store: TheStore,
    visitor: TheVisitor,
    show: Annotated[str, Query(max_length=40)] = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    opened: Annotated[list[OpenGroup] | None, Query(alias="open", max_length=graph.MOST_DRAWN)] = None,
) -> Response:
    """One LiveSystem: how its components hang together, worst first what they are, and what happened."""
    with store.read() as tx:
        seen = SensitiveTexts(visitor.who, lambda: store.catalog(tx))
        live_system = livesystems.summary(tx, live_system_id)
        mutation = mutations.newest(tx, live_system_id)
        every = vertices(tx, live_system_id)
        shown = _shown(tx, live_system_id, every, show)
        first = (page - 1) * COMPONENTS
        found = seen.components(components.some(tx, live_system_id, [c.id for c in shown[first : first + COMPONENTS]]))
        newest = events.list_page(tx, live_system_id, EVENTS_OF_ONE, None)
        drawing = graph.draw(every, edges(tx, live_system_id), opened or ())
    return render(
        "livesystem.html",
        visitor=visitor,
        now=datetime.now(UTC),
        live_system=live_system,
        mutation=mutation,
        components=found,
        page=Paging(page, len(shown), first + 1, first + len(found)),
        show=show,
        here=Address(live_system_id, show, page, drawing.opened if drawing else ()),
        drawing=drawing,
        acts=acts.acts(newest)[:ACTS],
    )


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of a list a page shows: «51–100 of 201»."""

    number: int
    total: int
    first: int
    last: int

    @property
    def has_more(self) -> bool:
        """Whether there is a page after it."""
        return self.last < self.total


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a LiveSystem's page as it is shown, and of the same page with one thing changed."""

    live_system_id: str
    show: str
    number: int
    opened: Sequence[str]

    def page(self, number: int) -> str:
        """Another part of the same list."""
        return replace(self, number=number).path()

    def showing(self, show: str) -> str:
        """The list with another filter, from its beginning."""
        return replace(self, show=show, number=1).path()

    def with_open(self, group: str) -> str:
        """The drawing with one more group opened."""
        return replace(self, opened=(*self.opened, group)).path()

    def closed(self, group: str) -> str:
        """The drawing with a group closed."""
        return replace(self, opened=[name for name in self.opened if name != group]).path()

    def path(self) -> str:
        """The address itself."""
        given = [("show", self.show)] if self.show else []
        given += [("page", str(self.number))] if self.number > 1 else []
        query = urlencode([*given, *(("open", name) for name in self.opened)])
        return f"/ui/livesystems/{self.live_system_id}" + (f"?{query}" if query else "")


def _shown(tx: Tx, live_system_id: str, every: list[Vertex], show: str) -> list[Vertex]:
    """The components a filter selects, worst first."""
    ordered = graph.worst_first(every)
    if show == DRIFT:
        drifting = components.drifting(tx, live_system_id)
        return [vertex for vertex in ordered if vertex.id in drifting]
    if show == STALE:
        return [vertex for vertex in ordered if vertex.is_stale]
    return [vertex for vertex in ordered if not show or vertex.status == show]


@router.get("/livesystems/{id}/delete")
def ask_delete(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor) -> Response:
    """What deleting it would do (O14), with the warning of O7."""
    return _delete_page(live_system_id, store, visitor)


@router.post("/livesystems/{id}/delete")
def delete(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor, form: ActingForm) -> Response:
    """Delete it, if its name was typed."""
    if form.get("name") != live_system_id:
        error = f"Nothing was deleted: type {live_system_id!r} to confirm."
        return _delete_page(live_system_id, store, visitor, 422, error)
    api.delete(live_system_id, store, visitor.who)
    return see(f"/ui/livesystems/{live_system_id}")


def _delete_page(live_system_id: str, store: Store, visitor: Visitor, status: int = 200, error: str = "") -> Response:
    with store.read() as tx:
        warnings, preview = previews.previewed(tx, live_system_id, store.catalog(tx))
    endings: dict[str, list[Any]] = {}
    for component in preview["components"]:
        endings.setdefault(component["ending"], []).append(component)
    return render(
        "delete.html",
        status,
        visitor=visitor,
        live_system_id=live_system_id,
        warnings=warnings,
        endings=endings,
        error=error,
    )
