//! Compares what a session's first request says with the truth: item, file, lines and next step, each
//! separately.

use super::ledger::{EditedWith, ItemState, Ledger, StatedNextStep, Truth, UserChange};
use super::prompt_facts::PromptFacts;
use super::style::{FolderKind, NightStyle};
use super::work::{NightWork, Operation};
use serde::{Deserialize, Serialize};

/// The score of one resumed session: how accurately it was told where to continue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ResumeScore {
    /// The number of the session in its night.
    pub session: u32,
    /// The name of the item's state: `Half`, `Ticked` or `Fresh`.
    #[serde(rename = "class")]
    pub item_state: String,
    /// How the previous session ended.
    #[serde(rename = "after")]
    pub previous_session_end: String,
    /// Tags that show what makes the case difficult: the agent's style and the item's history.
    pub tags: Vec<String>,
    /// True if the item and every claim about it are right.
    #[serde(rename = "item")]
    pub is_item_right: bool,
    /// True if the last edited file is named and none of a finished item.
    #[serde(rename = "file")]
    pub is_file_right: bool,
    /// True if the lines of the last edit are right.
    #[serde(rename = "line")]
    pub are_lines_right: bool,
    /// True if the next step is quoted once, unchanged, and marked as a claim.
    #[serde(rename = "next")]
    pub is_next_step_right: bool,
    /// True if the section or the summary is in the request more than once.
    pub is_sent_twice: bool,
    /// Changes by users: how many the request mentions, and how many there were.
    #[serde(rename = "stale")]
    pub mentioned_user_changes: (u32, u32),
    /// Descriptions of everything that is wrong.
    #[serde(rename = "wrong")]
    pub mistakes: Vec<String>,
    /// The resume section, if something is wrong.
    #[serde(rename = "told")]
    pub resume_section: String,
}

impl ResumeScore {
    /// Returns true if item, file, lines and next step are right.
    pub fn is_right(&self) -> bool {
        self.is_item_right && self.is_file_right && self.are_lines_right && self.is_next_step_right
    }
}

pub(super) fn score_resume(
    facts: &PromptFacts,
    truth: &Truth,
    work: &NightWork,
    ledger: &Ledger,
    style: &NightStyle,
) -> ResumeScore {
    let name = &work.items[truth.item].name;
    let item_mistake = check_item(facts, truth, name, work, ledger);
    let file_mistake = check_file(facts, truth, work, ledger);
    let line_mistake = check_lines(facts, truth, work);
    let next_step_mistake = check_next_step(facts, truth);
    let mut score = ResumeScore {
        item_state: format!("{:?}", truth.item_state),
        tags: case_tags(truth, style),
        is_item_right: item_mistake.is_none(),
        is_file_right: file_mistake.is_none(),
        are_lines_right: line_mistake.is_none(),
        is_next_step_right: next_step_mistake.is_none(),
        is_sent_twice: is_sent_twice(facts, truth),
        mentioned_user_changes: count_mentioned_user_changes(facts, truth),
        ..ResumeScore::default()
    };
    let mistakes = [
        ("item", item_mistake),
        ("file", file_mistake),
        ("line", line_mistake),
        ("next step", next_step_mistake),
    ];
    score.mistakes =
        mistakes.into_iter().filter_map(|(part, mistake)| Some(format!("{part}: {}", mistake?))).collect();
    if !score.mistakes.is_empty()
        || score.is_sent_twice
        || score.mentioned_user_changes.0 < score.mentioned_user_changes.1
    {
        score.resume_section = facts.resume_section.clone().unwrap_or_else(|| "no resume section".to_owned());
    }
    score
}

fn case_tags(truth: &Truth, style: &NightStyle) -> Vec<String> {
    let mut tags = vec![
        format!("{:?}", style.folder).to_lowercase(),
        format!("commits {:?}", style.commits),
        format!("hands {:?}", style.edit_tools),
    ];
    let conditional_tags = [
        (style.has_pack, "pack"),
        (style.does_several_items, "several items a session"),
        (truth.session_count > 1, "a third session"),
        (truth.is_tick_forgotten, "forgotten tick"),
        (!truth.user_changes.is_empty(), "people"),
        (truth.item_state == ItemState::Half && truth.is_file_known, "file can be known"),
        (truth.item_state == ItemState::Half && truth.are_lines_known, "lines can be known"),
        (truth.edited_with == Some(EditedWith::Shell), "last edit by shell"),
        (style.folder != FolderKind::Plain && style.ticks_uncommitted, "ticks uncommitted"),
    ];
    tags.extend(conditional_tags.into_iter().filter(|(applies, _)| *applies).map(|(_, tag)| tag.to_owned()));
    tags
}

fn check_item(
    facts: &PromptFacts,
    truth: &Truth,
    item_name: &str,
    work: &NightWork,
    ledger: &Ledger,
) -> Option<String> {
    if let Some(other) = facts.prompt_item.as_ref().filter(|other| *other != item_name) {
        return Some(format!("the prompt asks for \"{other}\", it is \"{item_name}\""));
    }
    let is_ticked =
        |name: &&String| work.find_item(name).is_some_and(|item| ledger.is_item_ticked(work, item));
    if let Some(finished) = facts.item_in_progress.as_ref().filter(is_ticked) {
        return Some(format!("\"{finished}\" is finished, and is said to be in progress"));
    }
    match (truth.item_state, &facts.resume_section, &facts.item_in_progress, &facts.item_to_begin) {
        (ItemState::Half, None, ..) => Some(format!("nothing says that \"{item_name}\" is half done")),
        (ItemState::Half, _, Some(item), _) if item == item_name => None,
        (ItemState::Half, _, item, begin) => {
            Some(format!("in progress {item:?}, to begin {begin:?}: \"{item_name}\" is half done"))
        }
        (ItemState::Ticked | ItemState::Fresh, None, ..) if facts.prompt_item.is_some() => None,
        (ItemState::Ticked | ItemState::Fresh, _, _, Some(begin)) if begin == item_name => None,
        (ItemState::Fresh, _, Some(item), _) if item == item_name => None,
        (ItemState::Ticked | ItemState::Fresh, _, item, begin) => {
            Some(format!("in progress {item:?}, to begin {begin:?}: nobody has begun \"{item_name}\""))
        }
    }
}

fn check_file(facts: &PromptFacts, truth: &Truth, work: &NightWork, ledger: &Ledger) -> Option<String> {
    let named_files = || facts.file_rows.iter().filter(|row| !row.is_gone).map(|row| row.file.as_str());
    if let Some(finished) = named_files()
        .find(|file| truth.files_of_finished_items.iter().any(|finished_file| finished_file == file))
    {
        return Some(format!("{finished} belongs to a finished item"));
    }
    if let Some(gone) = named_files().find(|file| !ledger.file_exists(file)) {
        return Some(format!("{gone} is not there"));
    }
    let files_of_item: Vec<&str> =
        work.items[truth.item].steps.iter().map(Operation::affected_file).collect();
    match (&truth.last_edited_file, facts.first_existing_row()) {
        (None, None) => None,
        (None, Some(row)) => Some(format!("nothing of it is in a file, and {:?} is named", row.file)),
        (Some(file), None) if truth.is_file_known && !next_step_names_place(facts, file, truth) => {
            Some(format!("{file} was edited last, and none is named"))
        }
        (Some(_), None) => None,
        (Some(file), Some(row)) => {
            let is_accepted = |candidate: &String| {
                candidate == file
                    || Some(candidate) == truth.moved_file.as_ref()
                    || (!truth.is_file_known && truth.marked_files.contains(candidate))
            };
            let wrong_file = Some(&row.file).filter(|one| !is_accepted(one))?;
            let relation = if files_of_item.contains(&wrong_file.as_str()) {
                "of this item"
            } else {
                "not of this item"
            };
            Some(format!("{wrong_file} ({relation}) stands first, {file} was edited last"))
        }
    }
}

/// Returns true if the quoted next step names the file and line itself.
fn next_step_names_place(facts: &PromptFacts, file: &str, truth: &Truth) -> bool {
    let line = truth.last_edit_lines.map_or(0, |(_, last)| last + 1);
    let place = format!("{file} line {line},");
    facts.next_steps.iter().any(|(_, words)| words.contains(&place))
}

fn check_lines(facts: &PromptFacts, truth: &Truth, work: &NightWork) -> Option<String> {
    let (Some(file), Some((first, last))) = (&truth.last_edited_file, truth.last_edit_lines) else {
        // `check_file` has already reported a file of another item; this reports lines where nothing is
        // begun.
        let range = facts
            .first_existing_row()
            .filter(|_| truth.item_state != ItemState::Half)?
            .line_ranges
            .first()?;
        return Some(format!("lines {range:?} are named, and nothing is begun"));
    };
    let row = facts.file_rows.iter().find(|row| row.file == *file).filter(|row| !row.line_ranges.is_empty());
    let Some(row) = row else {
        let is_acceptable = next_step_names_place(facts, file, truth) || !truth.are_lines_known;
        return (!is_acceptable)
            .then(|| format!("no lines of {file} are named, the last edit is {first}-{last}"));
    };
    // In a new file every line is new. Only for a file that existed at the start is a range of all lines
    // uninformative.
    let covers_whole_file =
        row.line_ranges.iter().any(|(from, to)| *from <= 1 && to + 1 >= truth.file_line_count);
    let is_uninformative =
        covers_whole_file && work.existed_at_start(file) && last - first < truth.file_line_count / 2;
    let covers_last_edit = row.line_ranges.iter().any(|(from, to)| *from <= first && last <= *to);
    if covers_last_edit && !(is_uninformative && truth.are_lines_known) {
        return None;
    }
    let has_user_shifted_lines = truth
        .user_changes
        .iter()
        .any(|change| matches!(change, UserChange::Edited { file: of, .. } if of == file));
    (truth.are_lines_known || !has_user_shifted_lines)
        .then(|| format!("{:?} of {file} are named, the last edit is {first}-{last}", row.line_ranges))
}

fn check_next_step(facts: &PromptFacts, truth: &Truth) -> Option<String> {
    if truth.item_state == ItemState::Ticked
        && let Some(progress) = facts.progress_lines.first()
    {
        return Some(format!("progress of the item before is told: {progress}"));
    }
    let mistake = match (&truth.next_step, &facts.next_steps[..]) {
        (StatedNextStep::NotStated | StatedNextStep::ByEarlierSession(_), []) => return None,
        (StatedNextStep::NotStated, [(_, words), ..]) => {
            return Some(format!("invented, or of before: {words}"));
        }
        (StatedNextStep::ByLastSession(words), []) if facts.full_text.contains(words) => {
            return Some(format!("no line of its own: {words}"));
        }
        (StatedNextStep::ByLastSession(words), []) => return Some(format!("not told: {words}")),
        (
            StatedNextStep::ByLastSession(words) | StatedNextStep::ByEarlierSession(words),
            [(unchecked, line)],
        ) => {
            if line != words {
                return Some(format!("told \"{line}\", said \"{words}\""));
            }
            (!unchecked).then(|| "not marked as unchecked".to_owned())
        }
        (StatedNextStep::ByLastSession(_) | StatedNextStep::ByEarlierSession(_), lines) => {
            Some(format!("told {} times", lines.len()))
        }
    };
    let words = match &truth.next_step {
        StatedNextStep::ByLastSession(words) | StatedNextStep::ByEarlierSession(words) => words,
        StatedNextStep::NotStated => return mistake,
    };
    let occurrence_count = facts.full_text.matches(words.as_str()).count();
    mistake
        .or_else(|| (occurrence_count > 1).then(|| format!("stands in the request {occurrence_count} times")))
}

fn is_sent_twice(facts: &PromptFacts, truth: &Truth) -> bool {
    let occurs_twice = |words: &String| facts.full_text.matches(words.as_str()).count() > 1;
    facts.resume_section_count > 1 || truth.summary.as_ref().is_some_and(occurs_twice)
}

/// Counts the users' changes that the prompt of a half-done item mentions (commits by subject, deleted and
/// changed files by name), and all of them.
fn count_mentioned_user_changes(facts: &PromptFacts, truth: &Truth) -> (u32, u32) {
    if truth.item_state != ItemState::Half {
        return (0, 0);
    }
    let mentioned = truth.user_changes.iter().filter(|change| match change {
        UserChange::Edited { file, subject } => {
            facts.section_has_line(subject, ".")
                && facts.section_has_line(file, "(?i)chang|modified by|edited")
        }
        UserChange::Deleted { file, subject } => {
            facts.section_has_line(subject, ".") && facts.section_has_line(file, "(?i)gone|delet|no longer")
        }
        UserChange::OtherCommit { subject } => facts.section_has_line(subject, "."),
    });
    (mentioned.count() as u32, truth.user_changes.len() as u32)
}
