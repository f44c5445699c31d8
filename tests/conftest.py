"""For all unit tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# the same cases in every run, and no judgement on speed: test machines are busy
settings.register_profile(
    "tests", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("tests")
