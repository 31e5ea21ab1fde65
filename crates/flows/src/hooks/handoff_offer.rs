//! Offers the newest unread handoff at the start of a session outside a run.

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

/// Older handoffs are not offered, but `plimsoll handoffs` still lists them.
const MAX_OFFER_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Limits the time that SessionStart takes.
const MAX_HANDOFFS_CHECKED: usize = 8;

/// An offer to continue from a handoff, as one message for the user and one for the model.
pub(super) struct HandoffOffer {
    pub(super) for_user: String,
    pub(super) for_model: String,
}

/// Returns the offer of the newest unread handoff whose session has ended, and marks the handoff as offered, so that only
/// one session offers it. Returns `None` unless this is a new interactive session outside a run.
pub(super) fn claim_offer_of_newest_unread_handoff(
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
        let Some(unread_handoff) = index
            .find_unread_with_existing_file(&name)
            .filter(|handoff| handoff.session_id != invocation.session_id)
        else {
            continue;
        };
        let Some(age) = unread_handoff.age.filter(|age| *age <= MAX_OFFER_AGE) else { continue };
        let record = sessions::load_session_record(&invocation.project, &unread_handoff.session_id);
        // `mark_offered` returns false if another session that starts at the same time was faster.
        if has_ended_or_client_exited_or_is_current(&record, current_client) && index.mark_offered(&name) {
            let handoff_file = invocation.project.relative_to_root(&unread_handoff.path);
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

/// Returns true in `claude -p`, where no user can accept an offer. 2.1.329 sets `sdk-cli` there, and `cli` in a terminal.
pub(super) fn is_headless() -> bool {
    environment::variable("CLAUDE_CODE_ENTRYPOINT").is_some_and(|entrypoint| entrypoint.starts_with("sdk"))
}

/// Returns true if the session has ended, if its client process has exited or is unknown, or if its client is the current
/// one, which has started a new session with `/clear`. A session that still runs in another terminal needs no offer.
fn has_ended_or_client_exited_or_is_current(
    record: &SessionRecord,
    current_client: Option<ClientProcess>,
) -> bool {
    let has_exited = |ClientProcess { pid, started_at_ticks: start_time }: ClientProcess| {
        process::liveness_of_process(ProcessIdentity { pid, start_time }).has_ended()
    };
    let client = record.start.client;
    record.end.ended_at.is_some()
        || client.is_none_or(|client| Some(client) == current_client || has_exited(client))
}
