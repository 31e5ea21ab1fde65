//! At the start of an ordinary session: offers the last unread handoff, in one line.

use crate::handoffs::continue_slash_command_or_prompt;
use crate::hook_invocation::HookInvocation;
use plimsoll_domain::SessionRecord;
use plimsoll_domain::record::ClientProcess;
use plimsoll_launcher::process::{self, ProcessIdentity};
use plimsoll_policy::messages;
use plimsoll_protocol::event::SessionSource;
use plimsoll_store::handoff_index::HandoffState;
use plimsoll_store::{HandoffIndex, clock, environment, ledger, sessions};
use std::time::Duration;

/// An older handoff is still listed by `plimsoll handoffs`, but no longer offered.
const MAX_OFFER_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Limits the work at the start of a session.
const MAX_HANDOFFS_CHECKED: usize = 8;

/// An offer to continue, worded once for the user and once for the model.
pub(super) struct HandoffOffer {
    pub(super) for_user: String,
    pub(super) for_model: String,
}

/// Offers the newest unread handoff whose session has ended, and marks it as offered, so that it is offered
/// once. Only for a new interactive session that belongs to no run.
pub(super) fn offer_newest_unread_handoff(
    invocation: &HookInvocation,
    source: SessionSource,
    current_client: Option<ClientProcess>,
) -> Option<HandoffOffer> {
    let is_new_conversation = match source {
        SessionSource::Startup | SessionSource::Clear => true,
        // These sessions already have their conversation, or a summary of it.
        SessionSource::Resume | SessionSource::Fork | SessionSource::Compact => false,
    };
    if !is_new_conversation || ledger::run_id_from_environment().is_some() || is_headless() {
        return None;
    }
    let index = HandoffIndex::for_project(&invocation.project);
    for name in index.names_in_state(HandoffState::Unread).into_iter().take(MAX_HANDOFFS_CHECKED) {
        let Some(unread) =
            index.find_unread(&name).filter(|handoff| handoff.session_id != invocation.session_id)
        else {
            continue;
        };
        let Some(age) = unread.age.filter(|age| *age <= MAX_OFFER_AGE) else { continue };
        let record = sessions::load_session_record(&invocation.project, &unread.session_id);
        // Another session that starts at the same time may have taken it.
        if has_session_ended(&record, current_client) && index.mark_offered(&name) {
            let handoff_file = invocation.project.relative_to_root(&unread.path);
            let written_at = clock::format_short_local_time(clock::now() - age);
            return Some(HandoffOffer {
                for_user: messages::render_handoff_offer_for_user(
                    &continue_slash_command_or_prompt(&invocation.project, &handoff_file),
                    &written_at,
                ),
                for_model: messages::render_handoff_offer_for_model(&handoff_file, &written_at),
            });
        }
    }
    None
}

/// `claude -p` has no user who could take an offer (2.1.329 sets `sdk-cli` then, and `cli` in the terminal).
fn is_headless() -> bool {
    environment::variable("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entrypoint| entrypoint.starts_with("sdk"))
}

/// Returns true if a handoff's session has ended. One that still runs in another terminal continues by
/// itself. After `/clear`, the same client continues with a new session.
fn has_session_ended(record: &SessionRecord, current_client: Option<ClientProcess>) -> bool {
    let is_gone = |ClientProcess { pid, started_at_ticks: start_time }: ClientProcess| {
        process::liveness_of_process(ProcessIdentity { pid, start_time }).is_gone()
    };
    let client = record.start.client;
    record.end.ended_at.is_some()
        || client.is_none_or(|client| Some(client) == current_client || is_gone(client))
}
