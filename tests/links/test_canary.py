"""A password that everybody would recognise: made in a handler, and found nowhere but where it belongs (L9)."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from fractal_cloud.model.errors import Transient
from fractal_cloud.offers.secret import Secret
from tests.links.world import ADMIN_TOKEN, World, database, gateway, link, workload

CANARY = "canary-that-sings-in-the-mine"
_MADE: list[str] = []


def _new() -> Secret:
    _MADE.append(f"{CANARY}-{len(_MADE)}")
    return Secret(_MADE[-1])


@pytest.fixture
def bird(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every secret that handlers make is known to the test."""
    _MADE.clear()
    monkeypatch.setattr(Secret, "new", _new)
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    yield
    structlog.configure(**before)


def _chatter(operation: str) -> None:
    """A cloud that quotes in its errors what it was given."""
    if operation == "put_role":
        raise Transient(f"cannot make {_MADE[-1]}, as in postgres://app:{_MADE[0]}@db")


def _live_a_life(links: World) -> None:
    """Everything that can happen to links, so that everything is written down somewhere."""
    linked = workload("app", link("db", database="orders"), link("edge", prefix="/a"))
    links.deploy("ls-a", database(), gateway(), linked, workload("web", link("db", database="orders"), at="east"))
    links.settle()
    links.east.named("db").roles.clear()
    links.settle()
    links.east.before.append(_chatter)
    links.east.named("db").roles.clear()
    links.cycle()
    links.east.before.clear()
    links.east.break_glass("db")
    links.west.break_glass("app")
    links.west.named("app").actual["environment"] = {"changed": "by hand"}
    links.settle()
    links.east.hand_back("db")
    links.settle()


def _paths(links: World) -> Iterator[str]:
    """Every page that can be read, with the ids of this world filled in."""
    for path in links.app.openapi()["paths"]:
        if "get" in links.app.openapi()["paths"][path]:
            yield path.replace("{id}", "ls-a")
    for component in ("app", "db", "web", "edge"):
        base = f"/livesystems/ls-a/components/{component}"
        yield from (base, f"{base}/journal", f"{base}/glass")
    yield from ("/livesystems/ls-a/mutations", "/livesystems/ls-a/components?limit=100", "/events?limit=500")


def _read(links: World) -> dict[str, str]:
    pages: dict[str, str] = {}
    mutations = links.api.get("/livesystems/ls-a").json()["mutationId"]
    resources = [item["key"] for item in links.api.get("/resources").json()["items"]]
    paths = {*_paths(links), f"/livesystems/ls-a/mutations/{mutations}", *(f"/resources/{key}" for key in resources)}
    for path in sorted(paths):
        if "{" not in path and "agent/wait" not in path:
            response = links.api.get(path)
            if response.status_code == 200:
                pages[path] = response.text
    return pages


def _seen(links: World) -> dict[str, str]:
    """The dashboard's pages, as somebody who has logged in sees them."""
    visitor = links.api
    assert visitor.post("/ui/login", data={"token": ADMIN_TOKEN}).status_code == 200
    components = [f"/ui/livesystems/ls-a/components/{name}" for name in ("app", "db", "web", "edge")]
    pages = {path: visitor.get(path) for path in ("/ui", "/ui/livesystems/ls-a", *components)}
    assert all(page.status_code == 200 for page in pages.values())
    return {path: page.text for path, page in pages.items()}


def _forms(secret: str) -> list[bytes]:
    plain = secret.encode()
    return [plain, base64.b64encode(plain).rstrip(b"=")]


@pytest.mark.rule("L9", "C7")
@pytest.mark.usefixtures("bird")
def test_the_canary_is_heard_in_no_answer_event_log_journal_page_or_database(links: World, tmp_path: Path) -> None:
    with capture_logs() as logged:
        _live_a_life(links)
        pages = _read(links)
        pages |= _seen(links)
    held = [value for value, _ in links.west.secrets.values()]
    assert held
    assert all(value.startswith(CANARY) for value in held), "it is where it belongs"
    assert len(pages) > 15, f"the pages were found: {sorted(pages)}"
    shown = [path for path, page in pages.items() if "linkedCredentials.app.user" in page]
    assert {"/livesystems/ls-a/components/db", "/ui/livesystems/ls-a/components/db"} <= set(shown)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert sum(map(len, files.values())) > 10_000
    texts = {**{path: page.encode() for path, page in pages.items()}, **files, "log": repr(logged).encode()}
    assert len(_MADE) > 4
    for secret in _MADE:
        heard = [name for name, text in texts.items() if any(form in text for form in _forms(secret))]
        assert not heard, f"the canary sings in {heard}"
    assert not re.search(CANARY, repr(links.agents))
    assert ADMIN_TOKEN.encode() not in files.get("control.db", b"")
