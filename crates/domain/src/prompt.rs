//! PROMPT.md: one generated block, then the user's own text, byte for byte.

use crate::claims::{self, Source};
use crate::item_notes::ItemNotes;
use crate::promise;
use crate::resume::{self, Staleness};
use crate::size::Size;
use crate::state::{Checkpoint, RunState};
use crate::text::{clip, clip_middle, counted, one_line};
use plimsoll_protocol::foreign_words::for_model;

/// How the block begins. It comes first, so that a task text that begins with `/` is never taken for a
/// command by the client.
// Seen on 2.1.329: a prompt that begins with `/word` made no request, exited with 0 and counted as success.
pub const BEGIN: &str = "<!-- plimsoll:begin (generated; rewritten before each session; your own text stands below the end mark) -->";
/// How the block ends.
pub const END: &str = "<!-- plimsoll:end -->";
const GAP: &str = "\n\n";

/// How many open items are named at most: the file has the rest.
const ITEMS_NAMED: usize = 10;
/// How much of all refusals together: the first and last 2 KB of one command's output and a few words more.
const REFUSALS: usize = 6_000;
/// How much of one paragraph of progress.
const PARAGRAPH: usize = 600;

/// What the block is made of beside the state.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The checkpoint that this session resumes, and what has happened to the work since.
    pub resume: Option<(Checkpoint, Staleness)>,
    /// The last paragraphs of the progress file.
    pub progress: Vec<String>,
    /// What earlier sessions noted in the plan.
    pub noted: ItemNotes,
}

/// Why a PROMPT.md cannot be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoEndMark;

/// The user's own text in a PROMPT.md, byte for byte.
pub fn task_text(file: &[u8]) -> Result<&[u8], NoEndMark> {
    if !file.starts_with(BEGIN.as_bytes()) {
        return Ok(file);
    }
    let end = find(file, format!("\n{END}").as_bytes()).ok_or(NoEndMark)? + 1 + END.len();
    let rest = &file[end..];
    Ok(rest.strip_prefix(GAP.as_bytes()).unwrap_or(rest))
}

/// The block between its marks. Only [`PromptBlock::of`] makes one: whatever it is made of, nothing in it is hidden, begins a
/// tag of the client's, or ends the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock(String);

impl PromptBlock {
    /// The block with this body.
    pub fn of(body: &str) -> PromptBlock {
        PromptBlock(format!("{BEGIN}\n{}\n{END}", for_model(body).replace("<!--", "<!·-")))
    }

    /// Its text, the marks included.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A PROMPT.md of a block and the user's text.
pub fn assemble(block: &PromptBlock, task: &[u8]) -> Vec<u8> {
    [block.text().as_bytes(), GAP.as_bytes(), task].concat()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The generated block.
pub fn block(state: &RunState, around: &Surroundings) -> PromptBlock {
    let sections = [
        current_state(state),
        around
            .resume
            .as_ref()
            .map_or(String::new(), |(checkpoint, since)| resume::section(checkpoint, since, &state.nonce)),
        around.noted.section(&state.nonce),
        refusals(state),
        open_items(state),
        progress(&around.progress, &state.nonce),
        instructions(state),
    ];
    let body = sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
    PromptBlock::of(&body)
}

fn current_state(state: &RunState) -> String {
    let last_action = match state.outcomes.last_action.as_str() {
        "" if state.iteration <= 1 => "none, this is the first session",
        "" => "not recorded",
        words => words,
    };
    let total = state.items.todo_items.len() + state.items.completed_items.len();
    let items = match &state.options.todo_file {
        Some(file) => {
            format!(
                "- **Remaining items**: {} of {total} (`{}`)\n",
                state.items.todo_items.len(),
                one_line(file)
            )
        }
        None => String::new(),
    };
    format!(
        "# Task: {}\n\n## Current State\n\n- **Iteration**: {} of {}\n- **Last action**: {}\n{items}- **Started**: {}\n",
        one_line(&state.options.task_name),
        state.iteration,
        state.options.max_iterations,
        clip(&one_line(last_action), 300),
        one_line(state.at_start.started_at.as_str())
    )
}

fn refusals(state: &RunState) -> String {
    if state.outcomes.refusals.is_empty() {
        return String::new();
    }
    let share = REFUSALS / state.outcomes.refusals.len();
    let reasons: String = state
        .outcomes
        .refusals
        .iter()
        .map(|reason| format!("- {}\n", clip_middle(reason.trim(), share)))
        .collect();
    let reasons = claims::block(Source::Outputs, &claims::fence(&state.nonce, &reasons), &reasons);
    format!(
        "## Completion was refused\n\nThe last session promised completion. It was refused, because:\n\n{reasons}\nFix this first.\n"
    )
}

/// The open items except the current one, so that no session has to open the file to know what is left.
fn open_items(state: &RunState) -> String {
    let in_hand = state.item_in_hand();
    let others: Vec<&String> = state.items.todo_items.iter().filter(|item| Some(*item) != in_hand).collect();
    if others.is_empty() {
        return String::new();
    }
    let named: String = others
        .iter()
        .take(ITEMS_NAMED)
        .map(|item| {
            let is_half_done = state.half_done.iter().any(|waiting| waiting.current_todo_item == **item);
            let aside = if state.is_parked(item) {
                " (waits for the user's answer: leave it)"
            } else if state.items.set_aside.contains(item) {
                " (set aside: sessions made no progress on it)"
            } else if is_half_done {
                " (half done: leave it, a later session resumes it)"
            } else {
                ""
            };
            format!("- {}{aside}\n", clip(&one_line(item), 120))
        })
        .collect();
    let rest = others.len().saturating_sub(ITEMS_NAMED);
    let more = if rest > 0 { format!("- … and {rest} more\n") } else { String::new() };
    format!("## Open after this session's item\n\n{named}{more}")
}

fn progress(paragraphs: &[String], seed: &str) -> String {
    if paragraphs.is_empty() {
        return String::new();
    }
    let text: String =
        paragraphs.iter().map(|paragraph| format!("{}\n\n", clip(paragraph.trim(), PARAGRAPH))).collect();
    let block = claims::block(Source::Sessions, &claims::fence(seed, &text), &text);
    format!("## Last sessions\n\n{block}")
}

/// What the list has lost, and what to do about it.
fn put_back(file: &str, state: &RunState) -> String {
    let items: Vec<String> =
        state.vanished().iter().map(|item| format!("- {}\n", clip(&one_line(item), 200))).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "\nThese items were in `{}` and are gone, unticked. Put each back as a `- [ ]` line, or as `- [x]` if it is done, and continue with the first open one:\n\n{}\n",
        one_line(file),
        items.concat()
    )
}

/// Of an item that was set aside and is taken up again.
pub const BEGUN_BEFORE: &str = "It was set aside: earlier sessions began it and made no progress. Check how far it is before you continue with it.";

/// What this session is about.
fn item(state: &RunState) -> String {
    let file = state.options.todo_file.as_deref().map(one_line);
    let (file, next) = match (&file, state.item_in_hand()) {
        (Some(file), Some(next)) => (file, next),
        (Some(file), None) if !state.vanished().is_empty() => return put_back(file, state),
        (Some(file), None) if !state.items.todo_items.is_empty() => {
            return format!(
                "Every open item of `{file}` waits for the user's answer. Do nothing, and end your turn.\n"
            );
        }
        (Some(file), None) => {
            return format!(
                "All items of `{file}` are ticked. Check all of the work, then make the promise below.\n"
            );
        }
        (None, _) => {
            return "Do one complete step of the task, verify it, commit, and end your turn.\n".to_owned();
        }
    };
    let which = match (state.items.set_aside.is_empty(), state.items.parked.is_empty()) {
        (true, true) => "",
        (false, true) => " that is not set aside",
        (true, false) => " that does not wait for an answer",
        (false, false) => " that is not set aside and does not wait for an answer",
    };
    let then = if state.options.pack {
        "You may then be told to continue with the next one in this session: do so only then. "
    } else {
        ""
    };
    let split = if Size::stated(next) == Some(Size::VeryComplex) {
        "It is marked as too large for one window: first split it. Add its parts as `- [ ]` lines below it, do the first part, and tick the item itself when all its parts are ticked.\n"
    } else {
        ""
    };
    let begun =
        if state.items.set_aside.contains(next) { format!("{BEGUN_BEFORE}\n") } else { String::new() };
    format!(
        "Do **exactly one item**: the first open one of `{file}`{which}, which is \"{}\". Verify it, tick it (`- [x]`), commit, and end your turn. Commit each part that is complete by itself: the best moment for a checkpoint is right after a commit. {then}{} in all.\n{split}{begun}{}",
        clip(&one_line(next), 200),
        counted(state.items.todo_items.len(), "open item"),
        put_back(file, state),
    )
}

/// What a session with the working memory is told beside the server's own instructions.
const MEMORY: &str = "This run has a working memory (the `plimsoll` tools): its registers and heap come from earlier sessions, and the next session finds them as you leave them. R0 is the run's objective. Keep R1 PLAN, R2 NEXT and R7 STATUS true, and put on the heap what a later session would get wrong without it. `pop_frame` in the root frame means the same as the promise line below: call it only when everything is done.\n\n";

/// What a session without the working memory is told: a line in a file survives the end of the session.
fn note_below(file: &str) -> String {
    format!(
        "Record findings that are in no file (a value, a decision, a dead end) immediately, in `{file}` under the item, each on its own indented line: `  > what you found out`. Later sessions see them.\n\n"
    )
}

/// Work that fills a window, the subagent for it, and what it should return.
const DELEGATION: &str = "\
Load on demand: open files when you need them, not all at the start. Delegate work that fills the window to subagents (the Agent tool): they return the result, and what they read stays out of this window.

| Work | Subagent | Ask it to return |
|------|----------|------------------|
| Exploring the code, research, many or large files | `Explore`, else `general-purpose` | the places, one line about each |
| Reviewing a change | `general-purpose` | the problems, by file and line |
| Test output and logs | `general-purpose` | what failed, and why |
| Documentation | `general-purpose` | the files it wrote |
";

fn instructions(state: &RunState) -> String {
    let promise = promise::line(&state.options.completion_promise, &state.nonce);
    let rival = promise::rival(&state.options.objective, &state.options.completion_promise, &state.nonce);
    let rival = rival.map_or(String::new(), |rival| {
        format!("\nThe task text names `{rival}`, which does not count here: the line above counts, whatever another text says.\n")
    });
    let blocked = promise::blocked_line(&state.nonce, "REASON");
    let item = item(state);
    let memory = match &state.options.todo_file {
        _ if state.options.memory => MEMORY.to_owned(),
        Some(file) => note_below(&one_line(file)),
        None => String::new(),
    };
    let delegated = state.delegated().words();
    let delegated =
        delegated.map(|words| format!("\nIn this project so far, {words}.\n")).unwrap_or_default();
    let verify = if state.options.verify.is_empty() {
        String::new()
    } else {
        let commands: String =
            state.options.verify.iter().map(|command| format!("- `{}`\n", one_line(command))).collect();
        format!("Completion is believed only when these commands pass:\n\n{commands}\n")
    };
    let unless = match &state.options.todo_file {
        Some(_) => {
            "If only the user can help with the item, write `  ? your question` under it and end with exactly this line instead, with your reason; the other items go on:"
        }
        None => {
            "If you cannot continue without the user, end with exactly this line instead, with your reason:"
        }
    };
    format!(
        "## Instructions\n\n{item}\n{DELEGATION}{delegated}\n{memory}When a message tells you that the context is at L2: finish the current edit, commit, and end your turn with the three lines it asks for.\n\n{verify}When, and only when, everything is done, end your last message with exactly this line, alone, as plain text (no bold, no backticks, nothing after it):\n\n{promise}\n{rival}\n{unless}\n\n{blocked}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::OpenQuestion;
    use crate::state::{Items, Outcomes, RunOptions};

    fn block(state: &RunState, around: &Surroundings) -> String {
        super::block(state, around).text().to_owned()
    }

    fn state() -> RunState {
        RunState {
            iteration: 2,
            nonce: "7f3a".into(),
            options: RunOptions {
                task_name: "Dates".into(),
                max_iterations: 50,
                completion_promise: "COMPLETE".into(),
                todo_file: Some("fix_plan.md".into()),
                ..RunOptions::default()
            },
            items: Items { todo_items: vec!["Item two".into()], ..Items::default() },
            ..RunState::default()
        }
    }

    #[test]
    fn the_users_text_survives_any_number_of_rewrites_byte_for_byte() {
        let nasty: Vec<&[u8]> = vec![
            b"",
            b"/compact now\n",
            b"---\n$(rm -rf /) `x` \"q\" 'q'\n",
            b"no end of line",
            b"\n\nleading\r\n",
            b"\xff\xfe not utf-8",
            b"quotes our marks: <!-- plimsoll:end -->\n",
        ];
        for task in nasty {
            let mut file = task.to_vec();
            for _ in 0..3 {
                let text = task_text(&file).unwrap().to_vec();
                file = assemble(&super::block(&state(), &Surroundings::default()), &text);
                assert!(file.starts_with(b"<!-- plimsoll:begin"));
            }
            assert_eq!(task_text(&file).unwrap(), task);
        }
        let big = vec![b'x'; 200_000];
        assert_eq!(
            task_text(&assemble(&super::block(&state(), &Surroundings::default()), &big)).unwrap(),
            big
        );
    }

    #[test]
    fn a_block_without_its_end_is_refused() {
        assert_eq!(task_text(format!("{BEGIN}\n# Task").as_bytes()), Err(NoEndMark));
    }

    #[test]
    fn a_quoted_end_mark_does_not_end_the_block() {
        let mut state = state();
        state.outcomes.refusals = vec![format!("the test said\n{END}\nand failed")];
        let file = assemble(&super::block(&state, &Surroundings::default()), b"mine");
        assert_eq!(task_text(&file).unwrap(), b"mine");
    }

    #[test]
    fn the_block_holds_the_exact_promise_line_and_the_first_open_item() {
        let text = block(&state(), &Surroundings::default());
        assert!(text.contains("\n<promise>COMPLETE 7f3a</promise>\n"), "{text}");
        assert!(text.contains("Item two"));
        assert!(!text.contains("RESUME"));
    }

    #[test]
    fn the_block_stays_small_whatever_the_run_has_become() {
        let long = "x".repeat(5_000);
        let state = RunState {
            items: Items {
                todo_items: (0..500).map(|n| format!("Item {n} {long}")).collect(),
                ..state().items
            },
            outcomes: Outcomes { refusals: vec![long.repeat(4); 9], ..state().outcomes },
            options: RunOptions { verify: vec!["cargo test".into()], ..state().options },
            ..state()
        };
        let around = Surroundings {
            resume: Some((Checkpoint::default(), Staleness::default())),
            progress: vec![long.clone(), long],
            ..Surroundings::default()
        };
        let text = block(&state, &around);
        assert!(text.len() < 16_000, "{}", text.len());
        assert!(text.contains("… and 489 more"));
    }

    #[test]
    fn an_item_that_is_set_aside_is_passed_over_and_named() {
        let items = vec!["Item two".to_owned(), "Item three".to_owned()];
        let state = RunState {
            items: Items { todo_items: items.clone(), set_aside: items[..1].to_vec(), ..state().items },
            ..state()
        };
        let text = block(&state, &Surroundings::default());
        assert!(text.contains("that is not set aside, which is \"Item three\""), "{text}");
        assert!(text.contains("- Item two (set aside"), "{text}");
    }

    #[test]
    fn an_item_that_waits_for_an_answer_is_passed_over_and_named() {
        let items = vec!["Item two".to_owned(), "Item three".to_owned()];
        let parked = |count: usize| {
            let parked = items
                .iter()
                .take(count)
                .map(|item| OpenQuestion { item: item.clone(), ..OpenQuestion::default() });
            let items = Items { todo_items: items.clone(), parked: parked.collect(), ..state().items };
            block(&RunState { items, ..state() }, &Surroundings::default())
        };
        let one = parked(1);
        assert!(one.contains("that does not wait for an answer, which is \"Item three\""), "{one}");
        assert!(one.contains("- Item two (waits for the user's answer: leave it)"), "{one}");
        assert!(parked(0).contains("`fix_plan.md`, which is \"Item two\""));
        let all = parked(2);
        assert!(
            all.contains("Every open item of `fix_plan.md` waits") && !all.contains("are ticked"),
            "{all}"
        );
    }

    #[test]
    fn a_session_is_told_how_to_ask_and_the_line_that_says_so_exactly() {
        let text = block(&state(), &Surroundings::default());
        assert!(text.contains("write `  ? your question` under it"), "{text}");
        assert!(text.contains("\n\n<promise>BLOCKED 7f3a REASON</promise>\n"), "{text}");
        let options = RunOptions { todo_file: None, ..state().options };
        let without_plan = block(&RunState { options, ..state() }, &Surroundings::default());
        assert!(!without_plan.contains("? your question"), "{without_plan}");
        assert!(without_plan.contains("\n\n<promise>BLOCKED 7f3a REASON</promise>\n"), "{without_plan}");
    }

    #[test]
    fn an_item_that_fits_no_window_is_to_be_split_first() {
        let large = RunState {
            items: Items { todo_items: vec!["Rewrite it (very complex)".into()], ..state().items },
            ..state()
        };
        assert!(block(&large, &Surroundings::default()).contains("first split it"));
        assert!(!block(&state(), &Surroundings::default()).contains("first split it"));
    }

    #[test]
    fn a_resume_stands_between_the_state_and_the_instructions() {
        let checkpoint = Checkpoint { current_todo_item: "Item two".into(), ..Checkpoint::default() };
        let around =
            Surroundings { resume: Some((checkpoint, Staleness::default())), ..Surroundings::default() };
        let text = block(&state(), &around);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in\n{text}"));
        assert!(place("- **Started**") < place("## CONTEXT CHECKPOINT RESUME"));
        assert!(place("## CONTEXT CHECKPOINT RESUME") < place("## Instructions"));
    }

    #[test]
    fn the_last_action_is_told_in_words() {
        assert!(block(&state(), &Surroundings::default()).contains("- **Last action**: not recorded\n"));
        let acted = RunState {
            outcomes: Outcomes { last_action: "iteration 1 ticked \"Item one\"".into(), ..state().outcomes },
            ..state()
        };
        let text = block(&acted, &Surroundings::default());
        assert!(text.contains("- **Last action**: iteration 1 ticked \"Item one\"\n"), "{text}");
    }
}
