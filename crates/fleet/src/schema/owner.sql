-- Decisions of the user. Only the owner of the fleet may call these functions. They lock the plan first, as those of members do.

-- Stops new claims, or allows them again, which also ends a pause. False if nothing changes.
create function set_draining(should_drain boolean) returns boolean
language plpgsql set search_path from current set lock_timeout = '30s' as $$
begin
  perform require_read_committed();
  perform from plan for no key update;
  update plan set draining = should_drain, paused_until = case when should_drain then paused_until else 0 end
  where ended is null and (draining <> should_drain or not should_drain and paused_until > moment());
  if found then
    insert into event (at, kind) values (moment(), case when should_drain then 'draining' else 'resumed' end);
    return true;
  end if;
  return false;
end $$;

-- Ends the fleet for ever. False if it has ended already.
create function stop_fleet() returns boolean
language plpgsql set search_path from current set lock_timeout = '30s' as $$
begin
  perform require_read_committed();
  perform from plan for no key update;
  update plan set ended = 'stopped' where ended is null;
  if found then
    insert into event (at, kind) values (moment(), 'stopped');
    return true;
  end if;
  return false;
end $$;

-- Stores the answer to an item's question and reopens the item; failed tries are kept. False if the item has no open question.
create function answer_question(item_place integer, given_answer text) returns boolean
language plpgsql set search_path from current set lock_timeout = '30s' as $$
begin
  perform require_read_committed();
  perform from plan for no key update;
  update item set stage = 'open', aside = null, question = reason, reason = null, answer = given_answer
  where place = item_place and stage = 'aside' and aside = 'question';
  if not found then return false; end if;
  insert into event (at, item, epoch, kind, detail)
  select moment(), place, epoch, 'answered', one_line(given_answer) from item where place = item_place;
  return true;
end $$;

-- reopen_set_aside_item_and_reset_failures. With `also_merged`, reopens an item, too, that is recorded as merged: the caller has seen
-- that the target branch does not contain it. False if the item is in another stage.
create function reopen_item(item_place integer, also_merged boolean) returns boolean
language plpgsql set search_path from current set lock_timeout = '30s' as $$
begin
  perform require_read_committed();
  perform from plan for no key update;
  update item set stage = 'open', aside = null, reason = null, tries = 0
  where place = item_place and (stage = 'aside' or stage = 'merged' and also_merged);
  if not found then return false; end if;
  -- A fleet in which an item is open is not done.
  update plan set ended = null where ended = 'done';
  insert into event (at, item, epoch, kind)
  select moment(), place, epoch, 'reopened' from item where place = item_place;
  return true;
end $$;
