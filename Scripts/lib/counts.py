"""Counts the cost of an operation without a clock: the part that is the same on every machine.

    counts.py DIRECTORY SUITE PROGRAM [ARGUMENTS]

Runs PROGRAM, a suite of Scripts/bench, with counts.c loaded: once for allocations and instructions,
once under strace for system calls, and once under callgrind for instructions if the machine counts
none. Callgrind counts only the engine suite: for the documents it counts ten times as many as their
times permit, for a reason that is not known. Writes DIRECTORY/SUITE.counts.json, a row per
workload, and prints a table. Linux only.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

MARK = re.compile(r'^(\d+) .*"/ondol-bench-mark/(begin|end)/([^"]*)"')
CALL = re.compile(r"^\d+ +(?:<\.\.\. )?([a-z_0-9]+)")


def run(program, arguments, under, log):
    """Runs the suite once, each of its processes under this command; returns whether it
    succeeded."""
    environment = dict(os.environ, BENCH_RUN_UNDER=" ".join(under))
    done = subprocess.run(
        [program, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    log.write_bytes(done.stdout)
    return done.returncode == 0


def counted(path):
    """The output of counts.c, by workload: operations, allocations, instructions or None."""
    found = {}
    lines = path.read_text().splitlines() if path.exists() else []
    for line in lines:
        operations, allocations, instructions, name = line.split("\t")
        found[name] = (int(operations), int(allocations), int(instructions))
    return found


def system_calls(path):
    """By workload, the number of calls between its marks in the output of strace."""
    found, name = {}, None
    for line in path.open(errors="replace"):
        mark = MARK.match(line)
        if mark:
            name = mark[3] if mark[2] == "begin" else None
            if name is not None:
                found.setdefault(name, 0)
        elif name is not None and "resumed>" not in line:
            # A call that took two lines is counted once. A signal is not a call.
            if CALL.match(line):
                found[name] += 1
    return found


def callgrind(folder):
    """By workload, the instructions in the dumps of its marks."""
    found = {}
    for path in folder.glob("callgrind.out.*"):
        text = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if name and total:
            found[name[1]] = found.get(name[1], 0) + int(total[1])
    return found


def figure(value):
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def main():
    directory, suite, program = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    arguments = ["--engines", "Ondol", "--runs", "1", *sys.argv[4:]]
    folder = directory / f"{suite}.counts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    library = folder.resolve() / "counts.so"
    source = pathlib.Path(__file__).parent / "counts.c"
    subprocess.run(
        ["clang", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True
    )

    loaded = ["env", f"LD_PRELOAD={library}", f"COUNTS_FILE={folder.resolve()}/counts"]
    if not run(program, arguments, loaded, folder / "counts.log"):
        sys.exit(f"counts: {program} failed; see {folder}/counts.log")
    counts = counted(folder / "counts")

    calls = {}
    if shutil.which("strace"):
        trace = folder.resolve() / "strace"
        under = ["strace", "-f", "-qq", "-A", "-o", str(trace), "-E", loaded[1]]
        if run(program, arguments, under, folder / "strace.log"):
            calls = system_calls(trace)
        trace.unlink(missing_ok=True)
    else:
        print("counts: no strace, so calls of the system are not counted here", file=sys.stderr)

    instructions = {name: count[2] for name, count in counts.items() if count[2] >= 0}
    counter = "the processor"
    if not instructions and suite == "engine" and shutil.which("valgrind"):
        counter = "callgrind"
        out = f"{folder.resolve()}/callgrind.out.%p"
        under = ["env", loaded[1], "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        # Without the parts of a program that older versions of valgrind cannot read.
        bare = folder.resolve() / "program"
        subprocess.run(["strip", "-o", bare, program], check=True)
        if run(bare, arguments, under, folder / "callgrind.log"):
            instructions = callgrind(folder)
        for path in [bare, *folder.glob("callgrind.out.*")]:
            path.unlink()

    rows = []
    for name, (operations, allocations, _) in counts.items():
        row = {"suite": suite, "workload": name, "engine": "Ondol", "operations": operations}
        row["allocations"] = round(allocations / operations, 3)
        if name in calls:
            row["systemCalls"] = round(calls[name] / operations, 4)
        if name in instructions:
            row["instructions"] = round(instructions[name] / operations)
        rows.append(row)
    (directory / f"{suite}.counts.json").write_text(json.dumps(rows, indent=1) + "\n")

    lines = ["| workload | allocations | system calls | instructions |", "|---|---|---|---|"]
    for row in rows:
        cells = [figure(row.get(key)) for key in ("allocations", "systemCalls", "instructions")]
        lines.append(f"| {row['workload']} | " + " | ".join(cells) + " |")
    told = f"counted by {counter}" if instructions else "not counted here"
    heading = f"What an operation of Ondol costs on any machine; instructions are {told}."
    table = "\n".join(["", heading, "", *lines])
    (directory / f"{suite}.counts.md").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    main()
