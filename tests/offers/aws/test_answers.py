"""How answers are cut before the SDK parses them: what is listed, and what differs in every answer."""

from __future__ import annotations

import json

import pytest

from fractal_cloud.offers.aws.answers import cut_json, cut_xml


class TestXml:
    def test_the_list_is_cut_out_and_everything_else_stays(self) -> None:
        body = b"<R><requestId>1</requestId><vpcSet><item>a</item></vpcSet><nextToken>t</nextToken></R>"
        assert cut_xml(body, "vpcSet") == (
            b"<item>a</item>",
            b"<R><requestId>1</requestId><vpcSet></vpcSet><nextToken>t</nextToken></R>",
        )

    def test_a_list_inside_of_the_list_belongs_to_it(self) -> None:
        body = b"<R><set><item><set><item>a</item></set></item></set><x/></R>"
        assert cut_xml(body, "set") == (b"<item><set><item>a</item></set></item>", b"<R><set></set><x/></R>")

    @pytest.mark.rule("S0")
    @pytest.mark.parametrize(
        "body",
        [b"", b"<R/>", b"<R><vpcSet/></R>", b"<R><vpcSet><item>a</it", b"</vpcSet><R><vpcSet>", b"<html>busy</html>"],
    )
    def test_what_cannot_be_cut_for_certain_is_left_to_the_sdk(self, body: bytes) -> None:
        assert cut_xml(body, "vpcSet") is None


class TestJson:
    @pytest.mark.parametrize(
        "body",
        ['{"items": [1, 2], "nextToken": "a\\"}b"}', '{ "nextToken" : "a\\"}b" , "items": [1, 2]}'],
    )
    def test_the_cursor_is_cut_out_wherever_it_stands(self, body: str) -> None:
        cut = cut_json(body.encode(), "nextToken")
        assert cut is not None
        assert b"nextToken" not in cut[0]
        assert b"[1, 2]" in cut[0]
        assert json.loads(cut[1]) == {"nextToken": json.loads(body)["nextToken"]}

    def test_without_a_cursor_everything_is_listed(self) -> None:
        assert cut_json(b'{"items": []}', "nextToken") == (b'{"items": []}', b"{}")

    @pytest.mark.parametrize(
        "body",
        [
            b'{"items": [{"tags": {"a": "b", "nextToken": "x"}}]}',
            b'{"items": {"nextToken": "x", "a": "b"}}',
            b'{"items": [], "nextToken": "x", "more": 1}',
            b'[{"a": 1, "nextToken": "x"}]',
        ],
    )
    def test_what_only_resembles_the_cursor_is_never_cut_out(self, body: bytes) -> None:
        assert cut_json(body, "nextToken") is None

    def test_texts_that_spell_a_cursor_stay_what_they_are(self) -> None:
        body = json.dumps({"items": ['x, "nextToken": "y"}'], "nextToken": "real"}).encode()
        cut = cut_json(body, "nextToken")
        assert cut is not None
        assert json.loads(cut[0] + b"}") == {"items": ['x, "nextToken": "y"}']}
        assert json.loads(cut[1]) == {"nextToken": "real"}
