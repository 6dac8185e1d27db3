"""Which resource a declared component speaks of."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.catalog import GLOBAL_PLACE, TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.rules.identify import DeclaredIdentity, find_identities, identities


def facts(kind: str, place: list[str], parent: str | None = None, **references: str) -> TypeFacts:
    properties: dict[str, Any] = {"name": {"type": "string"}, **{word: {"type": "string"} for word in place}}
    for name, target in references.items():
        properties[name] = {"x-fractal": {"reference": {"type": target, "output": "id"}}}
    return TypeFacts(
        type=kind, provider="p", title=kind, parameter_schema={"properties": properties}, place=place, parent=parent
    )


CATALOG = {
    "Net": facts("Net", ["region"]),
    "Subnet": facts("Subnet", ["region"], parent="net", net="Net"),
    "Port": facts("Port", ["region"], parent="subnet", role="Role", subnet="Subnet"),
    "Machine": facts("Machine", ["region"], role="Role", rules="Rules", subnet="Subnet"),
    "Rules": facts("Rules", ["region"], net="Net"),
    "Role": facts("Role", []),
    "Pod": facts("Pod", ["cluster", "namespace"]),
}


def declare(**components: tuple[str, dict[str, Any]]) -> LiveSystemDeclaration:
    return LiveSystemDeclaration(
        id="ls",
        components=[
            ComponentDeclaration(id=name, type=kind, parameters=parameters)
            for name, (kind, parameters) in components.items()
        ],
    )


def test_place_and_name_are_as_declared() -> None:
    found = identities(declare(net=("Net", {"name": "Main", "region": "eu-west-1"})), CATALOG)
    assert found == {"net": DeclaredIdentity("eu-west-1", "Main")}


def test_the_name_is_the_id_where_none_is_declared() -> None:
    assert identities(declare(role=("Role", {})), CATALOG)["role"] == DeclaredIdentity(GLOBAL_PLACE, "role")


def test_words_of_a_place_are_joined_in_the_order_of_the_offer() -> None:
    found = identities(declare(pod=("Pod", {"namespace": "shop", "cluster": "prod"})), CATALOG)
    assert found["pod"].place == "prod/shop"


def test_a_child_inherits_its_parents_place_and_bears_the_path_of_names() -> None:
    found = identities(
        declare(
            port=("Port", {"subnet": "sub", "role": "role"}),
            sub=("Subnet", {"net": "net", "name": "inner"}),
            net=("Net", {"region": "eu-west-1", "name": "outer"}),
            role=("Role", {}),
        ),
        CATALOG,
    )
    assert found["sub"] == DeclaredIdentity("eu-west-1", "inner", "outer")
    assert found["port"] == DeclaredIdentity("eu-west-1", "port", "outer/inner")


def test_a_place_is_inherited_from_the_first_reference_that_has_one() -> None:
    """A role is everywhere, so the machine's place comes from the next reference, of which there may be several."""
    found = identities(
        declare(
            web=("Machine", {"role": "role", "rules": ["rules"]}),
            rules=("Rules", {"net": "net"}),
            net=("Net", {"region": "eu-west-1"}),
            role=("Role", {}),
        ),
        CATALOG,
    )
    assert found["web"] == DeclaredIdentity("eu-west-1", "web")


def test_a_place_that_nobody_says_is_a_fault_that_says_where_to_say_it() -> None:
    with pytest.raises(DeclarationError) as caught:
        identities(declare(net=("Net", {}), web=("Machine", {"subnet": "gone"})), CATALOG)
    assert caught.value.errors == [
        InputError("components[net].parameters.region", "is missing: say where it is, with region here"),
        InputError(
            "components[web].parameters.region",
            "is missing: say where it is, with region here, or on the component its subnet names",
        ),
    ]


def test_a_child_cannot_lie_outside_its_parent() -> None:
    declaration = declare(net=("Net", {"region": "eu-west-1"}), sub=("Subnet", {"net": "net", "region": "us-east-1"}))
    _, faults = find_identities(declaration, CATALOG)
    assert [str(fault) for fault in faults] == [
        (
            "components[sub].parameters.region: is 'us-east-1', but its net 'net' is in 'eu-west-1': "
            "leave it out, because it follows the net"
        )
    ]


def test_references_in_a_circle_end() -> None:
    catalog = CATALOG | {"Loop": facts("Loop", ["region"], parent="loop", loop="Loop")}
    declaration = declare(a=("Loop", {"loop": "b"}), b=("Loop", {"loop": "a"}), c=("Loop", {"region": "x"}))
    found, faults = find_identities(declaration, catalog)
    assert list(found) == ["c"]
    assert [fault.path for fault in faults] == ["components[a].parameters.region", "components[b].parameters.region"]


def test_a_component_of_an_unknown_type_has_no_identity_and_no_fault() -> None:
    assert find_identities(declare(odd=("Odd", {})), CATALOG) == ({}, [])
