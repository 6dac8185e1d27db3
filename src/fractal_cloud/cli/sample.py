"""The LiveSystem that `fractal up` deploys: a small network with a machine in it, and two workloads that are linked."""

from fractal_cloud import LiveSystem
from fractal_cloud import custom_workloads as cw
from fractal_cloud import network_and_compute as nc

vpc = nc.aws.vpc(
    id="net", name="sample-net", region="eu-central-1", cidr_block="10.0.0.0/16", enable_dns_hostnames=True
)
public = nc.aws.subnet(id="public", vpc=vpc, name="sample-public", cidr_block="10.0.0.0/24")
private = nc.aws.subnet(id="private", vpc=vpc, name="sample-private", cidr_block="10.0.1.0/24")
firewall = nc.aws.security_group(
    id="firewall",
    vpc=vpc,
    name="sample-firewall",
    description="Lets the web in",
    ingress=[nc.aws.security_group_rule(ip_protocol="tcp", from_port=443, to_port=443, cidr_ip="0.0.0.0/0")],
)
web = nc.aws.ec2(
    id="web",
    name="sample-web",
    subnet=public,
    image_id="ami-12c6146b",
    instance_type="t3.medium",
    security_groups=[firewall],
)
stock = cw.kubernetes.workload(id="stock", name="sample-stock", image="nginx:1.29", container_port=8080)
shop = cw.kubernetes.workload(id="shop", name="sample-shop", image="nginx:1.29", container_port=8080, replicas=2)
shop.link_to_workload(stock, from_port=8080)

sample = LiveSystem(
    id="sample",
    description="A small network with one machine in it, and two workloads of which one may talk to the other",
    components=[vpc, public, private, firewall, web, stock, shop],
)
