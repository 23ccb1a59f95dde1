"""Values and conditions of the stand-in server.

Values are typed JSON in canonical form, as on the wire, so nothing needs conversion.
"""

import json
import re
import struct
import time
import zlib
from datetime import datetime, timezone


def integer(number):
    return {"$numberLong": str(number)}


def double(number):
    return {"$numberDouble": repr(float(number))}


def moment(seconds=None):
    at = datetime.fromtimestamp(time.time() if seconds is None else seconds, timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Refusal(Exception):
    """An error in the wire's form."""

    def __init__(self, status, code, message, **more):
        super().__init__(message)
        self.status = status
        self.body = {"code": code, "message": message, **more}


def png(width, height, colour):
    """A picture with a gradient and a disc, drawn here so that no file has to be kept."""
    rows = b""
    for y in range(height):
        row = b"\0"
        for x in range(width):
            inside = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 3) ** 2
            fade = 0.55 + 0.45 * y / height
            row += bytes(min(255, int(c * (1.25 if inside else fade))) for c in colour)
        rows += row

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


# MARK: values

RANKS = {
    "null": 0,
    "boolean": 1,
    "number": 2,
    "timestamp": 3,
    "string": 4,
    "bytes": 5,
    "blob": 6,
    "reference": 7,
    "geoPoint": 8,
    "array": 9,
    "vector": 10,
    "map": 11,
}
MARKS = {
    "$numberLong": "integer",
    "$numberDouble": "double",
    "$date": "timestamp",
    "$binary": "bytes",
    "$blob": "blob",
    "$reference": "reference",
    "$geoPoint": "geoPoint",
    "$vector": "vector",
    "$literal": "map",
}


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "double"
    if len(value) == 1 and next(iter(value)) in MARKS:
        return MARKS[next(iter(value))]
    return "map"


def canonical(value):
    """Plain numbers get their type. The rest of the relaxed form is the same."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return double(value)
    if isinstance(value, list):
        return [canonical(element) for element in value]
    if kind(value) != "map":
        return value
    return {name: canonical(inner) for name, inner in value.items()}


def sort_key(value):
    what = kind(value)
    if what in ("integer", "double"):
        text = next(iter(value.values()))
        return (RANKS["number"], float(text))
    content = value if what in ("null", "boolean", "string", "array", "map") else next(iter(value.values()))
    if what in ("array", "map", "blob", "bytes", "geoPoint", "vector"):
        content = json.dumps(content, sort_keys=True)
    return (RANKS[what], content if content is not None else 0)


def names_of(path):
    return [
        re.sub(r"\\(.)", r"\1", part[1:-1]) if part.startswith("`") else part
        for part in re.findall(r"`(?:[^`\\]|\\.)*`|[^.]+", path)
    ]


def get(fields, path, default=None):
    value = fields
    for name in names_of(path):
        if not isinstance(value, dict):
            return default
        value = value.get("$literal", value)
        if name not in value:
            return default
        value = value[name]
    return value


# MARK: conditions

OPERATORS = [
    "==",
    "!=",
    "<=",
    ">=",
    "=",
    "<",
    ">",
    "not in",
    "in",
    "array-contains-any",
    "array-contains",
    "starts-with",
]
FIELD = re.compile(r"(?:`(?:[^`\\]|\\.)*`|[\w$]+)(?:\.(?:`(?:[^`\\]|\\.)*`|[\w$]+))*")


class Condition:
    """Reads a condition in a small part of the real grammar, enough for writing pages."""

    def __init__(self, text):
        self.text, self.at = text, 0
        self.tree = self.either()
        self.space()
        if self.at < len(text):
            self.fail('"and", "or" or the end must follow here')

    def fail(self, message, at=None):
        offset = len(self.text[: self.at if at is None else at].encode())
        raise Refusal(400, "invalidArgument", message, offset=offset)

    def space(self):
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def word(self, word):
        self.space()
        if re.match(re.escape(word) + r"(?![\w-])", self.text[self.at :], re.I):
            self.at += len(word)
            return True
        return False

    def joined(self, inner, word, name):
        parts = [inner()]
        while self.word(word):
            parts.append(inner())
        return parts[0] if len(parts) == 1 else {name: parts}

    def either(self):
        return self.joined(lambda: self.joined(self.one, "and", "and"), "or", "or")

    def one(self):
        self.space()
        if self.text[self.at : self.at + 1] == "(":
            self.at += 1
            inner = self.either()
            self.space()
            if self.text[self.at : self.at + 1] != ")":
                self.fail('a ")" is missing')
            self.at += 1
            return inner
        match = FIELD.match(self.text, self.at)
        if not match:
            self.fail("a field is missing")
        self.at = match.end()
        self.space()
        for operator in OPERATORS:
            if self.text[self.at :].lower().startswith(operator):
                self.at += len(operator)
                break
        else:
            self.fail(
                "an operator is missing: = != < <= > >= in, not in, array-contains,"
                " array-contains-any or starts-with"
            )
        return {"field": match.group(), "op": "=" if operator == "==" else operator, "value": self.value()}

    def value(self):
        self.space()
        rest = self.text[self.at :]
        if rest.startswith("'"):
            end = rest.find("'", 1)
            if end < 0:
                self.fail("this is not a value")
            self.at += end + 1
            return rest[1:end]
        try:
            value, length = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            self.fail("this is not a value; texts stand in quotes" if rest else "a value is missing")
        self.at += length
        return canonical(value)


MISSING = object()


def meets(tree, document):
    if tree is None:
        return True
    if "and" in tree:
        return all(meets(part, document) for part in tree["and"])
    if "or" in tree:
        return any(meets(part, document) for part in tree["or"])
    found = get(document["fields"], tree["field"], MISSING)
    wanted, operator = tree["value"], tree["op"]
    if found is MISSING:
        return False
    if operator in ("in", "not in"):
        return any(sort_key(found) == sort_key(one) for one in wanted) == (operator == "in")
    if operator == "starts-with":
        return isinstance(found, str) and found.startswith(wanted)
    if operator.startswith("array-contains"):
        wanted = wanted if operator.endswith("any") else [wanted]
        return isinstance(found, list) and any(sort_key(a) == sort_key(b) for a in found for b in wanted)
    left, right = sort_key(found), sort_key(wanted)
    if operator in ("=", "!="):
        return (left == right) == (operator == "=")
    if left[0] != right[0]:
        return False
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
