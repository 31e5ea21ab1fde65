-- Version 2: what members on several machines have to agree on, and views for dashboards.

alter table plimsoll.plan
  -- The commit at which the fleet begins.
  add column began_at text not null default '',
  -- From the repository's root.
  add column plan_file text not null default '',
  add column plan_is_tracked boolean not null default false,
  -- The project's folder from the repository's root; empty for the root.
  add column below text not null default '',
  -- Verify commands that have passed on the target: from then on they must.
  add column passed text[] not null default '{}',
  add column promise text not null default '',
  add column max_sessions bigint check (max_sessions >= 0),
  -- Nothing new is claimed; what is begun is finished.
  add column draining boolean not null default false,
  add column ended text check (ended in ('done', 'stopped'));

alter table plimsoll.item
  -- Where the next attempt begins, and beyond which commit its own commits are.
  add column start text not null default '',
  add column beyond text not null default '',
  add column question text,
  add column answer text,
  -- Of sessions that have ended.
  add column cost double precision not null default 0,
  add column tokens bigint not null default 0,
  add column sessions integer not null default 0;

alter table plimsoll.worker
  add column item integer,
  -- What it may have cost in all when its present run ends, in dollars.
  add column allowance double precision;

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
