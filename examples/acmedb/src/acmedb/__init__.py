"""AcmeDB for Fractal Cloud: what people import to declare one, and the provider through which an agent reaches it."""

from acmedb.component import AcmeDb, AcmeDbLink, link_to_acmedb
from fractal_cloud.offers.offer import Provider, Session

__all__ = ["PROVIDER", "AcmeDb", "AcmeDbLink", "link_to_acmedb"]


def _connect() -> Session:
    from acmedb.cloud import AcmeSession

    return AcmeSession()


PROVIDER = Provider(name="acme", title="AcmeDB", connect=_connect)
