"""Makes one report from the output of the suites in Scripts/bench.

    report.py DIRECTORY [ARGUMENTS]

DIRECTORY has SUITE.json (rows, one per workload and engine) and SUITE.md (the suite's own table),
and, if operations were counted, SUITE.counts.json and SUITE.counts.md. The script adds report.json,
report.md and images/SUITE.svg. The report lists ARGUMENTS. Needs only Python.
"""

import json
import math
import pathlib
import subprocess
import sys
from html import escape

SUITES = [
    "engine", "documents", "observation", "blobs", "postgres", "search", "pipelines", "tree",
    "serve", "sync", "import",
]
TITLES = {
    "engine": "Engine",
    "documents": "Documents",
    "observation": "Observation",
    "blobs": "Blobs",
    "postgres": "On PostgreSQL",
    "search": "Search",
    "pipelines": "Pipelines",
    "tree": "Tree",
    "serve": "Serving",
    "sync": "Synchronisation",
    "import": "Import",
}
COLORS = ["#0b6e4f", "#c8553d", "#3d5a98", "#b8860b", "#7a4e9c", "#4d4d4d", "#1b9aaa"]
US, GOAL = "Ondol", "goal"


def ratios(rows):
    """By workload: how much better Ondol is than each other engine; a goal counts as one."""
    found = {}
    for row in rows:
        found.setdefault(row["workload"], {})[row["engine"]] = row
    plot = {}
    for workload, engines in found.items():
        ours = engines.get(US)
        if not ours or ours["value"] <= 0:
            continue
        others = {name: row["value"] for name, row in engines.items() if name != US}
        if not others and ours.get("goal"):
            others = {GOAL: ours["goal"]}
        points = {
            name: value / ours["value"] if ours["lowerIsBetter"] else ours["value"] / value
            for name, value in others.items()
            if value > 0
        }
        if points:
            plot[workload] = points
    return plot


def svg(suite, rows):
    """A line per workload and a dot per peer, on a logarithmic scale; None when there are none."""
    plot = ratios(rows)
    if not plot:
        return None
    engines = []
    for points in plot.values():
        engines += [name for name in points if name not in engines]
    values = [value for points in plot.values() for value in points.values()]
    low = min(-1, math.floor(math.log10(min(values))))
    high = max(1, math.ceil(math.log10(max(values))))
    left, right, top, step = 230, 30, 62, 19
    width, height = 800, top + step * len(plot) + 38

    def x(value):
        return left + (width - left - right) * (math.log10(value) - low) / (high - low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="12" y="20" font-size="15">{escape(TITLES[suite])}: how many times better '
        "Ondol is</text>",
    ]
    place = 12
    for index, name in enumerate(engines):
        out.append(f'<circle cx="{place + 5}" cy="38" r="5" fill="{color(index)}"/>')
        out.append(f'<text x="{place + 14}" y="42">{escape(name)}</text>')
        place += 30 + 7 * len(name)
    bottom = top + step * len(plot)
    for power in range(low, high + 1):
        at = x(10**power)
        heavy = ' stroke-width="2"' if power == 0 else ""
        out.append(f'<path d="M{at:.0f} {top - 8}V{bottom}" stroke="#bbb"{heavy}/>')
        label = f"{10 ** power:g} x"
        out.append(f'<text x="{at:.0f}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    for line, (workload, points) in enumerate(plot.items()):
        y = top + step * line + 6
        out.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(workload)}</text>')
        out.append(f'<path d="M{left} {y}H{width - right}" stroke="#eee"/>')
        for index, name in enumerate(engines):
            if name in points:
                out.append(
                    f'<circle cx="{x(points[name]):.1f}" cy="{y}" r="5" fill="{color(index)}" '
                    f'opacity=".85"><title>{escape(name)}: {points[name]:.2f} x</title></circle>'
                )
    out.append(
        f'<text x="{width - right}" y="{height - 6}" text-anchor="end" fill="#555">right of 1 x: '
        "Ondol is better</text>"
    )
    return "\n".join(out + ["</svg>", ""])


def color(index):
    return COLORS[index % len(COLORS)]


def commit():
    """The commit of the measured sources, if it is known."""
    asked = ["git", "log", "-1", "--format=%h of %cd", "--date=short"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def add_counts(rows, path):
    """Adds the counts of an operation to the rows of Ondol."""
    if not path.exists():
        return
    counts = {row["workload"]: row for row in json.loads(path.read_text())}
    for row in rows:
        found = counts.get(row["workload"])
        if row["engine"] == US and found:
            names = ("allocations", "systemCalls", "instructions")
            row["counts"] = {name: found[name] for name in names if name in found}


def main():
    directory = pathlib.Path(sys.argv[1])
    arguments = " ".join(sys.argv[2:]).strip()
    (directory / "images").mkdir(parents=True, exist_ok=True)
    source = commit()
    command = "Scripts/bench --all" + (f" {arguments}" if arguments else "")
    lines = ["# Measurements", ""]
    lines.append(f"Made by `{command}`" + (f", commit {source}." if source else "."))
    lines.append("[Performance.md](Performance.md) tells what each line is and how it was measured.")
    every = []
    for suite in SUITES:
        rows = directory / f"{suite}.json"
        if not rows.exists():
            continue
        rows = json.loads(rows.read_text())
        add_counts(rows, directory / f"{suite}.counts.json")
        every += rows
        lines += ["", f"## {TITLES[suite]}", ""]
        picture = svg(suite, rows)
        if picture:
            (directory / "images" / f"{suite}.svg").write_text(picture)
            lines += [f"![{TITLES[suite]}](images/{suite}.svg)", ""]
        table = directory / f"{suite}.md"
        if table.exists():
            lines += table.read_text().strip().splitlines()
        counts = directory / f"{suite}.counts.md"
        if counts.exists():
            lines += ["", *counts.read_text().strip().splitlines()]
    (directory / "report.md").write_text("\n".join(lines) + "\n")
    # A row a line: small, and a diff shows the changes.
    text = ",\n".join(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in every)
    (directory / "report.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
