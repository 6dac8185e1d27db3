"""Fixes for moto's STS: it answers with a user of its own making, and AWS with whoever signed the call."""

from __future__ import annotations

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.answer import Answer, written
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.principals import identity_of
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.calls import Call

__all__: list[str] = []


@fix("sts", "GetCallerIdentity")
def answer_with_the_caller(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto knows no access keys but those that it made; the sandbox's people and its agent have others."""
    del context
    found = identity_of(call.access_key)
    return written(request, {"UserId": found.user_id, "Account": accounts.current(), "Arn": found.arn})
