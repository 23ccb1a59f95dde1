"""Finishes the output of the generators in Scripts/protos: adds the trait's condition around each
file and the serializers that count bytes (OndolWire/CallRecord.swift), and writes the descriptors for
gRPC's reflection as a Swift file.

    protos.py PROTOS GENERATED
"""

import base64
import pathlib
import re
import subprocess
import sys
import tempfile


def wrap(text: str) -> str:
    """The file, compiled with the traits only, with the serializers that count bytes."""
    text = text.replace("internal import GRPCProtobuf\n", "")
    text = re.sub(r"GRPCProtobuf\.Protobuf(Des|S)erializer<", r"Measured\1erializer<", text)
    head = "// Made by Scripts/protos.\n// swift-format-ignore-file\n"
    return f"{head}#if Server || Sync\n{text.rstrip()}\n#endif\n"


def descriptors(protos: pathlib.Path) -> list[tuple[str, bytes]]:
    """Each proto file's descriptor, with its lists of entries marked as maps."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        for path in protos.glob("*.proto"):
            text = re.sub(r"repeated Entry (\w+)", r"map<string, Value> \1", path.read_text())
            (folder / path.name).write_text(re.sub(r"message Entry \{[^}]*\}\n\n", "", text))
        made = []
        for path in sorted(folder.glob("*.proto")):
            out = folder / "descriptor"
            subprocess.run(
                ["protoc", "-I.", "--include_imports", f"--descriptor_set_out={out}", path.name],
                cwd=folder, check=True)
            made.append((path.name, out.read_bytes()))
        return made


def swift(files: list[tuple[str, bytes]]) -> str:
    lines = [
        "// For each proto file a FileDescriptorSet of it and of what it imports, in",
        "// base 64.",
        "",
        "package enum WireDescriptors {",
        "  package static let sets: [String: String] = [",
    ]
    for name, data in files:
        lines.append(f'    "{name}":')
        text = base64.b64encode(data).decode()
        parts = [text[start : start + 88] for start in range(0, len(text), 88)]
        lines.append("      \"\"\"\n      " + "\\\n      ".join(parts) + "\n      \"\"\",")
    return "\n".join(lines + ["  ]", "}", ""])


def main() -> None:
    protos, generated = map(pathlib.Path, sys.argv[1:])
    for path in generated.glob("*.swift"):
        path.write_text(wrap(path.read_text()))
    (generated / "descriptors.swift").write_text(wrap(swift(descriptors(protos))))


main()
