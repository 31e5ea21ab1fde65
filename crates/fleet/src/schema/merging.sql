-- What the merger does, and what every member does with the target branch. Locks are taken in this order: the plan, then items.
--
-- The database cannot see the target branch. It stores what members say about it, and with which commit; every member checks that
-- commit in the branch before it builds on an item.

-- acquire_or_renew_merger_lease: returns the merger's epoch, or null if another member has the lease.
create function acquire_merger_lease(member_name text, member_token text) returns bigint
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  clock bigint;
  holder text;
  expires_at bigint;
  current_epoch bigint;
begin
  perform authenticate(member_name, member_token);
  select merger, merger_until, merger_epoch into holder, expires_at, current_epoch from plan for no key update;
  clock := moment();
  if expires_at > clock and holder <> member_name then return null; end if;
  if expires_at <= clock then
    current_epoch := current_epoch + 1;
    insert into event (at, worker, kind, detail) values (clock, member_name, 'merger', member_name);
  end if;
  update plan set merger = member_name, merger_until = clock + lease_milliseconds(), merger_epoch = current_epoch;
  return current_epoch;
end $$;

-- renew_current_merger_lease: false if another member has acquired the lease since.
create function renew_merger_lease(member_name text, member_token text, epoch_of_merger bigint) returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  perform from plan for no key update;
  update plan set merger_until = greatest(merger_until, moment() + lease_milliseconds())
  where merger = member_name and merger_epoch = epoch_of_merger;
  return found;
end $$;

-- release_merger_lease: false if another member has acquired the lease since.
create function release_merger_lease(member_name text, member_token text, epoch_of_merger bigint) returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  update plan set merger_until = 0 where merger = member_name and merger_epoch = epoch_of_merger;
  return found;
end $$;

-- record_merge_candidate_commit: false unless the member is the merger with this epoch and the item waits to be merged.
create function record_landing(member_name text, member_token text, epoch_of_merger bigint, item_place integer, commit text)
returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  known_landings text[];
begin
  perform authenticate(member_name, member_token);
  if is_commit(commit) is not true then
    raise exception 'that is no commit id' using errcode = 'PL002';
  end if;
  perform from plan where merger = member_name and merger_epoch = epoch_of_merger for no key update;
  if not found then return false; end if;
  select landings into known_landings from item where place = item_place and stage = 'offered' for no key update;
  if not found then return false; end if;
  if commit <> all (known_landings) then
    if cardinality(known_landings) >= 1000 then
      raise exception 'an item has at most 1000 landings' using errcode = 'PL002';
    end if;
    update item set landings = landings || commit where place = item_place;
    insert into event (at, item, epoch, worker, kind, detail)
    select moment(), place, epoch, member_name, 'landing', commit from item where place = item_place;
  end if;
  return true;
end $$;

-- reopen_or_set_aside_rejected_item: false unless the member is the merger with this epoch and the item waits to be merged. Also
-- stores where the next attempt begins.
create function reject_item(member_name text, member_token text, epoch_of_merger bigint, item_place integer, reject_note text,
  start_commit text, base_commit text) returns boolean
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  perform from plan where merger = member_name and merger_epoch = epoch_of_merger for no key update;
  if not found then return false; end if;
  update item set stage = case when tries + 1 < 3 then 'open' else 'aside' end,
    aside = case when tries + 1 < 3 then null else 'tries' end, reason = null,
    tries = tries + 1, sha = null, note = left(reject_note, 4000),
    start = case when base_commit = '' then '' else start_commit end,
    beyond = case when start_commit = '' then '' else base_commit end
  where place = item_place and stage = 'offered';
  if not found then return false; end if;
  insert into event (at, item, epoch, worker, kind, detail)
  select moment(), place, epoch, member_name, 'refused', one_line(reject_note) from item where place = item_place;
  insert into event (at, item, epoch, worker, kind, detail)
  select moment(), place, epoch, member_name, 'set_aside', tries || ' attempts failed' from item
  where place = item_place and stage = 'aside';
  return true;
end $$;

-- Stores a commit with which an item was merged and which the database has lost, for example because it was restored from a backup.
-- An item that a worker has is left alone: its result is found merged once it is offered.
create function restore_landing(member_name text, member_token text, item_place integer, commit text) returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  if is_commit(commit) is not true then
    raise exception 'that is no commit id' using errcode = 'PL002';
  end if;
  update item set landings = landings || commit
  where place = item_place and stage not in ('leased', 'merged') and commit <> all (landings) and cardinality(landings) < 1000;
  if found then
    insert into event (at, item, epoch, worker, kind, detail)
    select moment(), place, epoch, member_name, 'found', commit from item where place = item_place;
  end if;
end $$;

-- mark_items_in_target_as_merged: marks each of these items that was about to be merged with the commit beside it, and returns its
-- place. Only the merger marks an item that a worker has: the worker can then no longer offer its work.
create function mark_merged(member_name text, member_token text, places integer[], commits text[]) returns setof integer
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  clock bigint;
  is_merger boolean;
begin
  perform authenticate(member_name, member_token);
  select merger = member_name and merger_until > moment() into is_merger from plan for no key update;
  -- In the order of the places, so that two of these calls do not wait for each other.
  perform from item where stage <> 'merged' and place = any (places) order by place for no key update;
  clock := moment();
  return query
    with merged as (
      update item set stage = 'merged', worker = null, lease_until = null, sha = null, aside = null, reason = null,
        sessions_allowed = 0
      from unnest(places, commits) as found (found_place, found_commit)
      where stage <> 'merged' and (is_merger or stage <> 'leased' or lease_until <= clock)
        and place = found_place and found_commit = any (landings)
      returning place, epoch
    ),
    logged as (
      insert into event (at, item, epoch, worker, kind)
      select clock, place, epoch, member_name, 'merged' from merged order by place
    )
    select place from merged order by place;
end $$;

-- Adds verify commands of the plan that have passed on the target.
create function record_passed_commands(member_name text, member_token text, commands text[]) returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  update plan set passed = passed || array(
    (select unnest(commands) intersect select unnest(verify)) except select unnest(passed));
end $$;

-- pause_claims_at_least_until: for at most a day from now. Who still meets the limit then pauses again.
create function pause_claims(member_name text, member_token text, milliseconds bigint) returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
declare
  clock bigint;
  pause_end bigint;
begin
  perform authenticate(member_name, member_token);
  perform from plan for no key update;
  clock := moment();
  pause_end := clock + least(milliseconds, 24 * 60 * 60 * 1000);
  update plan set paused_until = pause_end where paused_until < pause_end and pause_end > clock;
  if found then
    insert into event (at, worker, kind) values (clock, member_name, 'paused');
  end if;
end $$;

-- Ends the fleet if every item is merged.
create function end_if_all_merged(member_name text, member_token text) returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  perform from plan for no key update;
  update plan set ended = 'done' where ended is null and not exists (select from item where stage <> 'merged');
  if found then
    insert into event (at, worker, kind) values (moment(), member_name, 'done');
  end if;
end $$;

-- Writes an event about a member itself into the journal.
create function record_member_event(member_name text, member_token text, event_kind text, item_place integer, event_detail text)
returns void
language plpgsql security definer set search_path from current set lock_timeout = '30s' as $$
begin
  perform authenticate(member_name, member_token);
  if event_kind not in ('joined', 'unconfirmed') then
    raise exception 'a member does not write that event' using errcode = 'PL002';
  end if;
  insert into event (at, item, worker, kind, detail)
  values (moment(), item_place, member_name, event_kind, one_line(event_detail));
end $$;
