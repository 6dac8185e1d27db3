"""What must not happen by the way: machines cut off, data gone, other people's things taken apart (O6, O15, S18)."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.hetzner.firewall import HetznerFirewall, HetznerFirewallRule
from fractal_cloud.offers.hetzner.load_balancer import HetznerLoadBalancer
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.offers.hetzner.server import HetznerServer, HetznerServerOffer
from fractal_cloud.offers.hetzner.services import HetznerLoadBalancerService
from fractal_cloud.offers.hetzner.volume import HetznerVolume
from tests.offers.hetzner.examples import component, network, server
from tests.offers.hetzner.worlds import HetznerWorld


def disk(**parameters: object) -> dict[str, object]:
    return component(HetznerVolume, "disk", **{"size": 10, "location": "fsn1", **parameters})


def operations(world: HetznerWorld, since: int = 0) -> list[str]:
    return [write.operation for write in world.writes()[since:]]


@pytest.mark.rule("S12")
def test_another_size_is_three_calls_and_the_disk_stays_as_it_is(world: HetznerWorld) -> None:
    world.deploy("ls-a", server("web"))
    world.settle()
    number = world.output("ls-a", "web", "serverId")
    before = len(world.writes())
    assert HetznerServerOffer().warnings(["serverType"]), "a plan says so"
    world.deploy("ls-a", server("web", serverType="cx33"))
    world.settle()
    assert operations(world, before) == ["servers:shutdown", "servers:change_type", "servers:poweron"]
    item = world.hetzner.get("servers", number)
    assert (item["server_type"]["name"], item["primary_disk_size"], item["status"]) == ("cx33", 40, "running")
    world.assert_safe()


@pytest.mark.rule("S13")
def test_a_machine_that_is_still_stopping_is_left_alone(world: HetznerWorld) -> None:
    world.deploy("ls-a", server("web"))
    world.settle()
    before = len(world.writes())
    world.cloud.knobs.slow_modification(kind="server", seconds=0.3)
    world.deploy("ls-a", server("web", serverType="cx33"))
    world.cycle()
    assert world.status("ls-a", "web") == "Mutating"
    assert "stopping" in world.component("ls-a", "web")["message"]
    world.settle(at_most=400)
    assert operations(world, before) == ["servers:shutdown", "servers:change_type", "servers:poweron"]
    world.assert_safe()


@pytest.mark.rule("O15", "S18")
def test_backups_are_never_thrown_away(world: HetznerWorld) -> None:
    world.deploy("ls-a", server("web", backups=True))
    world.settle()
    world.deploy("ls-a", server("web", backups=False))
    world.cycle(3)
    shown = world.component("ls-a", "web")
    assert shown["status"] == "Failed"
    assert "hcloud server disable-backup" in shown["message"]
    assert "servers:disable_backup" not in operations(world)


@pytest.mark.rule("O6", "O10")
def test_a_server_goes_with_its_own_volume_which_is_taken_off_first(world: HetznerWorld) -> None:
    world.deploy("ls-a", network("net"), server("web", networks=["net"]), disk(server="web"))
    world.settle()
    before = len(world.writes())
    world.delete("ls-a")
    world.settle()
    assert operations(world, before) == ["volumes:detach", "volumes:delete", "servers:delete", "networks:delete"]
    world.assert_safe()


@pytest.mark.rule("O10", "O15", "G4")
def test_a_volume_stays_on_a_server_that_is_in_override(world: HetznerWorld) -> None:
    world.deploy("ls-a", server("web"), disk(server="web"))
    world.settle()
    number = world.output("ls-a", "web", "serverId")
    world.hetzner.relabel("servers", number, managed_by=None)
    world.cycle()
    world.deploy("ls-a", server("web"))
    world.cycle(3)
    assert world.component("ls-a", "disk")["status"] == "Failed"
    assert "server 'web'" in world.component("ls-a", "disk")["message"]
    [volume] = world.hetzner.named("volumes", "disk")
    assert volume["server"] == int(number)
    world.assert_safe()


@pytest.mark.rule("S4a")
def test_a_volume_that_vanished_is_not_replaced_by_an_empty_one(world: HetznerWorld) -> None:
    world.deploy("ls-a", disk())
    world.settle()
    world.hetzner.delete("volumes", world.output("ls-a", "disk", "volumeId"))
    world.cycle(3)
    assert world.status("ls-a", "disk") == "Missing"
    assert not world.hetzner.named("volumes", "disk")


@pytest.mark.rule("S14")
def test_of_two_networks_of_one_name_neither_is_touched(world: HetznerWorld) -> None:
    first, second = (world.hetzner.network("net")["id"] for _ in range(2))
    world.deploy("ls-a", network("net"))
    world.settle()
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert str(first) in shown["message"]
    assert str(second) in shown["message"]
    assert not world.writes()


@pytest.mark.rule("O3", "O6", "S6")
def test_a_network_stays_while_an_importer_has_a_server_in_it(world: HetznerWorld) -> None:
    world.deploy("ls-a", network("net"))
    world.settle()
    world.deploy("ls-b", network("net"), server("guest", networks=["net"]))
    world.settle()
    world.delete("ls-a")
    world.cycle(3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Deleting"
    assert "server 'guest'" in shown["message"]
    world.delete("ls-b")
    world.settle()
    assert not world.hetzner.named("networks", "net")
    world.assert_safe()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: HetznerFirewallRule(direction="in", protocol="tcp", source_ips=["::/0"]), "has a port"),
        (lambda: HetznerFirewallRule(direction="out", protocol="icmp", source_ips=["::/0"]), "destinationIps"),
        (lambda: HetznerLoadBalancerService(protocol="https", listen_port=443, destination_port=80), "certificates"),
        (
            lambda: HetznerLoadBalancerService(
                protocol="tcp", listen_port=80, destination_port=80, health_check_path="/"
            ),
            "healthCheckProtocol",
        ),
    ],
)
def test_parts_that_hetzner_would_refuse_are_refused_when_they_are_declared(make: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (HetznerServer, {"server_type": "cx23", "image": "debian-13", "name": "web_1"}, "host name"),
        (HetznerVolume, {"size": 10}, "needs a location, or a server"),
        (HetznerLoadBalancer, {"load_balancer_type": "lb11"}, "needs a location or a networkZone"),
        (
            HetznerLoadBalancer,
            {"load_balancer_type": "lb11", "location": "fsn1", "use_private_ip": True},
            "declare some",
        ),
        (
            HetznerLoadBalancer,
            {
                "load_balancer_type": "lb11",
                "location": "fsn1",
                "services": [{"protocol": "tcp", "listenPort": 80, "destinationPort": port} for port in (80, 81)],
            },
            "two services listen on port 80",
        ),
        (HetznerNetwork, {"ip_range": "10.0.0.1/16"}, "10.0.0.0/16"),
        (HetznerNetwork, {"ip_range": "fd00::/64"}, "IPv4"),
        (HetznerFirewall, {"rules": [{"direction": "in", "protocol": "icmp", "sourceIps": ["all"]}]}, "no network"),
    ],
)
def test_components_that_hetzner_would_refuse_are_refused_when_they_are_declared(
    kind: type, given: dict[str, object], said: str
) -> None:
    with pytest.raises(DeclarationError, match=said):
        kind(id="web", **given)
