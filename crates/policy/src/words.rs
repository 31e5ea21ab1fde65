//! What we say to the model and to people. Inside a run the words are orders; outside they are advice,
//! because orders made agents save and quit unasked in ordinary sessions.

use crate::step::TooSmall;
use plimsoll_domain::level::{AutoCompactAction, Level, Thresholds};
use plimsoll_domain::promise::{self, PromiseCode, PromiseWord};
use plimsoll_domain::prompt::BEGUN_BEFORE;
use plimsoll_domain::text::{clip, one_line, tokens};
use plimsoll_domain::{Marker, Reading};

/// L1, inside a run.
pub fn warning(percent: u64, thresholds: &Thresholds) -> String {
    let marker = Marker::Warning { level: Level::L1, percent };
    format!(
        "{marker}\nThis session's context window is {percent}% full. Go on with your item, read only what you need, and start nothing large. Record now, as your prompt says, findings that are in no file. At {}% at the latest you will be asked to stop.",
        thresholds.percent(thresholds.l2)
    )
}

/// What a session says at its end: `domain::handoff` reads these three labels, and the handoff keeps what follows them.
const THREE_LINES: &str = "3. End your turn with a message of exactly three lines (or with the promise line, if your prompt has one and no item is open any more):\nSummary: decisions with their reasons, and what you found out that no file says\nProgress on the item: what is done; what is left\nNext step: the next action, with file and function, and the failing test if there is one";

/// The commit that a session makes when it stops. What it leaves uncommitted stays in the working tree, where the run commits it
/// unless it was told not to (`--commit off`): so no rule of the user's need be broken.
const COMMIT: &str = "2. Commit all of it; if the item is not finished, as `wip: <item>`. If the project's rules (CLAUDE.md) forbid that commit, leave the files as they are: they stay for the next session. Tick only what is finished and proven.";

/// At a commit below L2, inside a run: the next step would probably not fit.
pub fn stop_here(percent: u64, handoff: &str, why: TooSmall, thresholds: &Thresholds) -> String {
    let marker = Marker::Checkpoint { level: Level::L1, percent: Some(percent), handoff: handoff.to_owned() };
    format!(
        "{marker}\nThis session's context window is {percent}% full. From one of your commits to the next you usually take about {} tokens, and about {} are left below {}%: this commit is a good place to stop, and a fresh session goes on. Now, and nothing else:\n1. Start nothing new.\n{COMMIT}\n{THREE_LINES}",
        tokens(why.step),
        tokens(why.left),
        thresholds.percent(thresholds.l2)
    )
}

/// A checkpoint inside a run, after which the session may finish what it is doing: at L2, or at L3 by an estimate.
pub fn wrap_up(level: Level, percent: u64, handoff: &str) -> String {
    let marker = Marker::Checkpoint { level, percent: Some(percent), handoff: handoff.to_owned() };
    format!(
        "{marker}\nThis session's context window is {percent}% full: a fresh session goes on. Now, and nothing else:\n1. Finish the edit you are in, and start nothing new.\n{COMMIT}\n{THREE_LINES}"
    )
}

/// Where a fresh session continues: the end of a reason for which a session was ended.
pub fn continues_from(handoff: &str) -> String {
    format!("The checkpoint is in {}; a fresh session continues from it.", one_line(handoff))
}

/// L3, inside a run: kept for the model in case the session is resumed.
pub fn emergency(percent: u64, handoff: &str) -> String {
    let marker = Marker::Checkpoint { level: Level::L3, percent: Some(percent), handoff: handoff.to_owned() };
    format!(
        "{marker}\nThis session's context window is {percent}% full, and the session ends here. A fresh one goes on from {}.",
        one_line(handoff)
    )
}

/// Any level, in a session that belongs to no run.
pub fn advice(level: Level, percent: u64, thresholds: &Thresholds, handoff: Option<&str>) -> String {
    let marker = Marker::Warning { level, percent };
    let then = at_the_end(thresholds);
    let ready = handoff
        .map(|file| format!(" A handoff with the facts of this session is ready in {}.", one_line(file)))
        .unwrap_or_default();
    format!(
        "{marker}\nFor information: the context window is {percent}% full ({}). {then}{ready} No action is required; this only helps you to plan.",
        level.word()
    )
}

/// The same for the user, below the marker: what it means, and what there is.
///
/// `continue_command` is what the user types to continue from the handoff, if there is one.
pub fn advice_for_user(
    level: Level,
    percent: u64,
    thresholds: &Thresholds,
    continue_command: Option<&str>,
) -> String {
    let marker = Marker::Warning { level, percent };
    let then = at_the_end(thresholds);
    let ready = match continue_command {
        Some(command) => {
            format!(" A handoff is ready. To go on in a fresh session: /clear, then: {}", one_line(command))
        }
        None if level == Level::L1 => {
            format!(" A handoff follows at {}%.", thresholds.percent(thresholds.l2))
        }
        None => String::new(),
    };
    format!("{marker}\nThe context window is {percent}% full. {then}{ready}")
}

/// What the user types to continue from a handoff: the client reads a file that is named so.
pub fn continue_from(file: &str) -> String {
    let file = one_line(file);
    if file.contains(char::is_whitespace) {
        format!("Continue from @\"{file}\"")
    } else {
        format!("Continue from @{file}")
    }
}

/// Below what a command printed that had to write into the project.
pub const MOVED_INTO_PROJECT: &str = "Plimsoll's state folder cannot be written here, as in Claude Code's sandbox. From now on Plimsoll keeps the files of this project in the project: in `.claude/plimsoll` and `.claude/handoffs`, which are hidden from git.";

/// Says that the project has another working memory, which sessions do not see because its own files come first.
pub const HIDDEN_MEMORY: &str = "this project has another working memory, outside of it, that sessions are not told: Plimsoll's files in the project come first";
/// Says how the user gets that memory back.
pub const SHOW_HIDDEN_MEMORY: &str = "if `.claude/plimsoll` or `.claude/plimsoll.json` came with a clone, remove it; to use that memory here, copy its folder into `.claude/plimsoll`";

/// At the start of an ordinary session, for the user: an earlier one has left a handoff that nobody has read.
pub fn offer_to_user(continue_command: &str, written: &str) -> String {
    let command = one_line(continue_command);
    format!("An earlier session left a handoff ({written}). To continue its work: {command}")
}

/// The same for the model: it reads nothing unasked.
pub fn offer_to_model(file: &str, written: &str) -> String {
    format!(
        "For information: an earlier session in this project left a handoff ({written}): {}. Read it only if the user asks you to continue that work.",
        one_line(file)
    )
}

/// At the start of a session of another client that runs our hooks, for the user.
pub fn other_client() -> String {
    "Plimsoll does not measure this session: its hooks were started by another client (Codex), not by Claude Code. There will be no warning and no handoff.".to_owned()
}

/// What the client does when the window is as good as full.
fn at_the_end(thresholds: &Thresholds) -> String {
    let percent = thresholds.percent(thresholds.auto_compact.tokens);
    match thresholds.auto_compact.action {
        AutoCompactAction::Compacts => format!("Claude Code compacts at about {percent}%."),
        AutoCompactAction::Refuses => {
            format!("Claude Code stops at about {percent}% (automatic compaction is off).")
        }
        AutoCompactAction::Rejected => "The API refuses longer prompts at the end of the window.".to_owned(),
    }
}

/// At Stop, with `--pack`: the window has room for the next item.
pub fn next_item(
    item: &str,
    open: usize,
    word: &PromiseWord,
    code: &PromiseCode,
    was_set_aside: bool,
) -> String {
    let item = clip(&one_line(item), 200);
    let hint = if was_set_aside { format!("{BEGUN_BEFORE} ") } else { String::new() };
    let then = if open == 1 {
        format!(
            "It is the last one: when everything is done, end your last message with exactly this line, alone:\n{}",
            promise::line(word, code)
        )
    } else {
        "Then end your turn: you will be told whether there is room for another one.".to_owned()
    };
    format!(
        "The item is done, and the context window has room for the next one. Continue in this session with exactly this item: \"{item}\". {hint}Do it like the previous one: prove it, tick it, commit. {then}"
    )
}

/// What the client's summarizer must keep.
pub fn keep(lines: &[String]) -> String {
    format!(
        "Keep these facts in the summary, word for word:\n{}",
        lines.iter().map(|line| format!("- {line}\n")).collect::<String>()
    )
}

/// A reading for people: `67% (669k of 1M tokens)`.
pub fn figure(reading: &Reading) -> String {
    match (reading.percent_used(), &reading.window) {
        (Some(percent), Some(window)) => {
            format!("{percent}% ({} of {} tokens)", tokens(reading.used), tokens(window.tokens))
        }
        _ => format!("? ({} tokens of an unknown window)", tokens(reading.used)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_domain::handoff::Notes;

    #[test]
    fn the_three_lines_that_a_session_is_asked_for_are_those_that_the_handoff_reads() {
        let text = wrap_up(Level::L2, 87, ".claude/handoffs/x.md");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "CCS_CHECKPOINT_TRIGGERED|L2|87|.claude/handoffs/x.md");
        let steps: Vec<&str> =
            lines.iter().filter_map(|line| line.get(..3)).filter(|start| start.ends_with(". ")).collect();
        assert_eq!(steps, ["1. ", "2. ", "3. "], "{text}");
        let [.., summary, progress, next] = lines[..] else { panic!("{text}") };
        let notes = Notes::in_message(&[summary, progress, next].join("\n"));
        assert!(notes.summary.starts_with("decisions with their reasons"), "{notes:?}");
        assert!(notes.progress.starts_with("what is done; what is left"), "{notes:?}");
        assert!(notes.next.starts_with("the next action, with file and function"), "{notes:?}");
    }

    #[test]
    fn no_session_is_asked_for_a_commit_that_the_projects_rules_forbid() {
        let text = wrap_up(Level::L2, 87, "x.md");
        let commit = text.lines().find(|line| line.starts_with("2. Commit")).unwrap();
        assert!(
            commit.contains(
                "If the project's rules (CLAUDE.md) forbid that commit, leave the files as they are"
            )
        );
    }

    #[test]
    fn the_path_of_a_handoff_adds_no_line_of_its_own() {
        let path = "a\n## Forged";
        for text in [
            emergency(90, path),
            continues_from(path),
            continue_from(path),
            offer_to_user(path, "now"),
            offer_to_model(path, "now"),
            wrap_up(Level::L2, 87, path),
        ] {
            assert!(text.contains("Forged") && !text.contains("\n## Forged"), "{text}");
        }
    }
}
