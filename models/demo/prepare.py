"""Gathers the five kinds of text, trains the tokenizer, writes token files.

  python prepare.py --corpus ../../../shared/corpus --wordnet /usr/share/wordnet --out DATA
                    [--heldout heldout]

Writes DATA/<kind>.train.bin (uint16 ids), DATA/tokenizer.json and
<heldout>/<kind>.txt (180 to 200 KB each, never trained on and without near
duplicates of the training text).
"""
import argparse
import hashlib
import itertools
import pathlib
import random
import re
import sysconfig

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import arithmetic

KINDS = ["novels", "poetry", "dictionary", "code", "arithmetic"]
HELDOUT_BYTES = 200_000
VOCAB = 8192
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN2_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def novels(corpus):
    """Stretches of about 8 KB, cut between paragraphs."""
    document, size = [], 0
    for paragraph in (corpus / "novels-en.txt").read_text().split("\n\n"):
        document.append(paragraph)
        size += len(paragraph)
        if size > 8000:
            yield "\n\n".join(document) + "\n\n"
            document, size = [], 0


def poetry(corpus):
    """About twenty poems a document."""
    poems = (corpus / "poetry-zh.txt").read_text().split("\n\n")
    for i in range(0, len(poems), 20):
        yield "\n\n".join(poems[i:i + 20]) + "\n\n"


PARTS = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}


def dictionary(folder):
    """WordNet's synsets as entries, in an order that mixes them, 40 a document."""
    entries = []
    for part, name in PARTS.items():
        for line in (folder / f"data.{part}").read_text().splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split()
            count = int(fields[3], 16)
            words = [re.sub(r"\(.*\)$", "", w).replace("_", " ") for w in fields[4:4 + 2 * count:2]]
            entries.append(f"{', '.join(words)} ({name}): {gloss.strip()}")
    random.Random(11).shuffle(entries)
    for i in range(0, len(entries), 40):
        yield "\n".join(entries[i:i + 40]) + "\n\n"


SKIP = {"test", "tests", "idle_test", "site-packages", "dist-packages", "encodings", "pydoc_data", "__pycache__"}


def code(folder):
    """The standard library's modules, tests and tables left out."""
    for path in sorted(folder.rglob("*.py")):
        if SKIP & set(path.relative_to(folder).parts):
            continue
        text = path.read_bytes().decode("utf-8", "ignore")
        if 200 < len(text) < 300_000:
            yield text


def arithmetic_documents(_):
    size = 0
    for text in arithmetic.documents(7):
        yield text
        size += len(text)
        if size > 8_000_000:
            return


def split(documents, seed):
    """Splits documents into those to train on and about 200 KB to hold out."""
    documents = list(dict.fromkeys(documents))
    random.Random(seed).shuffle(documents)
    heldout, size = [], 0
    while size < HELDOUT_BYTES:
        candidate = documents.pop()
        if len(candidate.encode()) > HELDOUT_BYTES // 4:
            documents.insert(0, candidate)
            continue
        heldout.append(candidate)
        size += len(candidate.encode())
    return documents, heldout


def near_duplicates(units, train, gram, most):
    """The units of which more than a share `most` of the `gram`-character strings occur in `train`."""
    seen = {u[i:i + gram]: False for u in units for i in range(len(u) - gram + 1)}
    for document in train:
        for i in range(len(document) - gram + 1):
            if document[i:i + gram] in seen:
                seen[document[i:i + gram]] = True

    def share(unit):
        strings = [unit[i:i + gram] for i in range(len(unit) - gram + 1)]
        return sum(map(seen.get, strings)) / max(1, len(strings))

    return {u for u in units if share(u) > most}


# What is compared (a document's parts, or with None the whole of it), the
# length of the strings compared, and the share of them that may be known.
NEAR = {"novels": (None, 24, 0.25), "poetry": ("\n\n", 6, 0.5), "dictionary": ("\n", 24, 0.5),
        "code": (None, 40, 0.25)}


def drop_near_duplicates(kind, heldout, train):
    separator, gram, most = NEAR[kind]
    parts = [d.split(separator) if separator else [d] for d in heldout]
    known = near_duplicates([u for p in parts for u in p if u], train, gram, most)
    kept = [[u for u in p if u not in known] for p in parts]
    return [(separator or "").join(p) for p in kept]


def unseen_problems(heldout, train):
    """Held-out problems that no training document has; a second seed makes up the size."""
    seen = {p.strip() for d in train for p in d.split("\n\n")}
    problems, size = [], 0
    for document in itertools.chain(heldout, arithmetic.documents(8)):
        for problem in map(str.strip, document.split("\n\n")):
            if problem not in seen:
                seen.add(problem)
                problems.append(problem + "\n\n")
                size += len(problems[-1])
        if size >= HELDOUT_BYTES:
            return problems


def train_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2_SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIALS, max_token_length=24,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, default=pathlib.Path("../../../shared/corpus"))
    parser.add_argument("--wordnet", type=pathlib.Path, default=pathlib.Path("/usr/share/wordnet"))
    parser.add_argument("--stdlib", type=pathlib.Path, default=pathlib.Path(sysconfig.get_paths()["stdlib"]))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--heldout", type=pathlib.Path, default=pathlib.Path("heldout"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    args.heldout.mkdir(parents=True, exist_ok=True)
    sources = {"novels": novels(args.corpus), "poetry": poetry(args.corpus), "dictionary": dictionary(args.wordnet),
               "code": code(args.stdlib), "arithmetic": arithmetic_documents(None)}
    train = {}
    for kind in KINDS:
        train[kind], heldout = split(sources[kind], seed=KINDS.index(kind) + 1)
        if kind == "arithmetic":
            heldout = unseen_problems(heldout, train[kind])
        else:
            heldout = drop_near_duplicates(kind, heldout, train[kind])
        (args.heldout / f"{kind}.txt").write_text("".join(heldout), newline="")
    # Characters of each kind that the vocabulary is made from.
    share = {"novels": 5e6, "poetry": 3e6, "dictionary": 4e6, "code": 6e6, "arithmetic": 5e5}
    sample = []
    for kind in KINDS:
        size = 0
        for document in train[kind]:
            sample.append(document)
            size += len(document)
            if size > share[kind]:
                break
    tokenizer = train_tokenizer(sample)
    tokenizer.save(str(args.out / "tokenizer.json"))
    end = tokenizer.token_to_id("<|endoftext|>")
    for kind in KINDS:
        ids = []
        for encoding in tokenizer.encode_batch(train[kind]):
            ids += encoding.ids + [end]
        array = np.array(ids, np.uint16)
        array.tofile(args.out / f"{kind}.train.bin")
        size = sum(len(d.encode()) for d in train[kind])
        print(f"{kind}: {len(train[kind])} documents, {size} bytes, {len(ids)} tokens, "
              f"{size / len(ids):.2f} bytes a token, sha256 {hashlib.sha256(array.tobytes()).hexdigest()[:12]}")


if __name__ == "__main__":
    main()
