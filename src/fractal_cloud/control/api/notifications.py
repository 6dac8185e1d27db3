"""Who is notified, where, and of what; secrets and whole addresses are taken in, and never shown again."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, Who, answer, page_of
from fractal_cloud.control.notifying import addresses, sealing
from fractal_cloud.control.notifying.sender import Sender
from fractal_cloud.control.store import notification_queue, notifications
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.notifications import NewSubscription
from fractal_cloud.control.store.records import new_id
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.identity import is_id
from fractal_cloud.model.notification import SUBSCRIBABLE, NotificationFormat, NotificationKind

router = APIRouter(prefix="/notifications", tags=["notifications"], route_class=StrictRoute)
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9 ._@-]*$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NAME)]
SubscriptionName = Annotated[str, Path(alias="name", min_length=1, max_length=100, pattern=NAME)]
# Whole names: which environments a pattern stands for would have to be asked anew for every token.
EnvironmentName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f*?\[\]]+$")]
LiveSystemName = Annotated[str, StringConstraints(min_length=1, max_length=63)]


class WantedSubscription(Wire):
    """Whom to notify. Without kinds: of all of them; without environments or LiveSystems: of all of these."""

    name: Name
    url: Annotated[str, StringConstraints(min_length=1, max_length=addresses.MOST_CHARACTERS)]
    format: NotificationFormat = NotificationFormat.CLOUDEVENTS
    kinds: list[NotificationKind] = Field(default_factory=list, max_length=100)
    environments: list[EnvironmentName] = Field(default_factory=list, max_length=100)
    live_systems: list[LiveSystemName] = Field(default_factory=list, max_length=1000)
    secret: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="", description="`whsec_` and 24 to 64 bytes in base64; without it, one is made for CloudEvents."
    )

    def errors(self, sees: Environments) -> list[InputError]:
        """What is wrong with it beyond the form of its fields."""
        found = [
            InputError(f"liveSystems[{index}]", f"is {one!r}, which no LiveSystem can be called")
            for index, one in enumerate(self.live_systems)
            if not is_id(one)
        ]
        if NotificationKind.TEST in self.kinds:
            found.append(InputError("kinds", "has 'Test', which POST /notifications/{name}/test sends: leave it out"))
        if self.secret and not sealing.is_secret(self.secret):
            found.append(InputError("secret", "is no secret: give `whsec_` and 24 to 64 bytes in base64, or none"))
        if not notifications.is_within(sees, list(self.environments)):
            names = ", ".join(sorted(sees or ()))
            found.append(
                InputError("environments", f"go beyond this token, which is bound to {names}: name only those")
            )
        return found


@router.get("", responses={200: {"model": views.SubscriptionPage}})
def list_all(store: TheStore, who: Who, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All subscriptions by name, without their secrets, and how sending to them goes."""
    with store.read() as tx:
        return page_of(notifications.list_all(tx, who.sees), limit, cursor, "name")


@router.post("", status_code=201, responses={201: {"model": views.CreatedSubscription}})
def add(wanted: WantedSubscription, store: TheStore, who: Who, request: Request) -> Response:
    """Notify somebody from now on; the answer holds the secret that was made, which nobody can read again."""
    sender: Sender = request.app.state.sender
    errors = wanted.errors(who.sees)
    shown = ""
    try:
        shown = addresses.shown(addresses.checked_url(wanted.url, sender.settings))
    except addresses.BadAddress as error:
        errors.append(InputError("url", str(error)))
    if errors:
        raise BadRequest(errors)
    made = sealing.new_secret() if wanted.format is NotificationFormat.CLOUDEVENTS and not wanted.secret else ""
    row = _sealed(wanted, sender, shown, wanted.secret or made, who.name)
    with store.write() as tx:
        described = notifications.add(tx, row)
    return answer({**described, "secret": made or None}, 201)


def _sealed(wanted: WantedSubscription, sender: Sender, shown: str, secret: str, by: str) -> NewSubscription:
    subscription_id = new_id()
    try:
        sealed = sender.key.seal(subscription_id, sealing.Opened(wanted.url, secret))
    except sealing.NoKey as error:
        raise Refused(f"the subscription cannot be stored: {error}") from None
    return NewSubscription(
        id=subscription_id,
        name=wanted.name,
        address=shown,
        sealed=sealed,
        format=wanted.format.value,
        signed=bool(secret),
        kinds=[kind.value for kind in SUBSCRIBABLE if kind in wanted.kinds],
        environments=sorted(set(wanted.environments)),
        live_systems=sorted(set(wanted.live_systems)),
        by=by,
    )


@router.get("/{name}", responses={200: {"model": views.Subscription}})
def read(name: SubscriptionName, store: TheStore, who: Who) -> Response:
    """One subscription, and how sending to it goes."""
    with store.read() as tx:
        return answer(notifications.get(tx, name, who.sees))


@router.post("/{name}/test", status_code=202, responses={202: {"model": views.SubscriptionTest}})
def send_test(name: SubscriptionName, store: TheStore, who: Who) -> Response:
    """Send a notification of the kind `Test`, once and before all others; GET the subscription for what came of it."""
    with store.write() as tx:
        row = notifications.require(tx, name, who.sees)
        started: dict[str, Any] = notification_queue.queue_test(tx, row, who.name)
    return answer(started, 202)


@router.delete("/{name}", status_code=204)
def remove(name: SubscriptionName, store: TheStore, who: Who) -> None:
    """Notify somebody no longer; what was still to be sent is dropped."""
    with store.write() as tx:
        notifications.remove(tx, name, who.name, who.sees)
