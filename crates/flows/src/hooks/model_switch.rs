//! PreModelSwitch: warns if the context does not fit the new model's window, and names the price of losing the cache.

use crate::context::measure::{self, MeasureInput};
use crate::hook_invocation::HookInvocation;
use crate::hook_response::HookResponse;
use crate::hooks::handoff_offer::is_headless;
use plimsoll_policy::model_switch::render_model_switch_warning;
use plimsoll_protocol::HookReply;
use plimsoll_protocol::event::ModelSwitch;
use plimsoll_store::ledger;

/// Returns the warning as a message for the user, which the client (2.1.332) shows below its own line about the switch.
/// The hook never decides: `ask` replaces the client's own question, but where the client cannot ask, as in `/config` and
/// in other programs that control it, `ask` refuses the switch.
pub(super) fn warn_about_model_switch_if_interactive(
    invocation: &HookInvocation,
    switch: &ModelSwitch,
) -> HookResponse {
    if ledger::run_id_from_environment().is_some() || is_headless() || invocation.payload.is_in_subagent() {
        return HookResponse::empty();
    }
    let input = MeasureInput {
        project: &invocation.project,
        settings: &invocation.settings,
        record: invocation.record(),
        transcript_path: None,
        pending_calls: &[],
    };
    let model = switch.to_model.as_deref();
    let window = measure::resolve_window_of_model(&input, model).map(|window| {
        (window.tokens, measure::compute_session_thresholds(&input, &window, model).auto_compact)
    });
    let reply = match render_model_switch_warning(switch, window) {
        Some(warning) => HookReply::default().with_user_message(warning),
        None => HookReply::default(),
    };
    HookResponse::from_reply(&reply).with_stderr_line(invocation.settings_error.as_ref())
}
