"""What operators ask of components: Force Push (G10), glass (G13), a transfer (O8), and the vendor's commands (G12)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import AwareDatetime, Field, StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import ComponentId, LiveSystemId, StrictRoute, TheStore, Who, answer
from fractal_cloud.control.store import glass, livesystems, overrides, requests, transfers
from fractal_cloud.control.store.overrides import Terms
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.wire import RequestKind

router = APIRouter(prefix="/livesystems/{id}", tags=["requests"], route_class=StrictRoute)
# One line of printable text: it is shown to people, in logs and on pages.
Line = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")]


class GlassRequest(Wire):
    """Break the glass, or hand the component back; extend an override that stands, or hand it over to somebody else.

    With the reason, and the date until when it is meant to last.
    """

    action: Literal["break", "readopt", "extend", "handOver"]
    reason: Line | None = None
    until: AwareDatetime | None = Field(default=None, description="With a time zone; it never re-adopts by itself.")
    to: Name | None = Field(default=None, description="Whose it is from now on; with handOver.")

    def errors(self) -> list[InputError]:
        """What does not belong together."""
        found = []
        if self.action == "extend" and self.until is None:
            found.append(InputError("until", "is missing: an extension needs a date to come, with a time zone"))
        if self.action == "handOver" and self.to is None:
            found.append(InputError("to", "is missing: name who holds it from now on"))
        if self.action != "handOver" and self.to is not None:
            found.append(InputError("to", f"goes with handOver only: leave it out of {self.action!r}"))
        return found


class TransferRequest(Wire):
    """Move ownership to another LiveSystem, with the reason."""

    to: Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    reason: Line | None = None


@router.post("/force-push", status_code=202, responses={202: {"model": views.Requested}})
def push_all(live_system_id: LiveSystemId, store: TheStore, who: Who) -> Response:
    """Force Push everything in ``ManualOverride`` that the LiveSystem does not import."""
    with store.write() as tx:
        return answer(requests.ask_all(tx, live_system_id, who.name, store.catalog(tx)), 202)


@router.post("/components/{componentId}/force-push", status_code=202, responses={202: {"model": views.Requested}})
def push(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore, who: Who) -> Response:
    """Force Push one component: its tags are put back in the operator's name, and it is reconciled."""
    asked = Asked(RequestKind.FORCE_PUSH, who.name)
    with store.write() as tx:
        return answer(requests.ask(tx, live_system_id, component_id, asked, store.catalog(tx)), 202)


@router.post(
    "/components/{componentId}/glass",
    status_code=202,
    responses={200: {"model": views.OverrideChanged}, 202: {"model": views.Requested}},
)
def ask_glass(
    live_system_id: LiveSystemId, component_id: ComponentId, wanted: GlassRequest, store: TheStore, who: Who
) -> Response:
    """Put a component into manual override, or hand it back to the agent (202: the agent does it).

    Or extend an override that stands, or hand it over (200: done, and nothing is written to a cloud).
    """
    if errors := wanted.errors():
        raise BadRequest(errors)
    with store.write() as tx:
        catalog = store.catalog(tx)
        livesystems.require(tx, live_system_id)
        if wanted.until is not None and wanted.until <= tx.now:
            raise BadRequest([InputError("until", "lies in the past: name a date to come, or none")])
        terms = Terms(who.name, wanted.until, wanted.to, wanted.reason)
        if wanted.action == "extend":
            return answer(overrides.extend(tx, live_system_id, component_id, terms))
        if wanted.action == "handOver":
            return answer(overrides.hand_over(tx, live_system_id, component_id, terms))
        if wanted.action == "readopt":
            asked = Asked(RequestKind.FORCE_PUSH, who.name, wanted.reason)
            return answer(requests.readopt(tx, live_system_id, component_id, asked, catalog), 202)
        asked = Asked(RequestKind.BREAK, who.name, wanted.reason, wanted.until)
        return answer(requests.ask(tx, live_system_id, component_id, asked, catalog), 202)


@router.post("/components/{componentId}/transfer", status_code=202, responses={202: {"model": views.TransferRequested}})
def transfer(
    live_system_id: LiveSystemId, component_id: ComponentId, wanted: TransferRequest, store: TheStore, who: Who
) -> Response:
    """Make another LiveSystem that declares the same resource its owner: the agent replaces the owner tag, once."""
    asked = Asked(RequestKind.TRANSFER, who.name, wanted.reason, to=wanted.to)
    with store.write() as tx:
        livesystems.require(tx, live_system_id)
        return answer(transfers.ask(tx, live_system_id, component_id, asked, store.catalog(tx), who.sees), 202)


@router.get("/components/{componentId}/glass", responses={200: {"model": views.Glass}})
def read_glass(live_system_id: LiveSystemId, component_id: ComponentId, store: TheStore) -> Response:
    """The vendor's own commands to break the glass and to re-adopt, with this resource's values filled in."""
    with store.read() as tx:
        livesystems.require(tx, live_system_id)
        return answer(glass.commands(tx, live_system_id, component_id, store.catalog(tx), store.installed_types))
