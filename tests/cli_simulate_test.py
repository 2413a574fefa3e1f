#!/usr/bin/env python3
"""muster simulate and the traces that it replays.

usage: cli_simulate_test.py PROGRAM SOURCE_DIR
"""
import collections
import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from cli import DEMO, muster


@unittest.skipUnless(DEMO.exists(), "the demo model is not there")
class SimulateTest(unittest.TestCase):
    POLICIES = ["lru", "lfru", "least-stale", "belady"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.trace = pathlib.Path(self.folder.name) / "trace.jsonl"

    def record(self, *args):
        done = muster("run", DEMO, "-p", "It was a bright cold day", "-n", 6, "--greedy", "--json", "--record-routing",
                      self.trace, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), [json.loads(line) for line in self.trace.read_text().splitlines()]

    def simulate(self, *args):
        done = muster("simulate", self.trace, "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def write_trace(self, tokens):
        self.trace.write_text("".join(json.dumps({"token": t, "experts": layers}) + "\n"
                                      for t, layers in enumerate(tokens)))

    def test_the_recorded_routing_is_what_the_report_counts(self):
        report, (header, *tokens) = self.record()
        layers = report["routing"]["layers"]
        self.assertEqual(header["num_experts"], [layer["num_experts"] for layer in layers])
        self.assertTrue(all(size > 0 for size in header["expert_bytes"]))
        self.assertEqual([t["token"] for t in tokens], list(range(report["prompt_tokens"] + 5)))
        for number, layer in enumerate(layers):
            counts = collections.Counter(id for token in tokens for id in token["experts"][number])
            self.assertEqual([counts[id] for id in range(layer["num_experts"])], layer["counts"])

    def test_the_recorded_routing_is_the_same_for_any_chunk(self):
        whole = self.record()
        for chunk in (1, 3):
            self.assertEqual(self.record("--chunk", chunk)[1], whole[1])

    def test_a_conversation_is_recorded(self):
        done = muster("run", DEMO, "--chat", "-n", 3, "--greedy", "-q", "--record-routing", self.trace, stdin="Hi\nYes\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(self.trace.read_text().splitlines()), 6)

    def test_a_recorded_trace_is_simulated_with_every_policy_and_size(self):
        report, (_, *tokens) = self.record()
        found = self.simulate("--experts", "100%,25%,40", "--disk", "1G", "--token-ms", 5)
        self.assertFalse(found["num_experts_assumed"])
        cases = found["results"]
        self.assertEqual([(c["policy"], c["experts"]) for c in cases],
                         [(policy, experts) for policy in self.POLICIES for experts in (32, 40, 128)])
        uses = sum(layer["tokens"] * layer["top_k"] for layer in report["routing"]["layers"])
        best = {c["experts"]: c["hits"] for c in cases if c["policy"] == "belady"}
        for case in cases:
            self.assertEqual(case["hits"] + case["misses"], uses)
            self.assertEqual(sum(layer["hits"] for layer in case["layers"]), case["hits"])
            self.assertLessEqual(case["hits"], best[case["experts"]])
            read = case["misses"] * found["expert_bytes"][0] / len(tokens)
            self.assertAlmostEqual(case["bytes_per_token"], read, delta=1e-9 * read)
            seconds = case["seconds_per_token"]
            self.assertAlmostEqual(seconds["serial"], 0.005 + read / 2**30, places=9)
            self.assertLess(seconds["overlapped"], seconds["serial"])
        woken = sum(sum(1 for count in layer["counts"] if count) for layer in report["routing"]["layers"])
        self.assertEqual([c["misses"] for c in cases if c["share"] == 1], [woken] * len(self.POLICIES))

    def test_ram_is_experts_times_their_size(self):
        self.record()
        size = self.simulate()["expert_bytes"][0]
        counted = self.simulate("--experts", 50)["results"]
        weighed = self.simulate("--ram", 50 * size + size // 2)["results"]
        self.assertEqual([c["hits"] for c in counted], [c["hits"] for c in weighed])

    def test_a_trace_by_hand_gives_figures_by_hand(self):
        # Room for two: 0 1 come, 2 pushes out 0 (LRU) or 1 (which is never used again), 0 comes again.
        self.write_trace([[[0]], [[1]], [[2]], [[0]]])
        found = self.simulate("--experts", 2, "--policy", "lru,belady", "--expert-bytes", "1K", "--disk", "1K")
        self.assertTrue(found["num_experts_assumed"])
        self.assertEqual([(c["policy"], c["hits"]) for c in found["results"]], [("lru", 0), ("belady", 1)])
        self.assertEqual([c["seconds_per_token"]["serial"] for c in found["results"]], [1, 0.75])

    def test_a_prompt_in_one_step_reads_each_expert_once(self):
        self.write_trace([[[0, 1]], [[1, 2]], [[0, 2]], [[2, 3]]])
        for case in self.simulate("--prefill", 3, "--experts", 4)["results"]:
            self.assertEqual((case["prefill"]["hits"], case["prefill"]["misses"]), (0, 3))
            self.assertEqual((case["hits"], case["misses"]), (1, 1))

    def test_the_table_has_a_row_for_each_size_and_the_plot_a_line_for_each_policy(self):
        self.record()
        svg = pathlib.Path(self.folder.name) / "hits.svg"
        done = muster("simulate", self.trace, "--disk", "1G", "--by-layer", "--svg", svg)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(sum(row[:2] == ["50.0", "%"] for row in rows), 3)  # hits, bytes, speed
        self.assertIn("Hits by layer, %, with 50.0 % cached", done.stdout)
        root = xml.etree.ElementTree.parse(svg).getroot()
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}polyline")), len(self.POLICIES))

    def test_what_makes_no_sense_is_a_usage_error(self):
        self.write_trace([[[0, 1]], [[1, 2]]])
        for args in [("--policy", "fifo"), ("--experts", "1"), ("--experts", "x"), ("--experts", "101%"),
                     ("--ram", "1G"), ("--ram", "x", "--expert-bytes", "1K"), ("--disk", "1G"), ("--prefill", "2"),
                     ("--ram", "1M", "--experts", "3"), ("--expert-bytes", "0"), ("--token-ms", "-1")]:
            done = muster("simulate", self.trace, *args)
            self.assertEqual(done.returncode, 2, f"{args}: {done.stderr}")
            self.assertNotEqual(done.stderr, "")
            self.assertEqual(done.stdout, "")

    def test_a_trace_that_is_broken_or_missing_is_a_failure_that_says_where(self):
        self.write_trace([[[0, 1]], [[1], [2]]])
        done = muster("simulate", self.trace)
        self.assertEqual(done.returncode, 1)
        self.assertIn("trace.jsonl line 2: expected 1 layers as before, not 2", done.stderr)
        done = muster("simulate", "/no/such/trace.jsonl")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/trace.jsonl", done.stderr)

    def test_routing_that_cannot_be_written_is_a_failure_that_names_it(self):
        done = muster("run", "-p", "Once", "-n", 1, "--record-routing", "/no/such/folder/trace.jsonl")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder/trace.jsonl", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
