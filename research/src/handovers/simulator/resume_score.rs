//! Compares a session's first request with the ground truth: item, file, lines and next step, each separately.

use super::ledger::{EditMethod, GroundTruth, ItemState, Ledger, StatedNextStep, UserChange};
use super::prompt_parser::ParsedPrompt;
use super::style::{AgentStyle, FolderKind};
use super::work::{Operation, SimulatedWork};
use serde::{Deserialize, Serialize};

/// The score of one resumed session: how accurately its first request states where to continue.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ResumeScore {
    /// The number of the session in its run.
    pub session: u32,
    /// The name of the item's state: `Half`, `Ticked` or `Fresh`.
    #[serde(rename = "class")]
    pub item_state: String,
    /// How the previous session ended.
    #[serde(rename = "after")]
    pub previous_session_end: String,
    /// Tags that show what makes the case difficult: the agent's style and the item's history.
    pub tags: Vec<String>,
    /// True if the item and every claim about it are correct.
    #[serde(rename = "item")]
    pub is_item_correct: bool,
    /// True if the last edited file is named, and no file of a finished item is.
    #[serde(rename = "file")]
    pub is_file_correct: bool,
    /// True if the lines of the last edit are correct.
    #[serde(rename = "line")]
    pub are_lines_correct: bool,
    /// True if the next step is quoted once, unchanged, and marked as a claim.
    #[serde(rename = "next")]
    pub is_next_step_correct: bool,
    /// True if the section or the summary is in the request more than once.
    pub is_sent_twice: bool,
    /// Changes by users: the number that the request mentions, and the number of all.
    #[serde(rename = "stale")]
    pub mentioned_user_changes: (u32, u32),
    /// Descriptions of all mistakes.
    #[serde(rename = "wrong")]
    pub mistakes: Vec<String>,
    /// The resume section, if there is a mistake.
    #[serde(rename = "told")]
    pub resume_section: String,
}

impl ResumeScore {
    /// Returns true if item, file, lines and next step are correct.
    pub fn is_fully_correct(&self) -> bool {
        self.is_item_correct && self.is_file_correct && self.are_lines_correct && self.is_next_step_correct
    }
}

pub(super) fn score_resume(
    prompt: &ParsedPrompt,
    truth: &GroundTruth,
    work: &SimulatedWork,
    ledger: &Ledger,
    style: &AgentStyle,
) -> ResumeScore {
    let name = &work.items[truth.item].name;
    let item_mistake = find_item_mistake(prompt, truth, name, work, ledger);
    let file_mistake = find_file_mistake(prompt, truth, work, ledger);
    let line_mistake = find_line_mistake(prompt, truth, work);
    let next_step_mistake = find_next_step_mistake(prompt, truth);
    let mut score = ResumeScore {
        item_state: format!("{:?}", truth.item_state),
        tags: difficulty_tags(truth, style),
        is_item_correct: item_mistake.is_none(),
        is_file_correct: file_mistake.is_none(),
        are_lines_correct: line_mistake.is_none(),
        is_next_step_correct: next_step_mistake.is_none(),
        is_sent_twice: is_section_or_summary_sent_twice(prompt, truth),
        mentioned_user_changes: count_mentioned_and_all_changes_if_half_done(prompt, truth),
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
        score.resume_section =
            prompt.resume_section.clone().unwrap_or_else(|| "no resume section".to_owned());
    }
    score
}

fn difficulty_tags(truth: &GroundTruth, style: &AgentStyle) -> Vec<String> {
    let mut tags = vec![
        format!("{:?}", style.folder).to_lowercase(),
        format!("commits {:?}", style.commits),
        format!("hands {:?}", style.edit_tools),
    ];
    let conditional_tags = [
        (style.uses_pack_option, "pack"),
        (style.does_several_items_per_session, "several items a session"),
        (truth.session_count > 1, "a third session"),
        (truth.is_tick_forgotten, "forgotten tick"),
        (!truth.user_changes.is_empty(), "people"),
        (truth.item_state == ItemState::Half && truth.is_file_determinable, "file can be known"),
        (truth.item_state == ItemState::Half && truth.are_lines_determinable, "lines can be known"),
        (truth.edit_method == Some(EditMethod::Shell), "last edit by shell"),
        (style.folder != FolderKind::Plain && style.ticks_uncommitted, "ticks uncommitted"),
    ];
    tags.extend(conditional_tags.into_iter().filter(|(applies, _)| *applies).map(|(_, tag)| tag.to_owned()));
    tags
}

fn find_item_mistake(
    prompt: &ParsedPrompt,
    truth: &GroundTruth,
    expected_item_name: &str,
    work: &SimulatedWork,
    ledger: &Ledger,
) -> Option<String> {
    if let Some(wrong_item) = prompt.requested_item.as_ref().filter(|other| *other != expected_item_name) {
        return Some(format!("the prompt asks for \"{wrong_item}\", it is \"{expected_item_name}\""));
    }
    let is_ticked =
        |name: &&String| work.find_item(name).is_some_and(|item| ledger.is_item_ticked(work, item));
    if let Some(finished_item) = prompt.item_in_progress.as_ref().filter(is_ticked) {
        return Some(format!("\"{finished_item}\" is finished, and is said to be in progress"));
    }
    match (truth.item_state, &prompt.resume_section, &prompt.item_in_progress, &prompt.item_to_begin) {
        (ItemState::Half, None, ..) => {
            Some(format!("nothing says that \"{expected_item_name}\" is half done"))
        }
        (ItemState::Half, _, Some(item), _) if item == expected_item_name => None,
        (ItemState::Half, _, item, item_to_begin) => Some(format!(
            "in progress {item:?}, to begin {item_to_begin:?}: \"{expected_item_name}\" is half done"
        )),
        (ItemState::Ticked | ItemState::Fresh, None, ..) if prompt.requested_item.is_some() => None,
        (ItemState::Ticked | ItemState::Fresh, _, _, Some(item_to_begin))
            if item_to_begin == expected_item_name =>
        {
            None
        }
        (ItemState::Fresh, _, Some(item), _) if item == expected_item_name => None,
        (ItemState::Ticked | ItemState::Fresh, _, item, item_to_begin) => Some(format!(
            "in progress {item:?}, to begin {item_to_begin:?}: nobody has begun \"{expected_item_name}\""
        )),
    }
}

fn find_file_mistake(
    prompt: &ParsedPrompt,
    truth: &GroundTruth,
    work: &SimulatedWork,
    ledger: &Ledger,
) -> Option<String> {
    let files_in_table =
        || prompt.file_rows.iter().filter(|row| !row.is_deleted).map(|row| row.file.as_str());
    if let Some(file_of_finished_item) = files_in_table().find(|file| {
        truth.files_in_ticked_items_not_in_open_item.iter().any(|finished_file| finished_file == file)
    }) {
        return Some(format!("{file_of_finished_item} belongs to a finished item"));
    }
    if let Some(missing_file) = files_in_table().find(|file| !ledger.file_exists(file)) {
        return Some(format!("{missing_file} is not there"));
    }
    let files_of_item: Vec<&str> =
        work.items[truth.item].steps.iter().map(Operation::affected_file).collect();
    match (&truth.last_edited_file, prompt.first_row_not_deleted()) {
        (None, None) => None,
        (None, Some(row)) => Some(format!("nothing of it is in a file, and {:?} is named", row.file)),
        (Some(file), None)
            if truth.is_file_determinable && !next_step_names_location(prompt, file, truth) =>
        {
            Some(format!("{file} was edited last, and none is named"))
        }
        (Some(_), None) => None,
        (Some(file), Some(row)) => {
            let is_accepted = |candidate: &String| {
                candidate == file
                    || Some(candidate) == truth.moved_file.as_ref()
                    || (!truth.is_file_determinable && truth.marked_files.contains(candidate))
            };
            let wrong_file = Some(&row.file).filter(|row_file| !is_accepted(row_file))?;
            let relation_to_item = if files_of_item.contains(&wrong_file.as_str()) {
                "of this item"
            } else {
                "not of this item"
            };
            Some(format!("{wrong_file} ({relation_to_item}) stands first, {file} was edited last"))
        }
    }
}

/// Returns true if a quoted next step names the file and the line after the last edit.
fn next_step_names_location(prompt: &ParsedPrompt, file: &str, truth: &GroundTruth) -> bool {
    let line = truth.last_edit_lines.map_or(0, |(_, last)| last + 1);
    let location = format!("{file} line {line},");
    prompt.next_steps.iter().any(|(_, text)| text.contains(&location))
}

fn find_line_mistake(prompt: &ParsedPrompt, truth: &GroundTruth, work: &SimulatedWork) -> Option<String> {
    let (Some(file), Some((first, last))) = (&truth.last_edited_file, truth.last_edit_lines) else {
        // `find_file_mistake` already reports a file of another item. This reports lines of an item that has not
        // been started.
        let range = prompt
            .first_row_not_deleted()
            .filter(|_| truth.item_state != ItemState::Half)?
            .line_ranges
            .first()?;
        return Some(format!("lines {range:?} are named, and nothing is begun"));
    };
    let row_with_lines =
        prompt.file_rows.iter().find(|row| row.file == *file).filter(|row| !row.line_ranges.is_empty());
    let Some(row) = row_with_lines else {
        let may_lines_be_missing =
            next_step_names_location(prompt, file, truth) || !truth.are_lines_determinable;
        return (!may_lines_be_missing)
            .then(|| format!("no lines of {file} are named, the last edit is {first}-{last}"));
    };
    // In a new file every line is new. A range of all lines is uninformative only if the file existed at the
    // start.
    let covers_whole_file =
        row.line_ranges.iter().any(|(from, to)| *from <= 1 && to + 1 >= truth.file_line_count);
    let is_uninformative =
        covers_whole_file && work.existed_at_start(file) && last - first < truth.file_line_count / 2;
    let covers_last_edit = row.line_ranges.iter().any(|(from, to)| *from <= first && last <= *to);
    if covers_last_edit && !(is_uninformative && truth.are_lines_determinable) {
        return None;
    }
    let has_user_shifted_lines = truth
        .user_changes
        .iter()
        .any(|change| matches!(change, UserChange::Edited { file: edited_file, .. } if edited_file == file));
    (truth.are_lines_determinable || !has_user_shifted_lines)
        .then(|| format!("{:?} of {file} are named, the last edit is {first}-{last}", row.line_ranges))
}

fn find_next_step_mistake(prompt: &ParsedPrompt, truth: &GroundTruth) -> Option<String> {
    if truth.item_state == ItemState::Ticked
        && let Some(progress) = prompt.progress_lines.first()
    {
        return Some(format!("progress of the item before is told: {progress}"));
    }
    let mistake = match (&truth.next_step, &prompt.next_steps[..]) {
        (StatedNextStep::NotStated | StatedNextStep::ByEarlierSession(_), []) => return None,
        (StatedNextStep::NotStated, [(_, text), ..]) => {
            return Some(format!("invented, or of before: {text}"));
        }
        (StatedNextStep::ByLastSession(stated_text), []) if prompt.full_text.contains(stated_text) => {
            return Some(format!("no line of its own: {stated_text}"));
        }
        (StatedNextStep::ByLastSession(stated_text), []) => return Some(format!("not told: {stated_text}")),
        (
            StatedNextStep::ByLastSession(stated_text) | StatedNextStep::ByEarlierSession(stated_text),
            [(is_unchecked, quoted_text)],
        ) => {
            if quoted_text != stated_text {
                return Some(format!("told \"{quoted_text}\", said \"{stated_text}\""));
            }
            (!is_unchecked).then(|| "not marked as unchecked".to_owned())
        }
        (StatedNextStep::ByLastSession(_) | StatedNextStep::ByEarlierSession(_), lines) => {
            Some(format!("told {} times", lines.len()))
        }
    };
    let stated_text = match &truth.next_step {
        StatedNextStep::ByLastSession(text) | StatedNextStep::ByEarlierSession(text) => text,
        StatedNextStep::NotStated => return mistake,
    };
    let occurrence_count = prompt.full_text.matches(stated_text.as_str()).count();
    mistake
        .or_else(|| (occurrence_count > 1).then(|| format!("stands in the request {occurrence_count} times")))
}

fn is_section_or_summary_sent_twice(prompt: &ParsedPrompt, truth: &GroundTruth) -> bool {
    let occurs_twice = |text: &String| prompt.full_text.matches(text.as_str()).count() > 1;
    prompt.resume_section_count > 1 || truth.summary.as_ref().is_some_and(occurs_twice)
}

/// For an item in progress, counts the user changes that the prompt mentions (commits by subject, deleted and
/// edited files by name) and all user changes. Otherwise returns zeros.
fn count_mentioned_and_all_changes_if_half_done(prompt: &ParsedPrompt, truth: &GroundTruth) -> (u32, u32) {
    if truth.item_state != ItemState::Half {
        return (0, 0);
    }
    let mentioned_changes = truth.user_changes.iter().filter(|change| match change {
        UserChange::Edited { file, subject } => {
            prompt.section_has_line_matching(subject, ".")
                && prompt.section_has_line_matching(file, "(?i)chang|modified by|edited")
        }
        UserChange::Deleted { file, subject } => {
            prompt.section_has_line_matching(subject, ".")
                && prompt.section_has_line_matching(file, "(?i)gone|delet|no longer")
        }
        UserChange::OtherCommit { subject } => prompt.section_has_line_matching(subject, "."),
    });
    (mentioned_changes.count() as u32, truth.user_changes.len() as u32)
}
