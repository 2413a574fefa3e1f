#!/usr/bin/env python3
"""Copies a GGUF with every weight as float32: the same model to an engine that rounds nothing else.

  float32_gguf.py IN.gguf OUT.gguf

Needs the `gguf` package.
"""
import argparse

import gguf

SKIPPED = ("GGUF.", "general.architecture", "general.file_type", "split.")


def copy_keys(reader, writer):
    for key, field in reader.fields.items():
        if key.startswith(SKIPPED):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, inner)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input")
    parser.add_argument("output")
    args = parser.parse_args()
    reader = gguf.GGUFReader(args.input)
    writer = gguf.GGUFWriter(args.output, reader.fields["general.architecture"].contents())
    copy_keys(reader, writer)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
