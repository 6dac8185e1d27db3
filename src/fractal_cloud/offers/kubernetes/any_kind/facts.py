"""What the protocol must know of a type that is a kind of a cluster: its parameters, its place, its commands. Pure."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, Final

from fractal_cloud.model.catalog import GlassCommands, TypeFacts
from fractal_cloud.model.reference import with_references
from fractal_cloud.model.tags import OURS, RECONCILE_VALUE
from fractal_cloud.model.wording import FACTS
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts, Schema
from fractal_cloud.offers.kubernetes.any_kind.linked_pods import OUTPUTS as OF_PODS
from fractal_cloud.offers.kubernetes.any_kind.linked_pods import may_run_pods, parameters_of
from fractal_cloud.offers.kubernetes.any_kind.schema import ANYTHING, converted, marked
from fractal_cloud.offers.kubernetes.any_kind.tables import HOLDS_DATA, IMMUTABLE
from fractal_cloud.offers.kubernetes.any_kind.tables import OUTPUTS as OF_KINDS
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, ObjectComponent
from fractal_cloud.offers.kubernetes.tags import CAVEAT, GUARD, MANAGED_BY, OWNER, RECONCILE

FAMILY: Final = "kubernetes-kinds"
SECRET: Final = "Secret"
HIDDEN: Final = ("data", "stringData")
"""The fields of a Secret that hold its values."""
_NOT_DECLARED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_NAME: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 253,
    "description": "Its name; the component's id if not given.",
    FACTS: {"immutable": True},
}


def facts_of(kind: KindFacts) -> TypeFacts:
    """The facts of a type."""
    whole, defs = converted(kind)
    for path in IMMUTABLE.get(kind.name.unversioned, ()):
        marked(whole, defs, path, {"immutable": True})
    own = {name: one for name, one in whole.get("properties", {}).items() if name not in _NOT_DECLARED}
    if kind.name.unversioned == SECRET:
        own |= {name: _hidden(own[name]) for name in HIDDEN if name in own}
    words = _words()
    properties: dict[str, Any] = {"cluster": deepcopy(words["cluster"])}
    if kind.is_namespaced:
        properties["namespace"] = deepcopy(words["namespace"])
    if not kind.is_known:
        own = {"spec": dict(ANYTHING)}
    properties |= {"name": deepcopy(_NAME), "metadata": _metadata(), **parameters_of(kind, own), **own}
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in whole.get("required", ()) if name in own],
        "additionalProperties": False if kind.is_known else dict(ANYTHING),
        "$defs": defs,
    }
    return TypeFacts(
        type=str(kind.name),
        provider="kubernetes",
        title=kind.name.kind,
        description=kind.description or f"{kind.name.kind} of {kind.name.api_version}.",
        parameter_schema=schema,
        outputs=outputs_of(kind),
        place=["namespace"] if kind.is_namespaced else [],
        realm="cluster",
        holds_data=kind.name.unversioned in HOLDS_DATA,
        guard=GUARD,
        glass=glass(kind),
        family=FAMILY,
        nested=True,
    )


def outputs_of(kind: KindFacts) -> dict[str, str]:
    """What a type gives to others; fields of its status can be reached by dots."""
    common = {name: what for name, what in OUTPUTS.items() if kind.is_namespaced or name != "namespace"}
    own = {name: what for name, (_, what) in OF_KINDS.get(kind.name.unversioned, {}).items()}
    of_pods = OF_PODS if may_run_pods(kind.name) else {}
    return {**common, **of_pods, **own, "status": "what the cluster says of it, field by field"}


def glass(kind: KindFacts) -> GlassCommands:
    """The commands by which a person breaks the glass of an object of this kind, and gives it back."""
    at = "kubectl --context={context}" + (" --namespace={namespace}" if kind.is_namespaced else "")
    what = f"{kind.object_kind().resource}/{{name}}"
    return GlassCommands(
        break_glass=[f"{at} label {what} {MANAGED_BY}-"],
        readopt=[
            f"{at} label {what} {MANAGED_BY}={OURS}",
            f"{at} annotate {what} {RECONCILE}={RECONCILE_VALUE} --overwrite",
        ],
        caveat=CAVEAT,
    )


@cache
def _words() -> dict[str, Any]:
    """The parameters that say where an object lies, as the types with classes have them."""
    found: dict[str, Any] = ObjectComponent.model_json_schema(by_alias=True)["properties"]
    return found


def _metadata() -> Schema:
    """Labels and annotations; those of the protocol are nobody's to declare."""

    def entries(*ours: str) -> Schema:
        return {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"not": {"enum": list(ours)}},
            FACTS: {"others": True},
        }

    return {
        "type": "object",
        "description": "Its labels and annotations; those of others are left alone.",
        "properties": {"labels": entries(MANAGED_BY, OWNER), "annotations": entries(RECONCILE)},
        "additionalProperties": False,
    }


def _hidden(schema: Schema) -> Schema:
    """Values of a Secret: only references to secrets, never shown; entries that nobody declared are others'."""
    entries = {**schema, "additionalProperties": {"type": "string"}}
    return {**with_references(entries, only=True), FACTS: {"sensitive": True, "holdsSecrets": True, "others": True}}
