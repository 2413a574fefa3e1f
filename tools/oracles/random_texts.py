"""Random texts that tokenizers disagree about: always the same ones.

Each text is a few stretches of different kinds, such as words, digits of
several scripts, every kind of white space, combining marks out of order, emoji
joined by U+200D, control characters and code points that nobody has assigned.
"""

import random

WORDS = """the of Hello World don't I'LL we've HELLO camelCaseWord snake_case
x86 C++20 naïve café déjà Ünïcödé straße İstanbul ŒUVRE ﬁnal ʼn ſ'ſ O'ſ it'S
she'd THEY'RE 'tis rock'n'roll Москва Ёлка Ελλάδα ΣΊΣΥΦΟΣ العربية עִבְרִית हिन्दी
ภาษาไทย தமிழ் ქართული Ქართული հայերեն 中文字符 漢字仮名交じり文 ひらがな カタカナ
한국어 ㄱㄴㄷ ภาษา ភាសាខ្មែរ ⵜⴰⵎⴰⵣⵉⵖⵜ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ＦＵＬＬ ｗｉｄｔｈ""".split()
SPACES = (" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\v", "\f",
          "\x85", "\xa0", "\u1680", "\u180e", "\u2003", "\u2009", "\u200b",
          "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff")
DIGITS = "0123456789٣٤۵६೭๘༩０１²³¹½¾Ⅷⅻ〇〡①⑳𝟗𝟘𐒡"
SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¡§«»¿–—‘’“”…‰€₿№™→∀∑≠⌘─█▁☃♥〈〉、。「」！，？～￥"
EMOJI = ("😀", "🚀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "1️⃣", "🧑🏿‍🚀", "☺", "🫠")
MARKS = "\u0301\u0316\u0308\u0323\u0327\u0345\u20d7\u3099\u064e\u0651\u093c\u0e48\u05b0"
BASES = "aeouncAEOSZ\u212b\u1e9b\uac00\u1100\u1161\u11a8かはゲ\u0928\u0915"
CONTROLS = "\x00\x01\x07\x08\x1b\x1c\x1f\x7f\x80\x9f\xad\u061c\u200d\u200e\u202e\u2066\ufff9"
# Never assigned, or for private use; U+2FE0 and the like are still free.
UNASSIGNED = "\u0378\u2fe0\ufdd0\uffff\U0001fffe\U000e0080\ue000\U000f0000\U0010fffd\ufffd"
CODE = ("for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}", "def f(x):\n    return x**2",
        "https://example.org/a?b=c&d=%20", "{\"key\": [1, 2.50, null]}", "x = 3.14e-10;",
        "SELECT * FROM t WHERE id='7';", "/* --- */", "<p>Hi</p>", "a->b::c", "\\frac{1}{2}")


def _some(rng, source, most):
    return "".join(rng.choice(source) for _ in range(rng.randint(1, most)))


def _marked(rng):
    return "".join(rng.choice(BASES) + _some(rng, MARKS, 4) for _ in range(rng.randint(1, 4)))


def _any_letter(rng):
    """A code point of the first planes that was a letter before Unicode 13."""
    ranges = ((0x41, 0x24F), (0x370, 0x52F), (0x5D0, 0x5EA), (0x620, 0x64A), (0x905, 0x939),
              (0xE01, 0xE2E), (0x10A0, 0x10C5), (0x3041, 0x3096), (0x30A1, 0x30FA),
              (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x10400, 0x1044F), (0x20000, 0x2A6D6))
    low, high = rng.choice(ranges)
    return chr(rng.randint(low, high))


KINDS = (
    lambda rng: rng.choice(WORDS),
    lambda rng: rng.choice(WORDS),
    lambda rng: rng.choice(SPACES),
    lambda rng: _some(rng, SPACES, 6),
    lambda rng: " ",
    lambda rng: _some(rng, DIGITS, 9),
    lambda rng: _some(rng, "0123456789", 12),
    lambda rng: _some(rng, SIGNS, 5),
    lambda rng: rng.choice(SIGNS) * rng.randint(1, 9),
    lambda rng: _some(rng, EMOJI, 3),
    _marked,
    lambda rng: "".join(_any_letter(rng) for _ in range(rng.randint(1, 8))),
    lambda rng: _some(rng, CONTROLS, 3),
    lambda rng: _some(rng, UNASSIGNED, 2),
    lambda rng: rng.choice(CODE),
    lambda rng: " " * rng.randint(1, 20),
    lambda rng: rng.choice("aAxZ中あ😀 \n.0") * rng.randint(2, 40),
)


def random_texts(count=300, seed=20260101):
    rng = random.Random(seed)
    return ["".join(rng.choice(KINDS)(rng) for _ in range(rng.randint(1, 14)))
            for _ in range(count)]
