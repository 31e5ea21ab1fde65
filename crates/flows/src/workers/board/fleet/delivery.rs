//! Tells the shared board what the record has for it: first the branch is pushed, then the result is said. By a thread of its own,
//! for pushes take long and the board may be away.

use super::FleetBoard;
use crate::workers::error::BoardError;
use plimsoll_domain::workers::{ItemOutcome, ItemResult};
use plimsoll_launcher::remote_repository::RemoteError;
use plimsoll_store::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often what was not heard is said again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Until it is told to end. `notes` has what the sessions of an item noted below it.
pub(super) fn deliver_outbox(
    board: &FleetBoard,
    ends: &AtomicBool,
    give_up: &dyn Fn() -> bool,
    notes: &dyn Fn(usize) -> Vec<String>,
) {
    while !ends.load(Ordering::Relaxed) {
        let first = board.table.now().member.and_then(|member| member.outbox.into_iter().next());
        let Some(result) = first else {
            board.table.wait_for_change(RETRY_INTERVAL);
            // Nobody else asks whether it is back.
            if board.target.away().is_some() {
                let answer = board.target.fetch(give_up);
                board.target.note_away(answer.err().map(|error| error.to_string()));
                std::thread::sleep(RETRY_INTERVAL);
            }
            continue;
        };
        match deliver(board, &result, give_up, notes) {
            Ok(true) => {}
            Ok(false) => std::thread::sleep(RETRY_INTERVAL),
            Err(error) => board.note_fault(error.to_string()),
        }
    }
}

/// True once it is heard, or need not be any more.
fn deliver(
    board: &FleetBoard,
    result: &ItemResult,
    give_up: &dyn Fn() -> bool,
    notes: &dyn Fn(usize) -> Vec<String>,
) -> Result<bool, StoreError> {
    let Ok(branch) = board.table.now().attempt_branch(result.item, result.epoch) else { return Ok(true) };
    let mut news = result.clone();
    // Also of an item that is not done: another machine may go on with it.
    let told = notes(result.item);
    // What the target has need not be pushed.
    if result.start != result.beyond {
        match board.target.push_work(result, &branch, &told, give_up) {
            Ok(()) => board.target.note_away(None),
            // Its objects are not what their ids say: no machine may build on them.
            Err(RemoteError::Own(error)) => {
                let outcome = ItemOutcome::Failed(error.to_string());
                news = ItemResult { start: String::new(), beyond: String::new(), outcome, ..news };
            }
            Err(RemoteError::GivenUp) => return Ok(false),
            Err(RemoteError::Rejected(why)) => {
                board.note_fault(format!("the remote rejects the branch {branch}: {why}"));
                return Ok(false);
            }
            Err(error) => {
                board.target.note_away(Some(error.to_string()));
                return Ok(false);
            }
        }
    }
    tell(board, result, &news)
}

/// Tells the board, and forgets the result once it is heard. True if it is.
pub(super) fn tell(board: &FleetBoard, result: &ItemResult, news: &ItemResult) -> Result<bool, StoreError> {
    let said = match news.outcome {
        ItemOutcome::Kept => Ok(()),
        ItemOutcome::Offered | ItemOutcome::Failed(_) | ItemOutcome::Asked(_) | ItemOutcome::GivenBack => {
            board.ask(|connection| connection.tell(news))
        }
    };
    match said {
        Ok(()) | Err(BoardError::Fenced) => {
            board.table.change(|workers| {
                if let Some(member) = &mut workers.member {
                    member.outbox.retain(|known| known != result);
                }
            })?;
            Ok(true)
        }
        Err(BoardError::Away(_) | BoardError::Refused(_)) => Ok(false),
    }
}
