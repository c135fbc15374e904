#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A small JSON Schema validator: the keywords that docs/report.schema.json uses, with the standard library only.

    schema.py [--strict] SCHEMA DOCUMENT...     ("-" is standard input)

Exits with 0 if every document is valid, 1 if one is not (one line for each fault), 2 if the schema itself uses
a keyword that this validator does not know: such a keyword is never passed over in silence. --strict also
refuses properties that the schema does not mention.
"""
import json
import re
import sys

ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "examples", "default", "$comment"}
TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool) or isinstance(v, float) and v.is_integer(),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}


class SchemaError(Exception):
    """The schema itself is wrong or uses an unknown keyword."""


def equal(a, b):
    """JSON equality: true is not 1."""
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return a == b


class Validator:
    def __init__(self, schema, strict=False):
        self.root = schema
        self.strict = strict
        self.check_schema(schema, "#")

    # ---- the schema itself ----

    def check_schema(self, schema, where):
        """Refuses unknown keywords, types and references anywhere in the schema, also where no document reaches."""
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise SchemaError(f"{where}: a schema is an object or a boolean")
        for key, value in schema.items():
            if key not in ANNOTATIONS and not hasattr(self, "check_" + key.lstrip("$")):
                raise SchemaError(f"{where}: unknown keyword {key!r}")
            if key == "type":
                for name in value if isinstance(value, list) else [value]:
                    if name not in TYPES:
                        raise SchemaError(f"{where}: unknown type {name!r}")
            if key == "$ref":
                self.resolve(value)
        for key in ("properties", "$defs"):
            for name, child in schema.get(key, {}).items():
                self.check_schema(child, f"{where}/{key}/{name}")
        for key in ("items", "additionalProperties"):
            if key in schema:
                self.check_schema(schema[key], f"{where}/{key}")
        for key in ("anyOf", "prefixItems"):
            for i, child in enumerate(schema.get(key, [])):
                self.check_schema(child, f"{where}/{key}/{i}")

    def resolve(self, reference):
        if not reference.startswith("#/"):
            raise SchemaError(f"only local references are known, not {reference!r}")
        node = self.root
        for part in reference[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or part not in node:
                raise SchemaError(f"{reference!r} refers to nothing")
            node = node[part]
        return node

    # ---- documents ----

    def validate(self, value, schema=None, where="$"):
        """Yields one line for each fault of `value`."""
        schema = self.root if schema is None else schema
        if schema is True:
            return
        if schema is False:
            yield f"{where}: not allowed"
            return
        for key in schema:
            if key not in ANNOTATIONS:
                yield from getattr(self, "check_" + key.lstrip("$"))(value, schema, where)
        if self.strict and isinstance(value, dict) and "properties" in schema and "additionalProperties" not in schema:
            for name in value.keys() - schema["properties"].keys():
                yield f"{where}: {name!r} is not in the schema"

    def check_type(self, value, schema, where):
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(TYPES[name](value) for name in names):
            yield f"{where}: {short(value)} is not of type {' or '.join(names)}"

    def check_enum(self, value, schema, where):
        if not any(equal(value, allowed) for allowed in schema["enum"]):
            yield f"{where}: {short(value)} is none of the allowed values"

    def check_const(self, value, schema, where):
        if not equal(value, schema["const"]):
            yield f"{where}: {short(value)} is not {short(schema['const'])}"

    def check_required(self, value, schema, where):
        if isinstance(value, dict):
            for name in schema["required"]:
                if name not in value:
                    yield f"{where}: {name!r} is missing"

    def check_properties(self, value, schema, where):
        if isinstance(value, dict):
            for name, child in schema["properties"].items():
                if name in value:
                    yield from self.validate(value[name], child, f"{where}.{name}")

    def check_additionalProperties(self, value, schema, where):
        if isinstance(value, dict):
            for name in value.keys() - schema.get("properties", {}).keys():
                yield from self.validate(value[name], schema["additionalProperties"], f"{where}.{name}")

    def check_items(self, value, schema, where):
        if isinstance(value, list):
            for i in range(len(schema.get("prefixItems", [])), len(value)):
                yield from self.validate(value[i], schema["items"], f"{where}[{i}]")

    def check_prefixItems(self, value, schema, where):
        if isinstance(value, list):
            for i, (item, child) in enumerate(zip(value, schema["prefixItems"])):
                yield from self.validate(item, child, f"{where}[{i}]")

    def check_minItems(self, value, schema, where):
        if isinstance(value, list) and len(value) < schema["minItems"]:
            yield f"{where}: fewer than {schema['minItems']} items"

    def check_maxItems(self, value, schema, where):
        if isinstance(value, list) and len(value) > schema["maxItems"]:
            yield f"{where}: more than {schema['maxItems']} items"

    def check_minimum(self, value, schema, where):
        if TYPES["number"](value) and value < schema["minimum"]:
            yield f"{where}: {short(value)} is below {schema['minimum']}"

    def check_maximum(self, value, schema, where):
        if TYPES["number"](value) and value > schema["maximum"]:
            yield f"{where}: {short(value)} is above {schema['maximum']}"

    def check_minLength(self, value, schema, where):
        if isinstance(value, str) and len(value) < schema["minLength"]:
            yield f"{where}: shorter than {schema['minLength']}"

    def check_pattern(self, value, schema, where):
        if isinstance(value, str) and not re.search(schema["pattern"], value):
            yield f"{where}: {short(value)} does not match {schema['pattern']}"

    def check_anyOf(self, value, schema, where):
        if not any(not list(self.validate(value, child, where)) for child in schema["anyOf"]):
            yield f"{where}: {short(value)} fits none of the alternatives"

    def check_ref(self, value, schema, where):
        yield from self.validate(value, self.resolve(schema["$ref"]), where)


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def load(path):
    if path == "-":
        return json.load(sys.stdin)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main(arguments):
    strict = "--strict" in arguments
    paths = [a for a in arguments if a != "--strict"]
    if len(paths) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        validator = Validator(load(paths[0]), strict)
    except (SchemaError, ValueError, OSError) as error:
        print(f"{paths[0]}: {error}", file=sys.stderr)
        return 2
    faults = 0
    for path in paths[1:]:
        try:
            document = load(path)
        except (ValueError, OSError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            faults += 1
            continue
        for fault in validator.validate(document):
            print(f"{path}: {fault}", file=sys.stderr)
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
