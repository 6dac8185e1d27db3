"""How differences between values are worded, the same in pages, commands, plans, messages and events.

Two directions, one per place. **Drift** is the cloud against the declaration: ``+`` is only in the cloud, ``-`` is
only declared. **A plan** is what will be written: ``+`` will be added to the cloud, ``-`` removed from it. Rules of
firewalls read as people say them; what has no words of its own is compact JSON. Values arrive with secrets hidden
(``hiding``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from fractal_cloud.model.event import EventKind
from fractal_cloud.model.visible_text import visible
from fractal_cloud.rules.value_diff import ABSENT, ElementDifference, Item, Path, element_differences

IN_DRIFT: Final = "+ is only in the cloud, - is only declared"
IN_PLAN: Final = "+ is added to the cloud, - is removed from it"

_MOST_LINES: Final = 8
_MOST_LETTERS: Final = 120


@dataclass(frozen=True, slots=True)
class Line:
    """One difference in words. ``label``: the parameter, and where in it; ``text``: what differs there."""

    label: str
    text: str
    sign: str = "~"

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


def drift_lines(
    name: str, declared: Any, actual: Any, compare: str | None = None, most_letters: int | None = None
) -> Iterator[Line]:
    """What the cloud has against what is declared, element by element."""
    for one in element_differences(declared, actual, compare):
        yield _line(name, one, "declared {}, actual {}", most_letters)


def plan_lines(
    name: str, declared: Any, actual: Any, compare: str | None = None, most_letters: int | None = None
) -> Iterator[Line]:
    """What will be written to the cloud so that it is as declared, element by element."""
    for one in element_differences(actual, declared, compare):
        yield _line(name, one, "{} → {}", most_letters)


def sides(name: str, one: ElementDifference) -> tuple[str, str, str | None, str | None]:
    """One difference for a table: where it is, its sign, and both values in words; None on the side that lacks it."""
    line = _line(name, one, "{} {}", None)
    parameter = _last_word(name, one.path)
    if one.sign == "~":
        return line.label, "~", *_two_texts(parameter, one, None)
    text = line.text.removeprefix(f"{one.sign} ")
    return (line.label, "+", None, text) if one.sign == "+" else (line.label, "-", text, None)


def drift_text(drift: Mapping[str, Any]) -> str:
    """A whole drift in one line that stays short: many differences are counted, long values are cut."""
    return _joined(line for name, both in sorted(drift.items()) for line in _of_both(name, both, _MOST_LETTERS))


def event_text(kind: str, before: Any, after: Any) -> str:
    """What an event about differences says, from its two halves; empty for every other event.

    Drift is the cloud against the declaration. What links bring is no drift: it is what will be, or was, written.
    """
    if kind == EventKind.DRIFT_FOUND and isinstance(after, Mapping):
        return drift_text(after)
    if kind == EventKind.DRIFT_CORRECTED and isinstance(before, Mapping):
        return f"{drift_text(before)}; no longer differs"
    if kind == EventKind.LINK_CHANGE_FOUND and isinstance(after, Mapping):
        return f"to be written: {_plan_text(after)}"
    if kind == EventKind.LINK_CHANGE_APPLIED and isinstance(before, Mapping):
        return f"written: {_plan_text(before)}"
    return ""


def _plan_text(drift: Mapping[str, Any]) -> str:
    return _joined(
        line
        for name, both in sorted(drift.items())
        if isinstance(both, Mapping)
        for line in plan_lines(name, both.get("declared"), both.get("actual"), most_letters=_MOST_LETTERS)
    )


def rows_of(drift: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """A whole drift for a table: where, declared and actual; ``-`` or ``+`` where the other side lacks it."""
    for name, both in drift.items():
        if isinstance(both, Mapping):
            for one in element_differences(both.get("declared"), both.get("actual")):
                label, sign, declared, actual = sides(name, one)
                marked = f"- {declared}" if sign == "-" else declared, f"+ {actual}" if sign == "+" else actual
                yield label, marked[0] or "", marked[1] or ""


def lines_of(drift: Mapping[str, Any], most_letters: int | None = None) -> Iterator[Line]:
    """A whole drift, every line of it: for tables."""
    for name, both in drift.items():
        yield from _of_both(name, both, most_letters)


def _of_both(name: str, both: Any, most_letters: int | None) -> Iterator[Line]:
    if isinstance(both, Mapping):
        return drift_lines(name, both.get("declared"), both.get("actual"), most_letters=most_letters)
    return iter([Line(name, value_text(name, both, most_letters))])


def written(name: str, declared: Any, actual: Any) -> str:
    """What will be written to one parameter, in one line: «size from 2 to 3», «ingress (+ tcp 22 from 10.0.0.0/8)»."""
    found = list(islice(element_differences(actual, declared), _MOST_LINES + 1))
    if not found or not found[0].path:
        return f"{name} from {_quoted(actual)} to {_quoted(declared)}"
    said = [_line(name, one, "{} → {}", _MOST_LETTERS) for one in found[:_MOST_LINES]]
    texts = [
        line.text if line.label == name else f"{line.label.removeprefix(name).strip()}: {line.text}" for line in said
    ]
    return f"{name} ({'; '.join([*texts, *(['…'] if len(found) > _MOST_LINES else [])])})"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _joined(lines: Iterator[Line]) -> str:
    said = [str(line) for line in islice(lines, _MOST_LINES)]
    more = sum(1 for _ in lines)
    return "; ".join([*said, *([f"and {more} more"] if more else [])])


def _line(name: str, one: ElementDifference, both: str, most_letters: int | None) -> Line:
    parameter = _last_word(name, one.path)
    if one.sign == "~":
        return Line(_label(name, one.path), both.format(*_two_texts(parameter, one, most_letters)), "~")
    value = one.after if one.before is ABSENT else one.before
    text = value_text(parameter, value, most_letters)
    last = one.path[-1]
    if isinstance(last, str):
        text = f"{visible(last)}={text}"
    return Line(_label(name, one.path[:-1]), f"{one.sign} {text}", one.sign)


def _two_texts(parameter: str, one: ElementDifference, most_letters: int | None) -> tuple[str, str]:
    """Both values; as JSON where they would read alike, as «3» and 3 do."""
    was, is_now = (value_text(parameter, value, most_letters) for value in (one.before, one.after))
    return (was, is_now) if was != is_now else (_quoted(one.before), _quoted(one.after))


def _last_word(name: str, path: Path) -> str:
    """The nearest name above an element: what a rule in it is about, coming in or going out."""
    return next((step for step in reversed(path) if isinstance(step, str)), name)


def _label(name: str, path: Path) -> str:
    """A place in a parameter: ``env LOG_LEVEL``, ``securityRules[ssh] priority``, ``spec template.replicas``."""
    text = ""
    for step in path:
        if isinstance(step, Item):
            text += f"[{visible(step.name) or step.place}]"
        else:
            text += f".{visible(step)}" if text and not text.startswith("[") else f" {visible(step)}"
    return f"{name}{text}"


def value_text(parameter: str, value: Any, most_letters: int | None = None) -> str:
    """A value on one line: text as it is, a rule of a firewall as people say it, everything else as compact JSON."""
    if isinstance(value, str) and value:
        text = value
    else:
        text = rule_text(parameter, value) or json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    text = visible(text)
    return text if most_letters is None or len(text) <= most_letters else f"{text[: most_letters - 1]}…"


# --- rules of firewalls, as the providers' types declare them

_PROTOCOL: Final = ("ipProtocol", "protocol")
_SOURCES: Final = ("cidrIp", "cidrIpv6", "cidr", "sourceAddressPrefix", "sourceIps", "source")
_TARGETS: Final = ("destinationAddressPrefix", "destinationIps", "destination")
_GROUPS: Final = ("referencedGroupId", "prefixListId", "sourceSecurityGroupId", "target")
_PORTS: Final = ("port", "destinationPortRange")
_ANYTHING: Final = frozenset({"-1", "any", "all", "*"})
_OUT: Final = frozenset({"egress", "outbound", "out", "securitygroupegress"})
_DIRECTIONS: Final = ("ingress", "egress")
_OF_POLICY: Final = frozenset({"cidr", "podSelector", "namespaceSelector", "port", "endPort", "protocol"})
_SAID_APART: Final = frozenset({"name", "access", "direction", "priority", "description", "targetKind"})


def rule_text(parameter: str, value: Any) -> str:
    """A rule of a firewall in words («tcp 22 from 10.0.0.0/8»), or nothing if the value is none."""
    if not isinstance(value, Mapping) or not (value or parameter in _DIRECTIONS):
        return ""
    rule = {key[:1].lower() + key[1:]: one for key, one in value.items() if isinstance(key, str)}
    if any(isinstance(one, Mapping) for one in rule.values()):
        return ""
    peers = _peers(rule)
    is_of_policy = parameter in _DIRECTIONS and rule.keys() <= _OF_POLICY
    is_rule = is_of_policy or "access" in rule or any(key in rule for key in _PROTOCOL)
    return _words(parameter, rule, peers) if is_rule and (peers or is_of_policy or "direction" in rule) else ""


def _words(parameter: str, rule: Mapping[str, Any], peers: Mapping[str, str]) -> str:
    is_out = str(rule.get("direction", parameter)).lower() in _OUT
    said = [f"{rule['name']}:"] if rule.get("name") else []
    said += [str(rule["access"]).lower()] if rule.get("access") else []
    said += _traffic(rule)
    said += _ends(peers, is_out=is_out)
    if "priority" in rule:
        said.append(f"(priority {rule['priority']})")
    used = {*_PROTOCOL, *_PORTS, *peers, *_SAID_APART, "fromPort", "toPort", "endPort"}
    said += [f"{key}={value_text(key, one)}" for key, one in sorted(rule.items()) if key not in used]
    if rule.get("description"):
        said.append(json.dumps(str(rule["description"]), ensure_ascii=False))
    return " ".join(said)


def _traffic(rule: Mapping[str, Any]) -> list[str]:
    """The protocol and its ports; for ICMP AWS calls type and code ports."""
    protocol = str(next((rule[key] for key in _PROTOCOL if rule.get(key) is not None), "any")).lower()
    if protocol in _ANYTHING:
        protocol = "all traffic" if not _ports(rule) else "any"
    if protocol.startswith("icmp") and rule.get("fromPort", -1) != -1:
        code = rule.get("toPort", -1)
        return [protocol, f"type {rule['fromPort']}", *([f"code {code}"] if code != -1 else [])]
    return [protocol, *_ports(rule)]


def _ports(rule: Mapping[str, Any]) -> list[str]:
    given = next((rule[key] for key in _PORTS if rule.get(key) is not None), None)
    if given is not None:
        return [f"{given}-{rule['endPort']}" if rule.get("endPort") is not None else str(given)]
    low, high = rule.get("fromPort"), rule.get("toPort")
    if low is None or low == -1:
        return []
    return [str(low) if low == high else f"{low}-{high}"]


def _peers(rule: Mapping[str, Any]) -> dict[str, str]:
    """Who stands on the other side, by the names that the rule has for them."""
    found = {key: _one_or_many(rule[key]) for key in (*_SOURCES, *_TARGETS, *_GROUPS) if rule.get(key) is not None}
    for key, word in (("podSelector", "pods"), ("namespaceSelector", "namespaces")):
        if rule.get(key) is not None:
            found[key] = f"{word} {_one_or_many(rule[key])}" if rule[key] else f"all {word}"
    return found


def _ends(peers: Mapping[str, str], *, is_out: bool) -> list[str]:
    """From where and to where. A peer that is called neither source nor destination stands where the direction says."""
    sources = [text for key, text in peers.items() if key.startswith("source")]
    targets = [text for key, text in peers.items() if key in _TARGETS]
    others = [text for key, text in peers.items() if not key.startswith("source") and key not in _TARGETS]
    (targets if is_out else sources).extend(others)
    if not (targets if is_out else sources):
        (targets if is_out else sources).append("any")
    ends = [f"from {' in '.join(sources)}"] if sources else []
    return ends + ([f"to {' in '.join(targets)}"] if targets else [])


def _one_or_many(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)
