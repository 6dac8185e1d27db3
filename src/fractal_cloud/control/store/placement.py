"""Where components are looked for: which realm an environment reaches, and what moves when that becomes known.

What was established stays where it is; only a person moves it, by declaring it anew (S18).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import and_, bindparam, or_, select, update

from fractal_cloud.control.store import scopes
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement, among, among_found, chunks
from fractal_cloud.control.store.records import ComponentRecord, iso, new_id, records, select_records, update_records
from fractal_cloud.control.store.schema import components, live_systems, resources
from fractal_cloud.control.store.summaries import KEPT, Kept
from fractal_cloud.model.host import called
from fractal_cloud.model.status import Stance
from fractal_cloud.rules import words

_PLACED = (
    "place",
    "name",
    "parent",
    "realm",
    "scope_key",
    "identity_key",
    "work_version",
    "declared_version",
    "stance",
    "override",
    "message",
)


def lock_live_systems(tx: Tx, live_system_ids: Iterable[str]) -> None:
    """Hold LiveSystems until the transaction ends; always in one order, and always before any scope."""
    tx.connection.execute(_HOLD, {"ids": set(live_system_ids)})


_HOLD: Final = (
    select(live_systems.c.id)
    .where(among(live_systems.c.id, "ids"))
    .order_by(live_systems.c.id)
    .with_for_update(of=live_systems)
)


def lock_live_systems_of(tx: Tx, uids: Collection[str]) -> dict[str, Kept]:
    """As ``lock_live_systems``, of those that have the components with these uids; what is kept of them, by id."""
    return {row.id: Kept(*row) for row in _HOLD_OF.rows(tx.connection, {"uids": uids})}


_HOLD_OF: Final = PreparedStatement(
    select(*KEPT)
    .where(among_found(live_systems.c.id, select(components.c.live_system_id).where(among(components.c.uid, "uids"))))
    .order_by(live_systems.c.id)
    .with_for_update(of=live_systems)
)


def place_newly_reached(tx: Tx, environment: str, realms: Mapping[tuple[str, str], str]) -> None:
    """Settle in the realm that each (provider, name) is bound to what nobody has observed elsewhere."""
    c = components.c
    for (provider, name), realm in realms.items():
        here = and_(c.environment == environment, c.provider == provider)
        elsewhere = and_(c.realm_name == name, or_(c.realm.is_(None), c.realm != realm))
        renamed = and_(c.declared_realm_name == name, c.realm_name != name, c.realm == realm)
        found = records(tx, select_records().where(here, or_(elsewhere, renamed)))
        if not found:
            continue
        lock_live_systems(tx, (record.live_system_id for record in found))
        movable = [r for r in found if r.realm is None or (r.realm != realm and _was_never_observed(r))]
        moving = {record.uid for record in movable}
        move(tx, movable, dict.fromkeys(moving, realm))
        _rename_realm(tx, [r for r in found if r.realm == realm and r.realm_name != name and r.uid not in moving], name)
        foreign = [r for r in found if r.realm not in (None, realm) and r.uid not in moving]
        _explain_foreign(tx, foreign, realm)


def _was_never_observed(record: ComponentRecord) -> bool:
    """Whether nothing was ever made or seen of it: it may be searched for anywhere."""
    return record.stance == Stance.NONE.value and not record.established and record.intent is None


def explain_other(tx: Tx, environment: str, name: tuple[str, str], before: str, now: str) -> None:
    """Say of everything in the realm that a name is bound to that another one is reached by it (S26)."""
    c = components.c
    provider, called_so = name
    here = and_(c.environment == environment, c.provider == provider, c.realm_name == called_so, c.realm == before)
    found = records(tx, select_records().where(here))
    lock_live_systems(tx, (record.live_system_id for record in found))
    _explain_foreign(tx, records(tx, select_records().where(here)), now)


def _rename_realm(tx: Tx, renamed: Sequence[ComponentRecord], name: str) -> None:
    """What a declaration calls by another name than before turned out to be where it always was."""
    versions = scopes.renew_work(tx, {str(record.scope_key) for record in renamed})
    for record in renamed:
        record.realm_name = name
        record.declared_in(versions[str(record.scope_key)])
    update_records(tx, renamed, ("realm_name", "work_version", "declared_version"))


def move(tx: Tx, moved: Sequence[ComponentRecord], realm_of: Mapping[str, str]) -> None:
    """Settle rows in the realms given by uid, and notify the scopes they leave and those they come to."""
    before = {record.uid: record.scope_key for record in moved}
    left = [(key, uid) for uid, key in before.items() if key is not None]
    for record in moved:
        record.settle_in(realm_of[record.uid])
    forget_left(tx, recall_overrides(tx, moved))
    keys = {str(record.scope_key) for record in moved} | {key for key, _ in left}
    versions = scopes.renew_work(tx, keys)
    for record in moved:
        record.declared_in(versions[str(record.scope_key)])
    update_records(tx, moved, _PLACED)
    scopes.depart(tx, left, versions)
    rename(tx, {uid: new_id() for _, uid in left})


def rename(tx: Tx, new_uids: Mapping[str, str]) -> None:
    """Give rows whose identity moved a new uid: what an agent still reports on the old identity must not land here."""
    rows = [{"_old": old, "_new": new} for old, new in new_uids.items()]
    if rows:
        statement = update(components).where(components.c.uid == bindparam("_old")).values(uid=bindparam("_new"))
        tx.connection.execute(statement, rows)


def recall_overrides(tx: Tx, new: Sequence[ComponentRecord]) -> list[str]:
    """What this LiveSystem once left in the cloud in override begins in override again (O10); the identities of it."""
    by_identity = {r.identity_key: r for r in new if r.identity_key is not None and r.stance == Stance.NONE.value}
    recalled: list[str] = []
    for some in chunks(by_identity):
        query = select(resources.c.identity_key, resources.c.left_by).where(
            resources.c.identity_key.in_(some), resources.c.left_by.is_not(None), resources.c.overridden
        )
        for row in tx.connection.execute(query):
            record = by_identity[row.identity_key]
            if record.live_system_id == row.left_by:
                record.stance = Stance.OVERRIDE.value
                record.override = {"since": iso(tx.now), "by": None, "reason": None, "until": None}
                recalled.append(row.identity_key)
    return recalled


def forget_left(tx: Tx, identity_keys: Iterable[str]) -> None:
    """What is declared again is no longer left behind: its stance is remembered with the component."""
    for some in chunks(identity_keys):
        forgotten = update(resources).where(resources.c.identity_key.in_(some))
        tx.connection.execute(forgotten.values(left_by=None, overridden=False))


def _explain_foreign(tx: Tx, foreign: Sequence[ComponentRecord], realm: str) -> None:
    """Say of what stays in another realm why nobody tends it any more."""
    for record in foreign:
        record.message = foreign_message(record, realm)
        record.stuck, record.last_updated = True, tx.now
    update_records(tx, foreign, ("message", "stuck", "last_updated"))


def foreign_message(record: ComponentRecord, realm_now: str) -> str:
    """Why what is in one realm is not touched by an agent that reaches another by that name (S26)."""
    realm = words.Realm(record.provider, called(record.realm_name), record.environment)
    message = words.other_realm(realm, str(record.realm), realm_now)
    if not record.deleting:
        return message
    return f"{message}; {words.forget(record.live_system_id, record.component_id)}"
