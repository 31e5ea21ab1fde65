-- Views for dashboards. Items are counted from 1 here, as people count them.

create function is_there(seen bigint) returns boolean language sql volatile
  return seen > moment() - lease_milliseconds();

create function at(milliseconds bigint) returns timestamptz language sql immutable
  return to_timestamp(milliseconds / 1000.0);

create view fleet_status as
  select plan.name as fleet, plan.repo, plan.target, plan.deliver, at(plan.created) as created,
    plan.began_at, plan.ended, plan.draining,
    case when plan.paused_until > moment() then at(plan.paused_until) end as paused_until,
    items.total as items, items.open, items.at_work, items.offered, items.merged, items.aside, items.questions,
    workers.there as workers, workers.machines, workers.cost, plan.max_cost, items.tokens, items.sessions
  from plan,
    (
      select count(*) as total,
        count(*) filter (where stage = 'open') as open,
        count(*) filter (where stage = 'leased') as at_work,
        count(*) filter (where stage = 'offered') as offered,
        count(*) filter (where stage = 'merged') as merged,
        count(*) filter (where stage = 'aside') as aside,
        count(*) filter (where stage = 'aside' and item.aside = 'question') as questions,
        coalesce(sum(tokens), 0)::bigint as tokens,
        coalesce(sum(sessions), 0)::bigint as sessions
      from item
    ) as items,
    (
      select count(*) filter (where is_there(seen)) as there,
        count(distinct machine) filter (where is_there(seen)) as machines,
        coalesce(sum(cost), 0) as cost
      from worker
    ) as workers;

create view fleet_items as
  select plan.name as fleet, item.place + 1 as item, item.text, item.stage, item.tries, item.worker,
    at(item.lease_until) as lease_until, item.sha as offered, item.aside, item.reason, item.note,
    item.landings, item.question, item.answer, item.cost, item.tokens, item.sessions, item.epoch
  from item, plan;

create view fleet_workers as
  select plan.name as fleet, worker.name as worker, worker.machine, worker.pid, worker.version,
    at(worker.started) as started, at(worker.seen) as seen, is_there(worker.seen) as is_there,
    worker.item + 1 as item, worker.session, worker.percent, worker.cost, worker.allowance
  from worker, plan;

create view fleet_costs as
  select plan.name as fleet, worker.machine, count(*) as workers, sum(worker.cost) as cost
  from worker, plan
  group by plan.name, worker.machine;
