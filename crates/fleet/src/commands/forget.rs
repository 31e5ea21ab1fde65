//! `plimsoll fleet forget`: deletes a fleet from the database, and lists what may remain on the remote.

use super::fleet_control::confirm;
use super::fleet_text::{remote_branch_of_unmerged_item, remote_name_in_clone_or_origin};
use super::status::{FleetOverview, read_overview};
use super::{CommandError, connect_and_run_with_timeout};
use crate::fleet::Fleet;
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_terminal::console::{print_text, print_warning};
use plimsoll_terminal::fleet_command_line::ConfirmArguments;
use std::process::ExitCode;

/// Maximum number of branches in the list.
const MAX_SHOWN_BRANCHES: usize = 20;

/// Deletes a fleet from the database after a confirmation. Fails if workers are active.
pub(super) fn confirm_and_delete_fleet(arguments: &ConfirmArguments) -> Result<ExitCode, CommandError> {
    let overview = read_overview(&arguments.name)?;
    let name = to_safe_single_line(&arguments.name);
    let unmerged_count = overview.fleet.item_counts.total - overview.fleet.item_counts.merged;
    let question = format!(
        "Remove the fleet \"{name}\" with its journal from the database, with {} not merged? [y/N] ",
        super::fleet_text::count_u64_with_noun(unmerged_count, "item")
    );
    confirm("forget", arguments, &question)?;
    let fleet_name = arguments.name.clone();
    let role_error = connect_and_run_with_timeout("forget the fleet", move |database| {
        Fleet::open(database, &fleet_name)?.delete_if_no_active_workers()
    })?;
    print_text(format!("the fleet `{name}` is no longer in the database"));
    if let Some(role_error) = role_error {
        print_warning(&format!(
            "the role of its members can no longer log in, but it still exists: {}",
            to_safe_single_line(&role_error)
        ));
    }
    print_text(render_remaining_branches_and_cleanup(&overview));
    Ok(ExitCode::SUCCESS)
}

/// Lists the branches of a fleet that may still be on its remote, and how to delete them.
fn render_remaining_branches_and_cleanup(overview: &FleetOverview) -> String {
    let FleetOverview { fleet, items, .. } = overview;
    // A branch that the user has named may have been there before, or belong to another fleet.
    let target_branch =
        Some(fleet.target_branch.clone()).filter(|branch| *branch == format!("plimsoll/{}", fleet.name));
    let item_branches = items.iter().filter_map(|item| remote_branch_of_unmerged_item(&fleet.name, item));
    let branches: Vec<String> = target_branch.into_iter().chain(item_branches).collect();
    let (remote_address, name) =
        (to_safe_single_line(&fleet.remote_address), to_safe_single_line(&fleet.name));
    let remote = remote_name_in_clone_or_origin(&fleet.remote_address);
    let reference_cleanup_text = format!(
        "short texts and landed commits remain there below refs/plimsoll/{name}/; to remove them, too:\n  \
         git ls-remote {remote} 'refs/plimsoll/{name}/*' | cut -f2 | xargs -r git push {remote} --delete\n\
         worktrees of members remain on their machines, below ~/.local/state/plimsoll/trees/"
    );
    if branches.is_empty() {
        return format!("no branch of it remains on {remote_address}\n{reference_cleanup_text}");
    }
    let branch_lines: Vec<String> = branches
        .iter()
        .take(MAX_SHOWN_BRANCHES)
        .map(|branch| format!("  {}\n", to_safe_single_line(branch)))
        .collect();
    let omitted_count = branches.len().saturating_sub(MAX_SHOWN_BRANCHES);
    let omitted_line =
        if omitted_count > 0 { format!("  and {omitted_count} more\n") } else { String::new() };
    let first_branch = to_safe_single_line(&branches[0]);
    format!(
        "these branches may remain on {remote_address}:\n{}{omitted_line}to remove one, in a clone: git push {remote} --delete {first_branch}\n{reference_cleanup_text}",
        branch_lines.concat()
    )
}
