"""Manifests as they lie in files, folders and streams: each object with where it stands and the comments around it.

What an object means is not decided here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fractal_cloud.cli.conversion.comments import Comments, comments_of
from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.yaml_loader import Loader

SUFFIXES: Final = (".yaml", ".yml", ".json")
STREAM: Final = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """One object. ``where``: the file and line in which it begins."""

    manifest: dict[str, Any]
    where: str
    comments: Comments = field(default_factory=Comments)


def read(sources: Sequence[str]) -> list[Found]:
    """Every object in files, folders (with what is in them) and ``-``, in their order."""
    return [found for name, text in _texts(sources) for found in objects_in(text, name)]


def _texts(sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    for source in sources:
        if source == STREAM:
            yield "standard input", sys.stdin.read()
            continue
        path = Path(source)
        if not path.exists():
            raise CommandError(f"{source}: there is no such file or folder", code=Exit.USAGE)
        files = _inside(path) if path.is_dir() else [path]
        if not files:
            raise CommandError(
                f"{source}: there is no manifest in it", advice=f"Manifests end in {', '.join(SUFFIXES)}."
            )
        for file in files:
            yield str(file), _text(file)


def _inside(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from None


def objects_in(text: str, name: str) -> Iterator[Found]:
    """The objects of a stream of documents; lists are taken apart. Raises ``CommandError`` where one is none."""
    loader = Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None, "there is one more"
            where = f"{name}:{node.start_mark.line + 1}"
            value = loader.construct_document(node)
            yield from _of_document(value, where, comments_of(text, node))
    except yaml.YAMLError as error:
        raise _unreadable(error, text, name) from None
    except ValueError as error:
        raise CommandError(f"{name} cannot be understood: {error}") from None
    finally:
        loader.dispose()


def _unreadable(error: yaml.YAMLError, text: str, name: str) -> CommandError:
    mark = getattr(error, "problem_mark", None)
    where = f"{name}:{mark.line + 1}" if mark is not None else name
    why = getattr(error, "problem", None) or str(error)
    if "{{" in text:
        advice = "This is a template: give what it comes to, `helm template RELEASE CHART | fractal convert -`."
        return CommandError(f"{where} is no YAML", details=[str(why)], advice=advice)
    return CommandError(f"{where} is no YAML", details=[str(why)])


def _of_document(value: Any, where: str, comments: Comments) -> Iterator[Found]:
    if value is None:
        return
    if not isinstance(value, dict):
        raise CommandError(f"{where} is no manifest: an object with apiVersion, kind and metadata is expected")
    items = value.get("items")
    if str(value.get("kind", "")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _of_document(item, f"{where}, items[{index}]", comments.below("items", index))
        return
    yield Found(value, where, comments)
