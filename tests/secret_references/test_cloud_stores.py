"""Secrets that lie in a cluster or in AWS Secrets Manager, read as they are now (A8)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.errors import SecretUnavailable
from fractal_cloud.offers import secret_stores
from fractal_cloud.offers.aws.policy import documents
from fractal_cloud.offers.policy import PolicyOptions
from fractal_cloud.offers.secret_stores import SecretSource
from fractal_sandbox import Sandbox, agent_env
from tests.offers.kubernetes.person import KubernetesPerson
from tests.world import REGION, Person


@pytest.fixture
def sandbox(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Empty clouds, and the agent's credentials in the environment."""
    session_sandbox.aws.reset()
    session_sandbox.kubernetes.reset()
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    secret_stores.store.cache_clear()
    yield session_sandbox
    secret_stores.store.cache_clear()


def _source(tmp_path: Path, **binding: str) -> SecretSource:
    file = tmp_path / "bindings.json"
    file.write_text(json.dumps({"secrets": {"db": {**binding, "liveSystems": ["shop"]}}}))
    return SecretSource("agent-1", file)


@pytest.mark.rule("A8")
def test_a_secret_of_secrets_manager_is_read_whole_or_by_a_key_in_it(sandbox: Sandbox, tmp_path: Path) -> None:
    manager = Person(sandbox.url).client("secretsmanager")
    manager.create_secret(Name="shop/db", SecretString=json.dumps({"password": "first", "port": 5432}))
    by_key = _source(tmp_path, store="aws", secretId="shop/db", key="password", region=REGION)
    assert by_key.resolve("shop", "db").reveal() == "first"
    manager.put_secret_value(SecretId="shop/db", SecretString="second")
    whole = _source(tmp_path, store="aws", secretId="shop/db", region=REGION)
    assert whole.resolve("shop", "db").reveal() == "second", "the newest version, read anew"


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (None, {}, "refuses 'shop/db' (ResourceNotFoundException): it is not there"),
        ("no json", {"key": "password"}, "is no JSON with the key 'password'"),
        ('{"port": 5432}', {"key": "port"}, "holds no text"),
    ],
)
def test_a_secret_of_secrets_manager_that_is_not_there_is_said_so(
    sandbox: Sandbox, tmp_path: Path, content: str | None, more: dict[str, str], words: str
) -> None:
    if content is not None:
        Person(sandbox.url).client("secretsmanager").create_secret(Name="shop/db", SecretString=content)
    with pytest.raises(SecretUnavailable) as refused:
        _source(tmp_path, store="aws", secretId="shop/db", region=REGION, **more).resolve("shop", "db")
    assert words in str(refused.value)
    assert "agent 'agent-1'" in str(refused.value)
    assert not refused.value.is_passing


@pytest.mark.rule("A8")
def test_secrets_manager_that_refuses_says_which_rights_and_one_that_fails_is_asked_again(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    source = _source(tmp_path, store="aws", secretId="shop/db", region=REGION)
    sandbox.aws.knobs.fail(operation="GetSecretValue", code="AccessDeniedException", status=400, message="no: hunter2")
    with pytest.raises(SecretUnavailable, match="--provider aws --secret shop/db") as denied:
        source.resolve("shop", "db")
    assert "hunter2" not in str(denied.value)
    sandbox.aws.knobs.fail(operation="GetSecretValue", code="InternalServiceError", status=500, times=None)
    with pytest.raises(SecretUnavailable) as failed:
        source.resolve("shop", "db")
    assert (denied.value.is_passing, failed.value.is_passing) == (False, True)


@pytest.mark.rule("A8", "A7")
def test_the_printed_rights_read_the_named_secrets_and_no_other() -> None:
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:other-AbCdEf"
    made = documents(PolicyOptions(secrets=("shop/db", arn)))
    [statement] = made[-1]["Statement"]
    assert statement["Action"] == ["secretsmanager:GetSecretValue"]
    assert statement["Resource"] == ["arn:*:secretsmanager:*:*:secret:shop/db-??????", arn]
    assert "GetSecretValue" not in json.dumps(documents())


# --- Kubernetes


def _keep(sandbox: Sandbox, tmp_path: Path, **data: bytes) -> KubernetesPerson:
    person = KubernetesPerson(sandbox.url, tmp_path)
    encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop-tls"}, "type": "Opaque", "data": encoded}
    person.create("secrets", body)
    return person


@pytest.mark.rule("A8")
def test_a_secret_of_a_cluster_is_read_by_namespace_name_and_key(sandbox: Sandbox, tmp_path: Path) -> None:
    person = _keep(sandbox, tmp_path, tls_key=b"first")
    source = _source(tmp_path, store="kubernetes", secret="default/shop-tls", key="tls.key")
    assert source.resolve("shop", "db").reveal() == "first"
    encoded = base64.b64encode(b"second").decode()
    person.merge("secrets", "shop-tls", {"data": {"tls.key": encoded}})
    assert source.resolve("shop", "db").reveal() == "second"
    named = _source(tmp_path, store="kubernetes", secret="default/shop-tls", key="tls.key", context="sandbox")
    assert named.resolve("shop", "db").reveal() == "second"


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("binding", "words"),
    [
        ({"secret": "default/nowhere", "key": "a"}, "there is no Secret 'default/nowhere'"),
        ({"secret": "default/shop-tls", "key": "other"}, "has no key 'other'"),
        ({"secret": "shop-tls", "key": "tls.key"}, "which is not namespace/name"),
        ({"secret": "default/shop-tls", "key": "a", "context": "nowhere"}, "has no context 'nowhere'"),
    ],
)
def test_a_secret_of_a_cluster_that_is_not_there_is_said_so(
    sandbox: Sandbox, tmp_path: Path, binding: dict[str, str], words: str
) -> None:
    _keep(sandbox, tmp_path, tls_key=b"first")
    with pytest.raises(SecretUnavailable) as refused:
        _source(tmp_path, store="kubernetes", **binding).resolve("shop", "db")
    assert words in str(refused.value)
