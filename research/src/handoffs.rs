//! Measures what a handoff keeps that takes the place of a conversation (`plimsoll checkpoint --json --cause
//! compact`): conversations with a known truth are generated, played with the real program, and judged by a program.
//!
//! ```text
//! cargo run --manifest-path research/Cargo.toml --bin handoffs -- --plimsoll PATH --seed 51 --conversations 200 \
//!     --compactions 1,5 [--exchange-tokens 5000,20000,50000]
//! ```
//!
//! Seed 51 is the measurement. Seeds 1 to 9 are for development. This page and the judge were written before the
//! first run with the program; seed 1 then showed what was not as with the real client (remarks that were too short,
//! searches without matches reported as errors), and this was changed before the first run of seed 51. After that run
//! only this changed: a short answer that was given twice is not a second copy of the request, and the player passes
//! `last_prompt`, as the module does.
//!
//! # The distribution
//!
//! It follows what happens in real sessions, not what the program can do. Shares are percentages of conversations
//! unless another whole is named; the generator may leave out an event for which there is no opportunity.
//!
//! **Conversation.** One of 12 vocabularies in turn, each with its own file names and commands; numbers make every
//! sentence unique. English 80, English with emoji 4, German 5, Russian 3, Japanese 3, French 3, Polish 2. Items in
//! `fix_plan.md` 35 (a tenth of these in another order than the plan's), in `TodoWrite` 20, in `TaskCreate` and
//! `TaskUpdate` 15, nowhere 30. File names with spaces and accents 8; the last file is renamed 4; a formatter moves
//! all lines 4; the user interrupts 15; the user queues additions 15; subagent rows in the transcript 20; the last
//! rows are written only after the checkpoint has begun 25. Half have the rows of 2.1.329, half those of 2.1.332.
//!
//! The assistant writes a sentence before half of its calls (12 of 100 a paragraph of up to twelve), and one to three
//! paragraphs at the end of a turn.
//!
//! **Segment** (what lies between two compactions). 5 to 150 routine calls, logarithmically uniform, plus the calls
//! of the events below. Outputs of 1 line to 30,000 characters, logarithmically uniform; reads of whole and partial
//! files. Large reads (75 kB) at uniform places bring a segment to at least 240 kB, which is more than the largest
//! measured budget of the last exchanges; a fifth of the first segments may stay smaller. 8, 18, 30 or 40 of 100
//! routine calls edit a file; a tenth of the later segments edits nothing. 16 of 100 compactions come after a prompt
//! of the user, the others after the result of a tool, in the middle of a turn.
//!
//! **Current request.** In the first segment at its start 60, in its middle 30, near its end 10, after another
//! request that is done by then. Each later segment has a new one in 35 of 100 cases, at a uniform place. An answer
//! such as "yes" to a proposal 6, one sentence 26, two to four sentences 38, several lines with lists, headings, code
//! or quotations 24, a pasted text of 1,500 to 4,000 characters 6. As a string 72, as a block 10, beside an image 4,
//! queued 9, as the arguments of a slash command 5. Half of the segments have one to three follow-ups, 70 of 100 with
//! content ("and keep … as an alias"), the others encouragements ("go on"). A secret in the request: 3.
//!
//! **Decision.** One in the first segment, in each later segment in 50 of 100 cases, at a uniform place; judged is
//! one of those made so far. Written by the assistant before a call 55, at the end of a turn 15, by the user in a
//! prompt 15, chosen in a dialog 10, in an approved plan 5.
//!
//! **Failed command.** In 70 of 100 first segments and in 60 of 100 later ones without an open failure: within the
//! last five calls 40, in the middle 40, early 20. An open failure of an earlier segment is repaired in 65 of 100
//! cases. 25 of 100 end in a pipe, so the client reports success. The error line is near the end of the output 60,
//! in its middle 30, at its start 10.
//!
//! **Edited lines.** 74 of 100 edits by `Edit`, 10 new files, 5 whole files, 11 by a shell command; 40 of 100
//! segments commit once or twice; 8 of 100 changes only delete. Line numbers are those at the compaction.
//!
//! **Open result.** A command 40, a failed command 15, a read 18, a search 10, a subagent 10, MCP 4, a web page 3; 60
//! to 30,000 characters, logarithmically uniform. The decisive line is the last one 80, anywhere 20. One or two
//! parallel calls beside it 20.
//!
//! **Next step.** Without items always said; with items in half of the cases, otherwise it is the open item. Announced in
//! the last message 50, one to four messages before 35, five to fifteen messages before 15. After a new request
//! there is none.
//!
//! **Red herrings.** Finished requests; up to three commands that failed and passed later, 30 of 100 of them with
//! another option; in 35 of 100 segments an edit that is reverted, half of them by git; done items; one to four
//! announced steps that were done; notes of the client; searches without matches, which the client does not report
//! as errors; looks for folders that do not exist, which it does.
//!
//! **Secrets.** In 15, one to three of them in outputs, some near the end.
//!
//! Not generated: outputs that the client moved into files, edits by subagents, edits outside the project, worktrees,
//! notebooks, lists that the model forgot to update, and decisions that a later one revokes.

pub mod client_rows;
pub mod events;
pub mod generator;
pub mod judge;
pub mod phrases;
pub mod player;
pub mod project_files;
pub mod random_draws;
pub mod report;
pub mod secrets_in_text;
pub mod themes;
pub mod truth;

use generator::generate_conversation;
use player::{TestedProgram, play_conversation};
use random_draws::Draws;
use report::MeasuredRow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What is measured.
#[derive(Clone, Debug)]
pub struct MeasurementOptions {
    pub plimsoll: PathBuf,
    pub seed: u64,
    pub conversations: usize,
    pub first_conversation: usize,
    /// After which compactions the handoff is judged.
    pub compactions: Vec<usize>,
    /// The budgets of the last exchanges; `None` is the program's default.
    pub exchange_token_budgets: Vec<Option<usize>>,
    pub threads: usize,
}

impl Default for MeasurementOptions {
    fn default() -> MeasurementOptions {
        MeasurementOptions {
            plimsoll: PathBuf::new(),
            seed: 51,
            conversations: 200,
            first_conversation: 0,
            compactions: vec![1, 5],
            exchange_token_budgets: vec![None],
            threads: 1,
        }
    }
}

/// Generates, plays and judges the conversations.
pub fn measure(options: &MeasurementOptions) -> Vec<MeasuredRow> {
    let end = options.first_conversation + options.conversations;
    let remaining = Mutex::new(options.first_conversation..end);
    let measured = Mutex::new(Vec::new());
    let measure_remaining = || {
        loop {
            let Some(index) = remaining.lock().expect("no panic").next() else { break };
            let rows = measure_conversation(options, index);
            let losses = rows.iter().map(|row| row.verdict.lost_facts().len()).sum::<usize>();
            eprintln!("conversation {index}: {losses} lost");
            measured.lock().expect("no panic").extend(rows);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(measure_remaining);
        }
    });
    let mut measured = measured.into_inner().expect("no panic");
    measured.sort_by_key(|row| (row.conversation, row.exchange_tokens, row.compaction));
    measured
}

fn measure_conversation(options: &MeasurementOptions, index: usize) -> Vec<MeasuredRow> {
    let segment_count = options.compactions.iter().copied().max().unwrap_or(1);
    let conversation = generate_conversation(options.seed, index, segment_count);
    let mut rows = Vec::new();
    for exchange_tokens in &options.exchange_token_budgets {
        let program = TestedProgram { plimsoll: options.plimsoll.clone(), exchange_tokens: *exchange_tokens };
        let draws = Draws::new(options.seed.wrapping_mul(1_000_003).wrapping_add(index as u64), "play");
        let checkpoints = play_conversation(&conversation, &program, &draws).into_iter();
        rows.extend(
            checkpoints.filter(|checkpoint| options.compactions.contains(&checkpoint.compaction)).map(
                |checkpoint| {
                    MeasuredRow::new(index, *exchange_tokens, conversation.traits.clone(), checkpoint)
                },
            ),
        );
    }
    rows
}

/// Writes the text and the truth of each row with a loss into a folder, for inspection.
pub fn write_handoffs_that_lost_facts(folder: &Path, rows: &[MeasuredRow]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for row in rows {
        let lost_facts = row.verdict.lost_facts();
        if lost_facts.is_empty() {
            continue;
        }
        let budget = row.exchange_tokens.map_or("default".to_owned(), |tokens| tokens.to_string());
        let name = format!("{:03}-{}-{budget}.txt", row.conversation, row.compaction);
        let truth = serde_json::to_string_pretty(&row.truth)?;
        std::fs::write(
            folder.join(name),
            format!("LOST {lost_facts:?}\n\n{truth}\n\n=== TEXT\n{}", row.text),
        )?;
    }
    Ok(())
}
