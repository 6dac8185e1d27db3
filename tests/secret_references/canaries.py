"""Listens for values that everybody would recognise, in everything that is kept, shown, logged or measured (A8)."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROLES = ("reader", "operator", "admin")


def canary(which: str) -> str:
    """A value with characters that every encoding writes in another way."""
    return f'canary-that-sings-{which}-&"<{len(which)}>'


def forms(value: str) -> list[bytes]:
    """What a value looks like in the encodings that it may be written in."""
    plain = value.encode()
    texts = (json.dumps(value)[1:-1], quote(value), quote(value, safe=""), plain.hex(), plain.hex().upper())
    return [plain, plain[:18], base64.b64encode(plain).rstrip(b"=")[:-1], *(text.encode() for text in texts)]


def pages(api: Any, app: Any, component: str, *more: str) -> dict[str, bytes]:
    """Every answer and page there is of ``ls-a`` and a component, as a reader, an operator and the admin see them."""
    found: dict[str, bytes] = {}
    filled = {"{id}": "ls-a", "{componentId}": component, "{key}": "x"}
    filled["{mutationId}"] = api.get("/livesystems/ls-a").json()["mutationId"]
    paths = [path for path, methods in app.openapi()["paths"].items() if "get" in methods]
    addresses = [re.sub(r"\{\w+\}", lambda name: filled.get(name[0], "x"), path) for path in paths]
    addresses += ["/openapi.json", "/metrics", "/events?limit=1000", *more]
    addresses += [f"/livesystems/ls-a/components/{component}{part}" for part in ("", "/journal", "/glass")]
    for role in ROLES:
        token = api.post("/tokens", json={"name": f"{role}-{component}", "role": role}).json()["token"]
        for address in addresses:
            answer = api.get(address, headers={"Authorization": f"Bearer {token}"})
            found[f"{role} {address} {answer.status_code}"] = answer.content
        api.cookies.clear()
        assert api.post("/ui/login", data={"token": token}).status_code == 200
        for address in ("/ui", "/ui/agents", "/ui/livesystems/ls-a", f"/ui/livesystems/ls-a/components/{component}"):
            found[f"{role} {address}"] = api.get(address).content
    assert sum(" 200" in name for name in found) > 30
    assert any(b"$secret" in page for page in found.values())
    return found


def files(folder: Path, but: Path) -> dict[str, bytes]:
    """What every file below a folder holds, but for those in one folder."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and but not in path.parents
    }
    assert any("control.db" in name for name in found), sorted(found)
    return found


def assert_silent(texts: dict[str, bytes], *values: str) -> None:
    """No value is in any of these texts, in any form."""
    for value in values:
        heard = [name for name, text in texts.items() if any(form in text for form in forms(value))]
        assert not heard, f"the canary {value!r} sings in {heard}"
