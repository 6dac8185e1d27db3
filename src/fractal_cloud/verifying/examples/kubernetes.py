"""What is tried on a cluster, in a namespace that exists: small objects that ask for next to nothing."""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.verifying.example import Declaration, Place, VerificationExample

_WORDS: Final = ("namespace",)
_INSIDE: Final = {"cidr": "10.0.0.0/8", "port": 8080}
_OUTSIDE: Final = {"cidr": "192.0.2.0/24", "port": 443}


def _there(at: Place) -> dict[str, str]:
    return {word: at[word] for word in ("namespace", "cluster") if word in at.words}


def _workload(at: Place, **parameters: Any) -> Declaration:
    return at.declare(
        KubernetesWorkload,
        "pod",
        **_there(at),
        image="registry.k8s.io/pause:3.9",
        replicas=0,
        containerPort=8080,
        **parameters,
    )


EXAMPLES: Final = (
    VerificationExample(
        KubernetesWorkload,
        lambda at: [_workload(at, env={"MODE": "one"}, cpu="10m", memory="16Mi")],
        needs=_WORDS,
        changes={
            "image": "registry.k8s.io/pause:3.10",
            "containerPort": 8081,
            "env": {"MODE": "two"},
            "cpu": "20m",
            "memory": "32Mi",
        },
        guarded="cpu",
        cost="a Deployment of no replicas: nothing runs",
    ),
    VerificationExample(
        KubernetesService,
        lambda at: [
            _workload(at),
            at.declare(
                KubernetesService,
                "front",
                **_there(at),
                workload=at.name("pod"),
                port=80,
                targetPort=8080,
                serviceType="ClusterIP",
            ),
        ],
        needs=_WORDS,
        changes={"port": 81, "targetPort": 9090},
        guarded="port",
    ),
    VerificationExample(
        KubernetesNetworkPolicy,
        lambda at: [
            _workload(at),
            at.declare(
                KubernetesNetworkPolicy,
                "fence",
                **_there(at),
                workload=at.name("pod"),
                policyTypes=["Ingress", "Egress"],
                ingress=[_INSIDE],
                egress=[_OUTSIDE],
            ),
        ],
        needs=_WORDS,
        changes={"ingress": [_OUTSIDE, _INSIDE], "egress": []},
        guarded="ingress",
    ),
    VerificationExample(
        KubernetesPersistentVolumeClaim,
        lambda at: [
            at.declare(
                KubernetesPersistentVolumeClaim, "claim", **_there(at), storage="1Gi", accessModes=["ReadWriteOnce"]
            )
        ],
        needs=_WORDS,
        cost="a volume of 1 GiB for a minute, where the storage class makes one before a pod asks for it",
    ),
)
