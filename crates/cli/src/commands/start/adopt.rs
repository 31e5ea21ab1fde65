//! `plimsoll start --adopt`: shows what would be taken of a state that another program wrote, asks, and takes it.

use super::StartCommandError;
use crate::console;
use crate::console::say_error;
use plimsoll_domain::RunState;
use plimsoll_domain::text::one_line;
use plimsoll_flows::run::lifecycle::NewRun;
use plimsoll_flows::run::lifecycle::adopt::{Given, Offer, carry_out, kept_at, look};
use plimsoll_store::Project;
use std::io::IsTerminal;

/// Shows, asks (unless `yes`) and takes; the error says why nothing was taken.
pub(super) fn adopt(
    project: &Project,
    new: &NewRun,
    given: &Given,
    yes: bool,
) -> Result<RunState, StartCommandError> {
    let offer = look(project, new, given)?;
    // Standard output is for `eval`.
    console::note(shown(&offer));
    if !yes {
        if !std::io::stdin().is_terminal() {
            return Err(StartCommandError::NoTerminal);
        }
        console::ask_aside("Take this over? [y/N] ");
        if !console::agrees() {
            return Err(StartCommandError::Declined);
        }
    }
    let state = carry_out(project, offer)?;
    say_error(&format!("the file as it was is kept in {}", project.relative(&kept_at(project))));
    Ok(state)
}

fn shown(offer: &Offer) -> String {
    let width = offer.rows.iter().map(|row| row.field.chars().count()).max().unwrap_or(0).min(30);
    let mut lines = vec![format!(
        "Plimsoll did not write {} (it has no {}). A run made from it would have:",
        one_line(&offer.file),
        offer.missing.join(" and no ")
    )];
    lines.extend(offer.rows.iter().map(|row| row.line(width)));
    lines.push(
        "Commands (verify, notify, the client) and limits come only from this command line.".to_owned(),
    );
    lines.extend(offer.careful.iter().map(|words| format!("Careful: {words}.")));
    lines.join("\n")
}
