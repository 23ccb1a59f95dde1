#!/usr/bin/env python3
"""Lists the symbols of the toolchain's modules that a build uses and that older systems lack.

    newer_symbols.py TOOLCHAIN INDEX ROOT SYSTEM=VERSION...

TOOLCHAIN is the folder above the compiler's bin, INDEX the index that a build of the package at
ROOT has left (debug builds do). The compiler records there which symbols each line uses, including
the exact overload, and `swift-symbolgraph-extract` reports the version that introduced each. On
Linux the compiler itself ignores that. Prints lines of words separated by tabs:

    file PATH                           a source file that the index knows
    newer PATH LINE SYMBOL SINCE        a use of a symbol that one of the systems lacks
    unstated PATH LINE SYMBOL NAME      a use of a symbol of Foundation or Dispatch of which nothing is
                                        said; NAME is the outermost type it belongs to, or, where
                                        that is another module's, the symbol itself

Exits with 2 and a sentence if something that it needs is missing.
"""

import concurrent.futures
import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile

IMPORT = re.compile(
    r"^ *(?:@\w+(?:\([\w, ]*\))? +)*(?:\w+ +)?import +(?:(?:struct|class|enum|func) +)?(\w+)", re.M
)
# Modules that every file may use without an import, and those that Foundation brings along.
ALWAYS = {"Swift", "_Concurrency", "_StringProcessing"}
BEHIND = {"Foundation": {"FoundationEssentials", "FoundationInternationalization"}}
# Many symbols in them have no annotation on Linux.
OPEN = {"Foundation", "FoundationEssentials", "FoundationInternationalization", "Dispatch"}
# On Linux, Foundation's newer half is built with this version for everything from that version on.
FOUNDATION_SINCE = {"macOS": 15, "iOS": 18, "tvOS": 18, "watchOS": 11, "visionOS": 2}


def fail(sentence):
    print(sentence, file=sys.stderr)
    sys.exit(2)


# The index


class Text(ctypes.Structure):
    """A piece of text that the library lends."""

    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    def __str__(self):
        return ctypes.string_at(self.start, self.length).decode() if self.length else ""


PLACE = ctypes.c_void_p
EACH = ctypes.CFUNCTYPE(ctypes.c_bool, PLACE, PLACE)
EACH_NAME = ctypes.CFUNCTYPE(ctypes.c_bool, PLACE, Text)
DEPENDENCY_IS_RECORD = 2

FUNCTIONS = {
    "store_create": (PLACE, [ctypes.c_char_p, PLACE]),
    "store_units_apply_f": (ctypes.c_bool, [PLACE, ctypes.c_uint, PLACE, EACH_NAME]),
    "unit_reader_create": (PLACE, [PLACE, ctypes.c_char_p, PLACE]),
    "unit_reader_dispose": (None, [PLACE]),
    "unit_reader_get_main_file": (Text, [PLACE]),
    "unit_reader_dependencies_apply_f": (ctypes.c_bool, [PLACE, PLACE, EACH]),
    "unit_dependency_get_kind": (ctypes.c_int, [PLACE]),
    "unit_dependency_get_name": (Text, [PLACE]),
    "unit_dependency_get_filepath": (Text, [PLACE]),
    "record_reader_create": (PLACE, [PLACE, ctypes.c_char_p, PLACE]),
    "record_reader_dispose": (None, [PLACE]),
    "record_reader_occurrences_apply_f": (ctypes.c_bool, [PLACE, PLACE, EACH]),
    "occurrence_get_symbol": (PLACE, [PLACE]),
    "occurrence_get_line_col": (None, [PLACE, PLACE, PLACE]),
    "symbol_get_usr": (Text, [PLACE]),
}


class Index:
    """The symbols that the files of a package use, by the compiler's names."""

    def __init__(self, library, folder):
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError as error:
            fail(f"the toolchain's library for indexes cannot be loaded: {error}")
        self.call = {}
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(loaded, "indexstore_" + name)
            function.restype, function.argtypes = result, arguments
            self.call[name] = function
        self.store = self.call["store_create"](str(folder).encode(), None)
        if not self.store:
            fail(f"{folder} is no index")

    def each(self, function, place, body):
        self.call[function](place, None, EACH(lambda _, found: body(found) or True))

    def units(self):
        names = []
        take = EACH_NAME(lambda _, name: names.append(str(name)) or True)
        self.call["store_units_apply_f"](self.store, 0, None, take)
        return names

    def file(self, unit, root):
        """The source file of a unit below `root` with the names of its records, or None."""
        reader = self.call["unit_reader_create"](self.store, unit.encode(), None)
        if not reader:
            return None, []
        main, records = str(self.call["unit_reader_get_main_file"](reader)), []

        def take(dependency):
            # Other records belong to imported modules.
            if (
                self.call["unit_dependency_get_kind"](dependency) == DEPENDENCY_IS_RECORD
                and str(self.call["unit_dependency_get_filepath"](dependency)) == main
            ):
                records.append(str(self.call["unit_dependency_get_name"](dependency)))

        file = pathlib.Path(main)
        is_ours = file.is_relative_to(root) and not file.relative_to(root).parts[0].startswith(".")
        # A deleted file leaves its unit behind.
        if is_ours and file.suffix == ".swift" and file.exists():
            self.each("unit_reader_dependencies_apply_f", reader, take)
        else:
            file = None
        self.call["unit_reader_dispose"](reader)
        return file, records

    def uses(self, record):
        """Each symbol's name and the line of its use."""
        reader = self.call["record_reader_create"](self.store, record.encode(), None)
        if not reader:
            fail(f"the index lacks the record {record}")
        found, line = [], ctypes.c_uint()

        def take(occurrence):
            symbol = self.call["occurrence_get_symbol"](occurrence)
            name = str(self.call["symbol_get_usr"](symbol))
            self.call["occurrence_get_line_col"](occurrence, ctypes.byref(line), None)
            found.append((name, line.value))

        self.each("record_reader_occurrences_apply_f", reader, take)
        self.call["record_reader_dispose"](reader)
        return found


# The toolchain's report


def version(introduced):
    return (introduced.get("major", 0), introduced.get("minor", 0))


def since(symbol, module, systems):
    """The first system that lacks the symbol, as words; "" if all have it; None if nothing is
    known."""
    stated = [
        (entry["domain"], version(entry["introduced"]))
        for entry in symbol.get("availability", [])
        if entry.get("domain") in systems and "introduced" in entry
    ]
    if not stated and module in OPEN:
        return None
    for system, first in stated:
        if module in OPEN and module != "Dispatch" and first[0] >= FOUNDATION_SINCE[system]:
            return f"{system} {first[0]}.{first[1]} or any later"
        if first > systems[system]:
            return f"{system} {first[0]}.{first[1]}"
    return ""


def statements(toolchain, module, systems):
    """For each symbol that some system may lack: its path and its availability."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            toolchain / "bin/swift-symbolgraph-extract", "-module-name", module, "-target", target(toolchain),
            "-output-dir", folder, "-minimum-access-level", "public", "-skip-synthesized-members",
            "-omit-extension-block-symbols", "-skip-inherited-docs",
        ]  # fmt: skip
        run = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        graphs = sorted(pathlib.Path(folder).glob("*.symbols.json"))
        if run.returncode != 0 or not graphs:
            fail(f"no symbols of {module}: {run.stderr}")
        found = {}
        for graph in graphs:
            for symbol in json.loads(graph.read_bytes())["symbols"]:
                if (said := since(symbol, module, systems)) != "":
                    path = symbol["pathComponents"]
                    name = ".".join(path)
                    # Extensions of other modules' types have graphs of their own.
                    own = name if "@" in graph.name else path[0]
                    found[symbol["identifier"]["precise"]] = (name, said, own)
        return found


def target(toolchain):
    words = [str(toolchain / "bin/swiftc"), "-print-target-info"]
    info = subprocess.run(words, capture_output=True, text=True)
    if info.returncode != 0:
        fail(f"the compiler does not say what it builds for: {info.stderr}")
    return json.loads(info.stdout)["target"]["triple"]


def modules(toolchain, files):
    """The toolchain's modules that the files may use."""
    named = set(ALWAYS)
    for file in files:
        named.update(IMPORT.findall(file.read_text()))
    for module, others in BEHIND.items():
        if module in named:
            named |= others
    folders = (toolchain / "lib/swift").glob("*/*.swiftmodule")
    return sorted(named & {folder.stem for folder in folders})


def main():
    if len(sys.argv) < 5:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    toolchain, folder, root = (pathlib.Path(place).resolve() for place in sys.argv[1:4])
    systems = {}
    for word in sys.argv[4:]:
        system, _, number = word.partition("=")
        major, _, minor = number.partition(".")
        systems[system] = (int(major), int(minor or 0))
    libraries = sorted((toolchain / "lib").glob("libIndexStore.*"))
    if not libraries:
        fail(f"{toolchain} has no library for indexes")

    index = Index(libraries[0], folder)
    files = [found for unit in index.units() if (found := index.file(unit, root))[0]]
    wanted = modules(toolchain, {file for file, _ in files})
    said = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda module: statements(toolchain, module, systems), wanted):
            said.update(found)

    lines = set()
    for file, records in files:
        path = file.relative_to(root)
        lines.add(("file", str(path)))
        for name, line in (use for record in records for use in index.uses(record)):
            if name in said:
                symbol, first, own = said[name]
                kind, last = ("unstated", own) if first is None else ("newer", first)
                lines.add((kind, str(path), line, symbol, last))
    for line in sorted(lines, key=str):
        print("\t".join(str(word) for word in line))


if __name__ == "__main__":
    main()
