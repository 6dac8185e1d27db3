"""Reads LiveSystems as the API shows them, for every world of the tests that has a control plane."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient


class LiveSystems:
    """What the API shows of components and mutations. ``api`` speaks to the control plane."""

    api: TestClient

    def component(self, live_system: str, component: str) -> dict[str, Any]:
        """One component."""
        response = self.api.get(f"/livesystems/{live_system}/components/{component}")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def status(self, live_system: str, component: str) -> str:
        """The status of one component."""
        return str(self.component(live_system, component)["status"])

    def mutation(self, live_system: str, mutation_id: str) -> dict[str, Any]:
        """One mutation's record."""
        found: dict[str, Any] = self.api.get(f"/livesystems/{live_system}/mutations/{mutation_id}").json()
        return found
