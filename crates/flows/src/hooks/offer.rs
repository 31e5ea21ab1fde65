//! At the start of an ordinary session: the last handoff that no session has been offered, in one line.

use crate::handoffs::continue_command;
use crate::hook_invocation::HookInvocation;
use plimsoll_domain::SessionRecord;
use plimsoll_domain::record::ClientProcess;
use plimsoll_launcher::process::{self, Identity};
use plimsoll_policy::words;
use plimsoll_protocol::event::Source;
use plimsoll_store::handoff_index::HandoffState;
use plimsoll_store::{HandoffIndex, clock, environment, ledger, sessions};
use std::time::Duration;

/// An older one is listed by `plimsoll handoffs`, and offered no more.
const OFFERED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// So many of the newest are looked at: a session that begins does not read all that ever were.
const LOOKED_AT: usize = 8;

/// The same offer for both.
pub(super) struct Offer {
    pub(super) for_user: String,
    pub(super) for_model: String,
}

/// Offers the newest unread handoff whose session is over, and marks it as offered, so that it is offered once.
/// Only to a session at which a user sits, that begins anew and belongs to no run.
pub(super) fn offer(call: &HookInvocation, source: Source, client: Option<ClientProcess>) -> Option<Offer> {
    let begins_anew = match source {
        Source::Startup | Source::Clear => true,
        // Its conversation is there, or what was compacted of it.
        Source::Resume | Source::Fork | Source::Compact => false,
    };
    if !begins_anew || ledger::run_of_environment().is_some() || is_headless() {
        return None;
    }
    let index = HandoffIndex::of(&call.project);
    for name in index.names(HandoffState::Unread).into_iter().take(LOOKED_AT) {
        let Some(found) = index.find_unread(&name).filter(|found| found.session_id != call.session_id) else {
            continue;
        };
        let Some(age) = found.age.filter(|age| *age <= OFFERED_FOR) else { continue };
        let record = sessions::load(&call.project, &found.session_id);
        // Another session that starts at this moment may have taken it.
        if is_over(&record, client) && index.mark_offered(&name) {
            let file = call.project.relative(&found.path);
            let written = clock::in_short(clock::now() - age);
            return Some(Offer {
                for_user: words::offer_to_user(&continue_command(&call.project, &file), &written),
                for_model: words::offer_to_model(&file, &written),
            });
        }
    }
    None
}

/// `claude -p` has nobody who could take an offer (2.1.329 says `sdk-cli` then, and `cli` in the terminal).
fn is_headless() -> bool {
    environment::variable("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entrypoint| entrypoint.starts_with("sdk"))
}

/// A session that still works in another terminal continues itself. After `/clear` the same client goes on with another.
fn is_over(record: &SessionRecord, mine: Option<ClientProcess>) -> bool {
    let is_gone =
        |ClientProcess { pid, started }: ClientProcess| process::life(Identity { pid, started }).is_gone();
    let client = record.start.client;
    record.end.ended_at.is_some() || client.is_none_or(|client| Some(client) == mine || is_gone(client))
}
