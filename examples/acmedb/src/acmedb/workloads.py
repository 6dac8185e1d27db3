"""The source's half of links from workloads in Kubernetes. It runs in the Kubernetes agent, beside which this package
is installed; what is sealed for that agent goes into a Secret of the workload's own namespace.
"""

from __future__ import annotations

from acmedb.component import ACMEDB_LINK, AcmeDb, AcmeDbLink
from fractal_cloud.offers.kubernetes.link_secrets import into_secret
from fractal_cloud.offers.link import OutboundLink
from fractal_cloud.offers.secret import Secret


@into_secret(
    target=AcmeDb,
    link_type=ACMEDB_LINK,
    settings=AcmeDbLink,
    passed_on=("host", "port", "database", "user", "keyspace"),
)
def use_database(link: OutboundLink[AcmeDbLink], password: Secret) -> dict[str, str]:
    """Put the user's password into a Secret, and pass the address of its database to the workload."""
    del link
    return {"password": password.reveal()}
