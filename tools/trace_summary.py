#!/usr/bin/env python3
"""Checks a trace that `muster run --trace FILE` wrote and says where the time went.

usage: trace_summary.py FILE

For each zone: how often, its time in all, and its own time without the zones inside it. For the parallel regions of each name: from
the first task's begin to the last one's end, and how much of that time the threads worked; the rest they waited, or came late. Fails when the file is not a trace or when
two zones of a thread overlap and neither is inside the other: a viewer would draw nonsense.
"""
import collections
import json
import sys

ROUNDING_US = 0.002  # a time and a duration have three decimals each


class BadTrace(Exception):
    pass


def zones_of_threads(trace):
    threads = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            threads[event["tid"]].append(event)
    return threads


def own_times(zones):
    """Yields (zone, its time without the zones inside it, the zones around it); raises where they do not nest."""
    done, stack = [], []

    def close():
        zone, inside = stack.pop()
        done.append((zone, zone["dur"] - inside, [outer for outer, _ in stack]))
        if stack:
            stack[-1][1] += zone["dur"]

    for zone in sorted(zones, key=lambda z: (z["ts"], -z["dur"])):
        end = zone["ts"] + zone["dur"]
        while stack and zone["ts"] >= stack[-1][0]["ts"] + stack[-1][0]["dur"] - ROUNDING_US:
            close()
        if stack and end > stack[-1][0]["ts"] + stack[-1][0]["dur"] + ROUNDING_US:
            raise BadTrace(f"{zone} overlaps {stack[-1][0]}")
        stack.append([zone, 0.0])
    while stack:
        close()
    return done


def summarize(trace):
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    rows = []
    for tid, zones in zones_of_threads(trace).items():
        sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
        for zone, own, _ in own_times(zones):
            row = sums[zone["cat"], zone["name"]]
            row[0] += 1
            row[1] += zone["dur"]
            row[2] += own
        for (category, name), (count, total, own) in sorted(sums.items(), key=lambda item: -item[1][2]):
            rows.append({"thread": names.get(tid, str(tid)), "category": category, "name": name, "count": count, "total_us": total,
                         "own_us": own})
    return rows


def regions(trace):
    """The parallel regions: {number: (name, begin, end, time worked on all threads)}"""
    found = {}
    for zones in zones_of_threads(trace).values():
        for zone in zones:
            if zone["cat"] not in ("work", "wait"):
                continue
            end = zone["ts"] + zone["dur"]
            work = zone["dur"] if zone["cat"] == "work" else 0.0
            name, first, last, before = found.get(zone["args"]["region"], (zone["name"], zone["ts"], end, 0.0))
            found[zone["args"]["region"]] = (name, min(first, zone["ts"]), max(last, end), before + work)
    return found


def print_regions(trace):
    num_threads = sum(any(zone["cat"] == "work" for zone in zones) for zones in zones_of_threads(trace).values())
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for name, begin, end, work in regions(trace).values():
        row = sums[name]
        row[0] += 1
        row[1] += end - begin
        row[2] += work
    print(f"\n{'region':<16} {'times':>8} {'ms':>10} {'busy of ' + str(num_threads) + ' threads':>20}")
    for name, (count, length, work) in sorted(sums.items(), key=lambda item: -item[1][1]):
        print(f"{name:<16} {count:>8} {length / 1000:>10.2f} {work / (length * num_threads):>19.0%}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        trace = json.load(file)
    print(f"{'thread':<12} {'kind':<6} {'zone':<16} {'times':>8} {'ms':>10} {'own ms':>10}")
    for row in summarize(trace):
        print(f"{row['thread']:<12} {row['category']:<6} {row['name']:<16} {row['count']:>8} {row['total_us'] / 1000:>10.2f} "
              f"{row['own_us'] / 1000:>10.2f}")
    print_regions(trace)
    dropped = trace["otherData"]["dropped_zones"]
    if dropped:
        print(f"{dropped} zones did not fit and are missing")


if __name__ == "__main__":
    main()
