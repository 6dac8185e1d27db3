"""Disks that are really full, folders that really cannot be written: an answer with what to do, no traceback (A9)."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store.driver import connect
from tests import postgres

pytestmark = pytest.mark.rule("A9")
TOKEN = "the-admin-token-of-a-full-disk"
LONG = {"id": "team", "description": "x" * 60_000, "components": []}


@contextlib.contextmanager
def _client(settings: ControlSettings) -> Iterator[TestClient]:
    app = create_app(settings)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, headers=headers, raise_server_exceptions=False) as client:
        yield client


def _assert_full(client: TestClient) -> None:
    answer = client.put("/livesystems/team", json=LONG)
    assert answer.status_code == 503, answer.text
    assert "no space is left where the database lies" in answer.json()["detail"]
    assert "Retry-After" in answer.headers
    assert client.get("/livesystems").status_code == 200, "reading goes on"
    assert client.get("/healthz").status_code == 200
    ready = client.get("/readyz")
    assert (ready.status_code, "no space is left" in ready.text) == (503, True)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of its own, of 8 MB."""
    folder = Path(tempfile.mkdtemp(prefix="fractal-full-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        folder.rmdir()
        pytest.skip("this user may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        folder.rmdir()


def _fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65_536))
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))
    return filler


def test_a_file_system_that_is_full_is_a_503_and_it_ends_when_there_is_space(small_disk: Path) -> None:
    with _client(ControlSettings(admin_token=TOKEN, data_dir=small_disk)) as client:
        assert client.put("/livesystems/before", json={"id": "before", "components": []}).status_code == 202
        filler = _fill(small_disk)
        _assert_full(client)
        assert [one["id"] for one in client.get("/livesystems").json()["items"]] == ["before"], "nothing is half stored"
        filler.unlink()
        assert client.get("/readyz").status_code == 200
        assert client.put("/livesystems/team", json=LONG).status_code == 202


_LIMITED = """
import resource, signal, sys
from pathlib import Path
from starlette.testclient import TestClient
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store.driver import connect
folder, token = Path(sys.argv[1]), sys.argv[2]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
app = create_app(ControlSettings(admin_token=token, data_dir=folder))
with TestClient(app, headers={"Authorization": f"Bearer {token}"}, raise_server_exceptions=False) as client:
    most = max(file.stat().st_size for file in folder.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    body = {"id": "team", "description": "x" * 60_000, "components": []}
    for number in range(50):
        answer = client.put(f"/livesystems/team-{number}", json={**body, "id": f"team-{number}"})
        if answer.status_code != 202:
            break
    print(answer.status_code, answer.json()["detail"])
    print(client.get("/livesystems").status_code, client.get("/readyz").status_code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(client.put("/livesystems/team", json=body).status_code, client.get("/readyz").status_code)
"""


def test_a_file_that_may_not_grow_is_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _LIMITED, str(tmp_path), TOKEN]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused, reading, after = done.stdout.splitlines()
    assert refused.startswith("503 no space is left where the database lies, or it cannot be written"), done.stderr
    assert (reading, after) == ("200 503", "202 200")


@pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL: install Debian's postgresql")
def test_a_full_disk_of_postgresql_is_the_same() -> None:
    """The server's own error, raised where a full disk raises it: while a row is inserted."""
    raising = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
    raising += "'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"
    with (
        postgres.server() as server,
        postgres.database(server) as url,
        _client(ControlSettings(admin_token=TOKEN, database_url=url)) as client,
    ):
        _run(url, raising)
        for table in ("live_systems", "events"):
            trigger = "BEFORE INSERT OR UPDATE OR DELETE" if table == "live_systems" else "BEFORE INSERT"
            _run(url, f"CREATE TRIGGER full_disk {trigger} ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()")
        answer = client.put("/livesystems/team", json=LONG)
        assert answer.status_code == 503, answer.text
        assert "no space is left where the database lies" in answer.json()["detail"]
        assert client.get("/livesystems").json()["items"] == [], "reading goes on, and nothing is half stored"
        _run(url, "DROP FUNCTION full_disk CASCADE")
        assert client.put("/livesystems/team", json=LONG).status_code == 202
        assert client.get("/readyz").status_code == 200


@pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL: install Debian's postgresql")
def test_a_full_file_system_of_postgresql_is_the_same(small_disk: Path) -> None:
    """Tables in a tablespace on a file system that is full: PostgreSQL's own refusal to extend a file."""
    owner = postgres.run_as().get("user")
    (small_disk / "space").mkdir()
    if owner is not None:
        shutil.chown(small_disk, owner)
        shutil.chown(small_disk / "space", owner)
    with postgres.server() as server, postgres.database(server) as url:
        with _client(ControlSettings(admin_token=TOKEN, database_url=url)) as client:
            assert client.put("/livesystems/before", json={"id": "before", "components": []}).status_code == 202
            _run(server, f"CREATE TABLESPACE small LOCATION '{small_disk / 'space'}'")
            _run(url, "ALTER TABLE live_systems SET TABLESPACE small")
            filler = _fill(small_disk)
            number, answer = 0, client.get("/livesystems")
            while number < 200 and answer.status_code != 503:
                number += 1
                body = {"id": f"team-{number}", "description": os.urandom(8_000).hex(), "components": []}
                answer = client.put(f"/livesystems/team-{number}", json=body)
            assert answer.status_code == 503, answer.text
            assert "no space is left where the database lies" in answer.json()["detail"]
            assert client.get("/livesystems").status_code == 200
            filler.unlink()
            assert client.put("/livesystems/team", json=LONG).status_code == 202
        _run(url, "ALTER TABLE live_systems SET TABLESPACE pg_default")
        _run(server, "DROP TABLESPACE small")


def _run(url: str, statement: str) -> None:
    engine = connect(url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


# --- not as root, whom nothing stops


def _like_anybody() -> list[str]:
    """What begins a command that is to be stopped by the rights of files, as everybody but root is."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv: install Debian's util-linux")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def _give_away(path: Path, mode: int) -> None:
    """Make it somebody else's, where that can be: its owner could let itself in."""
    path.chmod(mode)
    if os.geteuid() == 0:
        shutil.chown(path, "nobody")


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_this_user_may_not_write_is_said_in_one_sentence(what: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fractal-unwritable-"))
    try:
        if what == "file":
            with _client(ControlSettings(admin_token=TOKEN, data_dir=folder)):
                pass
            for file in folder.iterdir():
                _give_away(file, 0o444)
        _give_away(folder, 0o555)
        serve = [sys.executable, "-m", "fractal_cloud.cli", "serve", "--port", "18699", "--data-dir", str(folder)]
        environment = {**os.environ, "FRACTAL_TOKEN": TOKEN, "FRACTAL_DATABASE_URL": ""}
        command = [*_like_anybody(), *serve]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=False, cwd="/", env=environment
        )
        said = ended.stderr.strip()
        assert ended.returncode == 1, said
        assert "Traceback" not in said
        assert str(folder) in said
        assert "let this user write to the file and its folder" in said
        assert len(said.splitlines()) <= 3, said
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
