"""Whether an AWS call only reads. What is in none of these tables counts as a write: a new operation is no read.

HTTP methods say nothing, because the query and JSON protocols send everything by POST: the names of the vendor's own
operations do, with few exceptions.
"""

from __future__ import annotations

from typing import Final

__all__ = ["is_read"]

_READING: Final = ("Describe", "List", "Get", "Head", "Search", "Lookup", "Simulate", "Select")
# Reads by another name: they answer with credentials, or with what a message says, and keep nothing.
_READS: Final = frozenset(
    {
        ("sts", "AssumeRole"),
        ("sts", "AssumeRoleWithSAML"),
        ("sts", "AssumeRoleWithWebIdentity"),
        ("sts", "DecodeAuthorizationMessage"),
    }
)
# Named like reads, and yet they make something.
_WRITES: Final = frozenset(
    {
        ("cognito-identity", "GetId"),
        ("cognito-identity", "GetOpenIdTokenForDeveloperIdentity"),
        ("ssm", "GetDeployablePatchSnapshotForInstance"),
    }
)


def is_read(service: str, operation: str) -> bool:
    """Return whether an operation changes nothing, for certain."""
    if (service, operation) in _WRITES:
        return False
    return operation.startswith(_READING) or (service, operation) in _READS
