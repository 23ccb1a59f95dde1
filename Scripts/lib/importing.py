"""The suite "import": a file of JSON Lines, imported by the tool and by a loop in Python.

    importing.py TOOL [--quick] [--documents N] [--runs R] [--directory DIR] [--json FILE]

The loop is what a person would write otherwise: Python's sqlite3, a row for each line, its fields
in columns. Both commit the same number of rows at a time, and both commits survive a power cut. The
file is in the system's cache. Afterwards both databases count their rows.
"""

import argparse
import json
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

WORKLOAD = "import of JSON Lines"
# As many lines as the tool commits at a time.
BATCH = 1_000
FIELDS = ["id", "section", "package", "size", "depth"]


def write_rows(path, count):
    """Rows like those of a listing of files, the same in each run."""
    with path.open("w") as file:
        for number in range(count):
            section = f"section {number % 61}"
            depth = 3 + number * 7_919 % 9
            row = {
                "id": f"usr.share.doc.{number * 7_919 % count}.file-{number}.txt",
                "section": section,
                "package": f"package-{number // 37}",
                "size": number * 31 % 100_000,
                "depth": depth,
            }
            file.write(json.dumps(row) + "\n")


def by_tool(tool, rows, directory):
    """The tool's seconds, and the number of documents afterwards."""
    place = directory / "ondol"
    command = [tool, "import", place, rows, "--into", "files", "--id-field", "id", "--quiet"]
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    told = subprocess.run(
        [tool, "count", place, "files"], check=True, capture_output=True, text=True
    ).stdout
    return seconds, int(told.split()[0])


def by_loop(rows, directory):
    """The seconds of a loop over the lines, and the number of rows afterwards."""
    columns = ", ".join(f"{name} {'INTEGER' if name in FIELDS[3:] else 'TEXT'}" for name in FIELDS[1:])
    began = time.monotonic()
    database = sqlite3.connect(directory / "rows.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(f"CREATE TABLE files(id TEXT NOT NULL PRIMARY KEY, {columns})")
    insert = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)"
    with rows.open() as lines:
        batch = []
        for line in lines:
            row = json.loads(line)
            batch.append([row[name] for name in FIELDS])
            if len(batch) == BATCH:
                commit(database, insert, batch)
                batch = []
        commit(database, insert, batch)
    seconds = time.monotonic() - began
    count = database.execute("SELECT COUNT(*) FROM files").fetchone()[0]
    database.close()
    return seconds, count


def commit(database, insert, batch):
    database.execute("BEGIN")
    database.executemany(insert, batch)
    database.execute("COMMIT")


def main():
    parser = argparse.ArgumentParser(prog="bench --suite import")
    parser.add_argument("tool")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--directory", default=".build-bench/databases")
    parser.add_argument("--json")
    # Options of other suites, when all of them run with the same options.
    options, _ = parser.parse_known_args()
    documents = options.documents or (100_000 if options.quick else 1_000_000)
    runs = options.runs or (2 if options.quick else 3)
    directory = pathlib.Path(options.directory) / "import"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    rows = directory / "rows.jsonl"
    write_rows(rows, documents)

    engines = {
        "Ondol": lambda place: by_tool(options.tool, rows, place),
        "SQLite by Python": lambda place: by_loop(rows, place),
    }
    rates = {name: [] for name in engines}
    for run in range(runs):
        for name, measure in engines.items():
            place = directory / f"run-{run}"
            place.mkdir()
            seconds, count = measure(place)
            shutil.rmtree(place)
            if count != documents:
                sys.exit(f"import: {name} has {count} rows instead of {documents}")
            rates[name].append(documents / seconds)
    size = rows.stat().st_size / documents
    shutil.rmtree(directory)

    found = []
    for name, values in rates.items():
        found.append({
            "suite": "import", "workload": WORKLOAD, "engine": name, "documents": documents,
            "value": round(statistics.median(values)), "unit": "rows/s", "lowerIsBetter": False,
            "min": round(min(values)), "max": round(max(values)), "runs": runs,
            "valueSize": round(size),
        })
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    ours, other = found
    ratio = ours["value"] / other["value"]
    standing = f"{ratio:.3g} x better" if ratio >= 1 else f"{1 / ratio:.3g} x worse"
    cells = [f"{row['value']} ({row['min']}..{row['max']})" for row in found]
    print(f"\n{documents} lines of {size:.0f} bytes with five fields; median (least..greatest) of {runs} runs.")
    print(f"Both commit {BATCH} rows at a time, synced.\n")
    print(f"| workload | unit | {' | '.join(rates)} | Ondol against it |")
    print("|---|---|---|---|---|")
    print(f"| {WORKLOAD} | rows/s | {' | '.join(cells)} | {standing} |")
    print(f"\n- SQLite {sqlite3.sqlite_version}: WAL, synchronous=FULL, executemany, TEXT primary key.")


if __name__ == "__main__":
    main()
