"""Visitors for the dashboard: one without a browser, and a real browser before a server on a real port."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from httpx2 import Response
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from tests import library_caches
from tests.world import ADMIN_TOKEN, World

PATIENCE_MS = 20_000
# The rest keeps Chromium from talking to its makers.
CHROMIUM_ARGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Visitor:
    """Somebody who reads pages and sends forms, without a browser."""

    def __init__(self, app: FastAPI, token: str = ADMIN_TOKEN) -> None:
        self.client = TestClient(app, follow_redirects=False, raise_server_exceptions=False)
        self.answer = self.client.post("/ui/login", data={"token": token})

    def get(self, path: str) -> Response:
        return self.client.get(path)

    def page(self, path: str) -> str:
        """The text of a page that must be there."""
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def word(self, path: str = "/ui") -> str:
        """The word that makes a form this visitor's own."""
        found = re.search(r'name="word" value="([^"]+)"', self.page(path))
        assert found is not None
        return found[1]

    def send(self, path: str, headers: dict[str, str] | None = None, **fields: str) -> Response:
        """Send a form as its page would."""
        return self.client.post(path, data={"word": self.word(), **fields}, headers=headers)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    """A control plane without any agent."""
    made = create_app(
        ControlSettings(database_url=library_caches.database(tmp_path / "pages.db"), admin_token=ADMIN_TOKEN)
    )
    with TestClient(made):
        yield made


@pytest.fixture
def api(app: FastAPI) -> TestClient:
    """A program that speaks to that control plane."""
    return TestClient(app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})


@pytest.fixture
def visitor(app: FastAPI) -> Visitor:
    """An admin who is logged in there."""
    return Visitor(app)


@dataclass
class Server:
    """The world's control plane on a real port; it can be stopped and started again on the same one."""

    app: FastAPI
    port: int = 0

    def start(self) -> None:
        listening = socket.create_server(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(self.app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=0)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    """The world, to be visited with a browser."""
    running = Server(world.app)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="package")  # its event loop must be gone before other folders' tests begin
def browser() -> Iterator[Browser]:
    """Chromium without a window, as the system has it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here: install Debian's package chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM_ARGS))
        yield opened
        opened.close()


@dataclass
class Tab:
    """One page of the browser, with everything it complained about and everything it asked for."""

    page: Page
    base: str
    complaints: list[str]
    asked: list[str]

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def open_live(self, path: str) -> Page:
        """Open a page and wait until it is connected; from then on it must not be loaded again."""
        self.open(path)
        self.page.wait_for_selector('#connection[data-state="live"]')
        self.page.evaluate("window.isSamePage = true")
        return self.page

    @property
    def is_same_page(self) -> bool:
        return bool(self.page.evaluate("window.isSamePage === true"))


@pytest.fixture
def tab(browser: Browser, server: Server) -> Iterator[Tab]:
    """A fresh browser session, not logged in."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    made = Tab(page, server.url, [], [])

    def on_console(message: Any) -> None:
        if message.type == "error":
            made.complaints.append(message.text)

    page.on("console", on_console)
    page.on("pageerror", lambda error: made.complaints.append(str(error)))
    page.on("request", lambda request: made.asked.append(request.url))
    yield made
    context.close()


@pytest.fixture
def admin_tab(tab: Tab) -> Tab:
    """A browser session that came in by the printed link."""
    tab.open(f"/ui?token={ADMIN_TOKEN}")
    return tab
