"""TLS of the server: its certificate, and a new one without a restart.

A certificate that is renewed is loaded into the context that connections are made with: those that are open live on.
"""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from fractal_cloud.model.errors import FractalError

log = structlog.get_logger()

CHECK_SECONDS: Final = 5.0


class BadCertificate(FractalError):
    """Certificate and key cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Where certificate (with its chain) and key lie, in PEM."""

    certificate: Path
    key: Path

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load both; raises ``BadCertificate``, and then the context is as it was."""
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # a half that fits no other half would be left in the context
        for one in (trial, context):
            try:
                one.load_cert_chain(self.certificate, self.key)
            except ssl.SSLError as error:
                why = error.reason or str(error)
                raise BadCertificate(f"{self._both} cannot be used: {why}") from None
            except OSError as error:
                raise BadCertificate(f"{self._both} cannot be read: {error.strerror}") from None

    @property
    def _both(self) -> str:
        return f"the certificate {str(self.certificate)!r} with the key {str(self.key)!r}"

    def fingerprint(self) -> tuple[object, ...]:
        """What changes when one of the files does."""
        return tuple(_stamp(path) for path in (self.certificate, self.key))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def make_context(tls: Tls) -> ssl.SSLContext:
    """The context of a server: TLS 1.2 at least."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    tls.load_into(context)
    return context


@dataclass(slots=True)
class Reloader:
    """Loads a renewed certificate: soon after the files changed, or when somebody asks for it."""

    tls: Tls
    context: ssl.SSLContext
    _seen: tuple[object, ...] = ()
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Watch the files from now on."""
        self._seen = self.tls.fingerprint()
        threading.Thread(target=self._watch, name="tls", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def reload(self) -> bool:
        """Load the files; where they cannot be used, the old certificate stays, and the log says why."""
        self._seen = self.tls.fingerprint()
        try:
            self.tls.load_into(self.context)
        except BadCertificate as error:
            log.error("the renewed certificate is not used, the old one stays", error=str(error))
            return False
        log.info("certificate loaded", file=str(self.tls.certificate))
        return True

    def reload_if_changed(self) -> bool:
        """Load the files if they are others than the last time."""
        return self.tls.fingerprint() != self._seen and self.reload()

    def _watch(self) -> None:
        while not self._stopped.wait(CHECK_SECONDS):
            self.reload_if_changed()
