"""The first network interface of each instance, which OCI returns separately from the instance.

It is made with the instance, keeps its subnet and its address, and goes with it: so it is read once and cached. In a
cycle without new instances nothing here calls the cloud.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from fractal_cloud.offers.oci.calls import CORE, Item, Oci, Vnic

CACHE_LIMIT = 100_000
"""With more instances than this the cache is emptied, so that those long gone do not fill the memory."""


def cache_primary_vnics(cloud: Oci, instances: Collection[str], *, with_addresses: bool, **query: str) -> None:
    """Cache the primary interface of those instances that are not in the cache yet.

    It lists all attachments once and reads each new one; without addresses, an instance with a single interface needs
    no read.
    """
    known = cloud.vnics
    unknown = {one for one in instances if one not in known or (with_addresses and not known[one].private_ip)}
    if not unknown:
        return
    if len(known) > CACHE_LIMIT:
        known.clear()
    attached: dict[str, list[Item]] = defaultdict(list)
    for item in cloud.list("core", f"{CORE}/vnicAttachments", **query):
        if item["instanceId"] in unknown and item["lifecycleState"] == "ATTACHED" and item.get("vnicId"):
            attached[item["instanceId"]].append(item)
    for instance, items in attached.items():
        found = _primary(cloud, items, with_address=with_addresses)
        if found is not None:
            known[instance] = found


def _primary(cloud: Oci, items: list[Item], *, with_address: bool) -> Vnic | None:
    if len(items) == 1 and not with_address:
        return Vnic(items[0]["vnicId"], items[0]["subnetId"], "")
    for item in items:
        found = cloud.find("core", f"{CORE}/vnics/{item['vnicId']}")
        if found is not None and found[0].get("isPrimary"):
            vnic = found[0]
            return Vnic(vnic["id"], vnic["subnetId"], vnic.get("privateIp") or "")
    return None
