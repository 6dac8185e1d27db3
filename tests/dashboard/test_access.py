"""Who gets in, who may act, and which forms are believed."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.dashboard.conftest import Visitor
from tests.world import ADMIN_TOKEN, vpc

PAGES = ("/ui", "/ui/", "/ui/livesystems/team", "/ui/livesystems/team/components/net", "/ui/events", "/ui/nowhere")


def token_of(api: TestClient, role: str) -> str:
    bound = {"providers": ["aws"], "environments": ["default"], "realms": ["1"]} if role == "agent" else {}
    answer = api.post("/tokens", json={"name": role, "role": role, **bound})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


@pytest.mark.parametrize("path", PAGES)
def test_without_a_login_every_page_leads_to_it_and_back(app: FastAPI, path: str) -> None:
    answer = TestClient(app, follow_redirects=False).get(path)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/ui/login?next={path}"


def test_a_link_from_elsewhere_asks_again_so_that_the_strict_cookie_comes_along(app: FastAPI) -> None:
    answer = TestClient(app).get("/ui", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text


def test_the_login_keeps_the_token_where_no_script_and_no_other_site_reaches_it(app: FastAPI) -> None:
    answer = Visitor(app).answer
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui"
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/ui"} <= {part.strip() for part in cookie.split(";")}
    assert ADMIN_TOKEN not in cookie


def test_a_printed_link_logs_in_and_leads_to_an_address_without_the_token(app: FastAPI) -> None:
    client = TestClient(app, follow_redirects=False)
    answer = client.get(f"/ui?token={ADMIN_TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui")
    assert client.get("/ui").status_code == 200


@pytest.mark.parametrize("token", ["", "wrong", "<script>"])
def test_a_token_nobody_has_is_refused_with_what_to_do(app: FastAPI, token: str) -> None:
    answer = Visitor(app, token).answer
    assert answer.status_code == 401
    assert "fractal token create" in answer.text
    assert "set-cookie" not in answer.headers
    assert TestClient(app).get("/ui", params={"token": token or "none"}).status_code == 401


def test_an_agents_token_opens_no_page(app: FastAPI, api: TestClient) -> None:
    answer = Visitor(app, token_of(api, "agent")).answer
    assert answer.status_code == 401
    assert "an agent&#39;s" in answer.text


@pytest.mark.parametrize("path", ["https://evil.example/", "//evil.example", "/livesystems", "/ui/log\\x", "/uix"])
def test_the_login_leads_only_to_pages_of_the_dashboard(app: FastAPI, path: str) -> None:
    answer = TestClient(app, follow_redirects=False).post("/ui/login", data={"token": ADMIN_TOKEN, "next": path})
    assert answer.headers["location"] == "/ui"


def test_the_login_leads_to_the_page_that_was_asked_for(app: FastAPI) -> None:
    form = {"token": ADMIN_TOKEN, "next": "/ui/livesystems/team"}
    answer = TestClient(app, follow_redirects=False).post("/ui/login", data=form)
    assert answer.headers["location"] == "/ui/livesystems/team"


def test_logging_out_ends_it(visitor: Visitor) -> None:
    assert visitor.send("/ui/logout").headers["location"] == "/ui/login"
    assert visitor.get("/ui").status_code == 303


def test_a_revoked_token_ends_its_sessions(app: FastAPI, api: TestClient) -> None:
    operator = Visitor(app, token_of(api, "operator"))
    assert operator.get("/ui").status_code == 200
    assert api.delete("/tokens/operator").status_code in (200, 204)
    assert operator.get("/ui").status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "!!!.word", "dG9r.", "/w.word", "ÿ.ÿ"])
def test_a_cookie_that_was_tampered_with_is_nobody(app: FastAPI, cookie: str) -> None:
    header = f"fractal-http={cookie}".encode("latin-1")
    answer = TestClient(app, follow_redirects=False).get("/ui", headers=[(b"cookie", header)])
    assert answer.status_code == 303


def deploy(api: TestClient) -> None:
    assert api.post("/livesystems", json={"id": "team", "components": [vpc()]}).status_code == 202


FORMS = (
    "/ui/logout",
    "/ui/livesystems/team/delete",
    "/ui/livesystems/team/force-push",
    "/ui/livesystems/team/components/net/break",
    "/ui/livesystems/team/components/net/readopt",
    "/ui/livesystems/team/components/net/force-push",
)


@pytest.mark.parametrize("path", FORMS)
def test_a_form_from_elsewhere_is_refused_and_does_nothing(api: TestClient, visitor: Visitor, path: str) -> None:
    deploy(api)
    before = api.get("/livesystems/team/events").json()
    fields = {"name": "team"}
    without_word = visitor.client.post(path, data=fields)
    with_another_word = visitor.client.post(path, data={**fields, "word": "guessed"})
    foreign = visitor.send(path, headers={"Origin": "http://evil.example"}, **fields)
    other_port = visitor.send(path, headers={"Origin": "http://testserver:3000"}, **fields)
    for answer in (without_word, with_another_word, foreign, other_port):
        assert answer.status_code == 403
        assert answer.headers["content-type"].startswith("text/html")
    assert visitor.get("/ui").status_code == 200
    assert api.get("/livesystems/team/events").json() == before


def test_a_form_of_our_own_is_taken_with_its_origin(api: TestClient, visitor: Visitor) -> None:
    deploy(api)
    answer = visitor.send("/ui/livesystems/team/delete", headers={"Origin": "http://testserver"}, name="team")
    assert answer.status_code == 303
    assert api.get("/livesystems/team").json()["deleting"] is True


def test_a_reader_sees_everything_and_can_do_nothing(app: FastAPI, api: TestClient) -> None:
    deploy(api)
    reader = Visitor(app, token_of(api, "reader"))
    page = reader.page("/ui/livesystems/team") + reader.page("/ui/livesystems/team/components/net")
    for button in ("Delete …", "Break the glass …", "Force Push …"):
        assert button not in page
    for path in FORMS[1:]:
        assert reader.send(path, name="team").status_code == 403
    assert api.get("/livesystems/team").json()["deleting"] is False


def test_a_form_that_cannot_be_read_is_refused(visitor: Visitor) -> None:
    assert visitor.client.post("/ui/logout", content=b"\xff\xfe=\xff").status_code in (400, 403)
    assert visitor.client.post("/ui/logout", content="&".join("a=1" for _ in range(99))).status_code == 400
