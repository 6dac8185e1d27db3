"""All routes of the dashboard, in the order in which they are tried; the app mounts this."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Header, HTTPException, Response

from fractal_cloud.control.dashboard import (
    agents,
    components,
    events,
    livesystems,
    overrides,
    recovery,
    requests,
    scopes,
    sessions,
)
from fractal_cloud.control.dashboard.pages import HEADERS, PageRoute
from fractal_cloud.control.dashboard.sessions import TheVisitor

router = APIRouter()
own = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES: Final = {
    file.name: file.read_bytes() for file in Path(__file__).with_name("static").iterdir() if file.suffix in TYPES
}


@own.get("/static/{name}")
def static(name: str, if_none_match: str = Header("")) -> Response:
    """A file of the pages; browsers ask each time whether it is still the same."""
    if name not in FILES:
        raise HTTPException(404, f"there is no file {name!r}")
    tag = f'"{hashlib.sha256(FILES[name]).hexdigest()[:16]}"'
    headers = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
    if if_none_match == tag:
        return Response(status_code=304, headers=headers)
    return Response(FILES[name], headers=headers, media_type=TYPES[Path(name).suffix])


@own.get("/{path:path}")
def nothing(path: str, _visitor: TheVisitor) -> Response:
    """Every address that is no page."""
    raise HTTPException(404, f"there is no page /ui/{path}")


for module in (sessions, events, agents, scopes, livesystems, overrides, recovery, requests, components):
    router.include_router(module.router)
router.include_router(own)
