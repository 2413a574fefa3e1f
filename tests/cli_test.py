#!/usr/bin/env python3
"""The program as a user meets it: output, exit codes, faults.

usage: cli_test.py PROGRAM SOURCE_DIR
"""
import collections
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from cli import DEMO, GOLDENS, PROGRAM, SOURCE, muster

sys.path.insert(0, str(SOURCE / "tools"))
import trace_summary  # noqa: E402: in tools/


class UsageTest(unittest.TestCase):
    def test_every_command_has_help_with_examples(self):
        for command in ["run", "inspect", "tokenize", "eval", "bench", "pack", "verify", "pull", "simulate", "doctor"]:
            done = muster(command, "--help")
            self.assertEqual(done.returncode, 0, command)
            self.assertIn("Examples:", done.stdout)

    def test_no_command_is_a_usage_error(self):
        self.assertEqual(muster().returncode, 2)

    def test_unknown_words_get_a_suggestion(self):
        done = muster("inspekt")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'inspect'", done.stderr)
        done = muster("run", "--thread", "1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean '--threads'", done.stderr)

    def test_bad_values_are_usage_errors(self):
        for args in [("run", "--tokens", "1,x"), ("run", "--temp", "-1", "-p", "x"), ("run", "-n", "-5", "-p", "x"),
                     ("run", "-p", "x", "-f", "y"), ("run", "--isa", "mmx", "-p", "x"),
                     ("run", "--logit-bias", "7", "-p", "x"), ("bench", "-p", "0", "-n", "0"), ("bench", "-r", "0"),
                     ("bench", "-p", "1,x"), ("run", "--cache-aware", "1.5", "-p", "x"),
                     ("run", "--tail", "1.5", "-p", "x"), ("bench", "--tail", "0.3x"), ("eval", "-f", "x", "--tail", "nan"),
                     ("eval", "-f", "x", "--tail", "0.3", "--reference", "y"), ("pack", "x", "y", "--tail", "q4_k"),
                     ("run", "--cache-aware", "0.2,0", "-p", "x"), ("bench", "--cache-aware", "0.2,3x"),
                     ("eval", "-f", "x", "--cache-aware", "nan"), ("bench", "-d", str(1 << 27))]:
            done = muster(*args)
            self.assertEqual(done.returncode, 2, f"{args}: {done.stderr}")
            self.assertNotEqual(done.stderr, "")

    def test_a_missing_model_is_a_failure_that_names_it(self):
        done = muster("inspect", "/no/such/model.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/model.gguf", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_rubbish_is_refused_by_every_command(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad.gguf"
            bad.write_bytes(b"GGUF\x03\0\0\0" + b"\xff" * 64)
            text = pathlib.Path(folder) / "t.txt"
            text.write_text("text")
            for args in [("inspect", bad), ("run", bad, "-p", "x"), ("tokenize", bad, "-p", "x"),
                         ("eval", bad, "-f", text)]:
                done = muster(*args)
                self.assertEqual(done.returncode, 1, args)
                self.assertIn("bad.gguf", done.stderr)


class PullTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([sys.executable, SOURCE / "tests/object_server.py"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        cls.origin = f"http://127.0.0.1:{int(cls.server.stdout.readline())}"

    @classmethod
    def tearDownClass(cls):
        cls.server.stdin.close()
        cls.server.wait()
        cls.server.stdout.close()

    def test_an_object_becomes_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            done = muster("pull", f"{self.origin}/o/cli1/-/100000.bin", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, f"{folder}/100000.bin\n")
            self.assertEqual(os.path.getsize(f"{folder}/100000.bin"), 100000)

    def test_a_wrong_checksum_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            done = muster("pull", f"{self.origin}/o/cli2/-/1000.bin", f"{folder}/x", "--sha256", "0" * 64)
            self.assertEqual(done.returncode, 1)
            self.assertIn("SHA-256", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_redirects_to_this_machine_are_refused_unless_allowed(self):
        target = urllib.parse.quote("http://localhost:PORT/o/cli3/-/1000.bin", safe="")
        with tempfile.TemporaryDirectory() as folder:
            url = f"{self.origin}/o/cli3/!redirect={target}/1000.bin"
            done = muster("pull", url, folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("loopback", done.stderr)
            self.assertEqual(muster("pull", url, folder, "--allow-private").returncode, 0)

    def test_urls_that_make_no_sense_are_usage_errors_without_their_password(self):
        for url in ["https://user:secret@host/x", "s3://bucket", "https://host/"]:
            done = muster("pull", url)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertNotIn("secret", done.stderr)


class GoldenModelTest(unittest.TestCase):
    MODEL = GOLDENS / "qwen3_moe/model.gguf"

    def test_inspect_counts_what_is_in_the_file(self):
        counts = json.loads(muster("inspect", "--json", self.MODEL).stdout)["parameters"]
        self.assertEqual(counts["total"], counts["always_on"] + counts["routed"])
        layers = json.loads(muster("inspect", "--json", self.MODEL).stdout)["layers"]
        active = counts["always_on"] + sum(l["top_k"] * l["routed"] // l["num_experts"] for l in layers)
        self.assertEqual(counts["active"], active)

    def test_greedy_tokens_are_the_references_on_every_instruction_set(self):
        golden = json.loads((GOLDENS / "qwen3_moe/golden.json").read_text())
        for prompt in golden["prompts"]:
            ids = ",".join(map(str, prompt["tokens"]))
            supported = json.loads(muster("doctor", "--json").stdout)["instruction_sets"] if prompt is golden[
                "prompts"][0] else ["avx2"]
            for isa in supported:
                done = muster("run", self.MODEL, "--tokens", ids, "-n", len(prompt["greedy"]), "--greedy", "--json",
                              "--kv", "f32", env={"MUSTER_ISA": isa})
                self.assertEqual(json.loads(done.stdout)["tokens"], prompt["greedy"], isa)

    def test_measured_and_nominal_share_agree(self):
        report = json.loads(muster("run", self.MODEL, "--tokens", "1,2,3", "-n", "4", "--json").stdout)
        parameters = report["parameters"]
        self.assertAlmostEqual(parameters["share"], parameters["nominal_share"], places=12)
        for layer in report["routing"]["layers"]:
            self.assertEqual(sum(layer["counts"]), layer["tokens"] * layer["top_k"])

    def test_bench_measures_each_member_of_each_list_with_each(self):
        done = muster("bench", "-q", "-p", "8,16", "-n", "3", "-d", "20,0", "-t", "1,2", "-r", "2", "--json", self.MODEL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        tests = json.loads(done.stdout)["tests"]
        self.assertEqual([(t["num_threads"], t["depth"], t["test"]) for t in tests],
                         [(threads, depth, test) for threads in (1, 2) for depth in (0, 20)
                          for test in ("pp8", "pp16", "tg3")])
        for test in tests:
            speed = test["tokens_per_second"]
            self.assertEqual(sorted(speed["samples"]), [speed["least"], speed["most"]])
            self.assertAlmostEqual(speed["median"], sum(speed["samples"]) / 2, delta=1e-6 * speed["median"])
            for s, per_second in zip(test["seconds"], speed["samples"]):
                self.assertAlmostEqual(s * per_second, test["num_tokens"], delta=1e-6 * test["num_tokens"])

    def test_the_roofline_counts_what_a_token_reads_and_computes(self):
        shape = json.loads(muster("inspect", "--json", self.MODEL).stdout)
        done = muster("bench", "-q", "-p", "0", "-n", "1", "-d", "0,50", "-r", "1", "-t", "1", "--roofline", "--json",
                      self.MODEL)
        self.assertEqual(done.returncode, 0, done.stderr)
        roofline = json.loads(done.stdout)["roofline"]
        first, deep = roofline["tests"]
        dim, heads = shape["model_dim"], shape["num_heads"] * shape["head_dim"]
        kv = shape["num_kv_heads"] * shape["head_dim"]
        elements = shape["vocab_size"] * dim
        for layer in shape["layers"]:
            elements += dim * (2 * heads + 2 * kv + layer["num_experts"]) + layer["top_k"] * layer["per_expert"]
        positions = shape["bytes"]["kv_cache_per_position"]
        attention = 4 * heads * shape["num_layers"]
        self.assertEqual(shape["bytes"]["by_type"].keys(), {"F32"})
        self.assertEqual(first["bytes_per_token"], 4 * elements + positions)
        self.assertEqual(deep["bytes_per_token"] - first["bytes_per_token"], 50 * positions)
        self.assertEqual(first["float_ops_per_token"], 2 * elements + attention)
        self.assertEqual(deep["float_ops_per_token"] - first["float_ops_per_token"], 50 * attention)
        for test in roofline["tests"]:
            for key in ("bytes_per_token", "byte_ops_per_token", "float_ops_per_token"):
                self.assertEqual(sum(phase[key] for phase in test["phases"]), test[key])
            self.assertAlmostEqual(sum(phase["share"] for phase in test["phases"]), 1, places=9)
        machine = roofline["machine"][0]
        seconds = max(first["bytes_per_token"] / machine["read_bytes_per_second"],
                      first["float_ops_per_token"] / machine["float_ops_per_second"])
        self.assertAlmostEqual(first["limit_tokens_per_second"] * seconds, 1, places=9)

    def test_the_reports_cost_is_a_share_of_a_decoded_token(self):
        found = json.loads(muster("bench", "-q", "-p", "0", "-n", "4", "-r", "3", "--report-cost", "--json",
                                  self.MODEL).stdout)
        cost, speed = found["report_cost"], found["tests"][0]["tokens_per_second"]["median"]
        self.assertGreater(cost["seconds_per_token"], 0)
        self.assertAlmostEqual(cost["share_of_decode"], cost["seconds_per_token"] * speed, places=12)

    def test_what_tuning_found_is_used_unless_a_flag_says_otherwise(self):
        with tempfile.TemporaryDirectory() as cache:
            env = {"XDG_CACHE_HOME": cache}
            done = muster("bench", "-q", "--tune", "-r", "2", "--json", self.MODEL, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            tuning = json.loads(done.stdout)["tuning"]
            self.assertLessEqual(tuning["untuned_prefill_share"], 1)
            self.assertLessEqual(tuning["untuned_decode_share"], 1)
            file = pathlib.Path(cache) / "muster/tuning.json"
            self.assertEqual(json.loads(file.read_text()),
                             {tuning["key"]: {key: tuning[key] for key in ("num_threads", "chunk_tokens")}})

            def settings(*args):
                test = json.loads(muster("bench", "-q", "-p", "2", "-n", "0", "-r", "1", "--json", *args, self.MODEL,
                                         env=env).stdout)["tests"][0]
                return test["num_threads"], test["chunk_tokens"]

            shipped = settings("--no-tuning")
            self.assertEqual(shipped[1], 512)
            file.write_text(json.dumps({tuning["key"]: {"num_threads": 3, "chunk_tokens": 7}}))
            self.assertEqual(settings(), (3, 7))
            self.assertEqual(settings("--chunk", "5"), (3, 5))
            self.assertEqual(settings("-t", "1"), (1, 7))
            self.assertEqual(settings("--no-tuning"), shipped)
            file.write_text(json.dumps({"another machine": {"num_threads": 3, "chunk_tokens": 7}}))
            self.assertEqual(settings(), shipped)
            for rubbish in ["{", "[]", json.dumps({tuning["key"]: {"num_threads": 0, "chunk_tokens": 7}})]:
                file.write_text(rubbish)
                self.assertEqual(settings(), shipped)
                done = muster("run", "--tokens", "1,2", "-n", "1", self.MODEL, env=env)
                self.assertEqual(done.returncode, 0)
                self.assertIn("tuning.json", done.stderr)

    def test_bench_prints_a_table_on_stdout_and_progress_on_stderr(self):
        done = muster("bench", "-r", "1", "-n", "2", "-p", "8", self.MODEL)
        rows = [line for line in done.stdout.splitlines() if line.startswith("| pp8") or line.startswith("| tg2")]
        self.assertEqual(len(rows), 2, done.stdout)
        self.assertIn("pp8 behind 0", done.stderr)

    def test_a_model_without_a_tokenizer_says_so(self):
        done = muster("run", self.MODEL, "-p", "text")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tokenizer", done.stderr)

    def test_tokens_beyond_the_vocabulary_or_the_context_are_refused(self):
        self.assertEqual(muster("run", self.MODEL, "--tokens", "999999").returncode, 2)
        self.assertEqual(muster("run", self.MODEL, "--tokens", "1,2,3", "--ctx", "2").returncode, 2)


@unittest.skipUnless(DEMO.exists(), "the demo model is not there")
class DemoModelTest(unittest.TestCase):
    def test_text_goes_to_stdout_and_the_report_to_stderr(self):
        done = muster("run", DEMO, "-p", "It was", "-n", "8", "--seed", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("It was"))
        self.assertIn("used per token", done.stderr)
        self.assertNotIn("experts", done.stdout)

    def test_the_same_seed_gives_the_same_text_for_any_thread_count_and_chunk(self):
        runs = [muster("run", DEMO, "-p", "It was a bright day", "-n", "24", "--seed", "7", "-q", "-t", threads,
                       "--chunk", chunk).stdout for threads, chunk in [(1, 1), (2, 512), (3, 2)]]
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])

    def test_a_trace_shows_each_layer_of_each_step(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            done = muster("run", "-p", "Once", "-n", 3, "--greedy", "--trace", path, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = json.loads(path.read_text())
        steps = json.loads(done.stdout)["generated_tokens"]  # the prompt's gives the first
        self.assertEqual(trace["otherData"]["dropped_zones"], 0)
        counts = collections.Counter()
        for zones in trace_summary.zones_of_threads(trace).values():
            for zone, own, around in trace_summary.own_times(zones):  # raises unless they nest
                self.assertGreaterEqual(own, -trace_summary.ROUNDING_US * len(zones))
                if zone["cat"] == "zone":
                    counts[zone["name"], zone["args"].get("layer")] += 1
                if zone["cat"] == "zone" and zone["name"] == "attention":
                    self.assertEqual([outer["name"] for outer in around], ["step"])
        self.assertEqual(counts["step", None], steps)
        for layer in range(8):
            self.assertEqual(counts["attention", layer], steps)
            self.assertEqual(counts["feed-forward", layer], steps)

    def test_a_trace_shows_what_each_thread_did_in_each_region(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            done = muster("run", "-p", "Once upon a time", "-n", 8, "--greedy", "-t", 2, "--trace", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = json.loads(path.read_text())
        found = trace_summary.regions(trace)
        self.assertEqual(sorted(found), list(range(1, len(found) + 1)))
        self.assertLessEqual({name for name, *_ in found.values()}, {"embed", "attention", "feed-forward", "head"})
        for name, begin, end, work in found.values():
            self.assertGreater(work, 0, name)
            self.assertLessEqual(work, 2 * (end - begin) + trace_summary.ROUNDING_US, name)

    def test_a_trace_that_cannot_be_written_is_a_failure_that_names_it(self):
        done = muster("run", "-p", "Once", "-n", 1, "--trace", "/no/such/folder/trace.json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder/trace.json", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_stop_strings_are_matched_on_text(self):
        whole = json.loads(muster("run", DEMO, "-p", "The", "-n", "40", "--greedy", "--json").stdout)["text"]
        stop = whole[10:14]
        cut = json.loads(muster("run", DEMO, "-p", "The", "-n", "40", "--greedy", "--json", "--stop", stop).stdout)
        self.assertEqual(cut["text"], whole[:whole.index(stop)])
        self.assertEqual(cut["finish_reason"], "stop")

    def test_tokenize_goes_there_and_back(self):
        text = "def f(x):\n    return x  # 春眠不覺曉"
        ids = muster("tokenize", DEMO, "-p", text, "--ids").stdout.split()
        self.assertEqual(muster("tokenize", DEMO, "--decode", ",".join(ids)).stdout, text + "\n")

    def test_a_text_is_the_same_from_a_flag_a_file_and_standard_input(self):
        text = "It was, of course, raining.\n"
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            ways = [muster("tokenize", DEMO, "--ids", "-p", text), muster("tokenize", DEMO, "--ids", "-f", file.name),
                    muster("tokenize", DEMO, "--ids", "-f", "-", stdin=text), muster("tokenize", DEMO, "--ids", stdin=text)]
        self.assertGreater(len(ways[0].stdout.split()), 4)
        for way in ways[1:]:
            self.assertEqual(way.stdout, ways[0].stdout)

    def test_an_empty_prompt_is_a_prompt_and_not_standard_input(self):
        self.assertEqual(muster("tokenize", DEMO, "--ids", "-p", "", stdin="not this").stdout, "\n")

    NOVEL = (SOURCE / "models/demo/heldout/novels.txt").read_text()[:4000]
    FLOAT_DEMO = SOURCE / "models/demo/hf"

    def evaluate(self, *args):
        done = muster("eval", DEMO, "-f", "-", "--json", *args, stdin=self.NOVEL)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_eval_beats_a_uniform_guess(self):
        result = self.evaluate()
        self.assertLess(result["bits_per_byte"], 3)
        self.assertEqual(result["scored_tokens"], result["tokens"] - 1)
        self.assertNotIn("reference", result)

    def test_a_model_does_not_diverge_from_itself(self):
        beside = self.evaluate("--reference", DEMO)["reference"]
        self.assertEqual(beside["divergence_nats"], {"mean": 0, "median": 0, "p95": 0, "max": 0})
        self.assertEqual(beside["same_best_token"], 1)
        self.assertEqual(beside["ln_perplexity_delta"], 0)

    def test_eval_prices_cache_aware_routing(self):
        priced = self.evaluate("--cache-aware", "0.4", "--limit", "200", "--ctx", "512", "--chunk", "64",
                               "--ram", "136M")
        self.assertEqual(priced["scored_tokens"], 199)
        price = priced["routing_price"]
        self.assertGreater(price["replaced_choices"], 0)
        self.assertLess(price["same_choices"], 1)
        self.assertGreater(price["inexact"]["hit_rate"], price["exact"]["hit_rate"])
        self.assertEqual(price["inexact"]["bits_per_byte"], priced["bits_per_byte"])

    def test_eval_says_how_far_a_model_is_from_its_reference(self):
        result = self.evaluate("--reference", self.FLOAT_DEMO)
        beside, divergence = result["reference"], result["reference"]["divergence_nats"]
        self.assertGreater(divergence["median"], 0)
        self.assertLess(divergence["median"], divergence["p95"])
        self.assertLess(divergence["p95"], divergence["max"])
        self.assertLess(divergence["mean"], 0.01)  # 8-bit weights: bits of a percent, not of the text
        self.assertGreater(beside["same_best_token"], 0.9)
        self.assertAlmostEqual(beside["ln_perplexity_delta"], math.log(result["perplexity"] / beside["perplexity"]),
                               places=9)

    def test_the_reference_is_evaluated_as_if_it_were_alone(self):
        alone = muster("eval", self.FLOAT_DEMO, "-f", "-", "--json", stdin=self.NOVEL)
        self.assertEqual(self.evaluate("--reference", self.FLOAT_DEMO)["reference"]["perplexity"],
                         json.loads(alone.stdout)["perplexity"])

    def test_a_reference_that_cuts_the_text_otherwise_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ["config.json", "model.safetensors"]:
                os.symlink(self.FLOAT_DEMO / name, pathlib.Path(folder) / name)
            tokenizer = json.loads((self.FLOAT_DEMO / "tokenizer.json").read_text())
            tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:9]
            (pathlib.Path(folder) / "tokenizer.json").write_text(json.dumps(tokenizer))
            done = muster("eval", DEMO, "-f", "-", "--reference", folder, stdin="Once upon a time")
        self.assertEqual(done.returncode, 2)
        self.assertIn("other tokens", done.stderr)

    def test_chat_reads_lines_and_answers_each(self):
        done = muster("run", DEMO, "--chat", "-n", "5", "-q", "--seed", "1", stdin="Hello\nAnd then?\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(done.stdout.count("\n"), 2)

    def test_ctrl_c_stops_the_answer_and_still_reports(self):
        process = subprocess.Popen([PROGRAM, "run", str(DEMO), "-p", "Once", "-n", "100000", "--ctx", "2048",
                                    "--ignore-eos"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(8)  # the answer has begun
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"used per token", err)

    def test_kill_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([PROGRAM, "run", str(DEMO), "-p", "Once", "-n", "1000"], cwd=folder,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            process.stdout.read(8)  # the answer has begun
            process.kill()
            process.communicate()
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
