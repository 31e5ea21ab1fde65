-- The tables of one fleet, in a schema of its own. Timestamps are milliseconds since 1970 by this server's clock.
--
-- The role that creates the fleet owns everything here. The role of the fleet's members reads all tables except `member`, and
-- writes only by the functions that rights.sql grants to it.

-- The clock of the fleet. Tests replace this function.
create function moment() returns bigint language sql volatile
  return (extract(epoch from clock_timestamp()) * 1000)::bigint;

-- How long a lease lasts. A worker whose last report is not older counts as active.
create function lease_milliseconds() returns bigint language sql immutable
  return 90000;

-- True if one of these paths is another, or contains it; the empty path is the whole project.
create function overlap(mine text[], theirs text[]) returns boolean language sql immutable
  return exists (
    select from unnest(mine) as one, unnest(theirs) as other
    where one = '' or other = '' or one = other
      or starts_with(one, other || '/') or starts_with(other, one || '/'));

-- True for a full commit id, as git prints it.
create function is_commit(id text) returns boolean language sql immutable
  return id ~ '^([0-9a-f]{40}|[0-9a-f]{64})$';

-- True for an amount of dollars that only adds to others: neither negative, nor infinite, nor NaN, which is greater than all.
create function is_cost(amount double precision) returns boolean language sql immutable
  return amount >= 0 and amount < 'infinity';

-- The plan: one row.
create table plan (
  is_only_row boolean primary key default true check (is_only_row),
  schema_version integer not null,
  name text not null check (name <> ''),
  repo text not null,
  target text not null,
  verify text[] not null,
  deliver text not null check (deliver in ('branch', 'merge')),
  objective_hash text not null,
  max_cost double precision check (max_cost >= 0),
  -- True if some item states areas: then claims come one after the other.
  has_areas boolean not null,
  created bigint not null,
  paused_until bigint not null default 0,
  -- The member that merges, until when, and how often this has changed.
  merger text not null default '',
  merger_until bigint not null default 0,
  merger_epoch bigint not null default 0,
  -- The commit at which the fleet begins.
  began_at text not null default '',
  -- From the repository's root.
  plan_file text not null default '',
  plan_is_tracked boolean not null default false,
  -- The project's folder from the repository's root; empty for the root.
  below text not null default '',
  -- Verify commands that have passed on the target: from then on they must.
  passed text[] not null default '{}',
  promise text not null default '',
  max_sessions bigint check (max_sessions >= 0),
  -- True if nothing new is claimed; items that were begun are finished.
  draining boolean not null default false,
  ended text check (ended in ('done', 'stopped'))
);

create table item (
  place integer primary key check (place >= 0),
  text text not null,
  needs integer[] not null,
  areas text[] not null,
  stage text not null check (stage in ('open', 'leased', 'offered', 'merged', 'aside')),
  epoch bigint not null default 0,
  tries integer not null default 0,
  -- The worker that has the lease: MEMBER/NUMBER.
  worker text check (worker <> ''),
  lease_until bigint,
  sha text check (is_commit(sha)),
  aside text check (aside in ('tries', 'question', 'ended')),
  reason text,
  note text not null default '',
  -- The commits with which mergers were about to merge it. A merged item without one was done when the fleet was created.
  landings text[] not null default '{}',
  -- Where the next attempt begins, and after which commit its own commits begin.
  start text not null default '' check (start = '' or is_commit(start)),
  beyond text not null default '' check (beyond = '' or is_commit(beyond)),
  question text,
  answer text,
  -- Usage of sessions that have ended.
  cost double precision not null default 0 check (is_cost(cost)),
  tokens bigint not null default 0 check (tokens >= 0),
  sessions integer not null default 0 check (sessions >= 0),
  -- How many sessions its present attempt may use. They count as used until the attempt reports how many it did use.
  sessions_allowed integer not null default 0 check (sessions_allowed >= 0),
  check ((stage = 'leased') = (worker is not null) and (stage = 'leased') = (lease_until is not null)),
  check ((stage = 'offered') = (sha is not null)),
  constraint item_start_and_base check ((start = '') = (beyond = '') and (stage <> 'offered' or start <> '')),
  check ((stage = 'aside') = (aside is not null))
);
-- For claims, which skip what is done.
create index item_to_claim on item (place) where stage in ('open', 'leased');
create index item_leased on item (place) where stage = 'leased';
create index item_unmerged on item (place) where stage <> 'merged';

-- The members and the hashes of their tokens. No role but the owner can read this table.
create table member (
  name text primary key check (name ~ '^[A-Za-z0-9_.-]{1,100}$'),
  token_hash bytea not null
);

create table worker (
  -- MEMBER/NUMBER
  name text primary key,
  machine text not null,
  pid bigint not null,
  version text not null,
  started bigint not null,
  seen bigint not null,
  session text not null default '',
  percent double precision,
  -- In dollars, since the worker began.
  cost double precision not null default 0 check (is_cost(cost)),
  item integer,
  -- What it may have cost in total when its present run ends.
  allowance double precision
);

-- The journal.
create table event (
  seq bigint generated always as identity primary key,
  at bigint not null,
  item integer,
  epoch bigint,
  worker text,
  kind text not null,
  detail text not null default ''
);

create function refuse_change() returns trigger language plpgsql as
  $$ begin raise exception 'events of the journal are never changed'; end $$;
create trigger event_is_append_only before update on event
  for each statement execute function refuse_change();
