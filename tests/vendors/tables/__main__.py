"""Writes tables into a folder: ``python -m tests.vendors.tables FOLDER NAME…``.

Those of the vendors' packages are written by the environment that has them, the others by the project's own.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name in sys.argv[2:]:
    text = json.dumps(importlib.import_module(f"tests.vendors.tables.{name}").make(), indent=1)
    (folder / f"{name}.json").write_text(text)
    print(f"{name}: {len(text) // 1024} kB")
