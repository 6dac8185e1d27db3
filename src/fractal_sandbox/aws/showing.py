"""Answering a reading call: what is hidden stays out, phases show, and listings come in pages.

Runs under the cloud's lock. Changes nothing but the countdowns that count reads.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.aws.answer import Answer, AwsError, read, written
from fractal_sandbox.aws.effects import LISTINGS, Listing, named
from fractal_sandbox.aws.lifecycle import Lifecycle
from fractal_sandbox.aws.moto_fixes import FixContext, find_fix
from fractal_sandbox.aws.paging import PAGED, Pages
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import not_found
from fractal_sandbox.calls import Call

__all__ = ["Showing"]

# These answer with a list of failures instead of an error when something they name is not there.
_WITH_FAILURES = ("DescribeClusters", "DescribeServices")


class Showing:
    """Answers the calls that only read."""

    def __init__(self, context: FixContext, lifecycle: Lifecycle, pages: Pages) -> None:
        self._fix_context = context
        self._lifecycle = lifecycle
        self._pages = pages

    def answer(self, request: AwsRequest, call: Call, page_size: int | None) -> Answer:
        """Return the answer; raises AwsError where AWS would refuse."""
        self._refuse_hidden(call)
        operation = (call.service, call.operation)
        listing = LISTINGS.get(operation)
        if operation in PAGED:
            self._pages.refuse_bad_token(call)
            answer, data = self._pages.collect(request, call, self._read)
        else:
            answer, data = self._read(request), {}
        if not answer.is_success:
            return answer
        is_changed = False
        if listing is not None and not self._lifecycle.is_idle:
            data = data or read(request, answer)
            is_changed = self._shape(call, listing, data)
        if operation in PAGED:
            is_changed = self._pages.cut(call, data, page_size) or is_changed
        return written(request, data, answer) if is_changed else answer

    def _read(self, request: AwsRequest) -> Answer:
        fix = find_fix(request.call)
        return self._fix_context.dispatch(request) if fix is None else fix(self._fix_context, request, request.call)

    def _refuse_hidden(self, call: Call) -> None:
        if call.operation in _WITH_FAILURES or call.service == "cloudcontrol":
            return  # which answer by themselves for what they do not see
        for ref in named(call):
            if self._lifecycle.is_hidden(ref):
                self._lifecycle.count_hidden_read(ref)
                code, status, message = not_found(ref)
                raise AwsError(code, message, status)

    def _shape(self, call: Call, listing: Listing, data: dict[str, Any]) -> bool:
        """Take what is hidden out of an answer and write phases into the rest; return whether anything changed."""
        is_changed = False
        hidden: list[Any] = []
        for item in listing.items(data):
            ref = listing.ref(call, item)
            if ref is None:
                continue
            if self._lifecycle.is_hidden(ref):
                self._lifecycle.count_hidden_read(ref)
                hidden.append(item)
            elif self._lifecycle.shape(ref, item, is_read=True):
                is_changed = True
        if hidden:
            listing.drop(data, lambda item: any(item is one or item == one for one in hidden))
        if hidden and call.operation in _WITH_FAILURES:
            key = "clusterArn" if call.operation == "DescribeClusters" else "serviceArn"
            data.setdefault("failures", []).extend({"arn": item[key], "reason": "MISSING"} for item in hidden)
        return is_changed or bool(hidden)
