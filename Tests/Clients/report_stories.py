"""The ten reports of the guide "Reports", by `ondol pipe`, by SQLite and by DuckDB: the same rows.

    python3 Tests/Clients/report_stories.py PROGRAM FOLDER [--books N]

The books are drawn from a seed, with absent genres, and with numbers whose sums are exact in binary, so
that no order of addition shows. DuckDB comes from PyPI; without it, SQLite alone is compared.
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys

try:
    import duckdb
except ImportError:
    duckdb = None

# For each report the pipeline, and the SQL. Rows have an order where both sort by something total.
REPORTS = [
    ("how many are good", "books | where rating > 4 | aggregate n = count()",
     "select count(*) n from books where rating > 4", False),
    ("how many there are of each genre", "books | aggregate n = count() by genre",
     "select genre, count(*) n from books group by genre", False),
    ("the average of each genre and year", "books | aggregate mean = average(rating) by genre, year",
     "select genre, year, avg(rating) mean from books group by genre, year", False),
    ("the five authors with the best average",
     "books | aggregate mean = average(rating) by author | sort mean desc, author | limit 5",
     "select author, avg(rating) mean from books group by author order by mean desc, author limit 5", True),
    ("groups with more than ten books", "books | aggregate n = count() by author | where n > 10",
     "select author, count(*) n from books group by author having count(*) > 10", False),
    ("all decades there are", "books | distinct decade = year / 10 * 10",
     "select distinct {floor} as decade from books", False),
    ("how often each tag is used", "books | unnest tags as tag | aggregate n = count() by tag",
     "select tag, count(*) n from tags group by tag", False),
    ("books with their authors",
     'books | lookup in authors where number = author as found'
     ' | select id, name = map_get(array_get(found, 0), "name")',
     "select b.id, a.name from books b left join authors a on a.number = b.author", False),
    ("the two best of each genre",
     "books | window place = rank() by genre sort rating desc | where place <= 2 | select id, place",
     "select id, place from (select id, rank() over (partition by genre order by rating desc) place"
     " from books) ranked where place <= 2", False),
    ("each book's share of its genre's sales",
     "books | window all = total(sold) by genre | select id, share = sold * 1.0 / all",
     "select id, sold * 1.0 / sum(sold) over (partition by genre) share from books", False),
]


def drawn(count):
    """Books, and their authors: some books are of none."""
    chance = random.Random(7)
    authors = [{"id": f"a{number}", "number": number, "name": f"Author {number}"} for number in range(40)]
    books = []
    for number in range(count):
        book = {
            "id": f"b{number}",
            "author": chance.randrange(44),
            "rating": chance.randrange(1, 41) / 8,
            "year": 1850 + chance.randrange(170),
            "sold": chance.randrange(1, 9_000),
            "tags": chance.sample(["new", "classic", "oak", "sea", "온돌"], chance.randrange(4)),
        }
        if chance.random() < 0.9:
            book["genre"] = chance.choice(["novel", "craft", "travel", "poems", "Ärger", ""])
        books.append(book)
    return books, authors


def fill(connection, books, authors, text):
    connection.execute(
        f"create table books (id {text}, author bigint, rating double, year bigint, sold bigint, genre {text})"
    )
    connection.execute(f"create table authors (id {text}, number bigint, name {text})")
    connection.execute(f"create table tags (tag {text})")
    connection.executemany(
        "insert into books values (?, ?, ?, ?, ?, ?)",
        [(b["id"], b["author"], b["rating"], b["year"], b["sold"], b.get("genre")) for b in books],
    )
    connection.executemany(
        "insert into authors values (?, ?, ?)", [(a["id"], a["number"], a["name"]) for a in authors]
    )
    connection.executemany("insert into tags values (?)", [(tag,) for b in books for tag in b["tags"]])
    return connection


def asked(connection, sql):
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def piped(program, database, pipeline):
    said = subprocess.run(
        [program, "pipe", database, pipeline, "--format", "jsonl"], capture_output=True, text=True, check=True
    )
    rows = [json.loads(line) for line in said.stdout.splitlines()]
    for row in rows:
        row.pop("__name__", None)
    return rows


def same(rows, is_ordered):
    """Rows in a form that two systems agree in: names in order, null for nothing, one kind of number."""
    plain = [
        tuple((name, float(value) if isinstance(value, (int, float)) else value)
              for name, value in sorted(row.items()) if value is not None)
        for row in rows
    ]
    return plain if is_ordered else sorted(plain, key=repr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--books", type=int, default=3_000)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    database = f"{options.folder}/books.ondol"
    books, authors = drawn(options.books)
    for collection, documents in [("books", books), ("authors", authors)]:
        # The id is also a field, as in a table.
        lines = "\n".join(json.dumps({**one, "key": one["id"]}) for one in documents)
        subprocess.run(
            [options.program, "import", database, "-", "--into", collection, "--id-field", "key", "--quiet"],
            input=lines, text=True, check=True,
        )
    peers = [("SQLite", fill(sqlite3.connect(":memory:"), books, authors, "text"), "year / 10 * 10")]
    if duckdb:
        peers.append(("DuckDB", fill(duckdb.connect(), books, authors, "varchar"), "year // 10 * 10"))
    else:
        print("left out: DuckDB, which is not here")
    failed = 0
    for title, pipeline, sql, is_ordered in REPORTS:
        found = same(piped(options.program, database, pipeline), is_ordered)
        for name, connection, floor in peers:
            expected = same(asked(connection, sql.format(floor=floor)), is_ordered)
            if found != expected or not found:
                failed += 1
                print(f"FAIL  {title}: {name} has {expected[:3]}…, and not {found[:3]}…")
        print(f"ok    {title}: {len(found)} rows", flush=True)
    print(f"{failed} failed" if failed else f"all reports agree, by {', '.join(name for name, *_ in peers)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
