"""The program under test, for the tests that run it: `usage: X_test.py PROGRAM SOURCE_DIR`."""
import os
import pathlib
import subprocess
import sys

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
GOLDENS = SOURCE / "tests/goldens"
DEMO = SOURCE / "models/demo/demo-moe-q8_0.gguf"


def muster(*args, stdin="", env=None):
    return subprocess.run([PROGRAM, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "XDG_CACHE_HOME": "/no/such/cache", **(env or {})})
