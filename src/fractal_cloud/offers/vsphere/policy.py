"""The rights the agent needs at a vCenter: one role, as commands of `govc`.

None of its privileges changes permissions or roles, works inside a guest, opens a console, or attaches a disk that is
there already (A7). vCenter has no condition on tags: that the agent changes only what is managed, its own guard makes
sure of (S16).
"""

from __future__ import annotations

from typing import Final

from fractal_cloud.offers.policy import PLAIN, PolicyOptions
from fractal_cloud.offers.registry import installed

_GLOBAL: Final = (
    "InventoryService.Tagging.AttachTag",
    "InventoryService.Tagging.ObjectAttachable",
    "InventoryService.Tagging.CreateCategory",
    "InventoryService.Tagging.CreateTag",
)
_TEXT: Final = """\
# Two roles: to tag anywhere, and to make and change machines in one folder. Fill in the user and the paths.
# Whatever is in that folder the agent may change: give it one of its own.
govc role.create fractal-cloud-tags \\
  {tagging}
govc role.create fractal-cloud-machines \\
  {machines}
govc permissions.set -principal USER -role fractal-cloud-tags -propagate=true /
# On the folder, and on the resource pool, the datastore and the network that declarations name:
govc permissions.set -principal USER -role fractal-cloud-machines -propagate=true /DATACENTER/vm/FOLDER
govc permissions.set -principal USER -role fractal-cloud-machines /DATACENTER/host/CLUSTER/Resources
govc permissions.set -principal USER -role fractal-cloud-machines /DATACENTER/datastore/DATASTORE
govc permissions.set -principal USER -role fractal-cloud-machines /DATACENTER/network/NETWORK
"""


def policy(options: PolicyOptions = PLAIN) -> str:
    """The roles, as commands for a shell."""
    options.check("vsphere")
    return _TEXT.format(
        tagging=" \\\n  ".join(_GLOBAL), machines=" \\\n  ".join(installed("vsphere").rights("vsphere"))
    )
