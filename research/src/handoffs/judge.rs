//! Judges the text of a handoff by the truth. It knows nothing about the program's format except what the contract
//! says: a marker in the first line, Markdown headings, quoted requests, facts, and then the last exchanges.

mod handoff_text;
mod locations;
#[cfg(test)]
mod tests;

use super::truth::{EditMeans, Truth};
use handoff_text::{HandoffText, flatten};
use serde::Serialize;
use std::collections::BTreeMap;

/// Requests shorter than this, in characters, are searched as whole lines, because they occur in other words.
const MIN_SEARCHABLE_CHARS: usize = 16;
/// Longer lines may be cut off behind this many characters.
const MAX_COMPARED_CHARS: usize = 160;
/// How far a decision's reason may be from its choice, in bytes.
const MAX_DECISION_DISTANCE: usize = 1_500;

/// A fact that a handoff must keep, or something that it must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Fact {
    Request,
    Additions,
    Proposal,
    Decision,
    FailedCommand,
    File,
    Line,
    RecentFiles,
    UnprocessedResult,
    NextStep,
    Item,
    SecretsHidden,
    OneCopyOfRequest,
    OneMarker,
    FinishedRequestsNotCurrent,
    RepairedCommandsNotFailed,
    RevertedEditsNotShown,
    DoneItemsNotCurrent,
    DoneStepsNotNext,
}

impl Fact {
    pub const ALL: [Fact; 19] = [
        Fact::Request,
        Fact::Additions,
        Fact::Proposal,
        Fact::Decision,
        Fact::FailedCommand,
        Fact::File,
        Fact::Line,
        Fact::RecentFiles,
        Fact::UnprocessedResult,
        Fact::NextStep,
        Fact::Item,
        Fact::SecretsHidden,
        Fact::OneCopyOfRequest,
        Fact::OneMarker,
        Fact::FinishedRequestsNotCurrent,
        Fact::RepairedCommandsNotFailed,
        Fact::RevertedEditsNotShown,
        Fact::DoneItemsNotCurrent,
        Fact::DoneStepsNotNext,
    ];

    /// The label in tables.
    pub fn label(self) -> &'static str {
        match self {
            Fact::Request => "request, verbatim",
            Fact::Additions => "additions to the request",
            Fact::Proposal => "what a short answer refers to",
            Fact::Decision => "decision with its reason",
            Fact::FailedCommand => "failed command with its error line",
            Fact::File => "file edited last",
            Fact::Line => "line edited last",
            Fact::RecentFiles => "the three files edited last",
            Fact::UnprocessedResult => "decisive line of the open result",
            Fact::NextStep => "next step",
            Fact::Item => "current item",
            Fact::SecretsHidden => "no secret in the text",
            Fact::OneCopyOfRequest => "one copy of the request",
            Fact::OneMarker => "one marker of a handoff",
            Fact::FinishedRequestsNotCurrent => "finished requests are not current",
            Fact::RepairedCommandsNotFailed => "repaired commands are not failed",
            Fact::RevertedEditsNotShown => "reverted edits have no lines",
            Fact::DoneItemsNotCurrent => "done items are not current",
            Fact::DoneStepsNotNext => "done steps are not next",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    Kept,
    Lost,
    /// The conversation has no such fact.
    NotApplicable,
}

impl Outcome {
    fn kept_if(is_kept: bool) -> Outcome {
        if is_kept { Outcome::Kept } else { Outcome::Lost }
    }

    /// Returns `NotApplicable` if the fact is absent.
    fn from_optional<T>(fact: Option<T>, is_kept: impl FnOnce(T) -> bool) -> Outcome {
        fact.map_or(Outcome::NotApplicable, |fact| Outcome::kept_if(is_kept(fact)))
    }

    /// Returns `NotApplicable` if there are no values, and `Kept` if the condition is true for all.
    fn from_all<T>(values: &[T], is_kept: impl Fn(&T) -> bool) -> Outcome {
        if values.is_empty() { Outcome::NotApplicable } else { Outcome::kept_if(values.iter().all(is_kept)) }
    }
}

/// What a handoff kept.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub outcomes: BTreeMap<Fact, Outcome>,
    pub request_copies: usize,
}

impl Verdict {
    pub fn outcome(&self, fact: Fact) -> Outcome {
        self.outcomes.get(&fact).copied().unwrap_or(Outcome::NotApplicable)
    }

    /// Returns the outcome of item, file, line and next step together; those that do not apply are left out.
    pub fn outcome_of_item_file_line_and_step(&self) -> Outcome {
        let facts = [Fact::Item, Fact::File, Fact::Line, Fact::NextStep];
        Outcome::kept_if(facts.iter().all(|fact| self.outcome(*fact) != Outcome::Lost))
    }

    pub fn lost_facts(&self) -> Vec<Fact> {
        Fact::ALL.into_iter().filter(|fact| self.outcome(*fact) == Outcome::Lost).collect()
    }

    /// The verdict on a checkpoint that failed: every fact that the conversation has is lost.
    pub fn on_missing_text(truth: &Truth) -> Verdict {
        judge_handoff(truth, "")
    }
}

pub fn judge_handoff(truth: &Truth, text: &str) -> Verdict {
    let handoff = HandoffText::parse(text);
    let request_copies = count_request_copies(truth, &handoff);
    let herrings = &truth.outdated_statements;
    let current_request = &longest_request_part(truth);
    let judge_fact = |fact: Fact| match fact {
        Fact::Request => Outcome::kept_if(has_request(truth, &handoff)),
        Fact::Additions => Outcome::from_all(&truth.additions, |addition| handoff.contains(addition)),
        Fact::Proposal => {
            Outcome::from_optional(truth.proposal.as_ref(), |proposal| handoff.contains(proposal))
        }
        Fact::Decision => Outcome::kept_if(handoff.contains_near(
            &truth.decision.choice,
            &truth.decision.reason,
            MAX_DECISION_DISTANCE,
        )),
        Fact::FailedCommand => Outcome::from_optional(truth.failure.as_ref(), |failure| {
            handoff.contains(&failure.command) && handoff.contains(&beginning(&failure.error_line))
        }),
        Fact::File => Outcome::kept_if(handoff.names_changed_file(&truth.last_edit.path)),
        Fact::Line => Outcome::kept_if(names_last_edit(truth, &handoff)),
        Fact::RecentFiles => Outcome::from_all(&truth.recent_files, |path| handoff.names_changed_file(path)),
        Fact::UnprocessedResult => Outcome::from_optional(truth.unprocessed_result.as_ref(), |result| {
            handoff.contains(&beginning(&result.line))
        }),
        Fact::NextStep => {
            Outcome::from_optional(truth.next_step.as_ref(), |step| handoff.contains(&step.text))
        }
        Fact::Item => Outcome::from_optional(truth.item.as_ref(), |item| handoff.names_open_item(item)),
        Fact::SecretsHidden => Outcome::from_all(&truth.secrets, |secret| !text.contains(secret.as_str())),
        // The user may have given the same short answer twice.
        Fact::OneCopyOfRequest => Outcome::from_optional(
            (request_copies > 0 && !is_short_request(truth)).then_some(request_copies),
            |copies| copies == 1,
        ),
        Fact::OneMarker => Outcome::kept_if(handoff.marker_count() == 1),
        Fact::FinishedRequestsNotCurrent => Outcome::from_all(&herrings.finished_requests, |request| {
            !handoff.presents_as_last_request(request, current_request)
        }),
        Fact::RepairedCommandsNotFailed => {
            Outcome::from_all(&herrings.repaired_commands, |command| !handoff.presents_as_failed(command))
        }
        Fact::RevertedEditsNotShown => {
            Outcome::from_all(&herrings.reverted_files, |path| handoff.locations_in_facts(path).is_empty())
        }
        Fact::DoneItemsNotCurrent => {
            Outcome::from_all(&herrings.done_items, |item| !handoff.presents_as_current_item(item))
        }
        Fact::DoneStepsNotNext => Outcome::from_all(&herrings.done_steps, |step| {
            !handoff.presents_done_step_as_next(step, truth.next_step.as_ref().map(|step| step.text.as_str()))
        }),
    };
    Verdict { outcomes: Fact::ALL.into_iter().map(|fact| (fact, judge_fact(fact))).collect(), request_copies }
}

/// Returns the parts of the request that must be kept: without a secret, and without spaces at their ends.
fn request_parts(truth: &Truth) -> Vec<String> {
    match &truth.secret_in_request {
        Some(secret) => truth.request.split(secret.as_str()).map(flatten).collect(),
        None => vec![flatten(&truth.request)],
    }
}

fn has_request(truth: &Truth, handoff: &HandoffText) -> bool {
    request_parts(truth).iter().all(|part| count_request_part(truth, handoff, part) > 0)
}

fn is_short_request(truth: &Truth) -> bool {
    truth.request.chars().count() < MIN_SEARCHABLE_CHARS
}

/// Returns how often the request occurs, by its longest part.
fn count_request_copies(truth: &Truth, handoff: &HandoffText) -> usize {
    count_request_part(truth, handoff, &longest_request_part(truth))
}

fn longest_request_part(truth: &Truth) -> String {
    request_parts(truth).into_iter().max_by_key(String::len).unwrap_or_default()
}

fn count_request_part(truth: &Truth, handoff: &HandoffText, part: &str) -> usize {
    if is_short_request(truth) { handoff.count_whole_lines(part) } else { handoff.count(part) }
}

fn names_last_edit(truth: &Truth, handoff: &HandoffText) -> bool {
    let edit = &truth.last_edit;
    let overlaps = |location: &locations::LineRange| location.points_to(edit.first_line, edit.last_line);
    let is_new_file = edit.means == EditMeans::NewFile;
    handoff.locations(&edit.path).iter().any(overlaps) || is_new_file && handoff.names_new_file(&edit.path)
}

fn beginning(line: &str) -> String {
    flatten(line).chars().take(MAX_COMPARED_CHARS).collect()
}
