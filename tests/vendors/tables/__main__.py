"""Writes the tables into a folder: ``python -m tests.vendors.tables FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.vendors.tables import azure, gcp, oci

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, maker in {"azure": azure.make, "gcp": gcp.make, "oci": oci.make}.items():
    text = json.dumps(maker(), indent=1)
    (folder / f"{name}.json").write_text(text)
    print(f"{name}: {len(text) // 1024} kB")
