"""What looks like a secret: a name such as ``DB_PASSWORD``, or a value such as an access key or a private key.

It warns people, and hides what it finds; that something looks harmless proves nothing.
"""

from __future__ import annotations

import re
from typing import Final

SHAPES: Final = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|\b(?:password|passwd|pwd)[\"']?\s*[=:]\s*[\"']?[^\s\"',;&]+"
)
"""Secrets in any text: private keys, addresses with a password, settings called password."""

_NAME: Final = re.compile(
    r"(^|[_.-])(password|passwd|passphrase|pwd|secret|token|apikey|credentials?|(?<!public[_.-])key)$",
    re.IGNORECASE,
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VALUES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", "an AWS access key"),
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----", "a private key"),
        (r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*", "a JSON web token"),
        (r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)", "an address with a password in it"),
        (r"\bgh[pousr]_\w{30,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}", "a token of a code host"),
        (r"\bxox[abeoprs]-[\w-]{10,}", "a Slack token"),
        (r"\bAIza[\w-]{35}\b", "a Google API key"),
        (r"\b[sr]k_live_\w{10,}", "a Stripe key"),
        (r"(?i)\b(?:password|passwd|pwd|accountkey)[\"']?\s*[=:]\s*[\"']?[^\s\"',;&]+", "a password"),
    )
)


def apparent_secret(name: str, value: object) -> str:
    """Why a named value looks like a secret, in words that follow «looks like»; empty where it does not."""
    if not isinstance(value, str) or not value:
        return ""
    found = next((what for pattern, what in _VALUES if pattern.search(value)), "")
    if found or not name:
        return found
    return "a secret by its name" if _NAME.search(_CAMEL.sub("_", name)) else ""
