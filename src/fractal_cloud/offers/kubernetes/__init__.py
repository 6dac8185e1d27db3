"""The component types of Kubernetes and OpenShift; cloud.py alone knows the SDK, and nothing here decides."""

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.kubernetes.cloud import KubernetesSession

    return KubernetesSession()


PROVIDER = Provider(name="kubernetes", title="Kubernetes and OpenShift", connect=_connect)
