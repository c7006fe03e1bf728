"""What every test runs under."""

import os

from hypothesis import HealthCheck, settings

# Engines in tests share few cores with other tests: threads that spin at a barrier would take
# the core from the thread they wait for. Only speed differs, and no test asserts speed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

# For the same reason property tests may take as long as a busy machine needs.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
