-- Version 1: a fleet's plan, its items, its workers, its journal, and views for dashboards.
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
  -- Nothing new is claimed; what is begun is finished.
  draining boolean not null default false,
  ended text check (ended in ('done', 'stopped'))
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
  -- Where the next attempt begins, and beyond which commit its own commits are.
  start text not null default '',
  beyond text not null default '',
  question text,
  answer text,
  -- Of sessions that have ended.
  cost double precision not null default 0,
  tokens bigint not null default 0,
  sessions integer not null default 0,
  -- So many sessions may its present attempt use. They count as used until it is told how many it did use.
  sessions_allowed integer not null default 0,
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
  item integer,
  -- What it may have cost in all when its present run ends, in dollars.
  allowance double precision,
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

-- A worker that was seen so many milliseconds ago, or less, is there: the length of a lease.
create function plimsoll.is_there(seen bigint) returns boolean language sql volatile as
  $$ select seen > plimsoll.moment() - 90000 $$;

create function plimsoll.at(moment bigint) returns timestamptz language sql immutable as
  $$ select to_timestamp(moment / 1000.0) $$;

-- Items are counted from 1 here, as people count them.
create view plimsoll.fleet_status as
  select plan.name as fleet, plan.repo, plan.target, plan.deliver, plimsoll.at(plan.created) as created,
    plan.began_at, plan.ended, plan.draining,
    case when plan.paused_until > plimsoll.moment() then plimsoll.at(plan.paused_until) end as paused_until,
    items.total as items, items.open, items.at_work, items.offered, items.merged, items.aside, items.questions,
    workers.there as workers, workers.machines, workers.cost, plan.max_cost, items.tokens, items.sessions
  from plimsoll.plan,
    lateral (
      select count(*) as total,
        count(*) filter (where stage = 'open') as open,
        count(*) filter (where stage = 'leased') as at_work,
        count(*) filter (where stage = 'offered') as offered,
        count(*) filter (where stage = 'merged') as merged,
        count(*) filter (where stage = 'aside') as aside,
        count(*) filter (where stage = 'aside' and item.aside = 'question') as questions,
        coalesce(sum(tokens), 0)::bigint as tokens,
        coalesce(sum(sessions), 0)::bigint as sessions
      from plimsoll.item where item.plan = plan.id
    ) as items,
    lateral (
      select count(*) filter (where plimsoll.is_there(seen)) as there,
        count(distinct machine) filter (where plimsoll.is_there(seen)) as machines,
        coalesce(sum(cost), 0) as cost
      from plimsoll.worker where worker.plan = plan.id
    ) as workers;

create view plimsoll.fleet_items as
  select plan.name as fleet, item.place + 1 as item, item.text, item.stage, item.tries, item.worker,
    plimsoll.at(item.lease_until) as lease_until, item.sha as offered, item.aside, item.reason, item.note,
    item.landings, item.question, item.answer, item.cost, item.tokens, item.sessions, item.epoch
  from plimsoll.item join plimsoll.plan on plan.id = item.plan;

create view plimsoll.fleet_workers as
  select plan.name as fleet, worker.name as worker, worker.machine, worker.pid, worker.version,
    plimsoll.at(worker.started) as started, plimsoll.at(worker.seen) as seen, plimsoll.is_there(worker.seen) as is_there,
    worker.item + 1 as item, worker.session, worker.percent, worker.cost, worker.allowance
  from plimsoll.worker join plimsoll.plan on plan.id = worker.plan;

create view plimsoll.fleet_costs as
  select plan.name as fleet, worker.machine, count(*) as workers, sum(worker.cost) as cost
  from plimsoll.worker join plimsoll.plan on plan.id = worker.plan
  group by plan.name, worker.machine;
