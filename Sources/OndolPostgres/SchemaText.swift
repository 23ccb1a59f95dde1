// The tables and the functions, as Decisions 0071 has established them; 0073 describes the
// differences. The names of functions include the version, so that two versions of this product can
// use one server.

internal import OndolEngine

extension Schema {
  /// Creates the tables if there are none, and the functions, in one transaction protected by a
  /// lock.
  static let script = """
    create table if not exists ondol_schema (version int not null);
    insert into ondol_schema select \(version) where not exists (select from ondol_schema);

    -- The databases that share the tables.
    create table if not exists ondol_database (
      db int primary key, name text not null unique, identity bytea not null);
    -- Whether a load has begun, and has not come to its end.
    alter table ondol_database add column if not exists loading bool not null default false;
    -- The newest commit that is known to survive a power cut: who sees it here need not flush.
    alter table ondol_database add column if not exists durable bigint not null default 0;

    -- A row for each group of n commits, whose key is the number of the first. The key is the order
    -- of commits: no number is given twice, and none is left out but by ondol_skip_1.
    create table if not exists ondol_log (
      db int, at bigint, n int not null, time bigint not null, origin bigint not null,
      part bigint not null, size bigint not null,
      keys bytea[] not null,  -- what the group has written
      offs int[] not null,    -- for each key: its commit's number, less at
      primary key (db, at));
    alter table ondol_log alter keys set storage external, alter offs set storage external;

    -- Versions of rows; a null is a row that was deleted. Newest first: a page as of a number needs
    -- no sort.
    create table if not exists ondol_row (
      db int not null, key bytea not null, seq bigint not null, value bytea);
    create unique index if not exists ondol_row_key on ondol_row (db, key, seq desc);

    -- The same for keys of more than \(longestHead) bytes, which no index takes whole.
    create table if not exists ondol_long (
      db int not null, head bytea not null, digest bytea not null, tail bytea not null,
      seq bigint not null, value bytea);
    create unique index if not exists ondol_long_key on ondol_long (db, head, digest, seq desc);

    -- The oldest commit that each process reads, and, of process 0, the floor below which versions
    -- are forgotten.
    create table if not exists ondol_pin (
      db int, process bigint, seq bigint not null, until timestamptz not null,
      primary key (db, process));

    -- Origins that may commit no more.
    create table if not exists ondol_fence (
      db int, origin bigint, made timestamptz not null default now(), primary key (db, origin));

    -- Keyspaces that are no more, with the newest commit when they went.
    create table if not exists ondol_drop (
      db int, keyspace bigint, seq bigint not null, primary key (db, keyspace));

    -- What commits have said beside their rows, for whoever reads the history: with the time of the
    -- commit before, and the bytes of all so far. A commit of a process that keeps nothing is not
    -- here.
    create table if not exists ondol_history (
      db int, seq bigint, time bigint not null, before bigint not null, total bigint not null,
      annotation bytea not null, primary key (db, seq));
    alter table ondol_history alter annotation set storage external;

    -- Nothing was ever kept here.
    drop table if exists ondol_content;

    -- Contents in parts of \(ContentPart.length) bytes.
    create table if not exists ondol_part (
      db int, content bytea, part int, bytes bytea not null, primary key (db, content, part));
    alter table ondol_part alter bytes set storage external;

    \(upkeep)
    \(functions)
    \(procedures.map(\.text).joined(separator: "\n"))
    """

  /// When the server removes dead rows. The usual threshold would tolerate a fifth of a large
  /// table. The rows of a few tables change constantly, and get free space for that.
  private static let upkeep = """
    alter table ondol_row set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 1,
      toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_threshold = 5000);
    alter table ondol_long set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_vacuum_threshold = 1000);
    alter table ondol_log set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1,
      toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_threshold = 1000);
    alter table ondol_history set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_vacuum_threshold = 1000);
    alter table ondol_part set (autovacuum_vacuum_scale_factor = 0.05,
      toast.autovacuum_vacuum_scale_factor = 0.05);
    alter table ondol_pin set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
      autovacuum_vacuum_threshold = 200);
    alter table ondol_database set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
      autovacuum_vacuum_threshold = 500);

    """

  /// About the bytes that an annotation takes in addition to its own.
  private static let annotationBytes = 64
  /// The parts of contents that are removed in one transaction: 256 MiB.
  static let partsCutAtOnce = 1_024

  private static let functions = """
    -- The eight bytes of a stamp: 0 the number and 1 the time, low byte first; 2 the time so that
    -- it is ordered as bytes, 3 its complement.
    create or replace function ondol_stamp_1(form int, seq bigint, at bigint)
    returns bytea language plpgsql immutable as $$
    declare b bytea; r bytea := '';
    begin
      if form = 2 then return int8send(at # (-9223372036854775808)); end if;
      if form = 3 then return int8send(~(at # (-9223372036854775808))); end if;
      b := int8send(case form when 0 then seq else at end);
      for i in reverse 8..1 loop r := r || substr(b, i, 1); end loop;
      return r;
    end $$;

    -- Commits a group behind `known`, whose time is `kt`. Guarded are keys and half-open ranges.
    -- `wide`: some key is longer than an index takes. `flush`: the caller believes to be alone, and
    -- holds the line until the group is durable; otherwise a barrier behind it makes it so.
    -- Answers {0, number, time, alone}, {1} when a guard is broken, {2} when `known` is not one of
    -- the commits here or the origin may not commit.
    create or replace function ondol_commit_1(
      d int, known bigint, kt bigint, me bigint, prt bigint, guards bytea[], lows bytea[],
      highs bytea[], ks bytea[], vs bytea[], ofs int[], cnt int, size bigint, stamped int[],
      places int[], forms int[], wide bool, annotations bytea[], flush bool)
    returns bigint[] language plpgsql volatile as $$
    declare s bigint; t bigint; prior bigint; base bigint; fenced bool; alone bool; shift int;
    begin
      alone := pg_try_advisory_xact_lock(7701, d);
      if not (flush and alone) then perform set_config('synchronous_commit', 'off', true); end if;
      if not alone then perform pg_advisory_xact_lock(7701, d); end if;
      -- Each statement from here on sees every commit before this one: it has a snapshot of its
      -- own, taken with the line held.
      select l.at + l.n, l.time + l.n - 1,
        exists (select from ondol_fence f where f.db = d and f.origin = me)
        into s, t, fenced from ondol_log l where l.db = d order by l.at desc limit 1;
      if s is null or fenced or known >= s then return array[2, 0, 0, 0]; end if;
      if s - 1 = known then
        if t <> kt then return array[2, 0, 0, 0]; end if;
      else
        select l.at into base from (select x.at, x.n, x.time from ondol_log x
          where x.db = d and x.at <= known order by x.at desc limit 1) l
          where known < l.at + l.n and l.time + known - l.at = kt;
        if base is null or known < (select p.seq from ondol_pin p where p.db = d and p.process = 0)
          then return array[2, 0, 0, 0]; end if;
        if guards <> '{}' and exists (select from ondol_row r
          where r.db = d and r.key = any(guards) and r.seq > known)
          then return array[1, 0, 0, 0]; end if;
        if wide and guards <> '{}' and exists (select from unnest(guards) g, lateral (
            select from ondol_long r where octet_length(g) > \(longestHead) and r.db = d
              and r.head = substr(g, 1, \(longestHead))
              and r.digest = sha256(substr(g, \(longestHead + 1))) and r.seq > known limit 1) r)
          then return array[1, 0, 0, 0]; end if;
        if lows <> '{}' then
          -- So far behind, it is cheaper to hear the news first.
          if s - known > 10000 then return array[1, 0, 0, 0]; end if;
          if exists (select from (select x.at, x.keys, x.offs from ondol_log x
              where x.db = d and x.at >= base order by x.at limit 10001) l,
              unnest(l.keys, l.offs) u(k, o), unnest(lows, highs) g(lo, hi)
              where l.at + u.o > known and u.k >= g.lo and (g.hi = '' or u.k < g.hi))
            then return array[1, 0, 0, 0]; end if;
        end if;
      end if;
      prior := t;
      t := greatest(t + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint);
      if stamped <> '{}' then
        for i in 1..array_length(stamped, 1) loop
          shift := ofs[stamped[i]];
          ks[stamped[i]] := overlay(ks[stamped[i]]
            placing ondol_stamp_1(forms[i], s + shift, t + shift) from places[i] + 1 for 8);
        end loop;
      end if;
      insert into ondol_log values (d, s, cnt, t, me, prt, size, ks, ofs);
      if not wide then
        insert into ondol_row select d, k, s + o, int8send(t + o) || v
          from unnest(ks, vs, ofs) x(k, v, o);
      else
        insert into ondol_row select d, k, s + o, int8send(t + o) || v
          from unnest(ks, vs, ofs) x(k, v, o) where octet_length(k) <= \(longestHead);
        insert into ondol_long select d, substr(k, 1, \(longestHead)),
          sha256(substr(k, \(longestHead + 1))), substr(k, \(longestHead + 1)), s + o,
          int8send(t + o) || v
          from unnest(ks, vs, ofs) x(k, v, o) where octet_length(k) > \(longestHead);
      end if;
      if annotations <> '{}' then
        insert into ondol_history select d, s + x.o - 1, t + x.o - 1,
            case x.o when 1 then prior else t + x.o - 2 end,
            coalesce((select h.total from ondol_history h where h.db = d
              order by h.seq desc limit 1), 0)
              + sum(octet_length(x.a) + \(annotationBytes)) over (order by x.o),
            x.a
          from unnest(annotations) with ordinality x(a, o);
      end if;
      -- Nobody sees this before it is flushed with the group.
      if flush and alone then
        update ondol_database b set durable = s + cnt - 1 where b.db = d;
      end if;
      return array[0, s, t, alone::int];
    end $$;

    -- Fences an origin, and looks for a group of it behind `known`: {0, number, time}, {1} when it
    -- is not there and never will be, {2} when what is forgotten may have had it.
    create or replace function ondol_outcome_1(d int, org bigint, prt bigint, known bigint)
    returns bigint[] language plpgsql volatile as $$
    declare a bigint; t bigint;
    begin
      perform pg_advisory_xact_lock(7701, d);
      -- A row in any case: the flush that it brings makes what came before it durable.
      insert into ondol_fence (db, origin) values (d, org)
        on conflict (db, origin) do update set made = now();
      select l.at, l.time into a, t from ondol_log l where l.db = d and l.at > known
        and l.origin = org and l.part = prt order by l.at limit 1;
      if a is not null then return array[0, a, t]; end if;
      if known < (select p.seq from ondol_pin p where p.db = d and p.process = 0)
        then return array[2, 0, 0]; end if;
      return array[1, 0, 0];
    end $$;

    \(news)

    -- Forgets versions that nobody can need: of the keys written up to the new floor, all but the
    -- newest there. {how many, whether there may be more}.
    create or replace function ondol_forget_1(d int, most int)
    returns bigint[] language plpgsql volatile as $$
    declare lo bigint; hi bigint; gone bigint := 0; more bigint; gap record;
    begin
      select p.seq into lo from ondol_pin p where p.db = d and p.process = 0
        for update skip locked;
      if lo is null then return array[0, 0]; end if;
      delete from ondol_pin p where p.db = d and p.process <> 0 and p.until < now();
      delete from ondol_fence f where f.db = d and f.made < now() - interval '7 days';
      select least(
        (select l.at + l.n - 1 from ondol_log l where l.db = d order by l.at desc limit 1),
        (select min(p.seq) from ondol_pin p where p.db = d and p.process <> 0)) into hi;
      select max(x.at + x.n - 1) into hi from (select l.at, l.n from ondol_log l
        where l.db = d and l.at > lo and l.at + l.n - 1 <= hi order by l.at limit most) x;
      if hi is not null then
        with w as materialized (select distinct u.k from ondol_log l, unnest(l.keys) u(k)
            where l.db = d and l.at > lo and l.at <= hi),
          newest as materialized (select w.k, (select r.seq from ondol_row r where r.db = d
            and r.key = w.k and r.seq <= hi order by r.seq desc limit 1) s from w)
          -- The bound is said first, so that later versions are not read. As with news, each key
          -- is looked up by itself.
          delete from ondol_row r where r.ctid = any(array(select y.ctid from newest x,
            lateral (select q.ctid from ondol_row q where q.db = d and q.key = x.k
              and q.seq <= x.s and (q.seq < x.s or q.value is null) offset 0) y));
        get diagnostics gone = row_count;
        if exists (select from ondol_long r where r.db = d) then
          with w as materialized (select distinct substr(u.k, 1, \(longestHead)) h,
              sha256(substr(u.k, \(longestHead + 1))) g
              from ondol_log l, unnest(l.keys) u(k)
              where l.db = d and l.at > lo and l.at <= hi and octet_length(u.k) > \(longestHead)),
            newest as materialized (select w.h, w.g, (select r.seq from ondol_long r
              where r.db = d and r.head = w.h and r.digest = w.g and r.seq <= hi
              order by r.seq desc limit 1) s from w)
            delete from ondol_long r where r.ctid = any(array(select y.ctid from newest x,
              lateral (select q.ctid from ondol_long q where q.db = d and q.head = x.h
                and q.digest = x.g and q.seq <= x.s and (q.seq < x.s or q.value is null)
                offset 0) y));
          get diagnostics more = row_count;
          gone := gone + more;
        end if;
        -- The group at the floor stays: who knows less than the floor is refused.
        delete from ondol_log l where l.db = d and l.at < hi and l.at + l.n - 1 < hi;
        update ondol_pin p set seq = hi where p.db = d and p.process = 0;
        return array[gone, 1];
      end if;
      -- No more of those: a keyspace that is no more, some of its rows at a time.
      select q.keyspace k, q.seq s, decode(lpad(to_hex(q.keyspace), 8, '0'), 'hex') low,
        case when q.keyspace < 4294967295
          then decode(lpad(to_hex(q.keyspace + 1), 8, '0'), 'hex') end high
        into gap from ondol_drop q where q.db = d and q.seq <= lo limit 1;
      if gap.k is null then return array[0, 0]; end if;
      delete from ondol_row r where r.ctid = any(array(select x.ctid from ondol_row x where x.db = d
        and x.key >= gap.low and (gap.high is null or x.key < gap.high) and x.seq <= gap.s
        order by x.key, x.seq desc limit 10000));
      get diagnostics gone = row_count;
      delete from ondol_long r where r.ctid = any(array(select x.ctid from ondol_long x
        where x.db = d and x.head >= gap.low and (gap.high is null or x.head < gap.high)
        and x.seq <= gap.s
        order by x.head limit 10000));
      get diagnostics more = row_count;
      gone := gone + more;
      if gone = 0 then delete from ondol_drop q where q.db = d and q.keyspace = gap.k; end if;
      return array[gone, 1];
    end $$;

    -- Has commits go on behind number s at time t, and makes s the floor; false when it is not
    -- later than all there are.
    create or replace function ondol_skip_1(d int, s bigint, t bigint)
    returns bool language plpgsql volatile as $$
    declare last record;
    begin
      perform pg_advisory_xact_lock(7701, d);
      perform from ondol_pin p where p.db = d and p.process = 0 for update;
      select l.at + l.n - 1 as seq, l.time + l.n - 1 as time
        into last from ondol_log l where l.db = d order by l.at desc limit 1;
      if s <= last.seq or t <= last.time then return false; end if;
      insert into ondol_log values (d, s, 1, t, 0, 0, 0, '{}', '{}');
      delete from ondol_history h where h.db = d;
      delete from ondol_log l where l.db = d and l.at < s;
      delete from ondol_pin p where p.db = d and p.process <> 0;
      update ondol_pin p set seq = s where p.db = d and p.process = 0;
      return true;
    end $$;

    -- The lock of a content, whose id is random.
    create or replace function ondol_lock_1(c bytea)
    returns int language sql immutable as $$
      select ('x' || encode(substr(c, 1, 4), 'hex'))::bit(32)::int
    $$;

    -- Puts a part of a content; false when the row at `k` is gone. The lock sets it in line with
    -- ondol_cut_1. The commit that names it comes behind it in the server's log, so it need not be
    -- flushed.
    create or replace function ondol_put_1(d int, k bytea, c bytea, p int, b bytea)
    returns bool language plpgsql volatile as $$
    declare v bytea;
    begin
      perform set_config('synchronous_commit', 'off', true);
      perform pg_advisory_xact_lock_shared(7702, ondol_lock_1(c));
      select r.value into v from ondol_row r where r.db = d and r.key = k
        order by r.seq desc limit 1;
      if v is null then return false; end if;
      insert into ondol_part values (d, c, p, b) on conflict (db, content, part) do nothing;
      return true;
    end $$;

    -- Removes some parts of a content; how many. Whoever has seen the row that is gone has put its
    -- part before the lock is had.
    create or replace function ondol_cut_1(d int, c bytea)
    returns bigint language plpgsql volatile as $$
    declare start int; gone bigint;
    begin
      perform pg_advisory_xact_lock(7702, ondol_lock_1(c));
      select x.part into start from ondol_part x where x.db = d and x.content = c
        order by x.part limit 1;
      delete from ondol_part x where x.db = d and x.content = c
        and x.part < start::bigint + \(partsCutAtOnce);
      get diagnostics gone = row_count;
      return gone;
    end $$;

    -- Removes a database and all that is in it; false while another process than me has it open.
    create or replace function ondol_remove_1(d int, me bigint)
    returns bool language plpgsql volatile as $$
    begin
      perform pg_advisory_xact_lock(7701, d);
      -- The line of those who pin.
      perform from ondol_pin p where p.db = d and p.process = 0 for update;
      if exists (select from ondol_pin p
        where p.db = d and p.process not in (0, me) and p.until > now()) then return false; end if;
      delete from ondol_row r where r.db = d;
      delete from ondol_long r where r.db = d;
      delete from ondol_part c where c.db = d;
      delete from ondol_history h where h.db = d;
      delete from ondol_drop q where q.db = d;
      delete from ondol_fence f where f.db = d;
      delete from ondol_log l where l.db = d;
      delete from ondol_pin p where p.db = d;
      delete from ondol_database b where b.db = d;
      return true;
    end $$;

    -- Begins a load: 0, 1 when there are commits already, 2 while somebody else loads. What a load
    -- has left that did not come to its end is removed. The lock is the session's: whoever loads
    -- has it for as long as it lives.
    create or replace function ondol_load_1(d int)
    returns int language plpgsql volatile as $$
    declare head bigint; unfinished bool;
    begin
      if not pg_try_advisory_lock(7703, d) then return 2; end if;
      perform pg_advisory_xact_lock(7701, d);
      select b.loading into unfinished from ondol_database b where b.db = d;
      select l.at + l.n - 1 into head from ondol_log l where l.db = d order by l.at desc limit 1;
      if unfinished then
        delete from ondol_row r where r.db = d;
        delete from ondol_long r where r.db = d;
        delete from ondol_part c where c.db = d;
        delete from ondol_history h where h.db = d;
        delete from ondol_drop q where q.db = d;
        delete from ondol_fence f where f.db = d;
        delete from ondol_log l where l.db = d;
        delete from ondol_pin p where p.db = d;
        insert into ondol_pin (db, process, seq, until) values (d, 0, 0, 'infinity');
        insert into ondol_log (db, at, n, time, origin, part, size, keys, offs)
          values (d, 0, 1, 0, 0, 0, 0, '{}', '{}');
      elsif head > 0 then
        perform pg_advisory_unlock(7703, d);
        return 1;
      end if;
      -- Numbers begin anew.
      update ondol_database b set loading = true, durable = 0 where b.db = d;
      return 0;
    end $$;

    -- Pins a commit, whose time is `t`, that is not below the floor; null when it is, else the
    -- oldest pin. One that is not, or no more, one of the commits here is refused: whoever reads as
    -- of it shows what this server does not have. The shared lock sets it in line with
    -- ondol_forget_1.
    create or replace function ondol_hold_2(d int, p bigint, s bigint, t bigint, micros bigint)
    returns bigint language plpgsql volatile as $$
    declare f bigint;
    begin
      select x.seq into f from ondol_pin x where x.db = d and x.process = 0 for share;
      if s < f then return null; end if;
      if not exists (select from (select l.at, l.n, l.time from ondol_log l
          where l.db = d and l.at <= s order by l.at desc limit 1) l
          where s < l.at + l.n and l.time + s - l.at = t)
        then raise exception 'no commit % is known', s using errcode = 'OD001'; end if;
      insert into ondol_pin values (d, p, s, now() + micros * interval '1 microsecond')
        on conflict (db, process) do update set seq = excluded.seq, until = excluded.until;
      return (select min(x.seq) from ondol_pin x
        where x.db = d and x.process <> 0 and x.until > now());
    end $$;

    -- Lets go of what commits have said: what is older than `micros` or above `bytes`, but for the
    -- newest; all when the newest has said nothing. {how many, the commit up to which nothing is
    -- kept}. Two who come at once do not do it twice.
    create or replace function ondol_trim_1(d int, micros bigint, bytes bigint, most int)
    returns bigint[] language plpgsql volatile as $$
    declare head bigint; last bigint; whole bigint; low bigint; gone bigint := 0; oldest bigint;
    begin
      perform from ondol_pin p where p.db = d and p.process = 0 for update skip locked;
      if found then
        oldest := (extract(epoch from clock_timestamp()) * 1000000)::bigint - micros;
        -- As of one moment: a commit in between would look like one that has said nothing.
        select l.at + l.n - 1,
          (select h.seq from ondol_history h where h.db = d order by h.seq desc limit 1),
          (select h.total from ondol_history h where h.db = d order by h.seq desc limit 1),
          (select h.seq from ondol_history h where h.db = d order by h.seq limit 1)
          into head, last, whole, low
          from ondol_log l where l.db = d order by l.at desc limit 1;
        delete from ondol_history h where h.db = d and h.seq >= low and h.seq < low + most
          and h.seq <= last and (last < head or h.seq < last and (h.time < oldest
            or whole - h.total + octet_length(h.annotation) + \(annotationBytes) > bytes));
        get diagnostics gone = row_count;
      end if;
      select coalesce(
        (select h.seq - 1 from ondol_history h where h.db = d order by h.seq limit 1),
        l.at + l.n - 1)
        into low from ondol_log l where l.db = d order by l.at desc limit 1;
      return array[gone, low];
    end $$;
    """
}
