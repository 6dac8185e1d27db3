"""Trying an offer: a resource for the demands of the contract, what people do to it, and what can be seen.

Whatever is tried, it ends with the same three demands: one resource, all its tags as they must be (those of others
byte for byte: T1), and no write that the protocol forbids (S16).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.agent.spelling import Spelling
from fractal_cloud.model.reference import filled
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE, stamp
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.rules.drift import ComparedType, Drift, find_drift
from fractal_cloud.rules.hiding import Hiding
from fractal_cloud.rules.nested.path import root
from fractal_cloud.testing.environment import Environment, Write
from fractal_cloud.testing.example import Found, OfferExample

LIVE_SYSTEM: Final = "ls-contract"
READER: Final = "ls-reader"
OTHERS: Final[Mapping[str, str]] = {"cost center": "a=b/c:d", "Fractal-Cloud": "us", "note": ""}
"""Tags of somebody else: with a space, with a key that is nearly ours, with an empty value.

Not `Managed-By`: AWS does not say what a condition on the tag `managed-by` means where both are there.
"""
MINE: Final[Mapping[str, str]] = {"team": "shop", "cost-centre": "c-42"}
"""Tags that a declaration names as the user's own: in letters that every provider takes."""
HANDSHAKE: Final[Mapping[str, str]] = {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE}
SLOW: Final = 0.4
PATIENCE: Final = 30


@dataclass(slots=True)
class Subject:
    """The component under test, alive: its declaration, its resource, and the tags that must be on it."""

    declaration: dict[str, Any]
    found: Found
    tags: dict[str, str]

    @property
    def id(self) -> str:
        """The component's id, which is the resource's name."""
        return str(self.declaration["id"])

    def declared(self, **parameters: Any) -> dict[str, Any]:
        """The declaration with other values for some parameters."""
        return {**self.declaration, "parameters": {**self.declaration["parameters"], **parameters}}


class Trial:
    """The stage on which demands are made of one offer."""

    def __init__(self, offer: AnyOffer, example: OfferExample, environment: Environment) -> None:
        self.offer = offer
        self.example = example
        self.env = environment
        self._compared = ComparedType(offer.facts())
        self._hiding = Hiding(self._compared)
        self._spelling = Spelling(offer.component)
        self._references = offer.facts().references()
        self._names = 0
        self._is_clean = True
        self._current: Subject | None = None

    # --- a resource to try it on

    @contextmanager
    def _subject(self, *, is_new: bool = False, **more: Any) -> Iterator[Subject]:
        """A resource for one method, with tags of others on it; all demands are checked when it is over.

        It is the one that the method before left as it was, if there is one; ``is_new`` asks for one of its own.
        """
        self._settle_parents()
        if is_new or more:
            self._remove_subject()
        if self._current is None:
            declaration = self._fresh(**more)
            self.env.deploy(LIVE_SYSTEM, *self.example.parents, declaration)
            self.env.settle()
            self._meet(declaration)
        with self._tried() as subject:
            yield subject

    def _meet(self, declaration: dict[str, Any]) -> None:
        """What was created stands, with no tags but its own; others put theirs on it."""
        self._is_clean = False
        [found] = self.example.operator.find(declaration["id"])
        named = {self.example.name_tag: declaration["id"]} if self.example.name_tag else {}
        own = {**named, **declaration.get("tags", {}), **stamp(LIVE_SYSTEM).to_mapping()}
        assert dict(found.tags) == own, f"created with the tags {dict(found.tags)}, not {own}"
        others = {} if self.offer.tags_frozen else OTHERS
        if others:
            self.example.operator.tag(found, others)
        self._current = Subject(declaration, found, {**own, **others})

    @contextmanager
    def _tried(self) -> Iterator[Subject]:
        self._is_clean = False
        subject, self._current = self._current, None
        assert subject is not None
        self._is_active(subject)
        yield subject
        if self.env.find_component(LIVE_SYSTEM, subject.id) is not None:
            self._put_back(subject)
        self.env.assert_safe()
        self._is_clean = True

    def _put_back(self, subject: Subject) -> None:
        """Bring the example's own values back (a protection may have been switched on); what has grown goes away."""
        self._stands(subject)
        grown = {name: subject.declaration["parameters"][name] for name in self.example.only_up}
        own = self.example.under_name(subject.id)
        own["parameters"] |= grown
        if subject.declaration != own:
            subject.declaration = own
            self._redeploy(subject)
            self._is_active(subject)
        self._current = subject
        if self.offer.tags_frozen or own != self.example.under_name(subject.id):
            self._remove_subject()

    def _remove_subject(self) -> None:
        """Have what stands from the method before taken away."""
        if self._current is not None:
            self._current = None
            self.env.deploy(LIVE_SYSTEM, *self.example.parents)
            self.env.settle()

    def _settle_parents(self) -> None:
        if not self._is_clean:
            self.env.start_over()
            self._current = None
            self._is_clean = True

    def _fresh(self, **more: Any) -> dict[str, Any]:
        self._names += 1
        return self.example.under_name(f"{self.example.declaration['id']}-{self._names}", **more)

    # --- what people do

    def _redeploy(self, subject: Subject, **parameters: Any) -> None:
        self.env.deploy(LIVE_SYSTEM, *self.example.parents, subject.declared(**parameters))
        if parameters and set(parameters) <= set(self.example.changes):
            subject.declaration = subject.declared(**parameters)
        self.env.settle()

    def _edit(self, subject: Subject, *names: str) -> None:
        for name in names:
            value = self._resolved(name, self.example.changes[name])
            self.example.operator.edit(subject.found.resource_id, name, value)

    def _make_drift(self, subject: Subject) -> str:
        """Let declared and actual differ: by a person's edit, or, where everything only grows, by a new declaration."""
        for name in self.example.editable()[:1]:
            self._edit(subject, name)
            return name
        name = next(iter(self.example.changes))
        subject.declaration = subject.declared(**{name: self.example.changes[name]})
        self.env.deploy(LIVE_SYSTEM, *self.example.parents, subject.declaration)
        return name

    def _tag(self, subject: Subject, tags: Mapping[str, str]) -> None:
        self.example.operator.tag(subject.found, tags)
        subject.tags.update({key: value for key, value in tags.items() if key != RECONCILE})

    def _untag(self, subject: Subject, *keys: str) -> None:
        self.example.operator.untag(subject.found, *keys)
        for key in keys:
            subject.tags.pop(key, None)
        [found] = self.example.operator.find(subject.id)
        assert not found.tags.keys() & set(keys), f"the example's operator could not take {keys} off"

    def _break(self, subject: Subject, *keys: str) -> None:
        """Break the glass as people do it: by taking managed-by off; where tags are frozen, through the product."""
        if self.offer.tags_frozen:
            self.env.glass(LIVE_SYSTEM, subject.id, "break")
        else:
            self._untag(subject, MANAGED_BY, *keys)

    def _hand_back(self, subject: Subject) -> None:
        if self.offer.tags_frozen:
            self.env.glass(LIVE_SYSTEM, subject.id, "readopt")
        else:
            self._tag(subject, HANDSHAKE)
        self.env.settle()
        self._is_active(subject)

    def _push(self, subject: Subject) -> None:
        self.env.force_push(LIVE_SYSTEM, subject.id)
        subject.tags.update(stamp(LIVE_SYSTEM).to_mapping())

    # --- what can be seen

    def _component(self, live_system: str, component: str) -> dict[str, Any]:
        shown = self.env.find_component(live_system, component)
        assert shown is not None, f"{component!r} is gone from {live_system!r}"
        return shown

    def _shown(self, subject: Subject) -> dict[str, Any]:
        return self._component(LIVE_SYSTEM, subject.id)

    def _outputs(self, subject: Subject) -> dict[str, Any]:
        outputs: dict[str, Any] = self._shown(subject)["outputFields"]
        return outputs

    def _shows(self, subject: Subject, status: str) -> None:
        shown = self._shown(subject)
        assert shown["status"] == status, f"{shown['status']}, not {status}: {shown['message']}"

    def _cycle_until(self, subject: Subject, status: str) -> None:
        for _ in range(PATIENCE):
            self.env.cycle()
            if self._shown(subject)["status"] == status:
                return
        self._shows(subject, status)

    def _says(self, subject: Subject, name: str, *values: Any) -> None:
        """Name the parameter and these values of it in its message; of texts that are hidden, that there is one."""
        message = self._shown(subject)["message"]
        values = tuple(self._hiding.declared({name: value})[name] for value in values)
        parts = [part for value in values for part in (value if isinstance(value, list) else [value])]
        expected = [name, *(json.dumps(part).strip('"') for part in parts)]
        unsaid = [text for text in expected if text not in message]
        assert not unsaid, f"{unsaid} is not named in {message!r}"

    def _stands(self, subject: Subject) -> None:
        """The same one resource, with its tags and everybody else's."""
        found = self.example.operator.find(subject.id)
        assert len(found) == 1, f"{len(found)} resources are named {subject.id!r}: {found}"
        assert found[0].resource_id == subject.found.resource_id, f"it was replaced by {found[0].resource_id}"
        tags = dict(found[0].tags)
        assert tags == subject.tags, f"tags are {tags}, not {subject.tags}"

    def _is_active(self, subject: Subject) -> None:
        self._shows(subject, "Active")
        assert not self._drift(subject), self._drift(subject)
        self._stands(subject)

    def _drift(self, subject: Subject, *, ignoring: bool = True) -> Drift:
        declared = subject.declaration["parameters"]
        ignored = subject.declaration.get("ignoreDrift", ()) if ignoring else ()
        resolved = {name: self._resolved(name, value) for name, value in declared.items()}
        compared = self._hiding.declared(self._spelling.of(resolved))
        return find_drift(self._compared, compared, self._outputs(subject), ignored)

    def _drifting(self, subject: Subject, *, ignoring: bool = True) -> set[str]:
        """The parameters that drift, in which value of theirs ever."""
        return parameters_of(self._drift(subject, ignoring=ignoring))

    def _resolved(self, name: str, value: Any) -> Any:
        """A value with component ids, and references to outputs, replaced by the outputs that stand for them."""
        if name not in self._references:
            return filled(value, lambda one: self._output(one.component, one.field))
        output = self._references[name][1]
        if isinstance(value, list):
            return [self._output(one, output) for one in value]
        return self._output(value, output)

    def _output(self, component: str, name: str) -> Any:
        return self._component(LIVE_SYSTEM, component)["outputFields"][name]

    def _writes_for(self, subject: Subject) -> list[Write]:
        return [w for w in self.env.writes() if (w.live_system, w.component) == (LIVE_SYSTEM, subject.id)]


def parameters_of(paths: Iterable[str]) -> set[str]:
    """The parameters in which values are, by the paths by which drift names these."""
    return {root(path) for path in paths}
