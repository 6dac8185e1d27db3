"""How the three tags are spelled on Kubernetes objects: two labels and an annotation (T8).

Every patch here names the keys it is about, so nobody else's labels and annotations are touched (T1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import OURS, RECONCILE_VALUE, ProtocolTags
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OWNER: Final = "fractal.cloud/owner"
RECONCILE: Final = "fractal.cloud/reconcile"
PROTOCOL_KEYS: Final = frozenset({MANAGED_BY, OWNER, RECONCILE})
WRITTEN_BY_THE_CLUSTER: Final = PROTOCOL_KEYS | {
    "deployment.kubernetes.io/revision",
    "kubectl.kubernetes.io/last-applied-configuration",
}
"""Annotations that are nobody's declaration: the protocol's, and notes of the cluster and of kubectl."""
_PART: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_OF_THE_PRODUCT: Final = "belongs to the product: it is written for you, and cannot be declared. Take it out"
_OF_THE_SYSTEM: Final = "belongs to Kubernetes itself: choose another key"
RULES: Final = TagRules(
    key=rf"(?:(?=[^/]{{1,253}}/)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?{_PART}",
    value=rf"(?:{_PART})?",
    form="keys and values of up to 63 letters, digits, - _ and ., beginning and ending with a letter or digit; a key "
    "may have a domain and a / before it",
    most=100,
    reserved={MANAGED_BY: _OF_THE_PRODUCT, "pod-template-hash": _OF_THE_SYSTEM},
    reserved_prefixes={
        "fractal.cloud/": _OF_THE_PRODUCT,
        "kubernetes.io/": _OF_THE_SYSTEM,
        "k8s.io/": _OF_THE_SYSTEM,
    },
)
GUARD: Final = (
    "atomic: a change tests the tags and the uid in the same JSON Patch, a deletion carries uid and resourceVersion; "
    "a person who removes the label before the write wins, always"
)
CAVEAT: Final = (
    "On OpenShift `oc` takes the same words. `--context` is the name that the agent, or the vendor's command printed "
    "before it, gives the cluster: leave it out, or put yours in its place, where you call it otherwise"
)


def protocol_of(item: Mapping[str, Any]) -> ProtocolTags:
    """What the three tags of an object say."""
    metadata = item["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return ProtocolTags.from_values(labels.get(MANAGED_BY), annotations.get(RECONCILE), labels.get(OWNER))


def labels_of(tags: ProtocolTags) -> dict[str, str]:
    """The labels that tags become, the user's own among them."""
    pairs = {MANAGED_BY: tags.managed_by, OWNER: tags.owner}
    return {**tags.declared, **{key: value for key, value in pairs.items() if value is not None}}


def annotations_of(tags: ProtocolTags) -> dict[str, str]:
    """The annotation that tags become."""
    return {RECONCILE: RECONCILE_VALUE} if tags.reconcile else {}


def escaped(key: str) -> str:
    """A key as it stands in the path of a JSON Patch."""
    return key.replace("~", "~0").replace("/", "~1")


def paths_of(tags: ProtocolTags) -> dict[str, str]:
    """Where in an object each tag stands, with its value."""
    labels = {f"/metadata/labels/{escaped(key)}": value for key, value in labels_of(tags).items()}
    return {**labels, **{f"/metadata/annotations/{escaped(key)}": v for key, v in annotations_of(tags).items()}}


def guard(uid: str, tags: ProtocolTags) -> list[Object]:
    """The operations a patch begins with: it is the same object, and it still carries these tags."""
    expected = {"/metadata/uid": uid, **paths_of(tags)}
    return [{"op": "test", "path": path, "value": value} for path, value in expected.items()]


def glass(kind: ObjectKind) -> GlassCommands:
    """The commands for one kind of object."""
    at = "kubectl --context={context} --namespace={namespace}"
    what = f"{kind.kind.lower() if not kind.product else kind.resource}/{{name}}"
    return GlassCommands(
        break_glass=[f"{at} label {what} {MANAGED_BY}-"],
        readopt=[
            f"{at} label {what} {MANAGED_BY}={OURS}",
            f"{at} annotate {what} {RECONCILE}={RECONCILE_VALUE} --overwrite",
        ],
        caveat=CAVEAT,
    )
