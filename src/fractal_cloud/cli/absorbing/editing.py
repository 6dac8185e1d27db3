"""Turns one written value into another with the fewest changes, part by part, so that comments stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from fractal_cloud.cli.absorbing.nodes import ByHand, Edits, Language, Node


class Editor:
    """Changes values in one text; what it cannot do without losing something it leaves to a person (``ByHand``)."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language
        self._edits = Edits(text)

    def result(self) -> str:
        """The text with all changes made."""
        return self._edits.applied()

    def change(self, node: Node, declared: Any, actual: Any) -> None:
        """Write ``actual`` where ``declared`` stands."""
        if declared == actual:
            return
        if isinstance(declared, Mapping) and isinstance(actual, Mapping) and self._is_same_map(node, declared, actual):
            assert node.entries is not None
            for name, part in node.entries.items():
                self.change(part, declared[name], actual[name])
        elif isinstance(declared, list) and isinstance(actual, list) and _is_list_of(node, declared) and declared:
            assert node.items is not None
            self._change_list(node, node.items, declared, actual)
        else:
            self._replace(node, actual)

    def _is_same_map(self, node: Node, declared: Mapping[str, Any], actual: Mapping[str, Any]) -> bool:
        """Whether the maps differ in values only, and every value that differs is written out."""
        written = node.entries
        if written is None:
            return False
        changed = {name for name in {*declared, *actual} if declared.get(name) != actual.get(name)}
        return changed <= written.keys() and changed <= actual.keys() and written.keys() <= declared.keys()

    def _replace(self, node: Node, actual: Any) -> None:
        before = self._text[node.start : node.end]
        if not node.is_plain:
            raise ByHand(f"line {node.line} computes it: {' '.join(before.split())[:60]}")
        if self._language.comment and "\n" in before and self._language.comment in before:
            raise ByHand(f"line {node.line} has comments inside it, which would be lost")
        self._edits.add(node.start, node.end, self._language.written(actual, node.quote))

    # --- lists

    def _change_list(self, node: Node, items: Sequence[Node], declared: list[Any], actual: list[Any]) -> None:
        is_spread = self._language.comment and self._has_own_lines(items)
        keys = [_Key(value) for value in declared], [_Key(value) for value in actual]
        steps = SequenceMatcher(None, *keys, autojunk=False).get_opcodes()
        for step, i1, i2, j1, j2 in steps:
            if step == "replace" and i2 - i1 == j2 - j1:
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                    self.change(items[i], declared[i], actual[j])
            elif step != "equal" and not is_spread:
                return self._rebuild(node, items, declared, actual)
            elif step != "equal":
                if not actual:
                    return self._replace(node, actual)
                self._cut_lines(items[i1:i2])
                self._add_lines(node, items, i2, actual[j1:j2])
        return None

    def _has_own_lines(self, items: Sequence[Node]) -> bool:
        """Whether every item begins a line of its own."""
        return all(not self._text[self._line_start(item.start) : item.start].strip(" \t-") for item in items)

    def _cut_lines(self, items: Sequence[Node]) -> None:
        """Take items away with their lines, and what is noted behind them."""
        for item in items:
            self._edits.add(self._line_start(item.start), self._line_end(item.end), "")

    def _add_lines(self, node: Node, items: Sequence[Node], at: int, values: Sequence[Any]) -> None:
        """Write values on lines of their own before the item of that number, or behind the last."""
        model = items[min(at, len(items) - 1)]
        margin = self._text[self._line_start(model.start) : model.start]
        ending = "" if node.is_block else ","
        lines = "".join(f"{margin}{self._language.written(value)}{ending}\n" for value in values)
        if at < len(items):
            place = self._line_start(items[at].start)
        else:
            place = self._line_end(items[-1].end)
            rest = self._text[items[-1].end : place].partition(self._language.comment)[0]
            if not node.is_block and "," not in rest:
                self._edits.add(items[-1].end, items[-1].end, ",")
            if not self._text[:place].endswith("\n"):
                lines = "\n" + lines.removesuffix("\n")
        if lines:
            self._edits.add(place, place, lines)

    def _rebuild(self, node: Node, items: Sequence[Node], declared: list[Any], actual: list[Any]) -> None:
        """Write the whole list anew, keeping the words of the items that stay."""
        between = self._text[node.start : node.end]
        for item in reversed(items):
            between = between[: item.start - node.start] + between[item.end - node.start :]
        if self._language.comment and self._language.comment in between:
            raise ByHand(f"line {node.line} has comments inside it, which would be lost")
        left = [(declared[number], self._text[item.start : item.end]) for number, item in enumerate(items)]
        words = []
        for value in actual:
            found = next((one for one in left if one[0] == value), None)
            if found is not None:
                left.remove(found)
            words.append(found[1] if found is not None else self._language.written(value))
        if "\n" not in between:
            self._edits.add(node.start, node.end, f"[{', '.join(words)}]")
            return
        margin = " " * (items[0].start - self._line_start(items[0].start))
        closing = between.rpartition("\n")[2]
        self._edits.add(node.start, node.end, "[\n" + ",\n".join(margin + word for word in words) + f"\n{closing}")

    def _line_start(self, position: int) -> int:
        return self._text.rfind("\n", 0, position) + 1

    def _line_end(self, position: int) -> int:
        """The beginning of the line after a position."""
        found = self._text.find("\n", position)
        return len(self._text) if found < 0 else found + 1


class _Key:
    """A value that can be compared in a sequence, though it may be a map."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.value == other.value

    def __hash__(self) -> int:
        return hash(repr(self.value))


def _is_list_of(node: Node, declared: Sequence[Any]) -> bool:
    return node.items is not None and len(node.items) == len(declared)
