"""Which realm is really reached: asked of the cloud in every cycle before anything is decided or written (S26)."""

from __future__ import annotations

from collections.abc import Callable

from fractal_cloud.model.errors import AwaitsPerson, CloudError, OtherRealm, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.offer import Session
from fractal_cloud.rules import words


def confirmation(session: Session, scope: Scope, name: str, environment: str) -> Callable[[], None]:
    """What raises where a scope's realm cannot be confirmed; ``name``: what declarations call that realm."""

    def confirm() -> None:
        try:
            now = session.realm_now(scope)
        except CloudError as error:
            kind = AwaitsPerson if error.needs_person else Unreadable
            raise kind(words.realm_not_confirmed(scope.provider, name, error.message)) from error
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise Unreadable(words.realm_not_confirmed(scope.provider, name, why)) from error
        if now != scope.realm:
            raise OtherRealm(words.other_realm(words.Realm(scope.provider, name, environment), scope.realm, now))

    return confirm
