"""What every test runs under."""

import os
import sys
from pathlib import Path

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

# Qt draws to memory in tests, and there its plugin for Windows finds no fonts by itself.
if sys.platform == "win32":
    os.environ.setdefault("QT_QPA_FONTDIR", str(Path(os.environ["SYSTEMROOT"], "Fonts")))
