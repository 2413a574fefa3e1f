#!/usr/bin/env python3
"""Experts in tiers as a user meets them: who stays, what is prewarmed, what is reported.

usage: cli_tiers_test.py PROGRAM SOURCE_DIR
"""
import json
import pathlib
import sys
import tempfile
import unittest

from cli import DEMO, muster

RAM = "132M"  # the program's share, and some of the demo model's experts


class TiersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.uses = self.folder / "muster/expert-uses"

    def run_model(self, *args, ram=RAM, tokens=12, context=256, model=DEMO):
        return muster("run", model, "-p", "It was a dark night", "-n", str(tokens), "--greedy", "--json", "--ctx", str(context),
                      "--chunk", "16", "--ram", ram, *args, env={"XDG_CACHE_HOME": str(self.folder)})

    def report(self, *args, **sizes):
        done = self.run_model(*args, **sizes)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertIsNotNone(report["tiers"], "the model fits: take less memory")
        return report

    def test_rules_of_the_pool_change_no_token(self):
        plain = self.report()
        ruled = self.report("--load-after", "3", "--unload-idle", "0.001", "--pin-experts", "0:1,0:2", "--never-keep", "1:*")
        self.assertEqual(ruled["tokens"], plain["tokens"])
        answer = ruled["tiers"]["answer"]
        self.assertGreater(answer["idle_evictions"] + answer["transient_evictions"], 0)
        self.assertEqual(plain["tiers"]["answer"]["transient_evictions"], 0)

    def test_reading_ahead_changes_no_token_and_is_counted(self):
        answers = {ahead: self.report("--prefetch", ahead) for ahead in ["off", "auto", "1", "3"]}
        for ahead, report in answers.items():
            self.assertEqual(report["tokens"], answers["off"]["tokens"])
            answer = report["tiers"]["answer"]
            # By itself it begins with none.
            self.assertEqual(report["tiers"]["prefetch"]["layers_ahead"], int(ahead) if ahead.isdigit() else 0)
            self.assertEqual(answer["called_experts"] > 0, ahead.isdigit())
            self.assertLessEqual(answer["foreseen_experts"], answer["called_experts"])
            self.assertEqual(answer["guessed_bytes"] > 0, ahead.isdigit())
            self.assertLessEqual(answer["wasted_guess_bytes"], answer["guessed_bytes"])

    def test_what_reading_ahead_is_worth_is_found_out_by_itself(self):
        report = self.report("--ignore-eos", tokens=340, context=512)
        prefetch = report["tiers"]["prefetch"]
        self.assertEqual(len(prefetch["trial_step_seconds"]), 3)
        self.assertGreater(min(prefetch["trial_step_seconds"]), 0)

    def test_a_small_model_that_fits_is_loaded_first(self):
        for args in [(), ("--preload",)]:
            self.assertIsNone(json.loads(self.run_model(*args, ram="2G").stdout)["tiers"])

    def test_lists_come_from_files_too(self):
        names = self.folder / "pins"
        names.write_text("# two\n0:1\n0:2\n")
        self.report("--pin-experts", names)

    def test_what_makes_no_sense_is_said(self):
        for args, reason in [(("--pin-experts", "0:1,99:0"), "99:0"), (("--never-keep", "x"), "LAYER:EXPERT"),
                             (("--pin-experts", "0:1", "--never-keep", "0:*"), "pinned and never kept"),
                             (("--pin-experts", "0:*,1:*,2:*,3:*,4:*,5:*"), "beside the pinned ones'"),
                             (("--unload-idle", "soon"), "--unload-idle"), (("--unload-idle", "-1"), "--unload-idle"),
                             (("--load-after", "0"), "--load-after"), (("--prewarm", "/no/trace"), "/no/trace"), (("--prefetch", "4"), "--prefetch")]:
            done = self.run_model(*args)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertIn(reason, done.stderr, args)

    def test_the_last_run_warms_the_next(self):
        cold = self.report()
        self.assertEqual(len(list(self.uses.iterdir())), 1)
        warm = self.report("--prewarm", "last")
        self.assertEqual(warm["tokens"], cold["tokens"])
        self.assertGreater(warm["tiers"]["prompt"]["hits"], cold["tiers"]["prompt"]["hits"])

    def packed(self, *args):
        pack = self.folder / "model.pack"
        done = muster("pack", DEMO, pack, "-q", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pack

    def test_low_bit_copies_are_used_only_when_asked_for(self):
        pack = self.packed("--tail", "q2_k")
        plain = self.report()
        self.assertEqual(self.report(model=pack)["tokens"], plain["tokens"])
        self.assertEqual(self.report("--tail", "0", model=pack)["tokens"], plain["tokens"])
        tail = self.report("--tail", "0.5", tokens=60, model=pack)["tiers"]
        self.assertGreater(tail["answer"]["tail_experts"], 0)
        self.assertGreater(tail["answer"]["tail_bytes"], 0)
        self.assertLess(tail["answer"]["tail_bytes"], tail["answer"]["fetched_bytes"])
        self.assertEqual(tail["prompt"]["tail_experts"], 0)
        text = muster("run", pack, "-p", "It was a dark night", "-n", "60", "--ctx", "256", "--chunk", "16", "--ram", RAM, "--tail", "0.5")
        self.assertIn("from their low-bit copies", text.stderr)
        self.assertIn("--tail changes nothing", self.run_model("--tail", "0.5", ram="2G", model=pack).stderr)

    def test_eval_prices_tails(self):
        done = muster("eval", self.packed("--tail", "q3_k"), "-f", DEMO.parent / "heldout/novels.txt", "--limit", "200", "--ctx", "512",
                      "--chunk", "64", "--ram", "134M", "--tail", "0.5", "--json", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        price = json.loads(done.stdout)["routing_price"]
        self.assertGreater(price["tail_share"], 0)
        self.assertEqual(price["replaced_choices"], 0)
        self.assertGreater(price["divergence_nats"]["mean"], 0)
        self.assertLess(price["inexact"]["fetched_bytes_per_token"], price["exact"]["fetched_bytes_per_token"])

    def test_a_model_without_low_bit_copies_says_how_to_make_them(self):
        for model in [DEMO, self.packed()]:
            for ram in [RAM, "2G"]:
                done = self.run_model("--tail", "0.3", model=model, ram=ram)
                self.assertEqual(done.returncode, 2)
                self.assertIn("muster pack MODEL OUT/ --tail", done.stderr)

    def kept_uses(self):
        file, = self.uses.iterdir()
        lines = file.read_text().splitlines()[2:-1]
        return [int(count) for line in lines for count in line.split()]

    def test_what_was_kept_before_fades(self):
        self.report()
        once = self.kept_uses()
        self.report()
        self.assertEqual(self.kept_uses(), [count + count // 2 for count in once])

    def test_off_keeps_nothing(self):
        self.report("--prewarm", "off")
        self.assertFalse(self.uses.exists())

    def test_a_broken_file_is_left_aside_with_a_note(self):
        self.report()
        file, = self.uses.iterdir()
        file.write_text(file.read_text()[:-9])
        done = self.run_model("--prewarm", "last")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not prewarmed", done.stderr)
        self.assertIn(file.name, done.stderr)

    def test_a_recorded_routing_warms_a_run(self):
        trace = self.folder / "routing.jsonl"
        cold = self.report("--record-routing", trace)
        warm = self.report("--prewarm", trace)
        self.assertEqual(warm["tokens"], cold["tokens"])
        self.assertGreater(warm["tiers"]["prompt"]["hits"], cold["tiers"]["prompt"]["hits"])
        trace.write_text('{"token":0,"experts":[[0]]}\n')
        self.assertIn("another shape", self.run_model("--prewarm", trace).stderr)

    def test_residency_is_reported(self):
        residency = self.report()["tiers"]["residency"]
        for name in ["lifetime", "idle_before_eviction", "reuse_gap"]:
            histogram = residency[name]
            self.assertEqual(sum(bucket["count"] for bucket in histogram["buckets"]), histogram["count"])
            self.assertLessEqual(histogram["median_at_most"], histogram["p90_at_most"])
        self.assertGreater(residency["reuse_gap"]["count"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
