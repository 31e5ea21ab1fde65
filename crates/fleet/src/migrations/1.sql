-- Version 1: a fleet's plan, its items, its workers and its journal.
-- Moments are milliseconds since 1970 by this server's clock. Names are qualified everywhere: behind PgBouncer no search_path holds.

-- The one clock of all fleets. The tests replace this function by one that says what they want.
create function plimsoll.moment() returns bigint language sql volatile as
  $$ select (extract(epoch from clock_timestamp()) * 1000)::bigint $$;

-- True if one of these paths is another, or contains it; the empty path is the whole project.
create function plimsoll.overlap(mine text[], theirs text[]) returns boolean language sql immutable as
  $$ select exists (
       select from unnest(mine) as one, unnest(theirs) as other
       where one = '' or other = '' or one = other
          or starts_with(one, other || '/') or starts_with(other, one || '/')) $$;

create table plimsoll.plan (
  id bigint generated always as identity primary key,
  name text not null unique check (name <> ''),
  repo text not null,
  target text not null,
  verify text[] not null,
  deliver text not null check (deliver in ('branch', 'merge')),
  objective_hash text not null,
  max_cost double precision check (max_cost >= 0),
  -- Some item states areas: then claims of this plan come one after the other.
  has_areas boolean not null,
  created bigint not null,
  paused_until bigint not null default 0,
  merger text not null default '',
  merger_until bigint not null default 0,
  merger_epoch bigint not null default 0
);

create table plimsoll.item (
  plan bigint not null references plimsoll.plan on delete cascade,
  place integer not null check (place >= 0),
  text text not null,
  needs integer[] not null,
  areas text[] not null,
  stage text not null check (stage in ('open', 'leased', 'offered', 'merged', 'aside')),
  epoch bigint not null default 0,
  tries integer not null default 0,
  worker text check (worker <> ''),
  lease_until bigint,
  sha text,
  aside text check (aside in ('tries', 'question', 'ended')),
  reason text,
  note text not null default '',
  landings text[] not null default '{}',
  primary key (plan, place),
  check ((stage = 'leased') = (worker is not null) and (stage = 'leased') = (lease_until is not null)),
  check ((stage = 'offered') = (sha is not null)),
  check ((stage = 'aside') = (aside is not null))
);
-- What a claim looks through: not what is done.
create index item_to_claim on plimsoll.item (plan, place) where stage in ('open', 'leased');
create index item_leased on plimsoll.item (plan) where stage = 'leased';
create index item_left on plimsoll.item (plan, place) where stage <> 'merged';

create table plimsoll.worker (
  plan bigint not null references plimsoll.plan on delete cascade,
  name text not null check (name <> ''),
  machine text not null,
  pid bigint not null,
  version text not null,
  started bigint not null,
  seen bigint not null,
  session text not null default '',
  percent double precision,
  cost double precision not null default 0,
  primary key (plan, name)
);

-- The journal. No foreign key: each new line would lock the row of its plan.
create table plimsoll.event (
  seq bigint generated always as identity primary key,
  at bigint not null,
  plan bigint not null,
  item integer,
  epoch bigint,
  worker text,
  kind text not null,
  detail text not null default ''
);
create index event_of_plan on plimsoll.event (plan, seq);

create function plimsoll.refuse_change() returns trigger language plpgsql as
  $$ begin raise exception 'lines of the journal are added, and go with their plan; they are never changed'; end $$;
create trigger event_is_append_only before update on plimsoll.event
  for each statement execute function plimsoll.refuse_change();
