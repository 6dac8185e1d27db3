"""Sends one notification to one receiver, and believes nothing that the receiver answers but its status.

No redirect is followed, no proxy of the environment is used, no cookie is kept, no answer is read beyond a few bytes,
and every step together has one deadline.
"""

from __future__ import annotations

import ssl
from typing import Final

import httpcore2
import httpx2

from fractal_cloud.control.notifying.addresses import BadAddress, GuardedNetwork, NoSuchName, checked_url
from fractal_cloud.control.notifying.payloads import Payload
from fractal_cloud.control.notifying.settings import NotificationSettings
from fractal_cloud.control.store.notification_queue import Failure

_REFUSED: Final = frozenset({400, 405, 406, 411, 413, 414, 415, 422})
"""What a receiver answers that does not take this notification; everything else may pass, or be repaired."""
_LONGEST_WAIT: Final = 3_600
_MOST_ANSWERED: Final = 4_096


class BadAuthority(ValueError):
    """A file holds no certificate of an authority; the text says which and why."""


def trusted(ca_file: str) -> ssl.SSLContext:
    """What receivers' certificates are verified with: the usual authorities, and those in a file."""
    context = httpx2.create_ssl_context(trust_env=False)
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except OSError as error:
            why = error.strerror or "it holds no certificate in PEM"
            raise BadAuthority(f"the certificates in {ca_file!r} cannot be used: {why}") from None
    return context


def send(url: str, payload: Payload, settings: NotificationSettings, context: ssl.SSLContext) -> Failure | None:
    """Send it once; None where the receiver has accepted it (2xx)."""
    try:
        address = checked_url(url, settings)
        network = GuardedNetwork(settings.networks, settings.timeout_seconds)
        seconds = {"connect": settings.timeout_seconds, "read": settings.timeout_seconds}
        timeouts = {**seconds, "write": settings.timeout_seconds, "pool": settings.timeout_seconds}
        with (
            httpcore2.ConnectionPool(ssl_context=context, network_backend=network, max_connections=1) as pool,
            pool.stream(
                "POST",
                str(address),
                headers={**payload.headers, "host": address.netloc.decode("ascii"), "connection": "close"},
                content=payload.body,
                extensions={"timeout": timeouts},
            ) as answer,
        ):
            _drop_body(answer)
            return _judged(answer)
    except BadAddress as error:
        return Failure(f"not sent: the address {error}")
    except httpcore2.TimeoutException:
        return Failure(f"no answer within {settings.timeout_seconds:g} s")
    except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError) as error:
        return Failure(_said(error))


def _drop_body(answer: httpcore2.Response) -> None:
    """Read a little of an answer, so that its sender is not cut off in the middle of a short one."""
    read = 0
    for chunk in answer.iter_stream():
        read += len(chunk)
        if read > _MOST_ANSWERED:
            return


def _judged(answer: httpcore2.Response) -> Failure | None:
    status = answer.status
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return Failure(f"answered {status}: redirects are not followed; subscribe the address it leads to")
    return Failure(f"answered {status}", _asked_to_wait(answer), status in _REFUSED)


def _asked_to_wait(answer: httpcore2.Response) -> float:
    """The seconds of ``Retry-After``, within bounds; a date in it is not read."""
    for name, value in answer.headers:
        if name.lower() == b"retry-after" and value.isdigit() and len(value) < 6:
            return float(min(int(value), _LONGEST_WAIT))
    return 0.0


def _said(error: Exception) -> str:
    """What went wrong with a connection; never what the other side wrote."""
    cause = error.__context__ if isinstance(error.__context__, OSError) else error
    if isinstance(error, NoSuchName):
        return str(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return "no TLS connection could be made"
    if isinstance(cause, ConnectionRefusedError):
        return "nobody listens there"
    return "the connection was cut" if isinstance(error, httpcore2.ProtocolError) else "it cannot be connected to"
