-- Version 3: the sessions that all machines together may begin are counted while they work.

alter table plimsoll.item
  -- So many may its present attempt use. They count as used until it is told how many it did use.
  add column sessions_allowed integer not null default 0;
