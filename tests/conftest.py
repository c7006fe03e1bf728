"""What every test runs under."""

import os

# Engines in tests share few cores with other tests: threads that spin at a barrier would take
# the core from the thread they wait for. Only speed differs, and no test asserts speed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
