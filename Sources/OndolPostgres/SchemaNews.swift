// The functions with which a process reads the commits of others. Those of earlier versions stay:
// two versions of this product can use one server.

extension Schema {
  static let news = """
    -- The commits behind `known`, whose time is `kt`: a row for each key, one without a key for a
    -- group that has none. `room`: bytes after which no further group is begun. It holds no lock,
    -- since a process that takes its answer slowly would hold up the others. A process
    -- calls ondol_told_1 before it shows them. Each row is looked up by itself, by its whole key:
    -- `limit` keeps the server from joining the tables, which it does badly while it believes that
    -- they are empty.
    create or replace function ondol_news_3(
      d int, known bigint, kt bigint, most int, room bigint)
    returns table (a bigint, cnt int, tm bigint, org bigint, o int, k bytea, seq bigint, val bytea)
    language plpgsql volatile as $$
    #variable_conflict use_column
    declare base bigint;
    begin
      select l.at into base from (select x.at, x.n, x.time from ondol_log x
        where x.db = d and x.at <= known order by x.at desc limit 1) l
        where known < l.at + l.n and l.time + known - l.at = kt;
      if base is null or known < (select p.seq from ondol_pin p where p.db = d and p.process = 0)
        then raise exception 'no commit % is known', known using errcode = 'OD001'; end if;
      return query select g.at, g.n, g.time, g.origin, u.o, u.k, coalesce(r.seq, w.seq),
          case when r.seq is null then w.value else r.value end
        from (select y.at, y.n, y.time, y.origin, y.keys, y.offs,
            sum(y.n) over ahead as count, sum(y.size) over ahead as bytes
          from (select x.* from ondol_log x
            where x.db = d and x.at >= base and x.at + x.n - 1 > known order by x.at limit most) y
          window ahead as (order by y.at rows between unbounded preceding and 1 preceding)) g
        left join lateral unnest(g.keys, g.offs) u(k, o) on true
        left join lateral (select q.seq, q.value from ondol_row q
          where octet_length(u.k) <= \(longestHead) and q.db = d and q.key = u.k
            and q.seq = g.at + u.o limit 1) r on true
        left join lateral (select q.seq, q.value from ondol_long q
          where octet_length(u.k) > \(longestHead) and q.db = d
            and q.head = substr(u.k, 1, \(longestHead))
            and q.digest = sha256(substr(u.k, \(longestHead + 1))) and q.seq = g.at + u.o
            limit 1) w on true
        where coalesce(g.count, 0) < most and coalesce(g.bytes, 0) < room
        order by g.at;
    end $$;

    -- Nobody is told of a commit that a crash can take back. Of those who come upon one the first
    -- flushes; the others wait for its row.
    create or replace function ondol_told_1(d int)
    returns bigint language plpgsql volatile as $$
    declare told bigint;
    begin
      select l.at + l.n - 1 into told from ondol_log l where l.db = d order by l.at desc limit 1;
      if told > (select b.durable from ondol_database b where b.db = d) then
        update ondol_database b set durable = told where b.db = d and b.durable < told;
      end if;
      return told;
    end $$;

    -- The same for earlier versions of this product; the older one asks for both at once.
    create or replace function ondol_news_2(d int, known bigint, kt bigint, most int, room bigint)
    returns table (a bigint, cnt int, tm bigint, org bigint, o int, k bytea, seq bigint, val bytea)
    language plpgsql volatile as $$
    begin
      return query select * from ondol_news_3(d, known, kt, most, room);
    end $$;

    create or replace function ondol_news_1(d int, known bigint, kt bigint, most int, room bigint)
    returns table (a bigint, cnt int, tm bigint, org bigint, o int, k bytea, seq bigint, val bytea)
    language plpgsql volatile as $$
    begin
      return query select * from ondol_news_3(d, known, kt, most, room);
      if found then perform ondol_told_1(d); end if;
    end $$;
    """
}
