"""Between AWS calls and the safety monitor: which resources a call touches and shows, and their tags at that instant.

Runs under the cloud's lock. What is forbidden is decided in `monitor_rules.py`; what is remembered, in `monitor.py`;
what the cloud's own access control refuses, in `authorization.py`.
"""

from __future__ import annotations

from dataclasses import replace

from fractal_sandbox.aws import answer as answers
from fractal_sandbox.aws.answer import Answer
from fractal_sandbox.aws.cloudcontrol import bare, monitoring, refs
from fractal_sandbox.aws.descriptors import RESOURCES
from fractal_sandbox.aws.effects import (
    LISTINGS,
    changes,
    creation,
    named,
    shows_tags_of_named,
    unclassified,
)
from fractal_sandbox.aws.link_effects import LinkEffect, link_effect, shown_secret
from fractal_sandbox.aws.moto_fixes import FixContext
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import Ref, exists, live, name_of, tags_of, tags_shown
from fractal_sandbox.calls import Call
from fractal_sandbox.monitor import Creation, Finding, Monitor, Touch
from fractal_sandbox.monitor_rules import Change

__all__ = ["Watching"]

# Kinds of which AWS lets several bear one name.
_NAMED_BY_TAG = frozenset(kind for kind, resource in RESOURCES.items() if resource.is_named_by_tag)


class Watching:
    """Reports the agent's calls to the monitor."""

    def __init__(self, monitor: Monitor, context: FixContext) -> None:
        self._monitor = monitor
        self._fix_context = context
        self._lifecycle = context.lifecycle

    def check(self, call: Call) -> list[Finding]:
        """Check a writing call right before it is carried out; return the races it would lose."""
        if call.actor != "agent":
            return []
        made_by_links = link_effect(call)
        if made_by_links is not None:
            return self._check_link_resource(call, made_by_links)
        if call.service == refs.SERVICE:
            return self._check_cloudcontrol(call)
        why = unclassified(call)
        if why is not None:
            self._monitor.unclassified(call, why)
            return self._monitor.check(call, [])
        touches = [
            Touch(str(ref), self._finished(call, ref, change), tags_of(ref) or {})
            for ref, change in changes(call)
            if exists(ref)
        ]
        return self._monitor.check(call, touches, self._creation(call))

    def _finished(self, call: Call, ref: Ref, change: Change) -> Change:
        """Tags that follow a creation which could not carry them are part of it (S17)."""
        follows = change.kind == "tag" and bare.finishes(self._fix_context, call, ref)
        return replace(change, finishes=True) if follows else change

    def _check_cloudcontrol(self, call: Call) -> list[Finding]:
        effect = monitoring.effect_of(self._fix_context, call)
        if effect.why_not:
            self._monitor.unclassified(call, effect.why_not)
        return self._monitor.check(call, effect.touches, effect.creation)

    def _check_link_resource(self, call: Call, effect: LinkEffect) -> list[Finding]:
        if effect.change is None:
            name = (effect.id, "")
            creation = Creation(effect.kind, call.region, name, effect.marks or {}, is_link_resource=effect.is_of_link)
            return self._monitor.check(call, [], creation)
        if effect.marks is None:
            return self._monitor.check(call, [])  # nothing is there that it could change
        touch = Touch(str(effect), effect.change, effect.marks, is_link_resource=effect.is_of_link)
        return self._monitor.check(call, [touch])

    def note(self, request: AwsRequest, call: Call, answer: Answer, made: list[Ref]) -> None:
        """Remember the tags that an answer shows the agent, and what it could have found in a listing."""
        bare.note(self._fix_context, call, answer, [ref for ref, change in changes(call) if change.kind == "tag"])
        if call.actor != "agent":
            return
        if call.service == refs.SERVICE:
            made = monitoring.made(self._fix_context, call, answer)
        self._note_tags(call, made)
        if not answer.is_success:
            if call.operation == "GetBucketTagging" and answers.error_code(request, answer) == "NoSuchTagSet":
                self._note_tags(call, named(call))  # S3's way of saying that there are none
            return
        secret = shown_secret(call)
        if secret is not None:
            self._monitor.saw(call, *secret)
        if shows_tags_of_named(call) or (call.service, call.operation) == (refs.SERVICE, "GetResource"):
            self._note_tags(call, named(call))
        listing = LISTINGS.get((call.service, call.operation))
        if listing is None:
            return
        if listing.kind == "*":
            hidden = {str(ref) for ref in self._lifecycle.hidden}
            shown = {ref: name for ref, name in refs.names(call.region).items() if ref not in hidden}
            self._monitor.listed(call, monitoring.LISTED, shown)
        if listing.shows_tags(call):
            self._note_tags(call, listing.refs(call, answers.read(request, answer)))
        if listing.kind in _NAMED_BY_TAG and not any(ref.kind == listing.kind for ref in named(call)):
            visible = [ref for ref in live(listing.kind, call.region) if not self._lifecycle.is_hidden(ref)]
            names = {str(ref): name_of(ref, tags_shown(ref)) for ref in visible}
            self._monitor.listed(call, listing.kind, names)

    def _note_tags(self, call: Call, refs: list[Ref]) -> None:
        for ref in refs:
            self._monitor.saw(call, str(ref), tags_shown(ref))

    def _creation(self, call: Call) -> Creation | None:
        wanted = creation(call)
        if wanted is None or self._fix_context.is_repeat(call):
            return None
        kind, tags = wanted
        name = (tags.get("Name", ""), call.parameters.get("VpcId", "") if kind == "subnet" else "")
        return Creation(kind, call.region, name, tags, self._twins(call, kind, name))

    def _twins(self, call: Call, kind: str, name: tuple[str, str]) -> tuple[str, ...]:
        if kind not in _NAMED_BY_TAG or not name[0]:
            return ()
        return tuple(str(ref) for ref in live(kind, call.region) if name_of(ref, tags_shown(ref)) == name)
