"""Component types of the category CustomWorkloads at Kubernetes and OpenShift.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.kubernetes.container_model import KubernetesCapabilities as capabilities
from fractal_cloud.offers.kubernetes.container_model import KubernetesCommandCheck as command_check
from fractal_cloud.offers.kubernetes.container_model import KubernetesContainer as container
from fractal_cloud.offers.kubernetes.container_model import KubernetesContainerPort as container_port
from fractal_cloud.offers.kubernetes.container_model import KubernetesEnvFrom as env_from
from fractal_cloud.offers.kubernetes.container_model import KubernetesFieldRef as field_ref
from fractal_cloud.offers.kubernetes.container_model import KubernetesGrpc as grpc
from fractal_cloud.offers.kubernetes.container_model import KubernetesHttpGet as http_get
from fractal_cloud.offers.kubernetes.container_model import KubernetesKey as key
from fractal_cloud.offers.kubernetes.container_model import KubernetesNamed as named
from fractal_cloud.offers.kubernetes.container_model import KubernetesProbe as probe
from fractal_cloud.offers.kubernetes.container_model import KubernetesResourceFieldRef as resource_field_ref
from fractal_cloud.offers.kubernetes.container_model import KubernetesSeccompProfile as seccomp_profile
from fractal_cloud.offers.kubernetes.container_model import KubernetesSecurityContext as security_context
from fractal_cloud.offers.kubernetes.container_model import KubernetesTcpSocket as tcp_socket
from fractal_cloud.offers.kubernetes.container_model import KubernetesValueFrom as value_from
from fractal_cloud.offers.kubernetes.container_model import KubernetesVolumeMount as volume_mount
from fractal_cloud.offers.kubernetes.pod_model import KubernetesClaimVolume as claim_volume
from fractal_cloud.offers.kubernetes.pod_model import KubernetesConfigMapVolume as config_map_volume
from fractal_cloud.offers.kubernetes.pod_model import KubernetesEmptyDir as empty_dir
from fractal_cloud.offers.kubernetes.pod_model import KubernetesItem as item
from fractal_cloud.offers.kubernetes.pod_model import KubernetesPodSecurityContext as pod_security_context
from fractal_cloud.offers.kubernetes.pod_model import KubernetesRollingUpdate as rolling_update
from fractal_cloud.offers.kubernetes.pod_model import KubernetesSecretVolume as secret_volume
from fractal_cloud.offers.kubernetes.pod_model import KubernetesStrategy as strategy
from fractal_cloud.offers.kubernetes.pod_model import KubernetesToleration as toleration
from fractal_cloud.offers.kubernetes.pod_model import KubernetesVolume as volume
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload as workload

__all__ = [
    "capabilities",
    "claim_volume",
    "command_check",
    "config_map_volume",
    "container",
    "container_port",
    "empty_dir",
    "env_from",
    "field_ref",
    "grpc",
    "http_get",
    "item",
    "key",
    "named",
    "pod_security_context",
    "probe",
    "resource_field_ref",
    "rolling_update",
    "seccomp_profile",
    "secret_volume",
    "security_context",
    "strategy",
    "tcp_socket",
    "toleration",
    "value_from",
    "volume",
    "volume_mount",
    "workload",
]
