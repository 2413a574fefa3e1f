#!/usr/bin/env python3
"""Times Muster beside other engines on one GGUF: the arms take turns (A, B, C, A, B, C, ...), so that a slow moment of the
machine hits all of them. Prints medians, spreads and ratios to the first arm as markdown; --json FILE keeps every sample.

An arm is NAME=COMMAND; words behind the program are passed on:

  compare.py MODEL.gguf --muster muster=build/muster --llama-bench 'peer=/opt/llama/llama-bench -fa 1'
  compare.py MODEL.gguf --muster avx2='build/muster --isa avx2' --node llama.cpp=/opt/peer --node-kernels haswell
  compare.py MODEL.gguf --muster new=build/muster --muster old=/tmp/muster -p 0 -d 0,4096,16384

--node names a folder whose node_modules has node-llama-cpp; it needs a GGUF with a vocabulary (--node-model).
--node-kernels haswell holds it to AVX2. A llama-bench without --n-depth is asked with -gp and times no prompt behind a depth.
Exit code 1 when an arm failed in any round; its figures are those of the other rounds, and the failure is printed.
"""
import argparse
import datetime
import json
import os
import pathlib
import sys

import arms
import figures


class AddArm(argparse.Action):
    """Keeps arms in the order of the command line, whatever their kind."""

    def __call__(self, parser, namespace, value, option=None):
        name, equals, command = value.partition("=")
        if not equals or not name or not command:
            parser.error(f"{option} {value}: expected NAME=COMMAND")
        namespace.arms = [*(namespace.arms or []), (option, name, command)]


def numbers(text):
    return [int(word) for word in text.split(",") if int(word) > 0]


def depths(text):
    return sorted({int(word) for word in text.split(",")})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    for option, what in (("--muster", "a muster program"), ("--llama-bench", "a llama-bench program"),
                         ("--node", "a folder with node-llama-cpp")):
        parser.add_argument(option, dest="arms", action=AddArm, metavar="NAME=COMMAND", help=f"{what}; may repeat")
    parser.add_argument("--node-model", help="the same model with a vocabulary, for node-llama-cpp")
    parser.add_argument("--node-kernels", help="which build of llama.cpp's kernels the --node arms use, such as haswell")
    parser.add_argument("-p", "--prompt", type=numbers, default=[512], help="prompt tokens, a list; 0: none")
    parser.add_argument("-n", "--generate", type=numbers, default=[64], help="generated tokens, a list; 0: none")
    parser.add_argument("-d", "--depth", type=depths, default=[0], help="tokens in the context before, a list")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)), help="for every arm")
    parser.add_argument("-r", "--rounds", type=int, default=3, help="turns of each arm (3)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each test in one turn (3)")
    parser.add_argument("--kv", choices=["f16", "f32", "q8"], default="f16", help="cache of every arm")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one turn of an arm")
    parser.add_argument("--json", metavar="FILE", help="write everything there")
    options = parser.parse_args()
    names = [name for _, name, _ in options.arms or []]
    if not names or len(set(names)) != len(names):
        parser.error("name at least one arm, and each by a name of its own")
    return options


def make_arm(options, kind, name, command):
    if kind == "--muster":
        return arms.Muster(name, command)
    if kind == "--llama-bench":
        return arms.LlamaBench(name, command)
    return arms.NodeLlamaCpp(name, command, options.node_model, options.node_kernels)


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def take_turns(all_arms, work, rounds, failures):
    """One {arm: record or None} a round. `failures` gets a line for each turn without figures."""
    records = []
    for number in range(1, rounds + 1):
        records.append({})
        for arm in all_arms:
            load = os.getloadavg()[0]
            print(f"round {number} of {rounds}: {arm.name} (load {load:.1f})", file=sys.stderr, flush=True)
            try:
                records[-1][arm.name] = {**arm.measure(work), "load_before": load}
            except arms.ArmError as error:
                records[-1][arm.name] = None
                failures.append(f"round {number}, {arm.name}: {error}")
                print(f"  failed: {error}", file=sys.stderr, flush=True)
    return records


def versions(all_arms, records):
    """Of each arm, every version that it reported: more than one would be news."""
    return {arm.name: sorted({record[arm.name]["version"] for record in records if record[arm.name]})
            for arm in all_arms}


def wanted_tests(options):
    return [(depth, kind, count) for depth in options.depth
            for kind, counts in ((0, options.prompt), (1, options.generate)) for count in counts]


def main():
    options = parse_arguments()
    failures = []
    try:
        all_arms = [make_arm(options, *arm) for arm in options.arms]
    except arms.ArmError as error:
        sys.exit(f"compare: {error}")
    work = arms.Work(options.model, options.prompt, options.generate, options.depth, options.threads,
                     options.repetitions, options.kv, options.timeout)
    records = take_turns(all_arms, work, options.rounds, failures)
    names = [arm.name for arm in all_arms]
    lines = figures.summarize(names, records, wanted_tests(options))
    found = versions(all_arms, records)
    print(f"{pathlib.Path(options.model).name}, {options.threads} threads, {options.kv} cache, {cpu_name()}, "
          f"{options.rounds} rounds of {options.repetitions}; median (lowest to highest), ratios with their range over rounds.\n")
    for name in names:
        print(f"- {name}: {'; '.join(found[name]) or 'no figures'}")
    print("\n" + figures.markdown(names, lines))
    for failure in failures:
        print(f"\nFailed: {failure}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({
            "model": options.model, "threads": options.threads, "kv": options.kv, "cpu": cpu_name(),
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "rounds": options.rounds, "repetitions": options.repetitions,
            "commands": {name: command for _, name, command in options.arms},
            "versions": found, "tests": lines, "failures": failures, "records": records}, indent=1) + "\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
