"""Force Push (G10), breaking the glass, re-adoption and who holds it until when (G13) from a page.

First what will happen, then a button; another end or name for an override is one step.

What is asked for goes the way of the API's own routes; this only gives their words a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, Literal

from fastapi import APIRouter, HTTPException, Response
from pydantic import ValidationError

from fractal_cloud.control.api import requests as api
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import ComponentId, LiveSystemId, TheStore
from fractal_cloud.control.dashboard.pages import PageRoute, render, see
from fractal_cloud.control.dashboard.sessions import ActingForm, Form, TheVisitor, Visitor
from fractal_cloud.control.store import Store, components, livesystems
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.requests import refusal
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import RequestKind

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Action:
    """Something an operator can ask for: its name in the address, its button, and what will happen.

    ``kind``: what the agent is asked for; None where the control plane does it alone. ``remembered``: what will happen
    where tags are frozen.
    """

    name: str
    button: str
    kind: RequestKind | None
    promise: str
    remembered: str = ""


BREAK: Final = Action(
    "break",
    "Break the glass",
    RequestKind.BREAK,
    "The agent removes managed-by from the resource in your name. From then on it reads the "
    "resource and reports what differs, and changes nothing until somebody hands the component back.",
    "Nobody can change a tag of this resource, so the control plane remembers it, and nothing is written to the cloud. "
    "The agent reads the resource and reports what differs, and changes nothing until somebody hands the component "
    "back, here or by fractal glass --readopt.",
)
READOPT: Final = Action(
    "readopt",
    "Re-adopt",
    RequestKind.FORCE_PUSH,
    "The agent puts its tags back in your name and makes the resource as declared. What was changed by hand is "
    "overwritten; to keep a change, declare and deploy it first.",
    "The agent makes the resource as declared, and then manages it again. What was changed by hand is overwritten; to "
    "keep a change, declare and deploy it first.",
)
FORCE_PUSH: Final = Action(
    "force-push",
    "Force Push",
    RequestKind.FORCE_PUSH,
    "The agent puts its tags on the resource in your name, whatever was done to them, and makes it as declared. What "
    "was changed by hand is overwritten.",
    "The agent makes the resource as declared, whatever was done to it, and then manages it again. What was changed by "
    "hand is overwritten.",
)
EXTEND: Final = Action(
    "extend",
    "Extend",
    None,
    "The override gets another end; it stays with whom it is. Nothing is written to the cloud.",
)
HAND_OVER: Final = Action(
    "hand-over",
    "Hand over",
    None,
    "The override is in somebody else's name from now on. Nothing is written to the cloud.",
)
ACTIONS: Final[Mapping[str, Action]] = {
    action.name: action for action in (BREAK, READOPT, FORCE_PUSH, EXTEND, HAND_OVER)
}
_GLASS: Final[Mapping[str, Literal["break", "readopt", "extend", "handOver"]]] = {
    BREAK.name: "break",
    READOPT.name: "readopt",
    EXTEND.name: "extend",
    HAND_OVER.name: "handOver",
}


ADVICE: Final[Mapping[bool, str]] = {
    True: "Re-adopt when the work by hand is done: it is made as declared, and the agent manages it again. Force Push "
    "does the same from any status: take it where nobody owns it yet, or where tags were changed by others.",
    False: "Break the glass before you change it by hand: else the agent changes it back. Force Push has it made as "
    "declared at once, for instance to try again what failed.",
}
"""Which of its actions to take, for a component in override and for any other."""


@dataclass(frozen=True, slots=True)
class Offered:
    """An action, and why it cannot be asked for right now; empty if it can."""

    action: Action
    refusal: str


def offered(tx: Tx, live_system_id: str, component_id: str, catalog: Mapping[str, TypeFacts]) -> list[Offered]:
    """What can be asked for a component as it stands."""
    record = components.require(tx, live_system_id, component_id)
    is_broken = record.status == Status.MANUAL_OVERRIDE.value
    actions = (READOPT, FORCE_PUSH) if is_broken else (BREAK, FORCE_PUSH)
    return [Offered(action, refusal(record, action.kind, catalog)) for action in actions if action.kind is not None]


@dataclass(frozen=True, slots=True)
class End:
    """An end that is often chosen: the name the form sends, what people read, and when that is."""

    name: str
    title: str
    at: datetime

    @property
    def clock(self) -> str:
        """What stands beside the title: the time of day, unless the title has it."""
        return "UTC" if f"{self.at:%H:%M}" in self.title else f"{self.at:%H:%M} UTC"


def ends(now: datetime) -> list[End]:
    """The ends to choose from; tomorrow is that of UTC, unless the browser names the visitor's own."""
    return [End(name, title, _PRESETS[name](now)) for name, title in _TITLES.items()]


def _tomorrow(now: datetime) -> datetime:
    return (now.astimezone(UTC) + timedelta(days=1)).replace(hour=9, minute=0, second=0, microsecond=0)


_TITLES: Final[Mapping[str, str]] = {"1h": "1 h", "4h": "4 h", "tomorrow": "tomorrow 09:00"}
_PRESETS: Final[Mapping[str, Callable[[datetime], datetime]]] = {
    "1h": lambda now: now + timedelta(hours=1),
    "4h": lambda now: now + timedelta(hours=4),
    "tomorrow": _tomorrow,
}


def _action(name: str) -> Action:
    if name not in ACTIONS:
        raise HTTPException(404, f"there is no page {name!r} of a component")
    return ACTIONS[name]


@router.get("/livesystems/{id}/components/{componentId}/{action}")
def ask(
    live_system_id: LiveSystemId, component_id: ComponentId, action: str, store: TheStore, visitor: TheVisitor
) -> Response:
    """What will happen, and the button that confirms it."""
    return _page(_Asked(live_system_id, component_id, _action(action), Form({})), store, visitor)


@router.post("/livesystems/{id}/components/{componentId}/{action}")
def do(
    live_system_id: LiveSystemId,
    component_id: ComponentId,
    action: str,
    store: TheStore,
    visitor: TheVisitor,
    form: ActingForm,
) -> Response:
    """Ask for it, and lead back to the component; where it is refused, say why on the same page."""
    asked = _Asked(live_system_id, component_id, _action(action), form)
    try:
        _carry_out(asked, store, visitor)
    except Refused as error:
        return _page(asked, store, visitor, 409, [error.message])
    except ValidationError as error:
        return _page(asked, store, visitor, 422, [f"{item['loc'][0]}: {item['msg']}" for item in error.errors()])
    except BadRequest as error:
        return _page(asked, store, visitor, 422, [f"{item.path} {item.message}" for item in error.errors])
    return see(f"/ui/livesystems/{live_system_id}/components/{component_id}")


@dataclass(frozen=True, slots=True)
class _Asked:
    live_system_id: str
    component_id: str
    action: Action
    form: Form


def _carry_out(asked: _Asked, store: Store, visitor: Visitor) -> None:
    if asked.action is FORCE_PUSH:
        api.push(asked.live_system_id, asked.component_id, store, visitor.who)
        return
    wanted = api.GlassRequest(
        action=_GLASS[asked.action.name],
        reason=asked.form.get("reason") or None,
        until=_until(asked.form, datetime.now(UTC)),
        to=asked.form.get("to") or None,
    )
    api.ask_glass(asked.live_system_id, asked.component_id, wanted, store, visitor.who)


def _until(form: Form, now: datetime) -> datetime | None:
    """The end a form names: a date and time that was typed counts before what was chosen."""
    typed, chosen = form.get("until"), form.get("end")
    if typed:
        return _moment(typed, form.get("zone"))
    if chosen in _PRESETS:
        return _PRESETS[chosen](now)
    return _moment(chosen, "") if chosen not in ("", "none", "typed") else None


def _moment(text: str, zone: str) -> datetime:
    """What a date field sent; it knows no zones, so it is UTC unless the page added the visitor's, in minutes."""
    try:
        found = datetime.fromisoformat(text)
        offset = timedelta(minutes=int(zone)) if zone else timedelta(0)
        return found if found.tzinfo else found.replace(tzinfo=timezone(offset))
    except (ValueError, OverflowError):
        raise HTTPException(422, f"until is {text!r}: give a date and a time like 2030-01-31T18:00") from None


def _page(
    asked: _Asked, store: Store, visitor: Visitor, status: int = 200, errors: list[str] | None = None
) -> Response:
    with store.read() as tx:
        livesystems.require(tx, asked.live_system_id)
        component = components.get(tx, asked.live_system_id, asked.component_id)
        record = components.require(tx, asked.live_system_id, asked.component_id)
        catalog = store.catalog(tx)
        why_not = "" if asked.action.kind is None else refusal(record, asked.action.kind, catalog)
        frozen = record.type in catalog and catalog[record.type].tags_frozen
    return render(
        "request.html",
        status,
        visitor=visitor,
        component=component,
        action=asked.action,
        promise=(asked.action.remembered if frozen else "") or asked.action.promise,
        ends=ends(datetime.now(UTC)),
        form=asked.form,
        errors=errors or ([why_not] if why_not else []),
    )


# --- all of a LiveSystem at once


@router.get("/livesystems/{id}/force-push")
def ask_all(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor) -> Response:
    """Which components a Force Push of the whole LiveSystem would take."""
    return _page_for_all(live_system_id, store, visitor)


@router.post("/livesystems/{id}/force-push")
def do_all(live_system_id: LiveSystemId, store: TheStore, visitor: TheVisitor, _form: ActingForm) -> Response:
    """Push everything that is in override and not imported."""
    try:
        api.push_all(live_system_id, store, visitor.who)
    except Refused as error:
        return _page_for_all(live_system_id, store, visitor, 409, [error.message])
    return see(f"/ui/livesystems/{live_system_id}")


def _page_for_all(
    live_system_id: str, store: Store, visitor: Visitor, status: int = 200, errors: list[str] | None = None
) -> Response:
    with store.read() as tx:
        live_system = livesystems.get(tx, live_system_id)
    in_override = live_system["counts"].get(Status.MANUAL_OVERRIDE.value, 0)
    return render(
        "request_all.html",
        status,
        visitor=visitor,
        live_system_id=live_system_id,
        action=FORCE_PUSH,
        in_override=in_override,
        errors=errors or [],
    )
