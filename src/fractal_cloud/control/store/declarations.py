"""A document on its way to a deploy: found good with its identities, or refused with every error and an event."""

from __future__ import annotations

from collections.abc import Mapping

from fractal_cloud.control.store import livesystems
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.identity import is_id
from fractal_cloud.model.wording import counted
from fractal_cloud.offers.validation import check
from fractal_cloud.rules.identify import DeclaredIdentity, identities


def checked(
    document: object, catalog: Mapping[str, TypeFacts], expected_id: str | None
) -> tuple[LiveSystemDeclaration, dict[str, DeclaredIdentity]]:
    """The declaration, normalised, and where each component is looked for; or ``DeclarationError``."""
    declaration = check(document, catalog, expected_id=expected_id)
    return declaration, identities(declaration, catalog)


def refuse(tx: Tx, document: object, expected_id: str | None, by: str, error: DeclarationError) -> None:
    """Record that a declaration of a known LiveSystem was refused: the errors, never the body (C4)."""
    declared = document.get("id") if isinstance(document, dict) else None
    live_system_id = expected_id or (declared if isinstance(declared, str) else "")
    if not is_id(live_system_id) or livesystems.find(tx, live_system_id) is None:
        return
    paths = ", ".join(one.path for one in error.errors[:5])
    message = f"{counted(len(error.errors), 'error')}: {paths}"
    tx.record(PendingEvent(live_system_id, EventKind.DECLARATION_REFUSED, by, message=message))
