"""What has just changed is highlighted for two seconds: what stands on it can be read then, too."""

from __future__ import annotations

import re
from importlib import resources

import pytest

STYLE = (resources.files("fractal_cloud.control.dashboard") / "static/style.css").read_text()
SCHEMES = [
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r"{([^{}]*--news:[^{}]*)}", STYLE)
]
READABLE = 4.5  # https://www.w3.org/TR/WCAG22/#contrast-minimum


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_there_are_colours_for_light_and_for_dark() -> None:
    assert len(SCHEMES) == 2


@pytest.mark.parametrize("name", ["text", "quiet", "good", "warn", "bad", "busy", "calm"])
@pytest.mark.parametrize("colours", SCHEMES, ids=["light", "dark"])
def test_every_colour_of_texts_can_be_read_on_what_has_just_changed(colours: dict[str, str], name: str) -> None:
    assert _contrast(colours[name], colours["news"]) >= READABLE
