//! Tells the shared board what the record has for it: first the branch is pushed, then the result is said. By a thread of its own,
//! for pushes take long and the board may be away.

use super::{BoardError, Shared};
use crate::workers::table::Table;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_store::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often what was not heard is said again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Until it is told to end. `notes` has what the sessions of an item noted below it.
pub(in super::super) fn deliver_outbox(
    table: &Table,
    shared: &Shared,
    ends: &AtomicBool,
    give_up: &dyn Fn() -> bool,
    notes: &dyn Fn(usize) -> Vec<String>,
) {
    while !ends.load(Ordering::Relaxed) {
        let first = table.now().member.and_then(|member| member.outbox.into_iter().next());
        let Some(result) = first else {
            shared.doze(RETRY_INTERVAL);
            if shared.is_remote_away() {
                let answer = shared.target.fetch(give_up);
                shared.heard_of_remote(answer.err().map(|error| error.to_string()));
                std::thread::sleep(RETRY_INTERVAL);
            }
            continue;
        };
        match deliver(table, shared, &result, give_up, notes) {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(RETRY_INTERVAL),
            Err(error) => shared.note_fault(error.to_string()),
        }
    }
}

/// True once it is heard, or need not be any more.
fn deliver(
    table: &Table,
    shared: &Shared,
    result: &ItemResult,
    give_up: &dyn Fn() -> bool,
    notes: &dyn Fn(usize) -> Vec<String>,
) -> Result<bool, StoreError> {
    let Ok(branch) = table.now().attempt_branch(result.item, result.epoch) else { return Ok(true) };
    let mut news = result.clone();
    // Also of an item that is not done: another machine may go on with it.
    let told = notes(result.item);
    // What the target has need not be pushed.
    if result.start != result.beyond {
        match shared.target.push_work(result, &branch, &told, give_up) {
            Ok(()) => shared.heard_of_remote(None),
            // Its objects are not what their ids say: no machine may build on them.
            Err(RemoteError::Own(error)) => {
                let outcome = ItemOutcome::Failed(error.to_string());
                news = ItemResult { start: String::new(), beyond: String::new(), outcome, ..news };
            }
            Err(RemoteError::GivenUp) => return Ok(false),
            Err(RemoteError::Rejected(why)) => {
                shared.note_fault(format!("the remote rejects the branch {branch}: {why}"));
                return Ok(false);
            }
            Err(error) => {
                shared.heard_of_remote(Some(error.to_string()));
                return Ok(false);
            }
        }
    }
    let said = match news.outcome {
        ItemOutcome::Kept => Ok(()),
        ItemOutcome::Offered | ItemOutcome::Failed(_) | ItemOutcome::Asked(_) | ItemOutcome::GivenBack => {
            shared.ask(|board| board.tell(&news))
        }
    };
    match said {
        Ok(()) | Err(BoardError::Fenced) => {
            table.change(|workers| {
                if let Some(member) = &mut workers.member {
                    member.outbox.retain(|known| known != result);
                }
            })?;
            shared.wake();
            Ok(true)
        }
        Err(BoardError::Away(_) | BoardError::Refused(_)) => Ok(false),
    }
}
