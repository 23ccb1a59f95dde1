"""Checks that every public symbol is documented and can be found, and that no link is broken.

    documentation.py SYMBOLS...

Each SYMBOLS is a directory with symbol graphs of one module, as the compiler writes them. Prints
the share of public symbols that are documented; names every fault and exits with 1. Run from the
package's root. Needs only Python.
"""

import json
import pathlib
import re
import sys
import unicodedata

CATALOGS = pathlib.Path("Sources")
# Members whose meaning comes from a protocol, and is the same in every type.
WITNESSES = re.compile(
    r"^(==|<|!=|>|<=|>=)\(|^hash\(into:\)$|^hashValue$|^encode\(to:\)$|^init\(from:\)$|^rawValue$"
    r"|^init\(rawValue:\)$|^(description|debugDescription|id)$|^makeAsyncIterator\(\)$"
    r"|^next\((isolation:)?\)$|^init\(\w+Literal:\)$|^(Element|Failure|AsyncIterator|RawValue|AllCases)$"
    r"|^(ArrayLiteralElement|Key|Value|ID|ExtendedGraphemeClusterLiteralType)$"
    r"|^(StringLiteralType|UnicodeScalarLiteralType|FloatLiteralType|IntegerLiteralType)$"
    r"|^(BooleanLiteralType)$|^allCases$"
)


def symbols(directory):
    """All public symbols of a module's graphs, in the order of their names, each once."""
    found = {}
    for file in sorted(directory.glob("*.symbols.json")):
        graph = json.loads(file.read_text())
        for symbol in graph["symbols"]:
            found.setdefault(symbol["identifier"]["precise"], symbol)
    return sorted(found.values(), key=lambda symbol: symbol["pathComponents"])


def is_documented(symbol):
    lines = symbol.get("docComment", {}).get("lines", [])
    return any(line["text"].strip() for line in lines)


def place(symbol):
    """The place of a symbol's declaration, in an editor's form."""
    location = symbol.get("location")
    if not location:
        return ""
    path = location["uri"].removeprefix("file://")
    here = str(pathlib.Path.cwd()) + "/"
    return f"{path.removeprefix(here)}:{location['position']['line'] + 1}: "


def check_coverage(directory):
    """The undocumented symbols of a module."""
    every = symbols(directory)
    bare = [
        symbol
        for symbol in every
        if not is_documented(symbol) and not WITNESSES.match(symbol["pathComponents"][-1])
    ]
    count = len(every) - len(bare)
    share = 100 if not bare else min(99.9, 100 * count / len(every))
    print(f"{directory.name}: {count} of {len(every)} public symbols are documented, {share:.4g} %")
    return [f"{place(symbol)}{'.'.join(symbol['pathComponents'])} is not documented" for symbol in bare]


def check_groups(directory):
    """Types that the first page of a module's catalog does not name."""
    page = next(CATALOGS.glob(f"*/{directory.name}.docc/{directory.name}.md"), None)
    if page is None:
        return []
    named = set(re.findall(r"^- ``([^`/]+)``$", page.read_text(), re.MULTILINE))
    types = {
        symbol["pathComponents"][0]: symbol
        for symbol in symbols(directory)
        if len(symbol["pathComponents"]) == 1 and "extension" not in symbol["kind"]["identifier"]
    }
    return [
        f"{page}: {name} is in no group of topics" for name in sorted(types) if name not in named
    ]


def check_pages():
    """Pages that the first page of their catalog does not lead to."""
    problems = []
    for catalog in sorted(CATALOGS.glob("*/*.docc")):
        first = catalog / f"{catalog.stem}.md"
        text = first.read_text() if first.exists() else ""
        for page in sorted(catalog.rglob("*.md")):
            if page != first and f"<doc:{page.stem}>" not in text:
                problems.append(f"{first}: {page.relative_to(catalog)} is in no group of topics")
    return problems


def without_code(text):
    """The lines of a page, fenced blocks and code spans blanked."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r" *(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark.group(1)
            lines.append("")
        elif fence is not None:
            if mark and mark.group(1).startswith(fence):
                fence = None
            lines.append("")
        else:
            lines.append(re.sub(r"``[^`]+``|`[^`]*`", lambda code: " " * len(code.group()), line))
    return lines


def anchors(page):
    """The anchors of a page's headings, as forges make them."""
    found, fence = {}, None
    for line in page.read_text().split("\n"):
        mark = re.match(r" *(```+|~~~+)", line)
        if mark:
            fence = None if fence else mark.group(1)
        heading = re.match(r"#{1,6} +(.*?) *#*$", line)
        if fence or not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
        name = "".join(
            "-" if letter == " " else letter
            for letter in text
            if letter in " -_" or unicodedata.category(letter)[0] in "LNM"
        )
        count = found.get(name, 0)
        found[name] = count + 1
        if count:
            found[f"{name}-{count}"] = 1
    return set(found)


def find_image(page, name):
    """The file of an image in the catalog that the page is in; None when there is none."""
    catalog = next((parent for parent in page.parents if parent.suffix == ".docc"), None)
    return next(catalog.rglob(f"{name}.*"), None) if catalog else None


def check_links():
    """Links in pages that lead to no file, or to no heading of it."""
    pages = [path for path in sorted(pathlib.Path().glob("*.md"))]
    pages += sorted(pathlib.Path("Docs").rglob("*.md"))
    pages += [page for catalog in sorted(CATALOGS.glob("*/*.docc")) for page in catalog.rglob("*.md")]
    problems, count = [], 0
    for page in pages:
        for number, line in enumerate(without_code(page.read_text()), 1):
            targets = re.findall(r"\]\(<?([^)>\s]+)>?(?: +\"[^\"]*\")?\)", line)
            targets += re.findall(r"^ {0,3}\[[^\]]+\]: *<?([^>\s]+)", line)
            targets += re.findall(r"(?:src|href)=\"([^\"]+)\"", line)
            for target in targets:
                # A link with a scheme leads out of the project, or belongs to the documentation
                # compiler.
                if re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
                    continue
                count += 1
                name, _, anchor = target.partition("#")
                file = page.parent / name if name else page
                # A catalog refers to an image only by its name.
                if re.search(rf"!\[[^\]]*\]\({re.escape(target)}\)", line):
                    image = file if "." in name else find_image(page, name)
                    file = image or file
                if not file.exists():
                    problems.append(f"{page}:{number}: nothing is at {target}")
                elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                    problems.append(f"{page}:{number}: {file} has no heading #{anchor}")
    print(f"{count} links in {len(pages)} pages lead somewhere" if not problems else "")
    return problems


def main():
    modules = [pathlib.Path(argument) for argument in sys.argv[1:]]
    problems = []
    for module in modules:
        problems += check_coverage(module) + check_groups(module)
    problems += check_pages() + check_links()
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
