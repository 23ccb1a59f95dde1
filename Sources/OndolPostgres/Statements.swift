// The statements of a store, except those of the schema.

internal import OndolEngine

extension Statement {
  static let commit = Statement(name: "commit", text: Schema.Procedure.commit.call)

  /// A transaction with one small record. Once it has been answered, everything committed before it
  /// is durable, including on the synchronous standbys.
  static let barrier = Statement(
    name: "barrier", text: "select pg_logical_emit_message(true, 'o', '')")

  static let outcome = Statement(name: "outcome", text: Schema.Procedure.outcome.call)

  /// Reads news. They may be shown after `told` has been answered.
  static let news = Statement(
    name: "news",
    text: """
      select a, cnt, tm, org, o, k, seq, val
        from ondol_news_3($1::int, $2::bigint, $3::bigint, $4::int, $5::bigint)
      """)

  /// Makes durable what was committed so far.
  static let told = Statement(name: "told", text: Schema.Procedure.told.call)

  /// The number and the time of the newest commit.
  static let head = Statement(
    name: "head",
    text: """
      select at + n - 1, time + n - 1 from ondol_log where db = $1::int order by at desc limit 1
      """)

  static let hold = Statement(name: "hold", text: Schema.Procedure.hold.call)

  static let release = Statement(
    name: "release",
    text: "delete from ondol_pin where db = $1::int and process = $2::bigint and process <> 0")

  static let processes = Statement(
    name: "processes",
    text: """
      select process from ondol_pin where db = $1::int and process <> 0
        and until > now() + $2::bigint * interval '1 microsecond'
      """)

  static let forget = Statement(name: "forget", text: Schema.Procedure.forget.call)

  /// The annotations of the commits after $2: $3 of them, up to $4 bytes after the first. They
  /// follow the newest commit, and the time of $2 if the kept history contains it.
  static let history = Statement(
    name: "history",
    text: """
      (select l.at + l.n - 1, l.time + l.n - 1, coalesce(
          (select h.time from ondol_history h where h.db = $1::int and h.seq = $2::bigint),
          (select h.before from ondol_history h where h.db = $1::int and h.seq = $2::bigint + 1)),
          null::bytea
        from ondol_log l where l.db = $1::int order by l.at desc limit 1)
      union all
      (select h.seq, h.time, null::bigint, h.annotation from (
          select x.seq, x.time, x.total, x.annotation from ondol_history x
            where x.db = $1::int and x.seq > $2::bigint order by x.seq limit $3::int) h
        where h.total <= $4::bigint + (
          select f.total from ondol_history f where f.db = $1::int and f.seq > $2::bigint
            order by f.seq limit 1))
      """)

  static let trim = Statement(name: "trim", text: Schema.Procedure.trim.call)

  static let drop = Statement(
    name: "drop",
    text: """
      insert into ondol_drop (db, keyspace, seq)
        select $1::int, k, (select at + n - 1 from ondol_log where db = $1::int
          order by at desc limit 1) from unnest($2::bigint[]) k
        on conflict (db, keyspace) do update set seq = excluded.seq
      """)

  static let skip = Statement(name: "skip", text: Schema.Procedure.skip.call)

  static let load = Statement(name: "load", text: Schema.Procedure.load.call)

  static let loaded = Statement(
    name: "loaded", text: "update ondol_database set loading = false where db = $1::int")

  static let remove = Statement(
    name: "remove database", text: Schema.Procedure.remove.call)

  static let notify = Statement(
    name: "notify",
    text: """
      select pg_notify(convert_from($1::bytea, 'UTF8'), convert_from($2::bytea, 'UTF8'))::text
      """)

  // MARK: - Contents

  static let putContent = Statement(
    name: "put",
    text: "select ondol_put_1($1::int, $3::bytea, $2::bytea, $4::int, $5::bytea)")

  static let countContent = Statement(
    name: "count",
    text: "select count(*) from ondol_part where db = $1::int and content = $2::bytea")

  /// Parts $3 to $4 of a content, and from each part the bytes within $5 ..< $6 of the content.
  static let content = Statement(
    name: "content",
    text: """
      select part, substr(bytes,
          (greatest($5::bigint - part::bigint * \(ContentPart.length), 0) + 1)::int,
          (least($6::bigint - part::bigint * \(ContentPart.length), \(ContentPart.length))
            - greatest($5::bigint - part::bigint * \(ContentPart.length), 0))::int)
        from ondol_part
        where db = $1::int and content = $2::bytea and part >= $3::int and part <= $4::int
        order by part
      """)

  static let removeContent = Statement(name: "cut", text: Schema.Procedure.cut.call)

  static let clock = Statement(
    name: "clock", text: "select (extract(epoch from clock_timestamp()) * 1000000)::bigint")

  // MARK: - Rows

  /// The first row before the other rows: the floor in place of a number, and the time of the
  /// commit that the rows are as of, or null if there is no such commit. A single statement for
  /// both has a single snapshot. $1 is the database, $2 the commit.
  private static let front = """
    (select null::bytea, (select p.seq from ondol_pin p where p.db = $1::int and p.process = 0),
      (select case when $2::bigint < l.at + l.n then int8send(l.time + $2::bigint - l.at) end
        from ondol_log l where l.db = $1::int and l.at <= $2::bigint order by l.at desc limit 1))
    """

  /// Rows in a range: $3 is its lower bound, $4 the number of rows, $5 its upper bound if it has
  /// one.
  static func range(reversed: Bool, bounded: Bool) -> Statement {
    let order = reversed ? "desc" : "asc"
    let head = { (number: Int) in "substr($\(number)::bytea, 1, \(Schema.longestHead))" }
    let upper = bounded ? "and key < $5::bytea" : ""
    let longUpper =
      bounded ? "and head <= \(head(5)) and head || tail < $5::bytea" : ""
    return Statement(
      name: "range\(reversed ? "Reversed" : "")\(bounded ? "Bounded" : "")",
      text: """
        \(front)
        union all
        (select key, seq, value from (select distinct on (key) key, seq, value from ondol_row
            where db = $1::int and key >= $3::bytea \(upper) and seq <= $2::bigint
            order by key \(order), seq desc) v
          where value is not null order by key \(order) limit $4::int)
        union all
        (select head || tail, seq, value from (select distinct on (head, tail)
              head, tail, seq, value from ondol_long
            where db = $1::int and head >= \(head(3)) and head || tail >= $3::bytea \(longUpper)
              and seq <= $2::bigint
            order by head \(order), tail \(order), seq desc) v
          where value is not null order by head \(order), tail \(order) limit $4::int)
        """)
  }

  /// Rows at keys, $3.
  static let keys = Statement(
    name: "keys",
    text: """
      \(front)
      union all
      (select k, r.seq, r.value from unnest($3::bytea[]) k cross join lateral
        (select seq, value from ondol_row where db = $1::int and key = k and seq <= $2::bigint
          order by seq desc limit 1) r where r.value is not null)
      """)

  /// The row at one key, $3, with the end of the newest group up to $2: two index lookups. If the
  /// end is $2 and the time matches, this is as conclusive as the first row of the other
  /// statements, because only the group that ends at the floor stays in the log after rows are
  /// forgotten. Otherwise `keys` must be used. The null rejects a column of another type.
  static let row = Statement(
    name: "row",
    text: """
      select l.at + l.n - 1, l.time + l.n - 1, r.seq, coalesce(r.value, null::bytea)
        from (select at, n, time from ondol_log where db = $1::int and at <= $2::bigint
          order by at desc limit 1) l
        left join lateral (select seq, value from ondol_row
          where db = $1::int and key = $3::bytea and seq <= $2::bigint
          order by seq desc limit 1) r on true
      """)

  /// Rows at keys that are too long for an index.
  static let longKeys = Statement(
    name: "longKeys",
    text: """
      \(front)
      union all
      (select k, r.seq, r.value from unnest($3::bytea[]) k cross join lateral
        (select seq, value from ondol_long where db = $1::int
            and head = substr(k, 1, \(Schema.longestHead))
            and digest = sha256(substr(k, \(Schema.longestHead + 1))) and seq <= $2::bigint
          order by seq desc limit 1) r where r.value is not null)
      """)
}
