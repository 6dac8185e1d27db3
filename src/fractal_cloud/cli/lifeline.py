"""How a child ends with its parent, however the parent ends: a pipe that nobody writes to, closed by the system.

The parent holds the only writing end. When it is gone, reading ends, and the child ends itself as if it got a signal.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Final

VARIABLE: Final = "FRACTAL_LIFELINE"
_GRACE_SECONDS: Final = 10.0


def hold_lifeline() -> None:
    """End this process when the one that started it is gone, if that one gave it a lifeline."""
    given = os.environ.pop(VARIABLE, "")
    if given.isdigit():
        threading.Thread(target=_end_with_parent, args=(int(given),), name="lifeline", daemon=True).start()


def _end_with_parent(end: int) -> None:
    try:
        os.read(end, 1)
    except OSError:
        return
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)
