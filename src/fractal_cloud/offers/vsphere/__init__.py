"""The component types of VMware vSphere; soap.py and specs.py know the vendor's client, and nothing here decides."""

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.vsphere.cloud import VsphereSession

    return VsphereSession()


def _is_at_hand() -> bool:
    from fractal_cloud.offers.vsphere.credentials import is_at_hand

    return is_at_hand()


PROVIDER = Provider(
    name="vsphere", title="VMware vSphere", connect=_connect, packages=("pyVmomi",), is_at_hand=_is_at_hand
)
