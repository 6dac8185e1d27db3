"""Where secrets are kept, and who says which name leads where (A8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fractal_cloud.agent.private_file import write_private
from fractal_cloud.agent.secrets import KEY_FILE, DigestKey
from fractal_cloud.model.errors import SecretUnavailable
from fractal_cloud.offers import secret_stores
from fractal_cloud.offers.secret_stores import BadBindings, SecretSource, SecretStore, parse_bindings


def _bound(tmp_path: Path, text: str) -> SecretSource:
    file = tmp_path / "bindings.yaml"
    file.write_text(text)
    return SecretSource("agent-1", file)


@pytest.mark.rule("A8")
def test_without_bindings_a_folder_of_the_live_system_comes_first_then_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "db-password").write_text("from the folder\n")
    monkeypatch.setenv("FRACTAL_SECRET_DB_PASSWORD", "from the variable")
    source = SecretSource("agent-1", folder=tmp_path)
    assert source.resolve("shop", "db-password").reveal() == "from the folder"
    assert source.resolve("other", "db-password").reveal() == "from the variable"
    monkeypatch.delenv("FRACTAL_SECRET_DB_PASSWORD")
    with pytest.raises(SecretUnavailable, match="'db-password' is not bound at agent 'agent-1'"):
        source.resolve("other", "db-password")


@pytest.mark.rule("A8")
def test_with_bindings_nothing_else_counts_and_each_names_its_live_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRACTAL_SECRET_OTHER", "never")
    monkeypatch.setenv("SHOP_DB", "the value")
    source = _bound(tmp_path, "secrets: {db: {store: environment, variable: SHOP_DB, liveSystems: [shop, 'shop-*']}}")
    assert source.resolve("shop", "db").reveal() == "the value"
    assert source.resolve("shop-test", "db").reveal() == "the value"
    with pytest.raises(SecretUnavailable, match="'db' is not for LiveSystem 'shopping'"):
        source.resolve("shopping", "db")
    with pytest.raises(SecretUnavailable, match="'other' is not bound at agent 'agent-1': bind it in"):
        source.resolve("shop", "other")


@pytest.mark.rule("A8")
def test_bindings_are_read_again_when_they_change_and_fail_closed_when_broken(tmp_path: Path) -> None:
    value = tmp_path / "value"
    value.write_text("kept")
    bound = f"secrets: {{db: {{store: file, path: {value}, liveSystems: [shop]}}}}"
    source = _bound(tmp_path, bound)
    assert source.resolve("shop", "db").reveal() == "kept"
    (tmp_path / "bindings.yaml").write_text("secrets: {}  # nobody any more")
    with pytest.raises(SecretUnavailable, match="not bound"):
        source.resolve("shop", "db")
    (tmp_path / "bindings.yaml").write_text("secrets: [")
    with pytest.raises(SecretUnavailable, match=r"its file of bindings '.*' cannot be used: is no YAML"):
        source.resolve("shop", "db")
    (tmp_path / "bindings.yaml").write_text(bound)
    assert source.resolve("shop", "db").reveal() == "kept"


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "must be an object with the one key `secrets`"),
        ("secrets: {Bad Name: {}}", "binds 'Bad Name'"),
        ("secrets: {db: {store: nowhere, liveSystems: [a]}}", "there is no secret store 'nowhere': installed are aws"),
        ("secrets: {db: {store: file, path: /x}}", "liveSystems must list who may use it"),
        ("secrets: {db: {store: file, path: /x, liveSystems: []}}", "liveSystems must list who may use it"),
        ("secrets: {db: {store: file, liveSystems: [a]}}", "lacks path: the store 'file' takes path"),
        ("secrets: {db: {store: file, path: /x, pth: /y, liveSystems: [a]}}", "has pth"),
        ("secrets: {db: {store: file, path: 3, liveSystems: [a]}}", "give texts that are not empty"),
    ],
)
def test_bindings_that_say_too_little_or_too_much_are_refused(text: str, words: str) -> None:
    with pytest.raises(BadBindings) as refused:
        parse_bindings(text)
    assert words in str(refused.value)


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"\xff\xfe", "no text in UTF-8"), (b"a\0b", "characters"), (b"x" * 70_000, "longer than")],
)
def test_what_cannot_be_a_text_is_no_value_and_is_not_quoted(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "db").write_bytes(content)
    with pytest.raises(SecretUnavailable, match=words):
        SecretSource(folder=tmp_path).resolve("shop", "db")


class Vault(SecretStore):
    """A store of another package."""

    required = ("key",)

    def read(self, where: object) -> str:
        """Fail in a way that quotes the value."""
        raise RuntimeError("the value is hunter2")


@pytest.mark.rule("A8", "L16")
def test_a_store_of_another_package_is_found_by_its_entry_point_and_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("vault", f"{__name__}:Vault", secret_stores.ENTRY_POINTS)
    monkeypatch.setattr(secret_stores, "entry_points", lambda group: [entry] if group == entry.group else [])
    secret_stores.store.cache_clear()
    try:
        source = _bound(tmp_path, "secrets: {db: {store: vault, key: a/b, liveSystems: [shop]}}")
        with pytest.raises(SecretUnavailable, match=r"its store 'vault' failed \(RuntimeError\)") as refused:
            source.resolve("shop", "db")
    finally:
        secret_stores.store.cache_clear()
    assert refused.value.is_passing
    assert "hunter2" not in str(refused.value)


# --- digests


@pytest.mark.rule("A8")
def test_the_key_of_digests_stays_in_the_agents_folder_for_its_owner_alone(tmp_path: Path) -> None:
    first, again = DigestKey.in_folder(tmp_path / "state"), DigestKey.in_folder(tmp_path / "state")
    file = tmp_path / "state" / KEY_FILE
    assert first.digest("u", "p", "v") == again.digest("u", "p", "v")
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_bytes()) == 32
    assert DigestKey.in_folder(None).digest("u", "p", "v") != first.digest("u", "p", "v")


@pytest.mark.rule("A8")
def test_equal_values_have_different_digests_in_different_places(tmp_path: Path) -> None:
    key = DigestKey.in_folder(tmp_path)
    places = [("u", "p"), ("u", "q"), ("w", "p")]
    assert len({key.digest(uid, name, "1234") for uid, name in places}) == 3


@pytest.mark.rule("A8")
def test_of_two_agents_that_make_the_key_at_once_one_wins(tmp_path: Path) -> None:
    assert write_private(tmp_path / "key", b"first") == b"first"
    assert write_private(tmp_path / "key", b"second") == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["key"], "nothing is left beside it"
