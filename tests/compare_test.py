#!/usr/bin/env python3
"""bench/compare with engines that answer at once.

usage: compare_test.py SOURCE_DIR
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMPARE = pathlib.Path(sys.argv[1]).resolve() / "bench/compare/compare.py"

# Each writes its name behind the others' into a log, and answers as its namesake does.
FAKE_MUSTER = """#!/usr/bin/env python3
import json, sys
open(LOG, 'a').write('A')
a = sys.argv
depths = [int(d) for d in a[a.index('-d') + 1].split(',')]
print(json.dumps({'version': '9', 'instruction_set': 'avx2', 'tests': [
    {'kind': kind, 'num_tokens': n, 'depth': d, 'seconds': [1.0, 2.0, 4.0], 'more': 0}
    for d in depths for kind, n in (('prefill', 512), ('decode', 64))]}))
"""
FAKE_LLAMA_BENCH = """#!/usr/bin/env python3
import json, sys
a = sys.argv
if '--help' in a: sys.exit(0)
open(LOG, 'a').write('B')
row = {'build_commit': 'abc', 'build_number': 7, 'cpu_info': 'cpu'}
at = a[a.index('-gp') + 1].split(',') if '-gp' in a else None
rows = [dict(row, n_prompt=int(at[0]), n_gen=int(at[1]), samples_ns=[10**9])] if at else [
    dict(row, n_prompt=512, n_gen=0, samples_ns=[4 * 10**9]), dict(row, n_prompt=0, n_gen=64, samples_ns=[4 * 10**9])]
print('a line of talk')
print(json.dumps(rows))
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = pathlib.Path(self.folder.name) / "log"

    def program(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(text.replace("LOG", repr(str(self.log))))
        path.chmod(0o755)
        return path

    def compare(self, *args):
        out = pathlib.Path(self.folder.name) / "out.json"
        done = subprocess.run([COMPARE, "model.gguf", "--json", out, *map(str, args)], capture_output=True, text=True,
                              timeout=60)
        return done, json.loads(out.read_text()) if out.exists() else None

    def two_arms(self):
        return ["--muster", f"a={self.program('muster', FAKE_MUSTER)}",
                "--llama-bench", f"b={self.program('llama-bench', FAKE_LLAMA_BENCH)}"]

    def test_arms_take_turns(self):
        self.compare(*self.two_arms(), "-r", "3")
        self.assertEqual(self.log.read_text(), "ABABAB")

    def test_ratios_are_of_the_medians(self):
        done, found = self.compare(*self.two_arms(), "-r", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        prefill = found["tests"][0]
        self.assertEqual(prefill["tokens_per_second"]["a"]["median"], 256)
        self.assertEqual(len(prefill["tokens_per_second"]["a"]["samples"]), 6)
        self.assertEqual(prefill["ratio"]["b"]["ratio"], 2)
        self.assertIn("| pp512 | 256.0 (128.0 to 512.0) | 128.0 (128.0 to 128.0) | 2.00 (2.00 to 2.00) |", done.stdout)
        self.assertEqual(found["versions"], {"a": ["muster 9, avx2"], "b": ["build abc (7), cpu"]})

    def test_what_a_peer_cannot_time_is_shown_as_missing(self):
        done, found = self.compare(*self.two_arms(), "-d", "0,4096", "-r", "1")
        tests = {test["test"]: test for test in found["tests"]}
        self.assertEqual(tests["tg64 behind 4096"]["tokens_per_second"]["b"]["median"], 64)
        self.assertIsNone(tests["pp512 behind 4096"]["tokens_per_second"]["b"])
        self.assertIn("not measured", done.stdout)

    def test_a_failing_arm_is_reported_and_the_others_go_on(self):
        broken = self.program("broken", "#!/bin/sh\necho 'error: no such thing' >&2\nexit 3\n")
        done, found = self.compare(*self.two_arms(), "--muster", f"c={broken}", "-r", "1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(found["tests"][0]["tokens_per_second"]["a"]["median"], 256)
        self.assertIn("no such thing", found["failures"][0])
        self.assertIn("no such thing", done.stdout)

    def test_two_arms_of_one_name_are_refused(self):
        done, _ = self.compare("--muster", "a=x", "--muster", "a=y")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
