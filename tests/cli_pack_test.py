#!/usr/bin/env python3
"""muster pack and muster verify as a user meets them: faults, kills, repairs.

usage: cli_pack_test.py PROGRAM SOURCE_DIR
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from cli import DEMO, GOLDENS, PROGRAM, muster


class PackTest(unittest.TestCase):
    MODEL = GOLDENS / "qwen3_moe/model.gguf"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pack = self.folder / "model.pack"

    def make(self, *args, model=None):
        done = muster("pack", model or self.MODEL, self.pack, "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def generated(self, model):
        done = muster("run", model, "--tokens", "1,2,3", "-n", "8", "--greedy", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["tokens"]

    def contents(self):
        files = {path.name: path.read_bytes() for path in self.pack.iterdir()}
        manifest = files.pop("manifest.json").decode().splitlines()
        return files, [line for line in manifest if "created" not in line and "checksum" not in line]

    def test_a_pack_runs_as_its_model_does(self):
        made = self.make()
        self.assertEqual(sum(path.stat().st_size for path in self.pack.iterdir() if path.name != "manifest.json"),
                         made["bytes"])
        self.assertEqual(self.generated(self.pack), self.generated(self.MODEL))
        there, here = (json.loads(muster("inspect", "--json", model).stdout) for model in (self.MODEL, self.pack))
        self.assertEqual(here["parameters"], there["parameters"])
        self.assertTrue(here["packed"])

    def test_a_flipped_byte_is_found_named_refused_and_repaired(self):
        self.make()
        shard = self.pack / "experts-00000.bin"
        good = bytearray(shard.read_bytes())
        bad = bytearray(good)
        bad[len(bad) // 2] ^= 1
        shard.write_bytes(bad)
        done = muster("verify", self.pack)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^experts-00000.bin: layer \d+, expert \d+ \(bytes \d+ to \d+\): ")
        damages = json.loads(muster("verify", "--json", self.pack).stdout)["damages"]
        self.assertEqual(len(damages), 1)
        self.assertLessEqual(damages[0]["offset"], len(bad) // 2)
        self.assertGreater(damages[0]["offset"] + damages[0]["bytes"], len(bad) // 2)
        run = muster("run", self.pack, "--tokens", "1,2", "-n", "1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("experts-00000.bin", run.stderr)
        other = muster("verify", self.pack, "--repair-from", GOLDENS / "olmoe/model.gguf")
        self.assertEqual(other.returncode, 2)
        done = muster("verify", self.pack, "--repair-from", self.MODEL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(shard.read_bytes(), good)
        self.assertEqual(muster("verify", self.pack).returncode, 0)

    @unittest.skipUnless(DEMO.exists(), "the demo model is not there")
    def test_a_flipped_byte_in_a_low_bit_copy_is_named_and_repaired(self):
        made = self.make("--tail", "q2_k", model=DEMO)
        self.assertEqual(made["shards"], 2)
        self.assertEqual(muster("verify", self.pack).returncode, 0)
        shard = self.pack / "copies-00000.bin"
        good = shard.read_bytes()
        shard.write_bytes(good[:70000] + bytes([good[70000] ^ 1]) + good[70001:])
        done = muster("verify", self.pack)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^copies-00000.bin: layer 0, low-bit copy of expert 1 \(bytes \d+ to \d+\): ")
        self.assertEqual(muster("verify", self.pack, "--repair-from", DEMO).returncode, 0)
        self.assertEqual(shard.read_bytes(), good)

    def test_rows_that_low_bit_copies_cannot_have_are_refused(self):
        done = muster("pack", self.MODEL, self.pack, "--tail", "q2_k")
        self.assertEqual(done.returncode, 2)
        self.assertIn("whole blocks of 256", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_missing_and_cut_files_are_repaired(self):
        self.make("--shard-size", "0.0001")
        whole = self.contents()
        (self.pack / "experts-00001.bin").unlink()
        os.truncate(self.pack / "experts-00000.bin", 5000)
        os.truncate(self.pack / "dense.bin", 10)
        (self.pack / "metadata.gguf").unlink()
        done = muster("verify", self.pack)
        self.assertEqual(done.returncode, 1)
        for name in ["experts-00000.bin", "experts-00001.bin", "dense.bin", "metadata.gguf"]:
            self.assertIn(name + ": the file", done.stdout)
        self.assertEqual(muster("verify", self.pack, "--repair-from", self.MODEL).returncode, 0)
        self.assertEqual(self.contents(), whole)

    def test_only_a_pack_is_replaced_and_only_when_forced(self):
        self.pack.mkdir()
        (self.pack / "thesis.txt").write_text("years of work")
        for args in [(), ("--force",)]:
            done = muster("pack", self.MODEL, self.pack, *args)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no expert pack", done.stderr)
        self.assertEqual([path.name for path in self.pack.iterdir()], ["thesis.txt"])
        (self.pack / "thesis.txt").unlink()
        self.make()
        self.assertEqual(muster("pack", self.MODEL, self.pack).returncode, 2)
        self.make("--force")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["model.pack"])

    def test_rubbish_is_refused(self):
        self.pack.mkdir()
        for text in ["", "{", '{"format":"muster-pack"', '{"format":"muster-pack","version":1}', "\0" * 100]:
            (self.pack / "manifest.json").write_text(text)
            (self.pack / "dense.bin").write_text("")
            for command in [("verify",), ("inspect",), ("run", "--tokens", "1")]:
                done = muster(*command, self.pack)
                self.assertEqual(done.returncode, 1, f"{command} {text}: {done.stderr}")
                self.assertIn("manifest.json", done.stderr)
        self.assertEqual(muster("verify", self.folder).returncode, 2)
        self.assertEqual(muster("pack", self.pack, self.folder / "x").returncode, 1)

    def test_a_trace_orders_the_experts(self):
        recorded = self.folder / "trace.jsonl"
        layers = json.loads(muster("inspect", "--json", self.MODEL).stdout)["layers"]
        recorded.write_text("".join(json.dumps({"token": t, "experts": [[3, 1] for _ in layers]}) + "\n"
                                    for t in range(3)))
        self.make("--order-by", recorded)
        manifest = json.loads((self.pack / "manifest.json").read_text())
        for layer in manifest["layers"]:
            offsets = sorted((e[0], e[1], i) for i, e in enumerate(layer["experts"]))
            self.assertEqual([i for _, _, i in offsets][:3], [1, 3, 0])
        self.assertEqual(self.generated(self.pack), self.generated(self.MODEL))
        recorded.write_text('{"token":0,"experts":[[1]]}\n')
        self.assertEqual(muster("pack", self.MODEL, self.folder / "y", "--order-by", recorded).returncode, 2)

    @unittest.skipUnless(DEMO.exists(), "the demo model is not there")
    def test_killed_anywhere_it_goes_on_to_the_same_bytes(self):
        self.make(model=DEMO)
        whole = self.contents()
        partial = self.pack.with_suffix(".pack.partial")
        kills = 0
        for wait in [0.01, 0.03, 0.05, 0.1, 0.2]:
            shutil.rmtree(self.pack, ignore_errors=True)
            for step in range(3):
                process = subprocess.Popen([PROGRAM, "pack", str(DEMO), str(self.pack), "-q", "-t", "1"])
                deadline = time.monotonic() + wait * (step + 1)
                while process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.002)
                process.kill()
                kills += process.wait() == -signal.SIGKILL
                if self.pack.exists():
                    break
                self.check_what_is_there_says_what_it_is(partial)
            if not self.pack.exists():
                self.make(model=DEMO)
            self.assertFalse(partial.exists())
            self.assertEqual(self.contents(), whole)
        self.assertGreater(kills, 0)

    def check_what_is_there_says_what_it_is(self, partial):
        # The manifest is written last: with it the pack is whole and lacks only its name.
        done = muster("run", partial, "--tokens", "1")
        if (partial / "manifest.json").exists():
            self.assertEqual(done.returncode, 0, done.stderr)
        elif (partial / "dense.bin").exists():
            self.assertIn("has not finished", done.stderr)

    def test_killed_before_it_has_its_name_it_is_whole_and_gets_its_name(self):
        self.make()
        whole = self.contents()
        partial = self.pack.with_suffix(".pack.partial")
        self.pack.rename(partial)
        self.check_what_is_there_says_what_it_is(partial)
        self.make()
        self.assertFalse(partial.exists())
        self.assertEqual(self.contents(), whole)
        self.pack.rename(partial)
        (partial / "manifest.json").unlink()
        self.check_what_is_there_says_what_it_is(partial)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
