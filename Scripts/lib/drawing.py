"""Draws the README's pictures as SVG: drawing.py terminal <TRANSCRIPT, or drawing.py architecture.

A transcript's lines that begin with "$ " were typed, all others printed. Needs only Python.
"""

import sys
import unicodedata
from html import escape

MONO = "ui-monospace, 'DejaVu Sans Mono', 'Noto Sans Mono CJK KR', Menlo, monospace"
SANS = "system-ui, 'DejaVu Sans', 'Noto Sans CJK KR', sans-serif"


def columns(text):
    """The width of a text in a terminal's cells: wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def runs(text):
    """The text in pieces of narrow and of wide characters, each with its column."""
    column, piece, start, wide = 0, "", 0, None
    for sign in text:
        width = columns(sign)
        if wide is not None and (width == 2) != wide:
            yield start, piece
            piece, start = "", column
        wide = width == 2
        piece += sign
        column += width
    if piece:
        yield start, piece


def terminal(transcript):
    lines = transcript.rstrip("\n").split("\n")
    cell, step, left, top = 8.0, 19, 18, 46
    width = left * 2 + cell * max(80, max(columns(line) for line in lines))
    height = top + step * len(lines) + 8
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="{MONO}" font-size="13.3">'
    )
    yield f'<rect width="{width:.0f}" height="{height}" rx="9" fill="#1e2127"/>'
    for index, color in enumerate(["#e06c75", "#e5c07b", "#98c379"]):
        yield f'<circle cx="{22 + 20 * index}" cy="19" r="6" fill="{color}"/>'
    for number, line in enumerate(lines):
        y = top + step * number + 6
        typed = line.startswith("$ ")
        color = "#98c379" if typed else "#dcdfe4"
        # Each piece has its own place and length, so that columns align in every font.
        for column, piece in runs(line):
            if piece.strip():
                yield (
                    f'<text x="{left + cell * column:.0f}" y="{y}" fill="{color}" '
                    f'textLength="{cell * columns(piece):.0f}" lengthAdjust="spacingAndGlyphs" '
                    f'xml:space="preserve">{escape(piece)}</text>'
                )
    yield "</svg>"


def box(x, y, width, height, title, text, fill):
    yield (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" fill="{fill}" '
        'stroke="#49586a"/>'
    )
    yield f'<text x="{x + 14}" y="{y + 23}" font-weight="600">{escape(title)}</text>'
    for index, line in enumerate(text):
        yield (
            f'<text x="{x + 14}" y="{y + 43 + 17 * index}" font-size="12.5" fill="#37424f">'
            f"{escape(line)}</text>"
        )


def architecture():
    yield (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 884 452" '
        f'font-family="{SANS}" font-size="14" fill="#1b2530">'
    )
    yield '<rect width="884" height="452" fill="#fff"/>'
    for index, name in enumerate(["your app", "ondol", "ondol-demo", "ondol-stress"]):
        yield from box(20 + 144 * index, 16, 130, 36, name, [], "#f4f1ea")
    yield from box(
        20, 78, 562, 118, "Ondol",
        [
            "documents, values, keys, the catalog: what bytes mean",
            "queries: plan, walk, filter, shape; indexes are rows beside documents",
            "observation: who is concerned by a commit, and what changed for them",
            "contents and their holders; the tree; checks, salvage, dumps",
        ],
        "#e6f0ea",
    )
    yield '<path d="M20 218H582" stroke="#8a5a2b" stroke-width="2" stroke-dasharray="7 5"/>'
    yield (
        '<text x="301" y="213" text-anchor="middle" font-size="12.5" fill="#8a5a2b">ordered keys '
        "and bytes, snapshots, atomic commits: the only way between the floors</text>"
    )
    yield from box(
        20, 240, 562, 118, "OndolEngine",
        [
            "the log: one frame a commit, one sync for all who wait",
            "shards: memtables, and sorted segments of LZ4 blocks below them",
            "compaction, the manifest, the cache, snapshots that hold nobody up",
            "packs and files of contents",
        ],
        "#e5ebf5",
    )
    yield from box(20, 380, 274, 54, "COndol", ["checksum instructions, a lock"], "#f2f2f2")
    yield from box(308, 380, 274, 54, "CLZ4", ["the system's liblz4"], "#f2f2f2")
    yield '<text x="612" y="34" font-weight="600">the way of a write</text>'
    stages = [
        ("1", "validate", "names, limits, preconditions"),
        ("2", "encode", "documents, index rows: one batch"),
        ("3", "sequence", "stale is refused; time and place"),
        ("4", "log", "one frame, and a sync for .power"),
        ("5", "publish", "visible, in order"),
        ("6", "announce", "whoever listens"),
    ]
    for index, (number, name, text) in enumerate(stages):
        y = 78 + 62 * index
        color = "#e5ebf5" if number in "345" else "#e6f0ea"
        yield from box(612, y, 256, 48, f"{number}  {name}", [text], color)
        if index + 1 < len(stages):
            yield f'<path d="M740 {y + 48}v14m-4 -5l4 5l4 -5" stroke="#49586a" fill="none"/>'
    yield "</svg>"


if __name__ == "__main__":
    if sys.argv[1:] == ["terminal"]:
        print("\n".join(terminal(sys.stdin.read())))
    elif sys.argv[1:] == ["architecture"]:
        print("\n".join(architecture()))
    else:
        sys.exit(__doc__)
