"""What packages bring is found through entry points; what contradicts itself fails at the start, and says where."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.offers.registry import Registry, installed

PROVIDER = """
from fractal_cloud.offers.offer import Provider
PROVIDER = Provider(name={name!r}, title="", connect=lambda: None)
"""
OFFER = """
from fractal_cloud.offers.aws.vpc import AwsVpcOffer
class Mine(AwsVpcOffer): ...
"""
HALF = """
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.offers.link import inbound
@inbound(source="*", target="Their.Type", link_type="theirLink", settings=LinkSettings)
def grant(link): ...
"""
COMPLETE = (
    HALF
    + """
grant.revokes(lambda link: None)
grant.verifies(lambda links: links)
"""
)


class Packages:
    """Packages as pip would leave them, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, *, announces: str = "", **modules: str) -> None:
        """Install a package: its modules by name (``init`` is the package itself), and what it announces."""
        package = self.folder / name
        package.mkdir()
        for module, text in {"init": "", **modules}.items():
            (package / f"{'__init__' if module == 'init' else module}.py").write_text(text)
        info = self.folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[fractal_cloud.offers]\n{name} = {announces or name}\n")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield Packages(tmp_path)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def registry() -> Registry:
    """The registry of this installation, found anew."""
    return installed.__wrapped__()


def refusal() -> str:
    with pytest.raises(RegistrationError) as found:
        registry()
    return str(found.value)


@pytest.mark.rule("L16")
def test_everything_in_an_announced_package_is_found_at_any_depth(packages: Packages) -> None:
    packages.add("left", init=PROVIDER.format(name="left"), halves=COMPLETE, __main__="raise SystemExit('a program')")
    inner = packages.folder / "left" / "deep" / "deeper"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").touch()
    (inner / "more.py").write_text(COMPLETE.replace("Their.Type", "Their.OtherType"))
    found = registry()
    assert "left" in found.providers()
    assert found.handlers.find("inbound", "Any.Type", "Their.Type") is not None
    assert found.handlers.find("inbound", "Any.Type", "Their.OtherType") is not None


@pytest.mark.rule("L16")
def test_two_packages_may_both_name_what_one_of_them_brings(packages: Packages) -> None:
    packages.add("left", init=PROVIDER.format(name="left"), halves=COMPLETE)
    packages.add("right", init="from left import PROVIDER\nfrom left.halves import grant\n")
    assert "left" in registry().providers()


@pytest.mark.rule("L15", "L16")
def test_two_offers_of_one_type_are_refused_with_both_places(packages: Packages) -> None:
    packages.add("left", offers=OFFER)
    assert refusal() == (
        "'NetworkAndCompute.IaaS.AwsVpc' is registered twice, by fractal_cloud.offers.aws.vpc.AwsVpcOffer "
        "and by left.offers.Mine: remove one of them"
    )


@pytest.mark.rule("L15")
def test_two_handlers_with_one_claim_are_refused_with_both_places(packages: Packages) -> None:
    packages.add("left", halves=COMPLETE)
    packages.add("right", other=COMPLETE)
    assert refusal() == (
        "the inbound half from '*' to 'Their.Type' is registered twice, "
        "by left.halves.grant and by right.other.grant: remove one of them"
    )


@pytest.mark.rule("L16")
def test_a_provider_of_two_packages_is_refused_with_both_places(packages: Packages) -> None:
    packages.add("left", cloud=PROVIDER.format(name="theirs"))
    packages.add("right", init=PROVIDER.format(name="theirs"))
    assert refusal() == "provider 'theirs' is registered twice, by left.cloud and by right: remove one of them"


@pytest.mark.rule("L10", "L14")
@pytest.mark.parametrize(
    ("more", "lacks"), [("", "@….revokes (L10)"), ("grant.revokes(lambda link: None)\n", "@….verifies (L14)")]
)
def test_a_handler_that_cannot_revoke_or_check_is_refused(packages: Packages, more: str, lacks: str) -> None:
    packages.add("left", halves=HALF + more)
    assert refusal().startswith("left.halves.grant: ")
    assert lacks in refusal()


@pytest.mark.rule("L16")
@pytest.mark.parametrize(
    ("announces", "modules", "said"),
    [
        ("left", {"init": "import nowhere"}, "but left cannot be imported (ModuleNotFoundError: No module"),
        ("left", {"inner": "1 / 0"}, "but left.inner cannot be imported (ZeroDivisionError: division by zero)"),
        ("left.gone", {}, "but left.gone cannot be imported (ModuleNotFoundError: No module named 'left.gone')"),
        ("left:thing", {"init": "thing = 1"}, "which is no module"),
    ],
)
def test_a_package_that_cannot_be_imported_is_named(
    packages: Packages, announces: str, modules: dict[str, str], said: str
) -> None:
    packages.add("left", announces=announces, **modules)
    reason = refusal()
    assert reason.startswith(f"the package 'left' announces left = {announces!r} in fractal_cloud.offers, ")
    assert said in reason


@pytest.mark.rule("L15", "L16")
@pytest.mark.parametrize("command", ["agent", "serve"])
def test_a_program_does_not_start_beside_a_broken_package(packages: Packages, command: str, tmp_path: Path) -> None:
    packages.add("left", init="import nowhere")
    arguments = {"agent": ["--provider", "aws", "--token", "x"], "serve": ["--data-dir", str(tmp_path)]}
    done = subprocess.run(
        [sys.executable, "-m", "fractal_cloud.cli", command, *arguments[command]],
        env={**os.environ, "PYTHONPATH": str(packages.folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("error: the package 'left' announces")


@pytest.mark.rule("L7")
def test_a_half_for_somebody_elses_type_is_listed_with_the_type_of_its_own_package(packages: Packages) -> None:
    """So every agent reports the same of a type that several have, whatever else is installed beside each."""
    own = """
from fractal_cloud.offers.aws.vpc import AwsVpc, AwsVpcOffer
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.offers.link import outbound
class Theirs(AwsVpc):
    type = "Their.Type"
class TheirOffer(AwsVpcOffer):
    component = Theirs
@outbound(source="NetworkAndCompute.IaaS.AwsVpc", target=Theirs, link_type="theirLink", settings=LinkSettings)
def use(link): ...
"""
    before = registry().catalog()
    packages.add("left", offers=own)
    after = registry().catalog()
    assert [(link.half, link.source) for link in after.pop("Their.Type").links] == [
        ("outbound", "NetworkAndCompute.IaaS.AwsVpc")
    ]
    assert after == before


def test_a_module_may_be_searched_twice() -> None:
    module = ModuleType("left")
    exec(COMPLETE + PROVIDER.format(name="left"), vars(module))
    assert Registry([module, module]).providers() == ["left"]
