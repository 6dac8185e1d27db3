"""Records which rules passing tests proved on which cloud, for the matrix of docs/providers.md.

The rules are those of the tests' `rule` marks; `scripts/matrix.py` turns the written file into the matrix.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.offers.suites import kinds, suites

# Tests of the whole product that are not about one cloud run on this one.
HOME = "aws"
GLASS = "/glass/test_with_"


def record_rules(items: Iterable[pytest.Item]) -> None:
    """Add to every test the rules that it proves and the provider, as properties of its report."""
    for item in items:
        rules = sorted({rule for mark in item.iter_markers("rule") for rule in mark.args})
        if rules:
            item.user_properties += [("provider", provider_of(item)), ("rules", " ".join(rules))]


def provider_of(item: pytest.Item) -> str:
    """The provider a test is about: by its parameters, its module's PROVIDER, or its folder."""
    values = [value for value in getattr(getattr(item, "callspec", None), "params", {}).values() if _is_name(value)]
    for value in values:
        if value in suites():
            return suites()[value].provider
        if value in kinds():
            return kinds()[value][0].provider
    named = getattr(getattr(item, "module", None), "PROVIDER", "")
    if named in suites():
        return str(named)
    return next((part for part in item.path.parts if part in suites()), HOME)


def _is_name(value: object) -> bool:
    return isinstance(value, str)


def write_matrix(path: Path, reports: Iterable[Any]) -> None:
    """Count what passed: tests by provider and rule, and by provider and command line."""
    rules: dict[str, Counter[str]] = defaultdict(Counter)
    clis: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        properties = dict(report.user_properties)
        if report.when != "call" or "rules" not in properties:
            continue
        rules[properties["provider"]].update(properties["rules"].split())
        if GLASS in report.nodeid:
            clis[properties["provider"]][report.nodeid.partition(GLASS)[2].partition(".py")[0]] += 1
    path.write_text(json.dumps({"rules": rules, "commandLines": clis}, indent=2, sort_keys=True) + "\n")
