"""Who subscribes to notifications, what is refused, and what nobody sees again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.control.notifying.sealing import KEY_FILE, SubscriptionKey
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.testing.tokens import bearer
from tests.api.conftest import Api, make_client, vpc

HOOK = "https://hooks.example.com/services/T000/B000/the-path-is-a-secret"
GIVEN = "whsec_" + "QUJD" * 10


def _add(api: Api, name: str = "team", **more: Any) -> Any:
    return api.client.post("/notifications", json={"name": name, "url": HOOK, **more})


@pytest.mark.rule("A8")
def test_a_secret_is_made_shown_once_and_kept_out_of_the_database_in_clear(api: Api, tmp_path: Path) -> None:
    made = _add(api)
    assert made.status_code == 201, made.text
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    assert _add(api, "given", secret=GIVEN).json()["secret"] is None
    assert _add(api, "chat", format="slack").json()["secret"] is None
    pages = [api.client.get(path).text for path in ("/notifications", "/notifications/team", "/events")]
    files = [file.read_bytes() for file in tmp_path.rglob("fractal.db*")]
    assert files
    assert KEY_FILE in [file.name for file in tmp_path.iterdir()]
    for hidden in (secret, secret.removeprefix("whsec_"), GIVEN, "the-path-is-a-secret"):
        assert not any(hidden in page for page in pages)
        assert not any(hidden.encode() in file for file in files)
    shown = api.get("/notifications/team")
    assert (shown["address"], shown["signed"], shown["createdBy"]) == ("https://hooks.example.com/…", True, "admin")
    assert api.get("/notifications/chat")["signed"] is False
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0


@pytest.mark.rule("A6")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://hooks.example.com/x", "plain http"),
        ("https://127.0.0.1/x", "not public"),
        ("https://169.254.169.254/latest/meta-data", "not public"),
        ("https://[::1]/x", "not public"),
        ("https://[::ffff:10.0.0.1]/x", "not public"),
        ("https://[64:ff9b::a9fe:a9fe]/x", "not public"),
        ("https://10.0.0.7:8443/x", "not public"),
        ("ftp://hooks.example.com/x", "no address of a web server"),
        ("https://user:pw@hooks.example.com/x", "has a user"),
        ("https://hooks.example.com/x\nHost: other", "is no address"),
        ("not an address", "is no address"),
    ],
)
def test_an_address_that_is_not_public_is_refused(api: Api, url: str, said: str) -> None:
    refused = _add(api, url=url)
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["path"] == "url"
    assert said in error["message"]


def test_every_error_is_said_at_once_and_nothing_is_stored(api: Api) -> None:
    wrong: dict[str, Any] = {"url": "ftp://x", "secret": "short", "liveSystems": ["Not An Id"], "kinds": ["Test"]}
    refused = _add(api, **wrong)
    assert refused.status_code == 422
    assert {error["path"] for error in refused.json()["errors"]} == {"url", "secret", "liveSystems[0]", "kinds"}
    assert _add(api, kinds=["Nonsense"]).status_code == 422
    assert _add(api, environments=["prod-*"]).status_code == 422, "whole names only"
    assert api.get("/notifications")["items"] == []


def test_a_name_is_given_once_and_free_again_after_it_was_removed(api: Api) -> None:
    assert _add(api).status_code == 201
    assert _add(api).status_code == 409
    assert api.client.delete("/notifications/team").status_code == 204
    assert api.client.delete("/notifications/team").status_code == 404
    assert api.client.get("/notifications/team").status_code == 404
    assert _add(api).status_code == 201
    events = api.get("/events")["items"]
    assert [one["kind"] for one in events] == ["NotificationAdded", "NotificationRemoved", "NotificationAdded"]
    assert events[0]["message"] == "'team' is notified at https://hooks.example.com/… of everything"


@pytest.mark.rule("A1")
def test_a_token_of_one_environment_sees_and_makes_only_subscriptions_of_it(api: Api) -> None:
    api.put("ls-prod", vpc(), environment="prod")
    _add(api, "all")
    _add(api, "prod", environments=["prod"])
    _add(api, "both", environments=["prod", "dev"])
    body = {"name": "prod-operator", "role": "operator", "environments": ["prod"]}
    bound = bearer(api.client.post("/tokens", json=body).json()["token"])
    shown = api.client.get("/notifications", headers=bound).json()["items"]
    assert [one["name"] for one in shown] == ["prod"]
    assert api.client.get("/notifications/all", headers=bound).status_code == 404
    assert api.client.post("/notifications/both/test", headers=bound).status_code == 404
    assert api.client.delete("/notifications/all", headers=bound).status_code == 404
    for environments in ([], ["dev"], ["prod", "dev"]):
        wanted = {"name": "mine", "url": HOOK, "environments": environments}
        assert api.client.post("/notifications", json=wanted, headers=bound).status_code == 422
    wanted = {"name": "mine", "url": HOOK, "environments": ["prod"]}
    assert api.client.post("/notifications", json=wanted, headers=bound).status_code == 201
    assert api.client.delete("/notifications/mine", headers=bound).status_code == 204


def test_without_a_key_outside_the_database_nothing_is_stored(api: Api) -> None:
    """Beside PostgreSQL there is no file that every process could read: the key must be given."""
    settings = ControlSettings(database_url="postgresql://somewhere/db").resolved_notifications
    app: Any = api.client.app
    app.state.sender.key = SubscriptionKey(settings)
    refused = _add(api)
    assert refused.status_code == 409
    assert "FRACTAL_NOTIFY_KEY" in refused.json()["detail"]
    assert api.get("/notifications")["items"] == []


def test_what_is_still_to_be_sent_is_a_metric(tmp_path: Path) -> None:
    with make_client(tmp_path) as client:
        shown = client.get("/metrics").text
    assert "fractal_notifications_pending 0.0" in shown
    assert "fractal_notifications_sent_total" in shown
    assert "fractal_notifications_failed_total" in shown
