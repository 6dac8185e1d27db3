"""One LiveSystem on every cloud at once: `fractal deploy examples/everywhere.py --wait` brings it, or says why not.

Each agent deals with its own cloud; they never call each other. Under `make up` all of it goes to the sandbox.
"""

from fractal_cloud import LiveSystem, storage
from fractal_cloud import custom_workloads as cw
from fractal_cloud import network_and_compute as nc

everywhere = LiveSystem(
    id="everywhere",
    description="A network, a bucket or a workload on each cloud",
    components=[
        nc.aws.vpc(id="aws-net", region="eu-central-1", cidr_block="10.10.0.0/16"),
        nc.azure.vnet(
            id="azure-net", resource_group="sandbox", location="westeurope", address_prefixes=["10.20.0.0/16"]
        ),
        storage.gcp.bucket(id="everywhere-on-gcp", location="EU", public_access_prevention="enforced"),
        nc.oci.vcn(id="oci-net", region="eu-frankfurt-1", compartment="team", cidr_blocks=["10.30.0.0/16"]),
        nc.hetzner.network(id="hetzner-net", ip_range="10.40.0.0/16"),
        nc.aruba.vpc(id="aruba-net", location="ITBG-Bergamo", project="team"),
        nc.vsphere.vm(
            id="vsphere-machine",
            folder="DC0/vm",
            resource_pool="DC0/host/DC0_C0/Resources",
            datastore="LocalDS_0",
            network="DC0/network/VM Network",
            num_cpus=2,
            memory_mb=1024,
            disk_gb=10,
            guest_id="otherGuest64",
        ),
        cw.kubernetes.workload(id="workload", image="nginx:1.29", container_port=8080),
    ],
)
