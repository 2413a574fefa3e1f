"""The engines that a comparison runs: how each is called, and what its output means.

Every arm turns one run of its program into the same record:

    {"version": str, "tests": [{"kind": "prefill" | "decode", "num_tokens": int, "depth": int, "seconds": [float]}]}
"""
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile


class ArmError(Exception):
    """A run that gave no figures; says why."""


@dataclasses.dataclass
class Work:
    """What every arm is asked to time."""
    model: str
    prompt: list      # tokens of each prefill test
    generate: list    # tokens of each decode test
    depths: list
    threads: int
    repetitions: int  # in one run
    kv: str           # f16, f32 or q8
    timeout_s: float


def run(command, timeout_s, env=None):
    """Standard output of `command`, or an ArmError with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env=env)
    except FileNotFoundError as error:
        raise ArmError(f"{command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise ArmError(f"{command[0]}: no answer in {timeout_s:.0f} s") from error
    if done.returncode != 0:
        raise ArmError(f"{command[0]}: exit code {done.returncode}: {reason_in(done.stderr)}")
    return done.stdout


def reason_in(stderr):
    """The first line that speaks of an error, else the last one."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")


def parse_json(text, program):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ArmError(f"{program}: its output is not JSON: {error}") from error


def commas(numbers):
    return ",".join(str(n) for n in numbers)


class Muster:
    """`muster bench`; words behind the program are passed on."""

    def __init__(self, name, command):
        self.name, self.command = name, shlex.split(command)

    def measure(self, work):
        text = run([self.command[0], "bench", work.model, "-p", commas(work.prompt or [0]),
                    "-n", commas(work.generate or [0]), "-d", commas(work.depths), "-t", str(work.threads),
                    "-r", str(work.repetitions), "--kv", work.kv, "--json", "-q", *self.command[1:]], work.timeout_s)
        found = parse_json(text, self.command[0])
        tests = [{key: test[key] for key in ("kind", "num_tokens", "depth", "seconds")} for test in found["tests"]]
        return {"version": f"muster {found['version']}, {found['instruction_set']}", "tests": tests}


class LlamaBench:
    """A `llama-bench` of the llama.cpp family; words behind the program are passed on.

    At a depth it is asked with -d where it has that option, else with -gp, which times decode only."""

    KV = {"f16": "f16", "f32": "f32", "q8": "q8_0"}

    def __init__(self, name, command):
        self.name, self.command = name, shlex.split(command)

    def measure(self, work):
        has_depth = self.has_depth_option()
        rows = []
        if has_depth or 0 in work.depths:
            rows += self.ask(work, ["-p", commas(work.prompt or [0]), "-n", commas(work.generate or [0])]
                             + (["-d", commas(work.depths)] if has_depth else []))
        if not has_depth:
            for depth in work.depths:
                for count in work.generate:
                    if depth > 0:
                        rows += self.ask(work, ["-p", "0", "-n", "0", "-gp", f"{depth},{count}"])
        if not rows:
            raise ArmError(f"{self.command[0]}: nothing was asked that it can time")
        first = rows[0]
        return {"version": f"build {first['build_commit']} ({first['build_number']}), {first['cpu_info'].strip()}",
                "tests": [self.test(row, has_depth) for row in rows]}

    def has_depth_option(self):
        done = subprocess.run([self.command[0], "--help"], capture_output=True, text=True, timeout=60)
        return "--n-depth" in done.stdout + done.stderr

    def ask(self, work, tests):
        kv = self.KV[work.kv]
        text = run([*self.command, "-m", work.model, *tests, "-t", str(work.threads), "-r", str(work.repetitions),
                    "-ctk", kv, "-ctv", kv, "-o", "json"], work.timeout_s)
        # Some builds print a line of their own before the list.
        return parse_json(text[max(text.find("["), 0):], self.command[0])

    @staticmethod
    def test(row, has_depth):
        decode = row["n_gen"] > 0
        depth = row["n_depth"] if has_depth else (row["n_prompt"] if decode else 0)
        return {"kind": "decode" if decode else "prefill",
                "num_tokens": row["n_gen"] if decode else row["n_prompt"], "depth": depth,
                "seconds": [ns / 1e9 for ns in row["samples_ns"]]}


class NodeLlamaCpp:
    """The npm package node-llama-cpp in `folder`/node_modules.

    kernels: which of the package's builds for a processor to use, such as "haswell" for AVX2; None: its own choice."""

    SCRIPT = pathlib.Path(__file__).with_name("llama_cpp_node.mjs")

    def __init__(self, name, folder, model=None, kernels=None):
        self.name, self.folder, self.model = name, folder, model
        self.copy = copy_with_kernels(folder, kernels) if kernels else None

    def measure(self, work):
        folder = self.copy.name if self.copy else self.folder
        text = run(["node", str(self.SCRIPT), self.model or work.model, "--package", folder,
                    "-p", commas(work.prompt or [0]), "-n", commas(work.generate or [0]), "-d", commas(work.depths),
                    "-t", str(work.threads), "-r", str(work.repetitions), "--kv", work.kv], work.timeout_s)
        return parse_json(text.strip().splitlines()[-1] if text.strip() else "", "node")


def copy_with_kernels(folder, kernels):
    """A folder like `folder` whose node-llama-cpp finds only the wanted build of llama.cpp's kernels.

    Files are hard links where the file system allows it. The folder lives as long as the returned object."""
    def link(source, target):
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    copy = tempfile.TemporaryDirectory(prefix="compare-", dir=folder)
    target = pathlib.Path(copy.name) / "node_modules"
    other = shutil.ignore_patterns("*-cuda*", "*-vulkan*", "linux-arm*")
    shutil.copytree(pathlib.Path(folder) / "node_modules", target, ignore=other, copy_function=link, symlinks=True)
    builds = list(target.glob("@node-llama-cpp/*/bins/*/libggml-cpu-*.so"))
    if not any(build.name == f"libggml-cpu-{kernels}.so" for build in builds):
        names = sorted(build.name.removeprefix("libggml-cpu-").removesuffix(".so") for build in builds)
        raise ArmError(f"{folder}: node-llama-cpp has no kernels named {kernels}, only {', '.join(names)}")
    for build in builds:
        if build.name != f"libggml-cpu-{kernels}.so":
            build.unlink()
    return copy
