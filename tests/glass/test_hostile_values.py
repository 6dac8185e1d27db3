"""Whatever stands in a resource's id or name: of what is printed for it, a shell runs the vendor's command, no more.

Every type of every provider, its commands as the control plane prints them, run in real shells in which every program
is a recorder. What a harmless value runs is the measure: with a hostile one the same programs get the same words, the
value in its place, one word.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator
from typing import Any, Final
from urllib.parse import quote

import pytest
from sqlalchemy import update

from fractal_cloud.control.store import Store, glass, livesystems, open_store
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.control.store.schema import components
from fractal_cloud.model.catalog import GlassCommands, TypeFacts
from fractal_cloud.model.commands import Filling, NotPrintable, Value, Variable, output, run, shell_text
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.host import HostName
from fractal_cloud.offers.registry import installed as installed_offers
from fractal_cloud.offers.type_validation import template_errors
from fractal_cloud.rules.identify import DeclaredIdentity
from tests.glass.recorder import SHELLS, Argv, Ran, RecordingShell

Json = dict[str, Any]
CATALOG: Final = installed_offers().catalog()
PRINTING: Final = [name for name, facts in CATALOG.items() if facts.glass.break_glass]
HOSTS: Final = [name for name, facts in CATALOG.items() if facts.entry.commands]
WORKLOAD: Final = "CustomWorkloads.CaaS.KubernetesWorkload"
HARMLESS: Final = "harmless-7"
LIVE_SYSTEM: Final = "ls-a"

# What a shell would act upon, anywhere but inside single quotes; each leaves a file or runs a program if it does.
SHELL_SYNTAX: Final = {
    "substitution": "$(touch owned)",
    "backquotes": "`touch owned`",
    "end of single quotes": "a';touch owned;'",
    "end of double quotes": 'a";touch owned;"',
    "both quotes": "'\"$(touch owned)\"'",
    "separators": "a; touch owned & touch owned2 | touch owned3 || touch owned4 && touch owned5",
    "redirections": "a > owned < /etc/passwd >> owned2",
    "a variable": "$HOME${PATH}$RECORD$$$?",
    "globs": "*?[a-z]*",
    "braces": "a{b,c}{1..3}",
    "a home": "~root/~",
    "history": "!!!$!-1 !touch",
    "a comment": "a #b",
    "backslashes": "\\$(touch owned)\\",
    "spaces": "  a  b  ",
    "a subshell": "a)(touch owned)",
    "Unicode": "naïve–名前 🚀",
}
LEADING: Final = {
    "an option": "--all",
    "a short option": "-x",
    "end of options": "--",
    "a file of az": "@/etc/passwd",
    "a file of aws": "file:///etc/passwd",
    "a binary file of aws": "fileb:///etc/passwd",
    "an address": "https://elsewhere.example/x",
    "a JSON list": '["i-1", "i-2"]',
    "a JSON object": '{"a": "b"}',
}
UNSHOWABLE: Final = {
    "a line break": "a\ntouch owned\n",
    "a carriage return": "a\rtouch owned\r",
    "a terminal escape": "a\x1b]0;owned\x07\x1b[2J",
    "an interrupt": "a\x03touch owned\n",
    "a tab": "a\ttouch",
    "delete": "a\x7f\x7f\x7f",
    "a C1 escape": "a\x9b2J",
    "a right-to-left override": "a\u202edenwo hcuot",
    "an isolate": "a\u2066b",
    "a line separator": "a\u2028touch owned",
    "a paragraph separator": "a\u2029touch owned",
}
EVERYTHING: Final = " ".join(SHELL_SYNTAX.values())


class Product:
    """A control plane in which one component of every type says of its resource what the test wants."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids = {name: f"c{number}" for number, name in enumerate([*PRINTING, *(f"in {host}" for host in HOSTS)])}
        self._host_ids = {name: f"h{number}" for number, name in enumerate(HOSTS)}
        parts = {self._ids[name]: name for name in PRINTING}
        parts |= {self._ids[f"in {host}"]: WORKLOAD for host in HOSTS}
        parts |= {part: host for host, part in self._host_ids.items()}
        declared = [{"id": part, "type": name, "provider": CATALOG[name].provider} for part, name in parts.items()]
        declaration = LiveSystemDeclaration.model_validate({"id": LIVE_SYSTEM, "components": declared})
        found = {part: DeclaredIdentity("-", part) for part in parts}
        with store.write() as tx:
            livesystems.deploy(tx, Deploy(declaration, found, "ann"))

    def printed(self, name: str, value: str, installed: Collection[str] = CATALOG) -> Json:
        """What is printed for a type (or for what is ``in`` a type) of whose resource everything is this value."""
        inside = name.removeprefix("in ") if name.startswith("in ") else None
        facts = CATALOG[WORKLOAD if inside else name]
        realm = value
        if inside:
            realm = str(HostName(LIVE_SYSTEM, self._host_ids[inside], inside, "-", "", value))
            self._observe(self._host_ids[inside], CATALOG[inside], value, value)
        self._observe(self._ids[name], facts, value, realm)
        with self._store.read() as tx:
            return glass.commands(tx, LIVE_SYSTEM, self._ids[name], CATALOG, installed)

    def _observe(self, part: str, facts: TypeFacts, value: str, realm_name: str) -> None:
        outputs = dict.fromkeys([*facts.outputs, *facts.place], value)
        resource_id = value
        if facts.provider == "aruba":  # whose ids are paths
            resource_id = f"/{value}"
            outputs |= {name: f"/{value}" for name in outputs if name.endswith("Uri")}
            outputs["id"] = "file-7"  # it names a file: see below
        row: Json = {"resource_id": resource_id, "name": value, "realm": value, "realm_name": realm_name}
        change = update(components).where(components.c.component_id == part)
        with self._store.write() as tx:
            tx.connection.execute(change.values(**row, output_fields=outputs))


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    store = open_store(f"sqlite:///{folder / 'store.db'}", types_here=CATALOG)
    yield Product(store)
    store.close()


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordingShell:
    return RecordingShell(request.param, tmp_path_factory.mktemp(request.param))


def _expected(harmless: Ran, value: str) -> list[Argv]:
    """What a harmless value ran, with the other value in its place; in an address it is encoded."""

    def word(text: str) -> str:
        filled = quote(value, safe="/") if text.startswith("https://") else value
        return text.replace(HARMLESS, filled)

    return sorted([word(text) for text in argv] for argv in harmless.argvs)


EACH: Final = [*PRINTING, *(f"in {host}" for host in HOSTS)]


def _templates(name: str) -> str:
    """The commands of a type, equal where they are printed alike."""
    if name.startswith("in "):
        return repr(CATALOG[name.removeprefix("in ")].entry)
    return repr(CATALOG[name].glass)


# Those of the product's own program, which name the component and nothing that a cloud said.
OWN: Final = [name for name in PRINTING if CATALOG[name].tags_frozen]
DIFFERENT: Final = list({_templates(name): name for name in EACH}.values())


@pytest.mark.rule("A6", "G12")
@pytest.mark.parametrize("name", EACH)
def test_of_a_hostile_id_a_shell_runs_the_vendors_command_and_nothing_else(
    product: Product, shell: RecordingShell, name: str
) -> None:
    for key in ("break", "readopt"):
        harmless = shell.run(product.printed(name, HARMLESS)[key])
        assert harmless.argvs, "something ran"
        assert not harmless.errors
        values = SHELL_SYNTAX if name in DIFFERENT and key == "break" else {"everything": EVERYTHING}
        answers = {what: product.printed(name, value) for what, value in values.items()}
        assert all(answer[key] for answer in answers.values()), answers
        ran = dict(zip(answers, shell.run_each([answer[key] for answer in answers.values()]), strict=True))
        for what, value in values.items():
            assert ran[what].argvs == _expected(harmless, value), what
            assert not ran[what].errors
            assert ran[what].files == harmless.files


@pytest.mark.rule("A6", "G12")
@pytest.mark.parametrize("name", DIFFERENT)
def test_what_a_program_would_read_as_an_option_a_file_or_a_list_is_bound_to_its_option_or_not_printed(
    product: Product, shell: RecordingShell, name: str
) -> None:
    harmless = shell.run(product.printed(name, HARMLESS)["break"])
    answers = {value: product.printed(name, value) for value in LEADING.values()}
    for value, answer in answers.items():
        if not answer["break"]:
            assert repr(value) in answer["message"]
            assert "fractal glass ls-a" in answer["message"], "there is another way"
    printed = {value: answer["break"] for value, answer in answers.items() if answer["break"]}
    for value, ran in zip(printed, shell.run_each(list(printed.values())), strict=True):
        assert ran.argvs == _expected(harmless, value)
        words, usual = ([word for argv in each.argvs for word in argv] for each in (ran, harmless))
        assert words.count(value) == usual.count(value), "it is no word by itself where options are read"
        if not value.startswith("-"):
            assert not [word for word in words if word.endswith(f"={value}")], "it is no whole value"


@pytest.mark.rule("A6")
@pytest.mark.parametrize("name", [name for name in EACH if name not in OWN])
def test_what_no_terminal_may_get_is_never_printed(product: Product, name: str) -> None:
    for what, value in UNSHOWABLE.items():
        answer = product.printed(name, value)
        assert answer["break"] == answer["readopt"] == [], what
        hidden = next(char for char in value if not char.isprintable())
        assert f"U+{ord(hidden):04X}" in answer["message"], what
        assert answer["message"].isprintable(), what


@pytest.mark.rule("A6")
@pytest.mark.parametrize("value", ["../.bashrc", "/etc/cron.d/x", "-x", ".profile", "a b", "a;b", "$(id)", ""])
def test_a_value_that_names_a_file_names_one_in_this_folder(value: str) -> None:
    with pytest.raises(NotPrintable):
        shell_text("install {id:file}", Filling({"id": value}))


@pytest.mark.rule("A6")
@pytest.mark.parametrize(
    "value", [".elsewhere.example/", "@elsewhere.example/", ":80@elsewhere/", "/a/../../b", "x", ""]
)
def test_a_value_in_an_address_can_change_neither_its_host_nor_its_folder(value: str) -> None:
    with pytest.raises(NotPrintable, match="no path"):
        shell_text("curl https://api.example{resourceId:path}", Filling({"resourceId": value}))


@pytest.mark.rule("A6")
def test_values_are_encoded_for_where_they_stand() -> None:
    value = Filling({"x": "a/b?c=\"d\" 'e'"})
    assert shlex.split(shell_text("curl https://h/{x:url}", value)) == [
        "curl",
        "https://h/a%2Fb%3Fc%3D%22d%22%20%27e%27",
    ]
    body = [run(["curl", "-d", ['{"id": ', Value(value="x", form="json"), "}"]])]
    assert json.loads(shlex.split(shell_text(body, value))[-1]) == {"id": value.values["x"]}


@pytest.mark.rule("A6")
def test_what_is_not_known_yet_is_one_word_too(product: Product, shell: RecordingShell) -> None:
    ran = shell.run([shell_text("hcloud server remove-label {resourceId} managed-by", Filling({}))])
    assert ran.argvs == [["hcloud", "server", "remove-label", "<resourceId>", "managed-by"]]
    assert not ran.files, "nothing was redirected into a file"


# --- templates that come from elsewhere


@pytest.mark.rule("A6", "L16")
@pytest.mark.parametrize(
    "command",
    [
        'curl "https://there/{resourceId}"',
        "curl 'https://there/{resourceId}'",
        "untag {resourceId}; touch owned",
        "untag {resourceId} && touch owned",
        "untag {resourceId} | sh",
        "untag $(touch owned)",
        "untag `touch owned`",
        "untag $HOME {resourceId}",
        "untag {resourceId} > owned",
        "untag {resourceId} # \x1b[2J",
        "untag {resourceId}\ntouch owned",
        "untag {resourceId} \u202edenwo",
        "untag ~ {resourceId}",
        "untag * {resourceId}",
        "untag {resourceId:shell}",
        "untag {a b}",
        "untag {}",
        "{resourceId} untag",
        "FOO=bar untag {resourceId}",
        "",
        "   ",
        [],
        [{"run": []}],
        [{"run": [[]]}],
        [{"run": [[{"value": "resourceId"}]]}],
        [{"run": [["$(touch owned)"]]}],
        [{"run": [["untag", "a\x1b[2J"]]}],
        [{"run": [["untag"]], "sets": "x;touch owned;y"}],
        [{"run": [["untag", {"variable": "X}$(touch owned)"}]]}],
        [{"run": [["untag", {"variable": "X", "default": "$(touch owned)"}]]}],
        [{"run": [["untag", {"variable": "X", "default": '"; touch owned; "'}]]}],
        [{"run": [["untag", {"value": "resource id"}]]}],
        [{"run": [["untag", *["x"] * 500]]}],
        [{"run": [["a", {"output": [["b", {"output": [["c", {"output": [["d", {"output": [["e"]]}]]}]]}]]}]]}],
    ],
)
def test_a_template_that_is_more_than_words_and_values_is_refused_and_never_printed(command: Any) -> None:
    glass_of = GlassCommands.model_validate({"breakGlass": [command]})
    facts = CATALOG[WORKLOAD].model_copy(update={"type": "Test.Hostile", "glass": glass_of})
    assert [str(error.path) for error in template_errors([facts])][:1] == ["types[Test.Hostile].glass.breakGlass[0]"]
    assert all(error.message.isprintable() for error in template_errors([facts]))
    with pytest.raises(NotPrintable):
        shell_text(glass_of.break_glass[0], Filling({"resourceId": "x"}))


@pytest.mark.rule("A6", "L16")
def test_steps_of_others_are_quoted_here_whatever_text_they_bring(shell: RecordingShell) -> None:
    command = [
        run(["acme", EVERYTHING, Value(value="resourceId")], ["jq", EVERYTHING], sets="x"),
        run(["acme", [EVERYTHING, Variable(variable="x"), output(["acme", EVERYTHING])]]),
    ]
    ran = shell.run([shell_text(command, Filling({"resourceId": EVERYTHING}))])
    assert ran.argvs == sorted(
        [
            ["acme", EVERYTHING, EVERYTHING],
            ["jq", EVERYTHING],
            ["acme", EVERYTHING],
            ["acme", f"{EVERYTHING}answeredanswered"],
        ]
    )
    assert not ran.files


@pytest.mark.rule("A6", "A4")
def test_commands_that_an_agent_registered_say_so(product: Product) -> None:
    assert "registered by an agent" in product.printed(WORKLOAD, HARMLESS, installed=())["caveat"]
    assert "registered by an agent" not in product.printed(WORKLOAD, HARMLESS)["caveat"]


@pytest.mark.rule("A6")
def test_every_installed_template_is_sound() -> None:
    assert template_errors(list(CATALOG.values())) == []
