"""Caches what vendors' libraries build slowly and tests need again and again, once for all tests of a process.

No code of the product is replaced here, and nothing that a test could change is shared: descriptions of services,
clients that know an address and a key, compiled statements, what a route expects, and the file of an empty database.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.loaders import JSONFileLoader
from fastapi.routing import _EffectiveRouteContext, _IncludedRouter, _RouterIncludeContext
from sqlalchemy import Engine
from sqlalchemy.engine import URL
from starlette.routing import BaseRoute

from fractal_cloud.control.store.database import Database
from fractal_cloud.control.store.driver import connections
from fractal_cloud.offers.aws import cloud
from fractal_cloud.offers.aws.cloud import AwsSession
from fractal_cloud.offers.aws.models import Models

_connect = AwsSession.__init__
_sessions: dict[Any, dict[str, Any]] = {}
_empty: list[Path] = []


@contextmanager
def botocore() -> Iterator[None]:
    """Descriptions of AWS services are read anew for every session; tests make one per agent: read them once."""
    with pytest.MonkeyPatch.context() as patch:
        for reader in (JSONFileLoader, Models):
            patch.setattr(reader, "load_file", _reading_once(reader))
        yield


def _reading_once(reader: type[JSONFileLoader] | type[Models]) -> Callable[[object, str], Any]:
    load_file: Callable[[Any, str], Any] = reader.load_file

    @cache
    def load_once(path: str) -> Any:
        return load_file(reader(), path)

    def load(_: object, path: str) -> Any:
        # The SDK takes the bucket out of the paths of its S3 description; the sandbox needs one with it.
        return deepcopy(load_once(path)) if f"{os.sep}s3{os.sep}" in path else load_once(path)

    return load


@cache
def client(service: str, region: str, url: str, access_key: str, secret_key: str) -> Any:
    """A boto3 client for one service."""
    make: Any = boto3.client  # typed per service name, which is not known here
    return make(
        service,
        region_name=region,
        endpoint_url=url,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
    )


def connect_once(session: AwsSession) -> None:
    """Reuse the clients of a former session with the same settings: making them is slower than most tests."""
    settings = sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_"))
    key = (os.getpid(), cloud.READ_ATTEMPTS, *settings)  # a forked process must not write to its parent's connections
    if key not in _sessions:
        _connect(session)
        _sessions[key] = dict(vars(session))
    vars(session).update(_sessions[key])


def lose_memories() -> None:
    """Forget what offers remember, as the end of a process does: the sessions here are those of every agent."""
    for known in _sessions.values():
        known["_memories"].clear()


@contextmanager
def fastapi() -> Iterator[None]:
    """FastAPI works out what a route expects anew for every app that includes it; tests make one per world: do it once.

    It depends on how the route is included, and on the app only where that overrides dependencies: ours does not.
    """
    build = _IncludedRouter._build_effective_context
    built: dict[int, list[tuple[BaseRoute, _RouterIncludeContext, _EffectiveRouteContext | None]]] = {}

    def build_once(included: _IncludedRouter, route: BaseRoute) -> _EffectiveRouteContext | None:
        how = replace(included.include_context, dependency_overrides_provider=None)
        known = built.setdefault(id(route), [])  # with the route itself, which lives as long as its number is known
        for _, before, context in known:
            if before == how:
                return context
        context = build(_IncludedRouter(included.original_router, how), route)
        known.append((route, how, context))
        return context

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_IncludedRouter, "_build_effective_context", build_once)
        yield


@contextmanager
def sqlalchemy(folder: Path) -> Iterator[None]:
    """SQLAlchemy compiles every statement anew for every engine; tests make one per world: compile them once.

    Only what an engine is asked often is shared, the dialect and the statements it compiled; connections are not.
    """
    make = connections._sqlite
    empty = folder / "empty.db"
    Database(f"sqlite:///{empty}").close()
    with closing(sqlite3.connect(empty)) as made, made:
        made.execute("DELETE FROM incarnations")  # each database made from it draws its own at its first start
    first = make(URL.create("sqlite", database=str(empty)))
    with first.connect():
        pass  # what the dialect learns from its first connection

    def share(url: URL) -> Engine:
        engine = make(url)
        engine.dialect = first.dialect
        engine._compiled_cache = first._compiled_cache
        return engine

    _empty.append(empty)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "_sqlite", share)
        yield
    _empty.clear()
    first.dispose()


def database(file: Path) -> str:
    """The address of a SQLite database; one that is not there yet is made with its tables, as migrations leave it."""
    if _empty and not file.exists():
        shutil.copyfile(_empty[0], file)
    return f"sqlite:///{file}"
