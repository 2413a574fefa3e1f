"""Arithmetic and algebra worked in steps: an endless, seeded source of documents.

  python arithmetic.py --bytes 2000 --seed 7     prints a sample
"""
import argparse
import random
from math import gcd

NAMES = ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas"]
THINGS = ["apples", "books", "coins", "pencils", "stamps", "eggs", "cards", "stones", "tickets", "plums"]


def signed(n):
    return f"+ {n}" if n >= 0 else f"- {-n}"


def addition(rng):
    a, b = rng.randint(10, 99999), rng.randint(10, 99999)
    lines = [f"Add {a} and {b}, digit by digit from the right."]
    carry, left, right, digits = 0, str(a)[::-1], str(b)[::-1], []
    for i in range(max(len(left), len(right))):
        x = int(left[i]) if i < len(left) else 0
        y = int(right[i]) if i < len(right) else 0
        total = x + y + carry
        lines.append(f"{x} + {y} + carry {carry} = {total}: write {total % 10}, carry {total // 10}.")
        digits.append(str(total % 10))
        carry = total // 10
    if carry:
        lines.append(f"The last carry {carry} goes in front.")
    lines.append(f"So {a} + {b} = {a + b}.")
    return lines


def subtraction(rng):
    a, b = sorted((rng.randint(10, 9999), rng.randint(10, 9999)), reverse=True)
    lines = [f"Subtract {b} from {a}, digit by digit from the right."]
    borrow, left, right = 0, str(a)[::-1], str(b)[::-1]
    for i in range(len(left)):
        x = int(left[i])
        y = int(right[i]) if i < len(right) else 0
        d = x - borrow - y
        if d < 0:
            lines.append(f"{x} - {borrow} - {y} is below zero: {x} + 10 - {borrow} - {y} = {d + 10}, borrow 1.")
            borrow = 1
        else:
            lines.append(f"{x} - {borrow} - {y} = {d}, borrow 0.")
            borrow = 0
    lines.append(f"So {a} - {b} = {a - b}.")
    return lines


def multiplication(rng):
    a, b = rng.randint(12, 999), rng.randint(12, 99)
    tens, ones = b // 10 * 10, b % 10
    lines = [f"Multiply {a} by {b}.", f"Split {b} into {tens} and {ones}.",
             f"{a} * {tens} = {a * tens}.", f"{a} * {ones} = {a * ones}.",
             f"{a * tens} + {a * ones} = {a * b}.", f"So {a} * {b} = {a * b}."]
    return lines


def division(rng):
    b = rng.randint(2, 12)
    a = rng.randint(b, 9999)
    lines = [f"Divide {a} by {b}, digit by digit from the left."]
    rest = 0
    for digit in str(a):
        now = rest * 10 + int(digit)
        lines.append(f"Bring down {digit}: {now} / {b} = {now // b}, rest {now} - {now // b * b} = {now % b}.")
        rest = now % b
    lines.append(f"So {a} / {b} = {a // b}, rest {rest}." if rest else f"So {a} / {b} = {a // b}.")
    return lines


def linear(rng):
    x, a, b = rng.randint(-12, 12), rng.randint(2, 12), rng.randint(-20, 20) or 5
    c = a * x + b
    verb = "Subtract" if b > 0 else "Add"
    side = "from" if b > 0 else "to"
    return [f"Solve {a}x {signed(b)} = {c}.", f"{verb} {abs(b)} {side} both sides: {a}x = {c - b}.",
            f"Divide both sides by {a}: x = {c - b} / {a} = {x}.",
            f"Check: {a} * {x} {signed(b)} = {a * x} {signed(b)} = {c}."]


def two_sided(rng):
    x, c = rng.randint(-9, 9), rng.randint(2, 9)
    a = c + rng.randint(1, 9)
    b = rng.randint(-20, 20) or 3
    d = a * x + b - c * x
    return [f"Solve {a}x {signed(b)} = {c}x {signed(d)}.",
            f"Subtract {c}x from both sides: {a - c}x {signed(b)} = {d}.",
            f"Move {b} to the right: {a - c}x = {d - b}.",
            f"Divide by {a - c}: x = {x}.",
            f"Check: {a} * {x} {signed(b)} = {a * x + b} and {c} * {x} {signed(d)} = {c * x + d}."]


def fractions(rng):
    b, d = rng.randint(2, 12), rng.randint(2, 12)
    a, c = rng.randint(1, b), rng.randint(1, d)
    common = b * d // gcd(b, d)
    top = a * (common // b) + c * (common // d)
    lines = [f"Add {a}/{b} and {c}/{d}.", f"The least common multiple of {b} and {d} is {common}.",
             f"{a}/{b} = {a * (common // b)}/{common}.", f"{c}/{d} = {c * (common // d)}/{common}.",
             f"{a * (common // b)}/{common} + {c * (common // d)}/{common} = {top}/{common}."]
    g = gcd(top, common)
    if g > 1:
        lines.append(f"Divide top and bottom by {g}: {top // g}/{common // g}.")
    lines.append(f"So {a}/{b} + {c}/{d} = {top // g}/{common // g}.")
    return lines


def percent(rng):
    p, n = rng.choice([5, 10, 15, 20, 25, 30, 40, 50, 60, 75]), rng.randint(1, 40) * 20
    return [f"What is {p} percent of {n}?", f"1 percent of {n} is {n} / 100 = {n / 100:g}.",
            f"{p} * {n / 100:g} = {p * n / 100:g}.", f"So {p} percent of {n} is {p * n / 100:g}."]


def quadratic(rng):
    r, s = rng.randint(-9, 9), rng.randint(-9, 9)
    b, c = -(r + s), r * s
    disc = b * b - 4 * c
    root = abs(r - s)
    low, high = min(r, s), max(r, s)
    lines = [f"Solve x^2 {signed(b)}x {signed(c)} = 0.",
             f"The discriminant is ({b})^2 - 4 * ({c}) = {b * b} {signed(-4 * c)} = {disc}.",
             f"Its square root is {root}."]
    if root == 0:
        return lines + [f"x = {-b} / 2 = {r}.", f"The only solution is x = {r}."]
    return lines + [f"x = ({-b} + {root}) / 2 = {-b + root} / 2 = {high}.",
                    f"x = ({-b} - {root}) / 2 = {-b - root} / 2 = {low}.",
                    f"The solutions are x = {low} and x = {high}."]


def story(rng):
    name, other = rng.sample(NAMES, 2)
    thing = rng.choice(THINGS)
    boxes, each, gone = rng.randint(2, 12), rng.randint(3, 25), rng.randint(1, 5)
    total = boxes * each
    if rng.random() < 0.5:
        return [f"{name} has {boxes} boxes with {each} {thing} each and gives {gone} {thing} to {other}.",
                f"How many {thing} does {name} have left?",
                f"In the boxes there are {boxes} * {each} = {total} {thing}.",
                f"After the gift there are {total} - {gone} = {total - gone} {thing}.",
                f"{name} has {total - gone} {thing} left."]
    more = rng.randint(2, 60)
    return [f"{name} has {each} {thing}. {other} has {more} {thing} more than {name}.",
            f"How many {thing} do they have together?",
            f"{other} has {each} + {more} = {each + more} {thing}.",
            f"Together they have {each} + {each + more} = {2 * each + more} {thing}."]


def sequence(rng):
    start, step, n = rng.randint(1, 50), rng.randint(2, 15), rng.randint(5, 9)
    terms = [start + i * step for i in range(n)]
    return [f"The sequence {', '.join(map(str, terms[:4]))} grows by {step}.",
            *[f"Term {i + 1} is {terms[i - 1]} + {step} = {terms[i]}." for i in range(4, n)],
            f"The sum of the first {n} terms is {n} * ({terms[0]} + {terms[-1]}) / 2 = {sum(terms)}."]


KINDS = [addition, subtraction, multiplication, division, linear, two_sided, fractions, percent, quadratic, story, sequence]


def documents(seed):
    """Endless documents of a few problems each."""
    rng = random.Random(seed)
    while True:
        problems = ["\n".join(rng.choice(KINDS)(rng)) for _ in range(rng.randint(3, 6))]
        yield "\n\n".join(problems) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    size = 0
    for text in documents(args.seed):
        print(text)
        size += len(text)
        if size > args.bytes:
            break
