"""What is loaded for whom: an agent of one provider loads neither the types nor the clients of the others."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from fractal_cloud.offers.registry import installed
from tests.offers.suites import suites

CLIENTS = {
    "aws": {"boto3"},
    "azure": {"azure"},
    "gcp": {"google"},
    "hetzner": {"hcloud"},
    "kubernetes": {"kubernetes"},
    "vsphere": {"pyVmomi"},
}


@pytest.mark.parametrize("provider", sorted({suite.provider for suite in suites().values()}))
def test_an_agent_loads_its_own_provider_alone(provider: str) -> None:
    program = (
        "import sys\n"
        "from fractal_cloud.offers.registry import installed\n"
        f"registry = installed({provider!r})\n"
        "import fractal_cloud.agent.main\n"
        f"assert registry.providers() and {provider!r} in registry.providers(), registry.providers()\n"
        "print(*sorted({name.split('.')[2] for name in sys.modules if name.startswith('fractal_cloud.offers.')}))\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    folders, packages = (set(line.split()) for line in ran.stdout.splitlines())
    assert folders & (set(installed().providers()) - {provider}) == set()
    assert packages & set().union(*CLIENTS.values()) == set(), "a client is loaded only when somebody connects"


def test_every_half_of_a_link_stands_with_the_provider_it_runs_for() -> None:
    registry = installed()
    for handler in registry.handlers:
        own = handler.target if handler.half == "inbound" else handler.source
        folder = handler.function.__module__.split(".")[2]
        assert registry[own].provider == folder, f"{handler.function.__module__} would not be loaded by its agent"


@pytest.mark.rule("S21")
@pytest.mark.parametrize("provider", sorted({offer.provider for offer in installed() if offer.rights}))
def test_the_policy_of_a_provider_grants_every_right_that_its_types_name(provider: str) -> None:
    granted = str(import_module(f"fractal_cloud.offers.{provider}.policy").policy())
    rights = installed(provider).rights(provider)
    assert rights
    assert [right for right in rights if right.partition(" where ")[0] not in granted] == []
