"""Commands that people paste into a shell, as structures: what a shell would interpret is only ever written here.

A command is words, and a value that is filled in (an id or a name, from a cloud or an agent) is one word or a part of
one, quoted here. So no template can have a value inside quotes, and no value can become anything but itself.

    "aws ec2 delete-tags --resources={resourceId}"                               plain words: a text with values
    [run(["curl", word(variable("API_URL"), value("resourceId", "path"))]), …]   anything else: steps

Which values there are, and whose they are, does not belong here.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast
from urllib.parse import quote

from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.visible_text import hidden_character

Form = Literal["text", "path", "url", "json", "file"]
"""How a value stands in its word: as it is; as the path of an address, which it begins (``/projects/…``); encoded as
one part of an address; as a JSON string; as the name of a file in this folder."""

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLAIN: Final = re.compile(r"[A-Za-z0-9@%+=:,./_-]*")
_VALUE: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)(?::([a-z]+))?\}")
_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FORMS: Final[tuple[Form, ...]] = ("text", "path", "url", "json", "file")
# What programs take for a file to read, for an address, or for more values than one, wherever they expect a value.
_SIGNIFICANT: Final = ("@", "[", "{", "=", "file://", "fileb://", "http://", "https://")
_LONGEST_VALUE: Final = 2048
_MOST_WORDS: Final = 200
_DEEPEST: Final = 3
_END_OF_OPTIONS: Final = "--"
_MIDDLE: Final = "…"
_LONGEST_SHOWN: Final = 60


class Value(Wire):
    """A value that is filled in."""

    value: str
    form: Form = "text"


class Variable(Wire):
    """A variable of the person's shell, or one that a step before has set; ``default``: where it is not set."""

    variable: str
    default: str = ""


class Output(Wire):
    """What programs print, of which each reads what the one before prints."""

    output: list[list[Word]]


Part = str | Value | Variable | Output
Word = Part | list[Part]


class Step(Wire):
    """Programs of which each reads what the one before prints; ``sets``: the variable that gets what the last prints.

    A step runs only if those before it succeeded.
    """

    run: list[list[Word]]
    sets: str = ""


Command = str | list[Step]

Output.model_rebuild()
Step.model_rebuild()


def run(*programs: Sequence[Word], sets: str = "") -> Step:
    """A step: one program with its arguments, or several, each reading what the one before prints."""
    return Step(run=[list(program) for program in programs], sets=sets)


def output(*programs: Sequence[Word]) -> Output:
    """What a program prints, as (a part of) a word."""
    return Output(output=[list(program) for program in programs])


def word(*parts: Part) -> Word:
    """One word, made of parts."""
    return list(parts)


def value(name: str, form: Form = "text") -> Value:
    """A value that is filled in."""
    return Value(value=name, form=form)


def variable(name: str, default: str = "") -> Variable:
    """A variable of the shell."""
    return Variable(variable=name, default=default)


def words(text: str) -> list[Word]:
    """The words of a plain text, with its values: ``"kubectl label {name}"``."""
    return [list(_parts(text)) for text in text.split()]


def _parts(text: str) -> Iterator[str | Value]:
    end = 0
    for found in _VALUE.finditer(text):
        if found.start() > end:
            yield text[end : found.start()]
        yield Value(value=found[1], form=cast("Form", found[2] or "text"))
        end = found.end()
    if end < len(text):
        yield text[end:]


# --- whether a template may be printed at all


def command_errors(command: Command) -> list[str]:
    """Everything that keeps a command from being printed safely, in words that follow its name."""
    return list(dict.fromkeys(_errors(command)))


def context_errors(text: str) -> list[str]:
    """The same for a text that is filled in and then is a value itself."""
    return list(dict.fromkeys(_plain_errors(text)))


def _errors(command: Command) -> Iterator[str]:
    if isinstance(command, str):
        yield from _plain_errors(command)
        if not _has_known_forms(command):
            return
    steps = _steps(command)
    if not steps:
        yield "is empty: name a program"
    if sum(1 for step in steps for program in _programs(step.run) for _ in program) > _MOST_WORDS:
        yield f"has more than {_MOST_WORDS} words: print a shorter one"
        return
    for step in steps:
        if step.sets and not _VARIABLE.fullmatch(step.sets):
            yield f"sets {step.sets!r}: a variable has letters, digits and _"
        yield from _program_errors(step.run, 0)


def _plain_errors(text: str) -> Iterator[str]:
    found = next((char for char in _VALUE.sub("", text) if char != " " and not _PLAIN.fullmatch(char)), None)
    if found is not None:
        yield (
            f"has {found!r} in its text, which a shell may interpret: write plain words and {{values}}, or steps "
            "(fractal_cloud.model.commands)"
        )
    if not _has_known_forms(text):
        yield f"wants a value in a form that is none of {', '.join(_FORMS)}"


def _has_known_forms(text: str) -> bool:
    return all(found[2] in (None, *_FORMS) for found in _VALUE.finditer(text))


def _programs(pipeline: Sequence[Sequence[Word]]) -> Iterator[Sequence[Word]]:
    """The programs of a pipeline, with those whose output is a word of others."""
    for program in pipeline:
        yield program
        for word in program:
            for part in _flat(word):
                if isinstance(part, Output):
                    yield from _programs(part.output)


def _program_errors(pipeline: Sequence[Sequence[Word]], depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"runs programs more than {_DEEPEST} levels deep in the words of others: set a variable instead"
        return
    if not pipeline:
        yield "has a step that runs nothing: name a program"
    for program in pipeline:
        first = program[0] if program else ""
        parts = _flat(first)
        if len(parts) != 1 or not isinstance(parts[0], str) or not _PROGRAM.fullmatch(parts[0]):
            yield "runs something that is no program's name: begin every step with the name of one"
        for word in program:
            for part in _flat(word):
                yield from _part_errors(part, depth)


def _part_errors(part: Part, depth: int) -> Iterator[str]:
    if isinstance(part, str):
        hidden = hidden_character(part)
        if hidden is not None:
            yield f"has the control character U+{ord(hidden):04X}: take it out"
    elif isinstance(part, Value):
        if not NAME.fullmatch(part.value):
            yield f"wants the value {part.value!r}: name an output field"
    elif isinstance(part, Variable):
        if not _VARIABLE.fullmatch(part.variable):
            yield f"has the variable {part.variable!r}: a variable has letters, digits and _"
        if not _PLAIN.fullmatch(part.default):
            yield f"has the default {part.default!r}: a default is plain text"
    else:
        yield from _program_errors(part.output, depth + 1)


def _flat(word: Word) -> list[Part]:
    return word if isinstance(word, list) else [word]


# --- printing


class NotPrintable(ValueError):
    """A command with these values is not printed; the text says why, and shows nothing as it is."""


@dataclass(slots=True)
class Filling:
    """The values that are filled in; ``missing`` collects those that are not known, which stand in angle brackets."""

    values: Mapping[str, object]
    missing: list[str] = field(default_factory=list)

    def text(self, value: Value, before: str | None) -> str:
        """A value as it stands in its word, after ``before``; None: in the middle of a text that is a value itself."""
        if value.value not in self.values:
            self.missing.append(value.value)
            return f"<{value.value}>"
        return _encoded(value, str(self.values[value.value]), before)


def shell_text(command: Command, filling: Filling) -> str:
    """The command as a person pastes it into a POSIX shell. Raises ``NotPrintable``."""
    problems = command_errors(command)
    if problems:
        raise NotPrintable(f"the command {problems[0]}")
    return _text(command, lambda value, before: shlex.quote(filling.text(value, before)))


def template_text(command: Command) -> str:
    """The command as a page shows it, with the names of values in braces."""
    return _text(command, lambda value, _: f"{{{value.value}}}")


def values_of(command: Command) -> set[str]:
    """The names of the values that a command needs."""
    programs = (program for step in _steps(command) for program in _programs(step.run))
    parts = (part for program in programs for found in program for part in _flat(found))
    return {part.value for part in parts if isinstance(part, Value)}


def filled_text(template: str, filling: Filling) -> str:
    """A plain text with its values, which is a value itself. Raises ``NotPrintable``."""
    problems = context_errors(template)
    if problems:
        raise NotPrintable(f"the text {problems[0]}")
    return "".join(part if isinstance(part, str) else filling.text(part, None) for part in _parts(template))


Fill = Callable[[Value, str], str]


def _steps(command: Command) -> Sequence[Step]:
    return [Step.model_construct(run=[words(command)], sets="")] if isinstance(command, str) else command


def _text(command: Command, fill: Fill) -> str:
    return " && ".join(_step_text(step, fill) for step in _steps(command))


def _step_text(step: Step, fill: Fill) -> str:
    programs = _pipeline_text(step.run, fill)
    return f"{step.sets}=$({programs})" if step.sets else programs


def _pipeline_text(pipeline: Sequence[Sequence[Word]], fill: Fill) -> str:
    return " | ".join(_program_text(program, fill) for program in pipeline)


def _program_text(program: Sequence[Word], fill: Fill) -> str:
    found: list[str] = []
    ended = ""
    for word in program:
        found.append(_word_text(_flat(word), fill, ended))
        ended = ended or (_END_OF_OPTIONS if _flat(word) == [_END_OF_OPTIONS] else "")
    return " ".join(found)


def _word_text(parts: Sequence[Part], fill: Fill, before: str) -> str:
    """One word. ``before``: what shows the program that it is no option, as far as the words before it do."""
    found = ""
    for part in parts:
        if isinstance(part, str):
            found += shlex.quote(part)
            before = part
            continue
        if isinstance(part, Value):
            found += fill(part, before)
        elif isinstance(part, Variable):
            found += f'"${{{part.variable}:-{part.default}}}"' if part.default else f'"${part.variable}"'
        else:
            found += f'"$({_pipeline_text(part.output, fill)})"'
        before = _MIDDLE
    return found or "''"


def _encoded(value: Value, text: str, before: str | None) -> str:
    what = f"{value.value} is {_shortened(text)}"
    hidden = hidden_character(text)
    if hidden is not None:
        raise NotPrintable(f"{what}, which has the control character U+{ord(hidden):04X}")
    if len(text) > _LONGEST_VALUE:
        raise NotPrintable(f"{what}, which has {len(text)} characters: at most {_LONGEST_VALUE} are printed")
    if value.form == "json":
        return json.dumps(text)
    if value.form == "url":
        return quote(text, safe="")
    if value.form == "path":
        return quote(_checked_path(what, text), safe="/")
    if value.form == "file" and not _FILE.fullmatch(text):
        raise NotPrintable(f"{what}, which is no plain name of a file")
    if before == "" and text.startswith("-"):
        raise NotPrintable(f"{what}, which begins with a dash: the program would take it for an option")
    is_whole = before is not None and (before in ("", _END_OF_OPTIONS) or before.endswith("="))
    if is_whole and text.lower().startswith(_SIGNIFICANT):
        raise NotPrintable(f"{what}: the program would read a file, an address or a list by that")
    return text


def _checked_path(what: str, text: str) -> str:
    """A path that stays below the address it is appended to, and cannot become a part of its host."""
    if not text.startswith("/") or any(part in (".", "..") for part in text.split("/")):
        raise NotPrintable(f"{what}, which is no path below an address")
    return text


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


__all__ = [
    "Command",
    "Filling",
    "Form",
    "NotPrintable",
    "Output",
    "Part",
    "Step",
    "Value",
    "Variable",
    "Word",
    "command_errors",
    "context_errors",
    "filled_text",
    "output",
    "run",
    "shell_text",
    "template_text",
    "value",
    "values_of",
    "variable",
    "word",
    "words",
]
