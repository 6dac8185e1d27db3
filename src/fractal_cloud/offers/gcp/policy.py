"""The rights the agent needs in a project, as a custom IAM role for `gcloud iam roles create --file`.

Google's IAM knows no condition on the labels of these types. That the agent changes only what is managed, its own
preconditions make sure of where Google has them: `docs/providers/gcp.md` says where.
"""

from __future__ import annotations

from typing import Final

import yaml

TITLE: Final = "Fractal Cloud agent"
# What each kind of call needs. The order is that of the offers.
READS: Final = (
    "resourcemanager.projects.get",
    "compute.disks.get",
    "compute.firewalls.get",
    "compute.firewalls.list",
    "compute.instances.get",
    "compute.instances.list",
    "compute.networks.get",
    "compute.networks.list",
    "compute.subnetworks.get",
    "compute.subnetworks.list",
    "container.clusters.get",
    "container.clusters.list",
    "run.services.get",
    "run.services.list",
    "storage.buckets.get",
    "storage.buckets.list",
    "cloudsql.instances.get",
    "cloudsql.instances.list",
)
MACHINES: Final = (
    "compute.disks.create",
    "compute.images.useReadOnly",
    "compute.instances.addAccessConfig",
    "compute.instances.create",
    "compute.instances.delete",
    "compute.instances.deleteAccessConfig",
    "compute.instances.resume",
    "compute.instances.setDeletionProtection",
    "compute.instances.setLabels",
    "compute.instances.setMachineType",
    "compute.instances.setMetadata",
    "compute.instances.setServiceAccount",
    "compute.instances.setTags",
    "compute.instances.start",
    "compute.instances.stop",
    "compute.subnetworks.use",
    "compute.subnetworks.useExternalIp",
)
CLUSTERS: Final = ("container.clusters.create", "container.clusters.delete", "container.clusters.update")
SERVICES: Final = ("run.services.create", "run.services.delete", "run.services.update")
BUCKETS: Final = ("storage.buckets.create", "storage.buckets.delete", "storage.buckets.update")
DATABASES: Final = (
    "cloudsql.backupRuns.create",
    "cloudsql.instances.create",
    "cloudsql.instances.delete",
    "cloudsql.instances.update",
)
# What links to buckets make: a service account with an HMAC key, and its role in the policy of that bucket alone.
LINKS: Final = (
    "iam.serviceAccounts.create",
    "iam.serviceAccounts.delete",
    "iam.serviceAccounts.get",
    "iam.serviceAccounts.list",
    "storage.buckets.getIamPolicy",
    "storage.buckets.setIamPolicy",
    "storage.hmacKeys.create",
    "storage.hmacKeys.delete",
    "storage.hmacKeys.list",
    "storage.hmacKeys.update",
)
# Whoever runs something as a service account must be allowed to; give it on single accounts where you can.
ACTING: Final = ("iam.serviceAccounts.actAs",)


def policy() -> str:
    """The role's definition, in the form gcloud takes."""
    permissions = {*READS, *MACHINES, *CLUSTERS, *SERVICES, *BUCKETS, *DATABASES, *LINKS, *ACTING}
    role = {
        "title": TITLE,
        "description": "Reads, and changes what it manages: docs/providers/gcp.md",
        "stage": "GA",
        "includedPermissions": sorted(permissions),
    }
    return yaml.safe_dump(role, sort_keys=False)
