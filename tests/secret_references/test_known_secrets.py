"""Values of secrets in other people's words: whole, cut off or encoded, they are taken out (A8)."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import quote

import pytest
import structlog

from fractal_cloud.cli import logs
from fractal_cloud.model.errors import Invalid
from fractal_cloud.offers.known_secrets import KNOWN, STAND_IN, KnownSecrets
from fractal_cloud.offers.refusals import describe_unexpected, refusal
from fractal_cloud.offers.secret import Secret

VALUE = 'pa ss"w\nörd-<&>/+=4711'


def _known(*values: str) -> KnownSecrets:
    known = KnownSecrets()
    for value in values:
        known.add(Secret(value))
    return known


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    "text",
    [
        f"refused: {VALUE}!",
        f"refused: {json.dumps([VALUE])}",
        f"refused: {VALUE!r}",
        f"refused: {quote(VALUE)}",
        f"refused: {base64.b64encode(VALUE.encode()).decode()}",
        f"refused: {base64.b64encode(b'x' + VALUE.encode() + b'yz').decode()}",
        f"refused: {base64.b64encode(b'xx' + VALUE.encode() + b'y').decode()}",
        f"refused: {base64.urlsafe_b64encode(b'??' + VALUE.encode()).decode()}",
        f"refused: {VALUE.encode().hex()}",
        f"refused: {VALUE.encode().hex().upper()}",
        f"refused: {VALUE[:15]}…",
        f"refused: …{VALUE[6:]}",
    ],
)
def test_a_value_is_taken_out_in_every_form(text: str) -> None:
    redacted = _known(VALUE).redact(text)
    assert redacted.startswith("refused: ")
    assert STAND_IN in redacted
    rest = redacted.replace(STAND_IN, "").removeprefix("refused: ")
    assert len(rest) < 12, redacted


@pytest.mark.rule("A8")
def test_texts_without_a_value_stay_as_they_are_and_short_values_leave_words_whole() -> None:
    text = "the instance is running in eu-west-1"
    assert _known().redact(text) == text
    assert _known(VALUE).redact(text) == text
    assert _known("in").redact(text) == f"the instance is running {STAND_IN} eu-west-1"


@pytest.mark.rule("A8")
def test_refusals_and_unexpected_errors_are_worded_without_it_before_they_are_cut() -> None:
    script = "\n".join(f"line {number} of a long script" for number in range(100))
    KNOWN.add(Secret(script))
    said = describe_unexpected(ValueError(f"cannot parse {script}"))
    assert said == f"ValueError: cannot parse {STAND_IN}"
    assert refusal(Invalid, f"bad: {script}", provider="aws").message.startswith(f"bad: {STAND_IN}")


@pytest.mark.rule("A8")
def test_a_log_holds_none_not_even_in_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    KNOWN.add(Secret("canary-in-a-log-4711"))
    before = structlog.get_config()
    logs.set_up(logging.DEBUG)
    try:
        log = structlog.get_logger()
        log.debug("said canary-in-a-log-4711", where={"deep": ["canary-in-a-log-4711"]})
        try:
            raise ValueError("canary-in-a-log-4711")
        except ValueError:
            log.exception("failed")
    finally:
        structlog.configure(**before)
    written = capsys.readouterr().err
    assert "event=failed" in written
    assert "Traceback" in written
    assert "canary-in-a-log" not in written
