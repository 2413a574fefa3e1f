#!/usr/bin/env python3
"""Copies a GGUF and gives it a made-up vocabulary, for engines that load no model without one.

  with_vocabulary.py IN.gguf OUT.gguf

Token i is written "<i>": only good for prompts given as ids.
Needs the `gguf` package.
"""
import argparse

import gguf

SKIPPED = ("GGUF.", "general.architecture", "tokenizer.", "split.")


def copy_keys(reader, writer):
    for key, field in reader.fields.items():
        if key.startswith(SKIPPED):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, inner)


def add_vocabulary(writer, size):
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"<{i}>" for i in range(size)])
    writer.add_token_types([int(gguf.TokenType.NORMAL)] * size)
    writer.add_token_merges(["< >"])  # the key must be there
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("input")
    ap.add_argument("output")
    args = ap.parse_args()
    reader = gguf.GGUFReader(args.input)
    writer = gguf.GGUFWriter(args.output, reader.fields["general.architecture"].contents())
    copy_keys(reader, writer)
    embedding = next(t for t in reader.tensors if t.name == "token_embd.weight")
    add_vocabulary(writer, int(embedding.shape[1]))
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
