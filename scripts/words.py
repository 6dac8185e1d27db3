"""Lists every place where a private word stands instead of the field's: `scripts/words.py [PATH …]`.

A reader who knows Kubernetes controllers, Terraform or any SDK must never have to learn a language of ours. What each
word is replaced by stands in the tables below. Names are the names that Python code defines, and of files and folders;
prose is everything else that people read: comments, docstrings, messages, pages and documentation.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]

# A word of a name (look_at, TakenLook, told) and what to say instead.
NAMES: Final = {
    "look|looks|looked|looking": "observe, read",
    "tell|tells|told|telling|untold": "report, return, list, add event",
    "heed|heeds|heeded": "respect, check",
    "mend|mends|mended|mending": "fix, repair",
    "fault|faults": "error",
    "deed|deeds|doing": "action",
    "hands": "operator, operator actions",
    "stir|stirring|stirred|watchful|restless|concerned": "change detection, changed, affected, needs recheck",
    "rouse|rouses|roused|rousing": "invalidate",
    "foresee|foresees|foreseen": "dry run",
    "book": "report builder",
    "outlook|picture|pictures|glance": "evaluator, snapshot, claim snapshot",
    "halves|wiring": "link handlers, link reconciler",
    "lodger|lodgers|lodging|guests": "hosted component, hosting",
    "happened|happening|happenings": "derived event, pending event",
    "together": "batch",
    "copies": "interner",
    "room|rooms": "capacity, topic, package",
    "standing": "a name for what it is",
    "take|takes": "apply, accept, claim: the verb that happens",
    "trouble|troubles|pause|pauses": "error, back-off",
    "judge|judges|judged|judging": "monitor (the rules' judge keeps its name)",
}

# A pattern in prose and what to say instead.
PROSE: Final = {
    r"told|tells?|telling": "report, return, list, say",
    r"heed(s|ed|ing)?": "respect, check",
    r"mend(s|ed|ing)?": "fix, repair",
    r"deeds?": "action",
    r"dealt with": "reconciled, observed",
    r"word for word": "byte for byte, identical",
    r"(?<!fall in )hands(?! (it|over|back|out|them|this|that|the|a|its|each|one|all)\b)": "operator, manual override",
    r"hands? off": "in manual override: the agent reads it and changes nothing",
    r"rous(e|es|ed|ing)": "invalidate",
    r"foresees?|foreseen|foresaw": "dry run, expect",
    r"outlook|glances?": "evaluator, snapshot",
    r"lodg(er|ers|ing|e|es)": "hosted component, hosting",
    r"rooms?": "capacity, topic, package",
    r"look(s|ed|ing)? (at|again|once)": "observe, read",
    r"(a|the|one|last|next|each|every|fresh|second|first|any|this|that|no|two|another) looks?": "observation, read",
    r"faults?": "error",
    r"judg(e|es|ed|ing)": "monitor",
}

# Where a word is the field's own: files, word, and why.
ALLOWED: Final = (
    ("scripts/words.py", "*", "it lists them"),
    ("tests/docs/test_words.py", "*", "it shows that they are found"),
    ("*vsphere*", "fault*", "SOAP calls its errors faults"),
    ("tests/*", "fault*", "fault injection"),
    ("benchmarks/*", "fault*", "fault injection"),
    ("CONTRIBUTING.md", "fault*", "fault injection"),
    ("docs/*", "fault*", "fault injection, page faults"),
    ("src/fractal_sandbox/*", "fault*", "fault injection"),
    ("*/oci/*", "fault*", "OCI has fault domains"),
    ("Makefile", "fault*", "fault injection"),
    ("src/fractal_cloud/*", "judg*", "rules/judge.py keeps its name: it decides one component"),
    ("tests/*", "judg*", "as above"),
    ("docs/*", "judg*", "as above"),
    ("*.md", "judg*", "as above"),
    ("benchmarks/*", "judg*", "as above"),
    ("examples/*", "judg*", "as above"),
    ("src/fractal_cloud/model/wire.py", "lodgers", "a name on the wire"),
    ("src/fractal_cloud/control/store/work.py", "lodgers", "a name on the wire"),
    ("src/fractal_cloud/control/connections/protocol.py", "pause", "asyncio's name of a callback"),
    ("CHANGELOG.md", "*", "what was released is not reworded"),
    ("docs/reference/*", "*", "generated from the source"),
)

PROSE_FILES: Final = (".md", ".html", ".toml", ".yaml", ".yml", ".sh", ".cfg")


def _whole_words(pattern: str) -> re.Pattern[str]:
    """A pattern of prose, where it is no part of a longer word, of a path or of a file's name."""
    return re.compile(rf"(?<![\w./-])({pattern})(?![\w/]|\.py|\.md)", re.IGNORECASE)


_EACH_PROSE: Final = [(_whole_words(pattern), instead) for pattern, instead in PROSE.items()]
_ANY_PROSE: Final = _whole_words("|".join(PROSE))


class Place(NamedTuple):
    """One private word: where it stands, and what to say instead."""

    path: str
    line: int
    word: str
    instead: str


def places(paths: list[str]) -> Iterator[Place]:
    """Every private word below some paths of the project."""
    for path in _files(paths):
        for place in (*_in_names(path), *_in_prose(path)):
            if not _is_allowed(place):
                yield place


def _files(paths: list[str]) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *paths],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def _in_names(path: str) -> Iterator[Place]:
    if not path.endswith(".py"):
        return
    for part in Path(path).with_suffix("").parts:
        yield from _of_name(path, 1, part)
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from _of_name(path, node.lineno, name)
            case ast.arg(arg=name):
                yield from _of_name(path, node.lineno, name)
            case ast.Name(id=name, ctx=ast.Store()):
                yield from _of_name(path, node.lineno, name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield from _of_name(path, node.lineno, name)
            case _:
                pass


def _of_name(path: str, line: int, name: str) -> Iterator[Place]:
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
    for pattern, instead in NAMES.items():
        for word in sorted(words & set(pattern.split("|"))):
            yield Place(path, line, word, instead)
    if "set_aside" in name or "comes_by_itself" in name:
        yield Place(path, line, name, "freeze, is provider default")


def _in_prose(path: str) -> Iterator[Place]:
    if path.endswith(".py"):
        lines = _spoken(path)
    elif path.endswith(PROSE_FILES) or Path(path).name == "Makefile":
        lines = list(enumerate((ROOT / path).read_text().splitlines(), 1))
    else:
        return
    for number, text in lines:
        if not _ANY_PROSE.search(text):
            continue
        for pattern, instead in _EACH_PROSE:
            for found in pattern.finditer(text):
                yield Place(path, number, found.group(0).lower(), instead)


def _spoken(path: str) -> list[tuple[int, str]]:
    """The comments and texts of a Python file, line by line: everything but its code."""
    import io
    import tokenize

    found: list[tuple[int, str]] = []
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO((ROOT / path).read_text()).readline):
        if token.type in kinds:
            found += [(token.start[0] + at, text) for at, text in enumerate(token.string.splitlines())]
    return found


def _is_allowed(place: Place) -> bool:
    return any(fnmatch(place.path, files) and fnmatch(place.word, word) for files, word, _ in ALLOWED)


def main() -> None:
    """Print every place, and end with 1 if there is any."""
    found = list(places(sys.argv[1:] or ["."]))
    for place in found:
        print(f"{place.path}:{place.line}: {place.word!r}: say {place.instead}")
    print(f"{len(found)} private words" if found else "no private words", file=sys.stderr)
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
