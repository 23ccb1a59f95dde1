"""Answers the reports of the suite "pipelines" with DuckDB; PipelineBenchmarks starts it.

    duckdb_reports.py TASK.json

The task names the files of rows, the passes and the SQL of each report. The outcome goes to the
standard output as JSON: the median time of each report with all rows fetched, and the checksum of
its answer, made as the other engines make theirs.
"""

import json
import statistics
import sys
import time

import duckdb


def text(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


def checksum(rows):
    """The sum of the rows' FNV-1a hashes, so that their order does not matter."""
    total = 0
    for row in rows:
        value = 0xCBF29CE484222325
        for byte in "|".join(map(text, row)).encode():
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        total = (total + value) & 0xFFFFFFFFFFFFFFFF
    return total


def restart_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak():
    """The most memory since `restart_peak`, in MB."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0


def main():
    with open(sys.argv[1]) as file:
        task = json.load(file)
    place = task["rows"] + ".duckdb"
    database = duckdb.connect(place)
    start = time.perf_counter()
    for table in ["sales", "sellers"]:
        database.execute(
            f"CREATE TABLE {table} AS SELECT * FROM"
            f" read_json('{task['rows' if table == 'sales' else table]}',"
            " format='newline_delimited')"
        )
    count = database.execute("SELECT count(*) FROM sales").fetchone()[0]
    load = count / (time.perf_counter() - start)
    # The rows are read as a process finds them that opens the database.
    database.close()
    database = duckdb.connect(place)
    restart_peak()
    milliseconds, checksums = {}, {}
    for name, sql in task["reports"].items():
        times = []
        for _ in range(task["passes"]):
            start = time.perf_counter()
            rows = database.execute(sql).fetchall()
            times.append((time.perf_counter() - start) * 1000)
        milliseconds[name] = statistics.median(times)
        checksums[name] = checksum(rows)
    json.dump(
        {
            "version": duckdb.__version__,
            "load": load,
            "memory": peak(),
            "milliseconds": milliseconds,
            "checksums": checksums,
        },
        sys.stdout,
    )


main()
