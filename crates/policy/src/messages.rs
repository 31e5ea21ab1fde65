//! Renders messages to the model and to the user. Inside a run the messages are instructions. Outside a run they are
//! advice, because instructions made agents save their work and quit ordinary sessions without being asked.

use crate::step::NextStepTooLarge;
use plimsoll_domain::level::{AutoCompactAction, Level, Thresholds};
use plimsoll_domain::promise::{self, PromiseCode, PromiseWord};
use plimsoll_domain::prompt::SET_ASIDE_HINT;
use plimsoll_domain::text::{format_tokens, to_safe_single_line, truncate_end};
use plimsoll_domain::{Marker, UsageReading};

/// Renders the warning at L1 inside a run.
pub fn render_l1_warning(percent: u64, thresholds: &Thresholds) -> String {
    let marker = Marker::Warning { level: Level::L1, percent };
    format!(
        "{marker}\nThe context window is {percent}% full. Continue with your item, read only what you need, and start nothing large. Record findings that are in no file now, as your prompt says. At {}% or earlier you will be told to stop.",
        thresholds.percent_of_window(thresholds.l2)
    )
}

/// Asks for the last message of a session. `domain::handoff` reads these three labels and copies the text after them into the
/// handoff.
const FINAL_MESSAGE_INSTRUCTIONS: &str = "3. End your turn with exactly three lines (or with the promise line, if your prompt has one and no item is open):\nSummary: decisions with their reasons, and findings that are in no file\nProgress on the item: what is done; what is left\nNext step: the next action, with file and function, and the failing test if there is one";

/// Asks for a commit before the session stops. Uncommitted changes stay in the working tree, where the run commits them
/// unless `--commit off` is set. The session therefore need not violate the project's own rules about commits.
const COMMIT_INSTRUCTIONS: &str = "2. Commit all changes, as `wip: <item>` if the item is unfinished. If the project's rules (CLAUDE.md) forbid that commit, leave the files as they are for the next session. Tick only finished and proven items.";

/// Renders the instruction to stop at a commit below L2 inside a run, because the next step would probably not fit.
pub fn render_stop_below_l2_at_commit_instructions(
    percent: u64,
    handoff_path: &str,
    next_step: NextStepTooLarge,
    thresholds: &Thresholds,
) -> String {
    let marker =
        Marker::Checkpoint { level: Level::L1, percent: Some(percent), handoff: handoff_path.to_owned() };
    format!(
        "{marker}\nThe context window is {percent}% full. Your next commit usually takes about {} tokens, and about {} are left below {}%. A fresh session continues from this commit. Do only this now:\n1. Start nothing new.\n{COMMIT_INSTRUCTIONS}\n{FINAL_MESSAGE_INSTRUCTIONS}",
        format_tokens(next_step.typical_step_tokens),
        format_tokens(next_step.tokens_below_l2),
        thresholds.percent_of_window(thresholds.l2)
    )
}

/// Renders the instruction for a checkpoint inside a run: finish the current edit, commit and stop. Used at L2, and at an estimated
/// L3.
pub fn render_checkpoint_instructions(level: Level, percent: u64, handoff_path: &str) -> String {
    let marker = Marker::Checkpoint { level, percent: Some(percent), handoff: handoff_path.to_owned() };
    format!(
        "{marker}\nThe context window is {percent}% full. A fresh session continues the work. Do only this now:\n1. Finish your current edit, and start nothing new.\n{COMMIT_INSTRUCTIONS}\n{FINAL_MESSAGE_INSTRUCTIONS}"
    )
}

/// Renders the sentence that names the checkpoint from which a fresh session continues. It is appended to the reason for
/// ending a session.
pub fn render_continuation_sentence(handoff_path: &str) -> String {
    format!("The checkpoint is in {}; a fresh session continues from it.", to_safe_single_line(handoff_path))
}

/// Renders the message at L3 inside a run. The model reads it only if the session is resumed.
pub fn render_l3_session_end_message(percent: u64, handoff_path: &str) -> String {
    let marker =
        Marker::Checkpoint { level: Level::L3, percent: Some(percent), handoff: handoff_path.to_owned() };
    format!(
        "{marker}\nThe context window is {percent}% full. The session ends here; a fresh one continues from {}.",
        to_safe_single_line(handoff_path)
    )
}

/// Renders the advice for the model at any level, in a session outside a run.
pub fn render_advice_outside_run_for_model(
    level: Level,
    percent: u64,
    thresholds: &Thresholds,
    handoff_path: Option<&str>,
) -> String {
    let marker = Marker::Warning { level, percent };
    let auto_compact_sentence = render_auto_compact_or_refusal_sentence(thresholds);
    let handoff_sentence = handoff_path
        .map(|path| {
            format!(" A handoff with the facts of this session is ready in {}.", to_safe_single_line(path))
        })
        .unwrap_or_default();
    format!(
        "{marker}\nFor information: the context window is {percent}% full ({}). {auto_compact_sentence}{handoff_sentence} No action is required.",
        level.descriptive_name()
    )
}

/// Renders the advice for the user at any level, in a session outside a run.
///
/// `continue_command` is the text that the user types to continue from the handoff, if there is one.
pub fn render_advice_outside_run_for_user(
    level: Level,
    percent: u64,
    thresholds: &Thresholds,
    continue_command: Option<&str>,
) -> String {
    let auto_compact_sentence = render_auto_compact_or_refusal_sentence(thresholds);
    let sentences = match continue_command {
        Some(command) => format!(
            "{auto_compact_sentence} A handoff is ready. To continue in a fresh session: /clear, then: {}",
            to_safe_single_line(command)
        ),
        None if level == Level::L1 => format!(
            "A handoff will be written at {}%. {auto_compact_sentence}",
            thresholds.percent_of_window(thresholds.l2)
        ),
        None => auto_compact_sentence,
    };
    render_marker_for_user(&Marker::Warning { level, percent }, &sentences)
}

/// Renders the warning at L1 inside a run, for the user who watches the session.
pub fn render_l1_warning_for_user(percent: u64, thresholds: &Thresholds) -> String {
    let l2_percent = thresholds.percent_of_window(thresholds.l2);
    render_marker_for_user(
        &Marker::Warning { level: Level::L1, percent },
        &format!("A checkpoint will be written at {l2_percent}%."),
    )
}

/// Renders a marker for Claude Code's user: one line of plain words, which end with these sentences, then the marker on
/// a line of its own.
pub fn render_marker_for_user(marker: &Marker, sentences: &str) -> String {
    let description = marker.describe(|time| time.as_str().to_owned());
    render_description_and_marker_for_user(&description, marker, sentences)
}

/// Renders these words about a marker for Claude Code's user, as [`render_marker_for_user`] does. The words have no full
/// stop.
pub fn render_description_and_marker_for_user(words: &str, marker: &Marker, sentences: &str) -> String {
    let full_stop = if words.ends_with(['.', '?', '!', '…']) { "" } else { "." };
    let line = to_safe_single_line(&format!("Plimsoll: {words}{full_stop} {sentences}"));
    format!("{line}\n{marker}")
}

/// Returns the prompt that continues from a handoff. With `@` before its path the client reads the file.
pub fn render_continue_prompt(handoff_path: &str) -> String {
    let handoff_path = to_safe_single_line(handoff_path);
    if handoff_path.contains(char::is_whitespace) {
        format!("Continue from @\"{handoff_path}\"")
    } else {
        format!("Continue from @{handoff_path}")
    }
}

/// Notice printed after the output of a command that had to write its files into the project.
pub const MOVED_INTO_PROJECT_NOTICE: &str = "Plimsoll's state folder cannot be written here, as in Claude Code's sandbox. From now on Plimsoll keeps the files of this project in the project: in `.claude/plimsoll` and `.claude/handoffs`, which are hidden from git.";

/// Warns that the project has another working memory, which sessions do not see because the files in the project take precedence.
pub const HIDDEN_MEMORY_WARNING: &str = "sessions do not see another working memory of this project, which is outside of it: Plimsoll's files in the project take precedence";
/// Explains how to make the hidden working memory visible again.
pub const HIDDEN_MEMORY_FIX: &str = "if `.claude/plimsoll` or `.claude/plimsoll.json` came with a clone, remove it; to use that memory here, copy its folder into `.claude/plimsoll`";

/// Tells the user at the start of a session outside a run that an earlier session left an unread handoff.
pub fn render_handoff_offer_for_user(continue_command: &str, written_at: &str) -> String {
    let command = to_safe_single_line(continue_command);
    format!("Plimsoll: an earlier session left a handoff ({written_at}). To continue its work: {command}")
}

/// Tells the model at the start of a session outside a run about an unread handoff, which it must not read unasked.
pub fn render_handoff_offer_for_model(handoff_path: &str, written_at: &str) -> String {
    format!(
        "For information: an earlier session in this project left a handoff ({written_at}): {}. Read it only if the user asks you to continue that work.",
        to_safe_single_line(handoff_path)
    )
}

/// Tells the user at the start of a session that another client runs the hooks and that nothing is measured.
pub fn render_other_client_notice() -> String {
    "Plimsoll does not measure this session: its hooks were started by another client (Codex), not by Claude Code. There will be no warning and no handoff.".to_owned()
}

/// Renders the sentence about what the client does at the auto-compact threshold.
fn render_auto_compact_or_refusal_sentence(thresholds: &Thresholds) -> String {
    let percent = thresholds.percent_of_window(thresholds.auto_compact.tokens);
    match thresholds.auto_compact.action {
        AutoCompactAction::Compacts => format!("Claude Code compacts at about {percent}%."),
        AutoCompactAction::Refuses => {
            format!("Claude Code stops at about {percent}% (automatic compaction is off).")
        }
        AutoCompactAction::ApiRejectsPrompt => {
            "The API refuses longer prompts at the end of the window.".to_owned()
        }
    }
}

/// Renders the instruction to continue with the next item, for the Stop hook with `--pack`.
pub fn render_continue_with_next_item_instructions(
    item: &str,
    open_item_count: usize,
    promise_word: &PromiseWord,
    promise_code: &PromiseCode,
    was_set_aside: bool,
) -> String {
    let item = truncate_end(&to_safe_single_line(item), 200);
    let set_aside_hint = if was_set_aside { format!("{SET_ASIDE_HINT} ") } else { String::new() };
    let ending = if open_item_count == 1 {
        format!(
            "It is the last one. When everything is done, end your last message with exactly this line:\n{}",
            promise::render_completion_line(promise_word, promise_code)
        )
    } else {
        "Then end your turn. A message will tell you if there is room for another.".to_owned()
    };
    format!(
        "The item is done, and the context window has room for another. Now do exactly this item: \"{item}\". {set_aside_hint}Prove it, tick it and commit, as before. {ending}"
    )
}

/// Renders the request to the client's summarizer to keep these facts during a compaction.
pub fn render_compaction_instructions(facts_to_keep: &[String]) -> String {
    format!(
        "Keep these facts in the summary, word for word:\n{}",
        facts_to_keep.iter().map(|fact| format!("- {fact}\n")).collect::<String>()
    )
}

/// Renders a reading for people, such as `67% (669k of 1M tokens)`.
pub fn render_usage(reading: &UsageReading) -> String {
    match (reading.percent_shown_by_client(), &reading.window) {
        (Some(percent), Some(window)) => {
            format!(
                "{percent}% ({} of {} tokens)",
                format_tokens(reading.used_tokens),
                format_tokens(window.tokens)
            )
        }
        _ => format!("? ({} tokens of an unknown window)", format_tokens(reading.used_tokens)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::handoff::HandoffNotes;

    #[test]
    fn the_handoff_reads_the_three_lines_that_the_checkpoint_asks_for() {
        let text = render_checkpoint_instructions(Level::L2, 87, ".claude/handoffs/x.md");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/x.md");
        let steps: Vec<&str> =
            lines.iter().filter_map(|line| line.get(..3)).filter(|start| start.ends_with(". ")).collect();
        assert_eq!(steps, ["1. ", "2. ", "3. "], "{text}");
        let [.., summary, progress, next] = lines[..] else { panic!("{text}") };
        let notes = HandoffNotes::from_message(&[summary, progress, next].join("\n"));
        assert!(notes.summary.starts_with("decisions with their reasons"), "{notes:?}");
        assert!(notes.progress.starts_with("what is done; what is left"), "{notes:?}");
        assert!(notes.next_step.starts_with("the next action, with file and function"), "{notes:?}");
    }

    #[test]
    fn the_checkpoint_exempts_commits_that_the_projects_rules_forbid() {
        let text = render_checkpoint_instructions(Level::L2, 87, "x.md");
        let commit = text.lines().find(|line| line.starts_with("2. Commit")).unwrap();
        assert!(
            commit.contains(
                "If the project's rules (CLAUDE.md) forbid that commit, leave the files as they are"
            )
        );
    }

    #[test]
    fn a_line_break_in_a_handoff_path_adds_no_line_to_a_message() {
        let path = "a\n## Forged";
        for text in [
            render_l3_session_end_message(90, path),
            render_continuation_sentence(path),
            render_continue_prompt(path),
            render_handoff_offer_for_user(path, "now"),
            render_handoff_offer_for_model(path, "now"),
            render_checkpoint_instructions(Level::L2, 87, path),
        ] {
            assert!(text.contains("Forged") && !text.contains("\n## Forged"), "{text}");
        }
    }
}
