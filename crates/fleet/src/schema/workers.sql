-- Reports of workers, and their shares of what the whole fleet may use.

-- Inserts or updates a worker's row. The cost is a total, so that a repeated report is not counted twice, and it only grows. A
-- worker without an item needs no money, so its allowance is cleared.
create function report_worker(member_name text, member_token text, worker_number integer, machine_name text, process_id bigint,
  plimsoll_version text, session_id text, context_percent double precision, total_cost double precision, item_place integer)
returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  reporting_worker text := worker_name(member_name, worker_number);
begin
  perform authenticate(member_name, member_token);
  if is_cost(total_cost) is not true then
    raise exception 'usage only grows' using errcode = 'PL002';
  end if;
  -- All members read all workers.
  if not exists (select from worker where name = reporting_worker) and (select count(*) from worker) >= 10000 then
    raise exception 'a fleet has at most 10000 workers' using errcode = 'PL002';
  end if;
  insert into worker as known (name, machine, pid, version, started, seen, session, percent, cost, item)
  values (reporting_worker, left(machine_name, 100), process_id, left(plimsoll_version, 100), moment(),
    moment(), left(session_id, 100), context_percent,
    -- A limit that no worker reaches, so that no number of a member makes the sum of all costs fail.
    least(total_cost, 1e9), (select place from item where place = item_place))
  on conflict (name) do update set seen = excluded.seen, pid = excluded.pid, version = excluded.version,
    session = excluded.session, percent = excluded.percent, item = excluded.item,
    cost = greatest(known.cost, excluded.cost),
    allowance = case when excluded.item is not null then known.allowance end;
end $$;

-- Marks the workers of a member as gone, as if their last reports were older than a lease. Called when the member ends.
create function leave_fleet(member_name text, member_token text) returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  update worker set seen = least(seen, moment() - lease_milliseconds()), item = null, allowance = null
  where is_worker_of(name, member_name);
end $$;

-- The worker's share of the money that is left. All shares together never exceed the limit of the plan. Null if there is no share
-- now: `reserved` is then what other active workers may still spend.
create function money_share(asking_worker text, max_cost double precision, min_share double precision,
  out share double precision, out spent double precision, out reserved double precision)
language plpgsql stable as $$
declare
  others_without_money bigint;
  free double precision;
begin
  select coalesce(sum(cost), 0) into spent from worker;
  -- What a worker had reserved and not spent is free once it is not active.
  select coalesce(sum(unspent), 0), count(*) filter (where unspent < min_share) into reserved, others_without_money
  from (
    select greatest(coalesce(allowance, 0) - cost, 0) as unspent from worker
    where name <> asking_worker and seen > moment() - lease_milliseconds()
  ) as others;
  free := max_cost - spent - reserved;
  share := free / (1 + others_without_money);
  -- A remainder that is too small to share goes to one worker.
  if share < min_share and reserved < min_share then
    share := free;
  end if;
  if not share >= min_share then
    share := null;
  end if;
end $$;

-- How many of the sessions that are left the attempt at an item may use next. All shares together never exceed the limit of the
-- plan. Null if there is no share now: `reserved` is then what attempts at other items may still use.
create function session_share(item_place integer, max_sessions bigint, unreported_sessions bigint,
  out share bigint, out used bigint, out reserved bigint)
language plpgsql stable as $$
declare
  other_attempts bigint;
  active_workers bigint;
  free bigint;
begin
  select coalesce(sum(sessions), 0) + unreported_sessions,
    coalesce(sum(sessions_allowed) filter (where place <> item_place and stage = 'leased'), 0),
    count(*) filter (where place <> item_place and stage = 'leased' and sessions_allowed > 0)
  into used, reserved, other_attempts from item;
  select count(*) into active_workers from worker where seen > moment() - lease_milliseconds();
  free := max_sessions - used - reserved;
  if free > 0 then
    share := ceil(free::numeric / greatest(active_workers - other_attempts, 1));
  end if;
end $$;

-- Reserves money and sessions for a worker's run of an item. Locks the plan, because two reservations at the same time would reserve
-- the same money. `unreported_sessions` is how many sessions of the item's attempt are not reported yet.
create function reserve_budget(member_name text, member_token text, worker_number integer, item_place integer,
  unreported_sessions integer, min_cost double precision,
  out outcome text, out cost_share double precision, out session_count bigint, out spent_cost double precision,
  out cost_limit double precision)
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  asking_worker text := worker_name(member_name, worker_number);
  session_limit bigint;
  money record;
  sessions record;
begin
  perform authenticate(member_name, member_token);
  if unreported_sessions < 0 then
    raise exception 'usage only grows' using errcode = 'PL002';
  end if;
  unreported_sessions := least(unreported_sessions, 1000000);
  select max_cost, max_sessions into cost_limit, session_limit from plan for no key update;
  if cost_limit is not null then
    money := money_share(asking_worker, cost_limit, min_cost);
    spent_cost := money.spent;
    if money.share is null then
      outcome := case when money.reserved >= min_cost then 'wait' else 'money' end;
      return;
    end if;
    cost_share := money.share;
  end if;
  if session_limit is not null and item_place is not null then
    sessions := session_share(item_place, session_limit, unreported_sessions);
    if sessions.share is null then
      outcome := case when sessions.reserved > 0 then 'wait' else 'sessions' end;
      session_count := sessions.used;
      return;
    end if;
    session_count := sessions.share;
    update item set sessions_allowed = unreported_sessions + session_count
    where place = item_place and stage = 'leased' and is_worker_of(worker, member_name);
  end if;
  update worker set allowance = cost + cost_share where name = asking_worker and cost_share is not null;
  outcome := 'share';
end $$;
