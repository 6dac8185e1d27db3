"""The class every declarable component type derives from: one definition of its parameters serves the SDK, the
API's validation, ``GET /offers`` and the reference pages.

How the cloud is read or changed for a type does not belong here; that is its offer's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic.alias_generators import to_camel

from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.identity import ID_RULE, is_id
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.model.referable import Referable, resolved
from fractal_cloud.model.reference import (
    FindReference,
    OutputReference,
    OutputText,
    SecretReference,
    find_references,
    form_errors,
    has_reference,
    misplaced,
    output,
    output_references,
)
from fractal_cloud.model.wording import FACTS, Path, explain, is_hidden, path_text

Compare = Literal["exact", "unordered", "caseless", "cidr", "cidrs", "quantity", "entries", "arn", "identified"]
COMPONENT_FIELDS: Final = frozenset(
    {"id", "dependencies", "links", "ignore_drift", "import_only", "create_once", "links_from", "tags"}
)


def parameter(  # noqa: PLR0913  # one keyword per fact about a parameter: nothing groups them
    *,
    default: Any = ...,
    declared_as: str | None = None,
    immutable: bool = False,
    swept: bool = False,
    enforced: bool = False,
    lines: bool = False,
    linked: bool = False,
    secret: bool = False,
    sensitive: bool = False,
    holds_secrets: bool = False,
    write_only: bool = False,
    compare: Compare = "exact",
    grows_while: str | None = None,
    set_by_cloud: Mapping[str, str] | None = None,
    reference: tuple[str, str] | None = None,
    hosts: Mapping[str, Sequence[str]] | None = None,
    **field: Any,
) -> Any:
    """Declare one parameter of a component type, with what the reconciler must know of it.

    ``default``: without it, the parameter is required; type checkers look for this keyword.
    ``declared_as``: its name in YAML and JSON, where that is not its Python name in camelCase.
    ``immutable``: the cloud cannot change it in place (S18). ``swept``: the cloud lists it only one by one (S23).
    ``enforced``: its default is compared as if declared. ``lines``: its text may have line breaks and tabs.
    ``linked``: only links set it (``Offer.wire``); a declaration must not.
    ``secret``: it must be a reference to a secret (``SecretText``); a clear value is refused (A8). ``sensitive``: its
    text, or each text in it, may be one (``SensitiveText``), and is hidden from readers where it is not.
    ``holds_secrets``: a map of texts of which some may be references (an environment); only those that seem to be
    secrets are hidden. ``write_only``: the cloud takes it at any time and never returns it, so that it is compared with
    what was last written, by a keyed digest.
    ``compare``: how declared and actual values are compared; ``entries``: only the declared entries of a map are;
    ``arn``: an ARN is the name it ends with; ``identified``: a set whose entries have an ``id``, which counts only
    where it is declared.
    ``grows_while``: the parameter that lets the cloud raise this one by itself; while it is on, more is as declared.
    ``set_by_cloud``: fields of the value's entries that the cloud sets while another field of the entry is on.
    ``reference``: the value is the id of a component of that type; what is compared and sent is that output of it.
    ``hosts``: the value may be the id of a component of one of these types, which then hosts this one; the outputs
    listed are those by which the host is reached (``TypeFacts.realm``).
    Everything else goes to pydantic's ``Field`` (``description``, ``ge``, ``pattern``, …).
    """
    facts: dict[str, Any] = {}
    flags = {"immutable": immutable, "swept": swept, "enforced": enforced, "lines": lines, "linked": linked}
    flags |= {"secret": secret, "sensitive": sensitive, "holdsSecrets": holds_secrets, "writeOnly": write_only}
    facts |= {name: True for name, value in flags.items() if value}
    if compare != "exact":
        facts["compare"] = compare
    if grows_while is not None:
        facts["growsWhile"] = grows_while
    if set_by_cloud is not None:
        facts["setByCloud"] = dict(set_by_cloud)
    if reference is not None:
        facts["reference"] = {"type": reference[0], "output": reference[1]}
    if hosts is not None:
        facts["hosts"] = {component_type: list(outputs) for component_type, outputs in hosts.items()}
    if declared_as is not None:
        field["alias"] = declared_as
    is_hidden = secret or sensitive or holds_secrets
    info: Any = Field(default=default, json_schema_extra={FACTS: facts}, repr=not is_hidden, **field)
    if is_hidden:
        info.metadata.append(Referable(only=secret))
    return info


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    C = TypeVar("C", bound="Component")
    Reference: TypeAlias = str | C
    References: TypeAlias = Sequence[str | C]
    Dependencies: TypeAlias = Sequence["str | Component"]
else:
    Dependencies = list[str]

    class Reference:
        """The type of a parameter that refers to another component: itself in Python, its id in YAML and JSON.

        ``Reference[AwsVpc]`` lets type checkers reject a component of another type. At run time only the id is kept;
        its type is checked with the whole declaration, whichever language it is written in.
        """

        def __class_getitem__(cls, _component: object) -> object:
            return Annotated[str | Component, BeforeValidator(_id_of), WithJsonSchema({"type": "string"})]

    class References:
        """The type of a parameter that refers to several components of one type."""

        def __class_getitem__(cls, component: object) -> object:
            return list[Reference[component]]


def _id_of(value: Any) -> Any:
    return value.id if isinstance(value, Component) else value


def _renamed(given: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in given.items()}


def _explained(
    error: ValidationError, given: Mapping[str, Any], schema: Mapping[str, Any], names: Mapping[str, str]
) -> list[tuple[Path, str]]:
    """What pydantic found, and in its place what is wrong with a reference that cannot stand where it does (A8)."""
    takers = [name for name in schema["properties"] if is_hidden((name,), schema)]
    stray = {
        (name,): next((text for _, text in form_errors(value)), misplaced(takers))
        for name, value in given.items()
        if name not in takers and name not in COMPONENT_FIELDS and (has_reference(value) or any(form_errors(value)))
    }
    unknown = [path for path, _ in (*output_references(given), *find_references(given))]
    found = [(path, text) for path, text in explain(error, given, schema, names) if not _hangs_on(path, unknown)]
    return [*stray.items(), *((path, text) for path, text in found if path[:1] not in stray)]


def _hangs_on(path: Path, unknown: Iterable[Path]) -> bool:
    """Whether what stands at a path cannot be judged before what stands at others is known."""
    return any(path[: len(one)] == one or one[: len(path)] == path for one in unknown)


def _as_declared(value: Any) -> Any:
    """A value as plain data, as it is written in YAML and JSON."""
    if isinstance(value, Component):
        return value.id
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _as_declared(item) for key, item in value.items()}
    if isinstance(value, OutputReference | FindReference | SecretReference):
        return value.to_json()
    return [_as_declared(item) for item in value] if isinstance(value, list | tuple | set) else value


Link = dict[str, Any]
Contract = type[LinkSettings]


class ComponentError(DeclarationError):
    """A component cannot be made of what was given; ``found`` holds the messages by path of declared names."""

    def __init__(self, errors: list[InputError], found: list[tuple[Path, str]]) -> None:
        super().__init__(errors)
        self.found = found


if TYPE_CHECKING:
    # Type checkers take a class's constructor from its fields as ``parameter`` declares them. This stands on a
    # metaclass, because pyright prefers what pydantic's own one says to a decorated base class.
    @dataclass_transform(kw_only_default=True, field_specifiers=(parameter, Field))
    class _Declared(ModelMetaclass): ...

    class _Declarable(BaseModel, metaclass=_Declared): ...
else:
    _Declarable = BaseModel


class Component(_Declarable):
    """One declared thing. Subclasses set ``type`` and ``provider`` and add their parameters as fields.

    Names are snake_case in Python and camelCase everywhere else; they map one to one.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    type: ClassVar[str]
    provider: ClassVar[str]

    id: str
    name: str = parameter(default="", description="Name of the resource in its scope; the component's id if not given.")
    dependencies: Dependencies = Field(default_factory=list)
    links: list[Link] = Field(default_factory=list)
    ignore_drift: list[str] = Field(default_factory=list)
    import_only: bool = False
    create_once: bool = False
    links_from: list[str] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)

    def __init__(self, /, **given: Any) -> None:
        """Accept parameters by their Python or their declared names. Raises ``ComponentError`` with every error."""
        try:
            super().__init__(**given)
        except ValidationError as error:
            refused = self._refused(error, given)
            if refused.found:
                raise refused from None
            self._keep_as_declared(given)

    def _keep_as_declared(self, given: Mapping[str, Any]) -> None:
        """Take what is declared as it stands: its values are of their types only once references are filled in."""
        names = {field.alias or name: name for name, field in type(self).model_fields.items()}
        kept = {name: _as_declared(value) for name, value in _renamed(given, names).items()}
        made = type(self).model_construct(**kept)
        for part in ("__dict__", "__pydantic_extra__", "__pydantic_private__"):
            object.__setattr__(self, part, getattr(made, part))
        object.__setattr__(self, "__pydantic_fields_set__", set(kept))
        self.model_post_init(None)

    @classmethod
    def _refused(cls, error: ValidationError, given: Mapping[str, Any]) -> ComponentError:
        """Everything that is wrong; nothing where only references stand in the way, which are filled in later."""
        aliases = {name: field.alias or name for name, field in cls.model_fields.items()}
        found = _explained(error, _renamed(given, aliases), cls.model_json_schema(by_alias=True), aliases)
        names = {alias: name for name, alias in aliases.items()}
        in_python = _explained(error, _renamed(given, names), cls.model_json_schema(by_alias=False), names)
        base = f"{cls.__name__}[{given.get('id', '')}]"
        return ComponentError([InputError(base + path_text(path), text) for path, text in in_python], found)

    @field_validator("id")
    @classmethod
    def _id_is_allowed(cls, value: str) -> str:
        if not is_id(value):
            raise ValueError(f"{value!r} is not allowed: an id is {ID_RULE}")
        return value

    @field_validator("dependencies", mode="before")
    @classmethod
    def _dependencies_by_id(cls, value: Any) -> Any:
        return [_id_of(item) for item in value] if isinstance(value, list) else value

    @field_validator("name")
    @classmethod
    def _name_defaults_to_id(cls, value: str, info: ValidationInfo) -> str:
        return value or str(info.data.get("id", ""))

    def model_post_init(self, _context: Any) -> None:
        """Fill the name from the id where none was given, without marking it as declared."""
        if not self.name:
            object.__setattr__(self, "name", self.id)

    def link_to(self, target: Component | str, contract: Contract, **settings: Any) -> Self:
        """Declare a link to another component; settings that are None are left to the contract's defaults.

        The typed ``link_to_…`` methods of component classes are made of this one.
        """
        given = {name: value for name, value in settings.items() if value is not None}
        try:
            checked = contract(**given)
        except ValidationError as error:
            base = f"{type(self).__name__}[{self.id}].links[{_id_of(target)}]"
            names = {field.alias or name: name for name, field in contract.model_fields.items()}
            found = explain(error, given, contract.model_json_schema(by_alias=False), names)
            raise ComponentError([InputError(base + path_text(path), text) for path, text in found], found) from None
        self.links.append({"target": _id_of(target), "settings": checked.declared()})
        return self

    def output(self, name: str) -> OutputText:
        """Refer to one of this component's outputs (or parameters) in another's parameters, also within a text.

        The reference makes a dependency, and is filled in by the agent once this component publishes the output.
        """
        return output(self.id, name)

    @classmethod
    def parameter_fields(cls) -> dict[str, str]:
        """Python name of every parameter, by its declared (camelCase) name."""
        return {field.alias or name: name for name, field in cls.model_fields.items() if name not in COMPONENT_FIELDS}

    def parameters(self) -> dict[str, Any]:
        """The parameters that were declared, by their camelCase names, as JSON."""
        declared = self.model_dump(
            mode="json",
            by_alias=True,
            exclude_unset=True,
            exclude=set(COMPONENT_FIELDS),
            warnings=False,  # a reference to an output stands where its value will be of another type
        )
        return {name: value for name, value in declared.items() if value is not None}

    @classmethod
    def from_parameters(cls, component_id: str, parameters: Mapping[str, Any]) -> Self:
        """The typed component for parameters that were validated before."""
        return cls.model_validate({**parameters, "id": component_id})

    @classmethod
    def from_resolved(cls, component_id: str, parameters: Mapping[str, Any]) -> Self:
        """The same with the values of secrets in the place of references, for the call that needs them."""
        with resolved():
            return cls.from_parameters(component_id, parameters)


def reference_id(value: str | Component) -> str:
    """The id (or, once resolved, the cloud's id) that a reference holds."""
    return value if isinstance(value, str) else value.id
