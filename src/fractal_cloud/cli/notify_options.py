"""The settings of `fractal serve` for notifications; what they mean is in `control.notifying.settings`."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from typer import BadParameter, Option


def _networks(text: str) -> str:
    for one in filter(None, (part.strip() for part in text.split(","))):
        try:
            ip_network(one)
        except ValueError:
            raise BadParameter(f"{one!r} is no network: give networks such as 10.1.0.0/16") from None
    return text


NotifyKey = Annotated[
    str,
    Option(
        "--notify-key",
        envvar="FRACTAL_NOTIFY_KEY",
        show_default=False,
        help="Seals addresses and secrets of subscriptions, 32 characters or more; the same for every control plane.",
    ),
]
NotifyHttp = Annotated[
    bool, Option("--notify-http", envvar="FRACTAL_NOTIFY_HTTP", help="Send notifications over plain http, too.")
]
NotifyNetworks = Annotated[
    str,
    Option(
        "--notify-networks",
        envvar="FRACTAL_NOTIFY_NETWORKS",
        callback=_networks,
        help="Networks that are not public and may be sent notifications, separated by commas.",
    ),
]
NotifyCaFile = Annotated[
    str,
    Option(
        "--notify-ca-file",
        envvar="FRACTAL_NOTIFY_CA_FILE",
        help="Certificates of authorities to trust besides the usual ones, for receivers of notifications.",
    ),
]
NotifyTimeout = Annotated[
    float,
    Option(
        "--notify-timeout-seconds",
        envvar="FRACTAL_NOTIFY_TIMEOUT_SECONDS",
        min=0.1,
        max=60,
        help="Seconds for one notification, from connecting to the end of the answer.",
    ),
]
NotifyGroup = Annotated[
    float,
    Option(
        "--notify-group-seconds",
        envvar="FRACTAL_NOTIFY_GROUP_SECONDS",
        min=0,
        max=600,
        help="Seconds that a notification waits for others of its kind and LiveSystem.",
    ),
]
NotifyRepeat = Annotated[
    float,
    Option(
        "--notify-repeat-minutes",
        envvar="FRACTAL_NOTIFY_REPEAT_MINUTES",
        min=0,
        help="Minutes in which the same is not notified twice.",
    ),
]
NotifyGiveUp = Annotated[
    float,
    Option(
        "--notify-give-up-hours",
        envvar="FRACTAL_NOTIFY_GIVE_UP_HOURS",
        min=0.01,
        help="Hours after which a notification that its receiver does not accept is given up.",
    ),
]
