-- What a member does with items: claims, leases and results. Each function does what the function of policy::workers does that is
-- named above it; a test compares them.
--
-- A member is known by its token. `search_path` is fixed, so that no object of the caller can take the place of one of these.

-- Fails unless each statement sees what others have committed before it. At another isolation level, which may be the default of a
-- server or a role, a function would decide by what it saw before it waited for a lock. The program repeats such a call.
create function require_read_committed() returns void language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the isolation level is not read committed' using errcode = 'PL003';
  end if;
end $$;

-- Fails unless the token belongs to the member. The first token that is given for a name belongs to it.
create function authenticate(member_name text, member_token text) returns void language plpgsql as $$
declare
  given_hash bytea := sha256(convert_to(member_token, 'UTF8'));
  known_hash bytea;
begin
  perform require_read_committed();
  select token_hash into known_hash from member where name = member_name;
  if not found then
    if length(member_token) < 32 then
      raise exception 'a token has at least 32 characters' using errcode = 'PL001';
    end if;
    if (select count(*) from member) >= 10000 then
      raise exception 'a fleet has at most 10000 members' using errcode = 'PL002';
    end if;
    insert into member (name, token_hash) values (member_name, given_hash) on conflict (name) do nothing;
    -- Another connection may have inserted the name meanwhile.
    select token_hash into known_hash from member where name = member_name;
  end if;
  if known_hash is distinct from given_hash then
    raise exception 'the member % has another token', member_name using errcode = 'PL001';
  end if;
end $$;

-- True if this is a worker of the member.
create function is_worker_of(worker_name text, member_name text) returns boolean language sql immutable
  return split_part(worker_name, '/', 1) = member_name;

-- Returns the name of a member's worker.
create function worker_name(member_name text, worker_number integer) returns text language plpgsql immutable as $$
begin
  if worker_number not between 1 and 64 then
    raise exception 'workers are numbered from 1 to 64' using errcode = 'PL002';
  end if;
  return member_name || '/' || worker_number;
end $$;

-- A text for the journal: one line of at most 500 characters.
create function one_line(content text) returns text language sql immutable
  return left(regexp_replace(content, '[[:cntrl:]]+', ' ', 'g'), 500);

-- claim_next_item: also claims nothing while the cost limit is reached or the fleet drains or has ended, nor an item that needs one
-- of the unconfirmed items, which the caller did not find in the target branch. Skips an item whose row is locked.
create function claim_item(member_name text, member_token text, worker_number integer, unconfirmed integer[],
  out claimed_place integer, out claimed_epoch bigint)
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  claimant text := worker_name(member_name, worker_number);
  clock bigint;
begin
  perform authenticate(member_name, member_token);
  -- Two claims at the same time would not see each other's areas.
  perform from plan where has_areas for no key update;
  -- Read only now: waiting for a lock may have taken time.
  clock := moment();
  perform from plan
    where not draining and ended is null and paused_until <= clock
      and (max_cost is null or max_cost > (select coalesce(sum(cost), 0) from worker));
  if not found then return; end if;
  with free as (
    select place from item
    where stage in ('open', 'leased') and (stage = 'open' or lease_until <= clock)
      and (needs = '{}' or not exists (
        select from item needed
        where needed.place = any (item.needs) and (needed.stage <> 'merged' or needed.place = any (unconfirmed))))
      and (areas = '{}' or not exists (
        select from item other
        where other.stage = 'leased' and other.lease_until > clock and overlap(item.areas, other.areas)))
    order by place limit 1
    for no key update of item skip locked
  ),
  taken as (
    update item set stage = 'leased', epoch = item.epoch + 1, worker = claimant, lease_until = clock + lease_milliseconds()
    from free where item.place = free.place
    returning item.place, item.epoch
  )
  insert into event (at, item, epoch, worker, kind) select clock, place, epoch, claimant, 'claimed' from taken
  returning item, epoch into claimed_place, claimed_epoch;
end $$;

-- renew_claim_unless_expired_and_area_taken, for a lease that has not expired. Renewals run in parallel, but wait for a claim: it
-- reads the other leases and then writes its own, and would miss a renewal between the two.
create function renew_lease(member_name text, member_token text, item_place integer, item_epoch bigint) returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  clock bigint;
begin
  perform authenticate(member_name, member_token);
  perform from plan where has_areas for share;
  clock := moment();
  update item set lease_until = greatest(lease_until, clock + lease_milliseconds())
  where place = item_place and epoch = item_epoch and stage = 'leased' and lease_until > clock
    and is_worker_of(worker, member_name);
  return found;
end $$;

-- renew_claim_unless_expired_and_area_taken, for any lease. Locks the plan, so that no other lease changes meanwhile.
create function renew_expired_lease(member_name text, member_token text, item_place integer, item_epoch bigint) returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  clock bigint;
begin
  perform authenticate(member_name, member_token);
  perform from plan for no key update;
  clock := moment();
  update item set lease_until = greatest(lease_until, clock + lease_milliseconds())
  where place = item_place and epoch = item_epoch and stage = 'leased' and is_worker_of(worker, member_name)
    and (lease_until > clock or not exists (
      select from item other
      where other.place <> item_place and other.stage = 'leased' and other.lease_until > clock
        and overlap(item.areas, other.areas)));
  return found;
end $$;

-- mark_claimed_item_ready_to_merge ('offered'), reopen_or_set_aside_after_failed_attempt ('failed'), set_claimed_item_aside
-- ('set_aside', with a question) and reopen_claimed_item ('given_back'). Also stores where the work ends and what it has used.
-- Returns false if the item is not leased to the member with this epoch.
create function store_result(member_name text, member_token text, item_place integer, item_epoch bigint, outcome text,
  detail text, end_commit text, base_commit text, used_cost double precision, used_tokens bigint, used_sessions integer)
returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  holder text;
  failed_tries integer;
  next_stage text;
  set_aside_kind text;
begin
  perform authenticate(member_name, member_token);
  if is_cost(used_cost) is not true or used_tokens < 0 or used_sessions < 0 then
    raise exception 'usage only grows' using errcode = 'PL002';
  end if;
  select worker, tries + (outcome = 'failed')::integer into holder, failed_tries from item
  where place = item_place and epoch = item_epoch and stage = 'leased' and is_worker_of(worker, member_name)
  for no key update;
  if not found then return false; end if;
  next_stage := case
    when outcome = 'offered' then 'offered'
    when outcome = 'given_back' then 'open'
    when outcome = 'failed' and failed_tries < 3 then 'open'
    when outcome in ('failed', 'set_aside') then 'aside'
  end;
  if next_stage is null then
    raise exception 'there is no outcome %', outcome using errcode = 'PL002';
  end if;
  if outcome = 'offered' and (is_commit(end_commit) and is_commit(base_commit)) is not true then
    raise exception 'offered work has a last commit and one before its first' using errcode = 'PL002';
  end if;
  -- A start without a base is of no use to the next attempt.
  if end_commit = '' or base_commit = '' then
    end_commit := '';
    base_commit := '';
  end if;
  if next_stage = 'aside' then
    set_aside_kind := case outcome when 'failed' then 'ended' else 'question' end;
  end if;
  detail := left(detail, 500);
  update item set stage = next_stage, worker = null, lease_until = null, tries = failed_tries, aside = set_aside_kind,
    sha = case when outcome = 'offered' then end_commit end,
    reason = case when next_stage = 'aside' then detail end,
    note = case when outcome = 'failed' then detail else note end,
    question = case when outcome = 'set_aside' then detail else question end,
    answer = case when outcome = 'set_aside' then null else answer end,
    start = end_commit, beyond = base_commit,
    -- Limits that no item reaches, so that no number of a member makes a later sum fail.
    cost = least(cost + used_cost, 1e9), tokens = least(tokens::numeric + used_tokens, 1e12),
    sessions = least(sessions::bigint + used_sessions, 1000000), sessions_allowed = 0
  where place = item_place;
  insert into event (at, item, epoch, worker, kind, detail)
  values (moment(), item_place, item_epoch, holder, outcome,
    one_line(case when outcome = 'offered' then end_commit else detail end));
  if outcome = 'failed' and next_stage = 'aside' then
    insert into event (at, item, epoch, worker, kind, detail)
    values (moment(), item_place, item_epoch, holder, 'set_aside', failed_tries || ' attempts failed');
  end if;
  return true;
end $$;
