-- The rights of the role of the fleet's members, which has the name of the schema: {fleet}.

revoke all on all functions in schema {fleet} from public;
-- Views call these functions with the rights of whoever reads the view.
grant execute on function moment, lease_milliseconds, is_there, at to public;

grant usage on schema {fleet} to {fleet};
grant select on plan, item, worker, event, fleet_status, fleet_items, fleet_workers, fleet_costs to {fleet};
grant execute on function claim_item, renew_lease, renew_expired_lease, store_result, acquire_merger_lease, renew_merger_lease,
  release_merger_lease, record_landing, reject_item, restore_landing, mark_merged, record_passed_commands, pause_claims,
  end_if_all_merged, record_member_event, report_worker, leave_fleet, reserve_budget to {fleet};
