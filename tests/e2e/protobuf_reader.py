# SPDX-License-Identifier: GPL-2.0-only
"""Reads protobuf files by Google's own library, and prints them as JSON: protobuf_reader.py SCHEMA MESSAGE < FILE

A program of its own because the library is there for the system's Python only (Debian: python3-protobuf,
protobuf-compiler).
"""
import gc
import json
import os
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def plain(message):
    """Fields that are set; repeated ones as lists. Unknown fields would be lost, so there must be none."""
    result = {}
    for field, value in message.ListFields():
        repeated = field.label == field.LABEL_REPEATED
        if field.type == field.TYPE_MESSAGE:
            value = [plain(item) for item in value] if repeated else plain(value)
        elif repeated:
            value = list(value)
        result[field.name] = value
    return result


def main():
    schema, name = sys.argv[1:]
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["protoc", "--proto_path", os.path.dirname(schema), "--descriptor_set_out", file.name, schema],
                       check=True)
        described = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for item in described.file:
        pool.Add(item)
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, "GetMessageClass"):
        kind = message_factory.GetMessageClass(descriptor)
    else:
        kind = message_factory.MessageFactory(pool).GetPrototype(descriptor)
    message = kind.FromString(sys.stdin.buffer.read())
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        sys.exit(f"{name} has fields that {schema} does not name")
    gc.disable()  # nothing here is garbage, and looking for it takes most of the time
    sys.stdout.write(json.dumps(plain(message)))


if __name__ == "__main__":
    main()
