"""The declaration as YAML, with the comments of the manifests beside the same fields."""

from __future__ import annotations

from typing import Any, Final

import yaml

from fractal_cloud.cli.conversion.comments import Comments, Path, places
from fractal_cloud.cli.conversion.objects import Conversion, Converted
from fractal_cloud.cli.yaml_loader import Loader

_WIDE: Final = 1 << 20
_HEAD: Path = (0, "id")
_AT: Final = "  "


class _Dumper(yaml.SafeDumper):
    """Writes text such that ours and other people's YAML read it as text; texts of several lines as such."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        del indentless
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values each for itself."""
        del data
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    ours = Loader("").resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    theirs = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return dumper.represent_scalar(tag, text, style=None if ours == theirs == tag else "'")


_Dumper.add_representer(str, _text)


def to_yaml(made: Conversion, live_system: str) -> str:
    """The whole declaration."""
    lines = [f"id: {live_system}", "components:" if made.components else "components: []"]
    for one in made.components:
        lines += [f"{_AT}{line}".rstrip() for line in _lines(one)]
    return "\n".join(lines) + "\n"


def _lines(one: Converted) -> list[str]:
    component = {"id": one.id, "type": one.type, "parameters": one.parameters}
    text = yaml.dump([component], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDE)
    lines = text.rstrip("\n").split("\n")
    found = places(yaml.compose(text, Loader=Loader))
    where: dict[Path, tuple[int, int]] = {}
    for row, column, path in found:
        where.setdefault(path, (row, column))
    above, beside = _moved(one.comments, where)
    written: list[str] = []
    for number, line in enumerate(lines):
        indent = " " * (len(line) - len(line.lstrip()))
        written += [f"{indent}{comment}" for comment in above.get(number, [])]
        written.append(f"{line}  {'  '.join(beside[number])}" if number in beside else line)
    return [*written, *(f"{_AT}{comment}" for comment in one.comments.after)]


def _moved(comments: Comments, where: dict[Path, tuple[int, int]]) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Comments by the line at which they stand now; those of what is not written stand at the component."""
    above: dict[int, list[str]] = {}
    for path, texts in comments.above.items():
        above.setdefault(_line(path, where), []).extend(texts)
    beside: dict[int, list[str]] = {}
    for path, text in comments.beside.items():
        beside.setdefault(_line(path, where), []).append(text)
    return above, beside


def _line(path: Path, where: dict[Path, tuple[int, int]]) -> int:
    target = (0, "parameters", *path)
    if path[:1] == ("metadata",) and path[1:2] in (("name",), ("namespace",)):
        target = (0, "parameters", *path[1:])
    return where.get(target, where[_HEAD])[0]
