"""Hypothesis as it is used while the code is being broken: no deadline, always the same examples, nothing kept.

Loaded as a plugin, because those tests run without the conftest of all others, which takes seconds to be ready.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mutants", deadline=None, max_examples=30, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("mutants")
