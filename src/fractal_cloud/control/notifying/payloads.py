"""What a notification looks like: a CloudEvent, or a message for Slack; and how it is signed. Pure.

All texts in it are somebody's words: an agent's, a cloud's, an operator's. They are shown, and nothing more: without
control characters, bounded, and for Slack without links and without mentions. What may be a secret never gets here: it
is hidden where events are stored (A8).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import fractal_cloud
from fractal_cloud.control.notifying.sealing import key_of
from fractal_cloud.control.store.notification_queue import Delivery
from fractal_cloud.control.store.records import Json, iso
from fractal_cloud.model.notification import NotificationFormat, NotificationKind
from fractal_cloud.model.visible_text import visible

TYPE_PREFIX: Final = "cloud.fractal."
_TITLES: Final[Mapping[NotificationKind, str]] = {
    NotificationKind.OVERRIDE_BEGUN: "Override begun",
    NotificationKind.OVERRIDE_ENDED: "Override ended",
    NotificationKind.OVERRIDE_OVERDUE: "Override overdue",
    NotificationKind.OVERRIDE_EXTENDED: "Override extended",
    NotificationKind.OVERRIDE_HANDED_OVER: "Override handed over",
    NotificationKind.DRIFT_FOUND: "Drift found",
    NotificationKind.MISSING: "Missing",
    NotificationKind.FAILED: "Failed",
    NotificationKind.OWNER_MOVED: "Owner moved",
    NotificationKind.SCOPE_UNREAD: "Nobody reads",
    NotificationKind.SCOPE_READ: "Read again",
    NotificationKind.AGENT_REFUSED: "Agent refused",
    NotificationKind.TEST: "Test",
}
_MOST_IN_SUMMARY: Final = 5
_MOST_SLACK_LINE: Final = 180
_MOST_SLACK: Final = 2_900
"""Slack refuses a section of more than 3,000 characters."""
_MENTION: Final = re.compile(r"@(?=(?:channel|here|everyone|all|group)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Payload:
    """A body and its headers."""

    body: bytes
    headers: dict[bytes | str, bytes | str]


def payload(delivery: Delivery, form: NotificationFormat, source: str, secret: str) -> Payload:
    """A notification as it is sent now. Its body is the same at every try; the time and the signature are not."""
    if form is NotificationFormat.SLACK:
        body, media = _encoded(slack(delivery)), "application/json"
    else:
        body, media = _encoded(cloud_event(delivery, source)), "application/cloudevents+json; charset=utf-8"
    headers: dict[bytes | str, bytes | str] = {
        "content-type": media,
        "user-agent": f"fractal-cloud/{fractal_cloud.__version__}",
    }
    headers |= {"webhook-id": delivery.id, "webhook-timestamp": str(int(delivery.now.timestamp()))}
    if secret:
        headers["webhook-signature"] = signature(secret, delivery.id, delivery.now, body)
    return Payload(body, headers)


def signature(secret: str, message_id: str, at: datetime, body: bytes) -> str:
    """The signature of Standard Webhooks: HMAC-SHA256 over id, time and body."""
    signed = f"{message_id}.{int(at.timestamp())}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key_of(secret), signed, hashlib.sha256).digest()).decode()


def _encoded(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()


# --- CloudEvents 1.0, structured mode


def cloud_event(delivery: Delivery, source: str) -> Json:
    """The envelope, and in ``data`` what happened. ``source`` names the control plane's database."""
    notified = [_shown(item) for item in delivery.items]
    return {
        "specversion": "1.0",
        "id": delivery.id,
        "source": source,
        "type": f"{TYPE_PREFIX}{delivery.kind.value}",
        "subject": _subject(delivery),
        "time": iso(delivery.created_at),
        "datacontenttype": "application/json",
        "data": {
            "kind": delivery.kind.value,
            "summary": summary(delivery),
            "liveSystemId": delivery.live_system_id or None,
            "count": delivery.count,
            "items": notified,
        },
    }


def _subject(delivery: Delivery) -> str:
    if len(delivery.items) == 1 and delivery.count == 1:
        return _name(delivery.items[0]) or delivery.kind.value
    return delivery.live_system_id or delivery.kind.value


def _shown(item: Json) -> Json:
    texts = {name: visible(item[name]) if isinstance(item[name], str) else item[name] for name in item}
    return {**texts, "before": _visible(item["before"]), "after": _visible(item["after"])}


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(name)): _visible(one) for name, one in value.items()}
    return [_visible(one) for one in value] if isinstance(value, list) else value


def _name(item: Json) -> str:
    return visible("/".join(filter(None, (item["liveSystemId"], item["componentId"]))))


def summary(delivery: Delivery) -> str:
    """One line that says what it is about."""
    title = _TITLES[delivery.kind]
    names = [name for name in map(_name, delivery.items) if name]
    if delivery.count == 1 or not names:
        said = names[0] if names else visible(delivery.items[0]["message"])
        return f"{title}: {said}" + (f" (and {delivery.count - 1} more)" if delivery.count > 1 else "")
    own = delivery.live_system_id
    where = f"components of {own}" if own else "components of several LiveSystems"
    shown = [name.removeprefix(f"{own}/") if own else name for name in names[:_MOST_IN_SUMMARY]]
    more = delivery.count - len(shown)
    return f"{title}: {delivery.count} {where}: {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


# --- Slack, and what takes the same


def slack(delivery: Delivery) -> Json:
    """A message: ``text`` is what notifications of the client show, ``blocks`` is what the channel shows."""
    lines: list[str] = []
    length = 0
    for item in delivery.items:
        line = _slack_line(item)
        if length + len(line) > _MOST_SLACK:
            break
        lines.append(line)
        length += len(line) + 1
    more = delivery.count - len(lines)
    title = summary(delivery)
    blocks: list[Json] = [_section(f"*{slack_text(title)}*"), _section("\n".join(lines))]
    if more > 0:
        blocks.append({"type": "context", "elements": [_mrkdwn(f"and {more} more")]})
    return {"text": slack_text(title), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _slack_line(item: Json) -> str:
    name, said = _name(item), visible(item["message"])
    said = said if len(said) <= _MOST_SLACK_LINE else f"{said[: _MOST_SLACK_LINE - 1]}…"
    by = f" (by {visible(item['by'])[:100]})" if item["by"] else ""
    return f"{slack_text(name)}{': ' if name else ''}{slack_text(said)}{slack_text(by)}"


def slack_text(text: str) -> str:
    """A text in which Slack finds no link, no mention and no markup of its own."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTION.sub("@\u200b", escaped)


def _section(text: str) -> Json:
    return {"type": "section", "text": _mrkdwn(text)}


def _mrkdwn(text: str) -> Json:
    return {"type": "mrkdwn", "text": text, "verbatim": True}
