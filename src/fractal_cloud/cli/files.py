"""Declarations from files: Python, YAML or JSON. Whether they make sense is for the control plane to say."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fractal_cloud.cli.errors import CommandError, Exit

STDIN = "-"
MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Declared:
    """One LiveSystem as a file declares it; ``source`` says where, for messages."""

    source: str
    document: dict[str, Any]

    @property
    def id(self) -> str:
        """The LiveSystem's id."""
        return str(self.document["id"])


def load(file: str, only: Collection[str] = ()) -> list[Declared]:
    """Every LiveSystem a file declares, in its order; with ``only``, just those named."""
    found = [_declared(source, document) for source, document in _documents(file)]
    if not found:
        raise _refused(f"{file}: declares no LiveSystem", "In Python, bind it to a name: team_a = LiveSystem(…).")
    names = [declared.id for declared in found]
    doubles = {name for name in names if names.count(name) > 1}
    if doubles:
        raise _refused(f"{file}: declares {_quoted(doubles)} more than once", "Give each LiveSystem its own id.")
    if unknown := set(only) - set(names):
        raise _refused(f"{file}: does not declare {_quoted(unknown)}", f"It declares {_quoted(names)}.")
    return [declared for declared in found if not only or declared.id in only]


def load_settings(file: Path) -> object:
    """The one document of a file of settings, in YAML or JSON."""
    if file.suffix.lower() not in (".yaml", ".yml", ".json"):
        raise _refused(f"{file}: is neither .yaml, .yml nor .json", "Name the file by what it holds.")
    documents = [document for _, document in _documents(str(file))]
    if len(documents) != 1:
        raise _refused(f"{file}: holds {len(documents)} documents", "Write one.")
    return documents[0]


def _documents(file: str) -> Iterator[tuple[str, object]]:
    if file == STDIN:
        yield from _from_yaml("standard input", _bounded("standard input", sys.stdin.read(MAX_BYTES + 1)))
        return
    path = Path(file)
    suffix = path.suffix.lower()
    if suffix not in (".py", ".yaml", ".yml", ".json"):
        raise _refused(f"{file}: is neither .py, .yaml, .yml nor .json", "Name the file by what it holds.")
    try:
        with path.open(encoding="utf-8") as opened:
            text = _bounded(file, opened.read(MAX_BYTES + 1))
    except OSError as error:
        raise _refused(f"{file}: cannot be read: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError as error:
        raise _refused(f"{file}: is not UTF-8: {error.reason} at byte {error.start}", "Save it as UTF-8.") from None
    if suffix == ".py":
        yield from _from_python(path, text)
    elif suffix == ".json":
        yield from _from_json(file, text)
    else:
        yield from _from_yaml(file, text)


def _bounded(source: str, text: str) -> str:
    if len(text) > MAX_BYTES:
        raise _refused(f"{source}: is larger than {MAX_BYTES // 1024**2} MiB", "Split it into several files.")
    return text


def _declared(source: str, document: object) -> Declared:
    if not isinstance(document, dict):
        raise _refused(f"{source}: is no declaration", "A declaration is an object with id and components.")
    if not isinstance(document.get("id"), str):
        raise _refused(f"{source}: has no id", "Give the LiveSystem an id, as text.")
    return Declared(source, document)


def _from_python(path: Path, text: str) -> Iterator[tuple[str, object]]:
    from fractal_cloud.livesystem import LiveSystem

    namespace: dict[str, Any] = {"__name__": "fractal_declaration", "__file__": str(path)}
    with _importable(path.parent):
        try:
            exec(compile(text, str(path), "exec"), namespace)  # noqa: S102 - a declaration in Python is a program
        except SyntaxError as error:
            raise _refused(f"{error.filename}:{error.lineno}: {error.msg}") from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's program: every error is shown
            raise _failed(path, error) from None
    seen: list[LiveSystem] = []
    for name, value in namespace.items():
        if isinstance(value, LiveSystem) and not any(value is other for other in seen):
            seen.append(value)
            yield f"{path} ({name})", value.to_json()


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a declaration import what lies beside it."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


def _failed(path: Path, error: BaseException) -> CommandError:
    from fractal_cloud.model.errors import DeclarationError

    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
    where = f"{path}:{line}" if line else str(path)
    if isinstance(error, DeclarationError):
        return CommandError(
            f"{where}: the declaration is refused",
            details=[str(each) for each in error.errors],
            code=Exit.USAGE,
        )
    return _refused(f"{where}: {type(error).__name__}: {error}")


def _from_json(file: str, text: str) -> Iterator[tuple[str, object]]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            double = next(key for key in keys if keys.count(key) > 1)
            raise _refused(f"{file}: has the key {double!r} twice in one object", "Keep one of them.")
        return made

    try:
        document = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise _refused(f"{file}:{error.lineno}:{error.colno}: {error.msg}") from None
    except RecursionError:
        raise _refused(f"{file}: is nested too deeply", "Declare it flatter.") from None
    for index, item in enumerate(document if isinstance(document, list) else [document]):
        yield (f"{file} ({index + 1})" if isinstance(document, list) else file), item


def _from_yaml(file: str, text: str) -> Iterator[tuple[str, object]]:
    import yaml

    from fractal_cloud.cli.yaml_loader import Loader

    try:
        documents = [item for item in yaml.load_all(text, Loader) if item is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise _refused(f"{where}: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise _refused(f"{file}: is no YAML: {error}") from None
    for index, document in enumerate(documents):
        yield (f"{file} ({index + 1})" if len(documents) > 1 else file), document


def _refused(cause: str, advice: str = "") -> CommandError:
    return CommandError(cause, advice=advice, code=Exit.USAGE)


def _quoted(names: Collection[str]) -> str:
    return ", ".join(repr(name) for name in sorted(set(names)))
