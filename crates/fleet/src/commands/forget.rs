//! `plimsoll fleet forget`: takes a fleet out of the database, and says what remains on the remote.

use super::status::{Whole, whole};
use super::steer::is_sure;
use super::words::branch_of;
use super::{CommandError, ask};
use crate::fleet::Fleet;
use plimsoll_domain::text::one_line;
use plimsoll_terminal::console::say;
use plimsoll_terminal::fleet_line::SureArguments;
use std::process::ExitCode;

/// So many branches are named.
const MOST: usize = 20;

/// Forgets it, after asking.
pub(super) fn forget(arguments: &SureArguments) -> Result<ExitCode, CommandError> {
    let whole = whole(&arguments.name)?;
    let name = one_line(&arguments.name);
    let left = whole.fleet.items.all - whole.fleet.items.merged;
    let question = format!(
        "Remove the fleet \"{name}\" with its journal from the database, with {} not merged? [y/N] ",
        super::words::count(left, "item")
    );
    if !is_sure(arguments, &question) {
        return Err(CommandError::NotSure);
    }
    let forgotten = arguments.name.clone();
    ask("forget the fleet", move |database| Fleet::open(database, &forgotten)?.forget())?;
    say(format!("the fleet `{name}` is no longer in the database"));
    say(remains(&whole));
    Ok(ExitCode::SUCCESS)
}

/// The branches of a fleet that may still be on its remote, with how to remove them.
fn remains(whole: &Whole) -> String {
    let Whole { fleet, items, .. } = whole;
    let work = (fleet.deliver == "branch").then(|| fleet.target.clone());
    let of_items = items.iter().filter_map(|item| branch_of(&fleet.name, item));
    let branches: Vec<String> = work.into_iter().chain(of_items).collect();
    let (repo, name) = (one_line(&fleet.repo), one_line(&fleet.name));
    let references = format!(
        "short texts and landed commits remain there below refs/plimsoll/{name}/; to remove them, too:\n  \
         git push origin --delete $(git ls-remote origin 'refs/plimsoll/{name}/*' | cut -f2)"
    );
    if branches.is_empty() {
        return format!("no branch of it remains on {repo}\n{references}");
    }
    let named: Vec<String> =
        branches.iter().take(MOST).map(|branch| format!("  {}\n", one_line(branch))).collect();
    let more = branches.len().saturating_sub(MOST);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let first = one_line(&branches[0]);
    format!(
        "these branches may remain on {repo}:\n{}{more}to remove one, in a clone: git push origin --delete {first}\n{references}",
        named.concat()
    )
}
