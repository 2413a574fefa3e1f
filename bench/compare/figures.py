"""From the samples of all rounds to medians, spreads and ratios, as markdown and JSON."""
import statistics


def key_of(test):
    return (test["depth"], 0 if test["kind"] == "prefill" else 1, test["num_tokens"])


def name_of(key):
    depth, kind, count = key
    return f"{'pp' if kind == 0 else 'tg'}{count}" + (f" behind {depth}" if depth else "")


def speeds_of(record, key):
    """Tokens a second of each sample of one run; empty when the run did not time this."""
    return [key[2] / s for test in record["tests"] if key_of(test) == key for s in test["seconds"]]


def spread(samples):
    return {"median": statistics.median(samples), "least": min(samples), "most": max(samples),
            "samples": samples} if samples else None


def ratio_of(mine, theirs):
    """Of the medians of all samples; its range is over rounds that both have, each with its own medians."""
    all_mine, all_theirs = sum(mine, []), sum(theirs, [])
    if not all_mine or not all_theirs:
        return None
    rounds = [statistics.median(a) / statistics.median(b) for a, b in zip(mine, theirs) if a and b]
    return {"ratio": statistics.median(all_mine) / statistics.median(all_theirs),
            "least": min(rounds, default=None), "most": max(rounds, default=None)}


def summarize(arms, rounds, wanted):
    """arms: names, the first is what the others are compared with. rounds: one {arm: record or None} each.
    wanted: the keys of all tests that were asked for, so that a missing figure shows as missing."""
    lines = []
    for key in wanted:
        by_arm = {arm: [speeds_of(r[arm], key) if r.get(arm) else [] for r in rounds] for arm in arms}
        lines.append({
            "test": name_of(key),
            "tokens_per_second": {arm: spread(sum(by_arm[arm], [])) for arm in arms},
            "ratio": {arm: ratio_of(by_arm[arms[0]], by_arm[arm]) for arm in arms[1:]}})
    return lines


def cell(figures):
    if figures is None:
        return "not measured"
    return f"{figures['median']:.1f} ({figures['least']:.1f} to {figures['most']:.1f})"


def ratio_cell(figures):
    if figures is None:
        return "-"
    text = f"{figures['ratio']:.2f}"
    return text if figures["least"] is None else text + f" ({figures['least']:.2f} to {figures['most']:.2f})"


def markdown(arms, lines):
    head = ["tokens/s", *arms, *(f"{arms[0]} / {arm}" for arm in arms[1:])]
    rows = [head, ["---"] * len(head)]
    for line in lines:
        rows.append([line["test"], *(cell(line["tokens_per_second"][arm]) for arm in arms),
                     *(ratio_cell(line["ratio"][arm]) for arm in arms[1:])])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
