"""The contract finds offers that do not keep it: each of these is the example's, with one thing wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fractal_cloud.model.tags import MANAGED_BY, NO_TAGS, OURS, OWNER, stamp
from fractal_cloud.offers.registry import Registry
from fractal_cloud.testing import OfferContract, Product
from tests.thirdparty.conftest import EXAMPLE

PATIENCE = 12
"""Cycles after which this suite believes that something never settles."""


def creates_without_tags(offer: Any) -> None:
    create = offer.create
    offer.create = lambda self, cloud, wanted, tags: create(self, cloud, wanted, NO_TAGS)


def removes_other_peoples_tags(offer: Any) -> None:
    def tag(self: Any, cloud: Any, sighting: Any, add: Any, remove: Any) -> None:
        kept = {MANAGED_BY: OURS, OWNER: sighting.tags[OWNER]}
        cloud.change(sighting.resource_id, sighting.revision, {"labels": {**dict.fromkeys(sighting.tags), **kept}})

    offer.tag = tag


def forgets_a_parameter(offer: Any) -> None:
    update = offer.update
    offer.update = lambda self, cloud, sighting, wanted, drift: update(
        self, cloud, sighting, wanted, [name for name in drift if name != "maxConnections"]
    )


def remembers_the_tags(offer: Any) -> None:
    read = offer.read

    def stale(self: Any, cloud: Any, resource_id: str, sweep: Any = ()) -> Any:
        """As a cache would: the tags that were there when it was made."""
        fresh = read(self, cloud, resource_id, sweep)
        return None if fresh is None else replace(fresh, protocol=stamp("ls-contract"))

    offer.read = stale


@pytest.fixture(scope="module")
def parts() -> Iterator[Callable[[str], ModuleType]]:
    """The modules of the example, imported from its sources, and forgotten afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE / "src")
        patch.syspath_prepend(EXAMPLE / "tests")
        yield import_module
    for name in [name for name in sys.modules if name.partition(".")[0] in ("acmedb", "test_contract")]:
        del sys.modules[name]


@pytest.mark.rule("T1", "T2", "S12", "S16")
@pytest.mark.parametrize(
    ("breaks", "demand", "said"),
    [
        (creates_without_tags, "creates_exactly_one_with_its_tags_in_the_call", "created with the tags {}"),
        (removes_other_peoples_tags, "breaks_the_glass_and_is_handed_back", "tags are {"),
        (forgets_a_parameter, "brings_every_parameter_back", "maxConnections was set back 3 times"),
        (remembers_the_tags, "lets_a_person_win_before_an_update", "written although managed-by was gone"),
    ],
)
def test_the_contract_finds_it(
    breaks: Callable[[Any], None],
    demand: str,
    said: str,
    parts: Callable[[str], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fractal_cloud.testing.product.PATIENCE", PATIENCE)
    suite, good = parts("test_contract"), parts("acmedb.offer").AcmeDbOffer
    bad = type("Bad", (good,), {"__module__": "bad"})
    breaks(bad)
    module = ModuleType("bad")
    vars(module)["Bad"] = bad
    registry = Registry([parts("acmedb"), module])
    with parts("acmedb.server").AcmeServer([suite.AGENT, suite.PERSON]) as server:
        monkeypatch.setenv("ACMEDB_URL", server.url)
        monkeypatch.setenv("ACMEDB_TOKEN", suite.AGENT)
        with Product(tmp_path, ["acme"], forget=server.forget, registry=registry) as product:
            person = suite.Person(server.url)
            contract = OfferContract(registry["Storage.PaaS.AcmeDb"], suite.example(person), product)
            with pytest.raises(AssertionError, match=re.escape(said)):
                getattr(contract, demand)()
