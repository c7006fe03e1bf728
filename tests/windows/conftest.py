"""Tests of what only Windows has; elsewhere they are not even collected."""

import sys

collect_ignore_glob = [] if sys.platform == "win32" else ["test_*.py"]
