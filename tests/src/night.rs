//! One simulated night in each way in which people run Claude Code unattended, all with the real client.

use plimsoll_testkit::night::{Dice, Night, Score, Task, Troubles};
use plimsoll_testkit::world::{Finished, World};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A window of 200,000 tokens, which the client compacts at 83.5 %.
const MODEL: &str = "claude-sonnet-4-6";
const ITEMS: u32 = 6;
/// A night has about so many answers; its troubles lie among them.
const ANSWERS: u32 = 70;
/// Every loop may start so many sessions.
const SESSIONS: &str = "30";
/// Longer than any night that still moves.
const DAWN: Duration = Duration::from_secs(240);

/// A way to run a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Way {
    /// `while :; do claude -p < PROMPT.md; done`, until the word of completion.
    BareLoop,
    /// One session that a Stop hook sends back to its prompt, until the word of completion.
    StopHook,
    /// `plimsoll run`.
    Plimsoll,
    /// `plimsoll run --pack`.
    Pack,
    /// `plimsoll run --memory`.
    Memory,
}

impl Way {
    /// In the order of the table.
    pub const ALL: [Way; 5] = [Way::BareLoop, Way::StopHook, Way::Plimsoll, Way::Pack, Way::Memory];

    /// As the table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Way::BareLoop => "bare `while` loop",
            Way::StopHook => "Stop-hook loop",
            Way::Plimsoll => "Plimsoll",
            Way::Pack => "Plimsoll `--pack`",
            Way::Memory => "Plimsoll `--memory`",
        }
    }
}

/// How a night went.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The way.
    pub way: Way,
    /// The night.
    pub seed: u64,
    /// What was done.
    pub score: Score,
    /// The loop itself said that all is complete.
    pub is_complete: bool,
    /// How long it took.
    pub seconds: u64,
    /// What the loop printed last.
    pub last_words: String,
}

impl Outcome {
    /// Complete by its own word, and so it is.
    pub fn ended_well(&self) -> bool {
        self.is_complete && self.score.is_whole()
    }
}

const PROMPT: &str = "Study fix_plan.md. Do exactly one item: the first open one. Verify it, tick it (`- [x]`), commit, and \
    end your turn. When every item is ticked, end your last message with this line, alone:\n\n<promise>COMPLETE</promise>\n";

/// The loop of the original: a fresh session each time, until the promise stands in what it printed.
const BARE_LOOP: &str = r#"for session in $(seq SESSIONS); do
  claude -p --model MODEL --allowedTools Bash Read Edit Write < PROMPT.md > out.log 2>&1
  if grep -q '^<promise>COMPLETE</promise>$' out.log; then exit 0; fi
done
exit 3"#;

/// The hook of the well-known plugin, in short: the same prompt again, until the promise is the last message.
const STOP_HOOK: &str = r#"#!/bin/sh
if grep -q '<promise>COMPLETE</promise>'; then echo done > ../complete; exit 0; fi
echo x >> ../rounds
[ "$(wc -l < ../rounds)" -lt SESSIONS ] || exit 0
python3 -c 'import json, pathlib; print(json.dumps({"decision": "block", "reason": pathlib.Path("PROMPT.md").read_text()}))'
"#;

/// Plays the night of a seed.
pub fn play(way: Way, seed: u64) -> Outcome {
    let dice = Dice::new(seed);
    let task = Task::new(dice, ITEMS);
    let mut world = World::new();
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    // Its default is ten, with waits of up to half a minute: the short outages here are those that it bears.
    world.set_env("CLAUDE_CODE_MAX_RETRIES", "3");
    task.lay_out(&world);
    let troubles = Troubles::new(dice, ANSWERS);
    let (model, night) = Night::start(task, world.project(), dice, troubles);
    world.use_model(&model);
    let start = Instant::now();
    let (is_complete, finished) = run(&world, way);
    let seconds = start.elapsed().as_secs();
    let last_words = finished.stdout.lines().last().unwrap_or_default().to_owned();
    Outcome { way, seed, score: night.score(), is_complete, seconds, last_words }
}

fn run(world: &World, way: Way) -> (bool, Finished) {
    let fill = |text: &str| text.replace("MODEL", MODEL).replace("SESSIONS", SESSIONS);
    let bash = |script: &str| world.command("bash", &["-c", script]).timeout(DAWN).run();
    match way {
        Way::BareLoop => {
            world.write(".git/info/exclude", "PROMPT.md\nout.log\n");
            world.write("PROMPT.md", PROMPT);
            let finished = bash(&fill(BARE_LOOP));
            (finished.code == Some(0), finished)
        }
        Way::StopHook => {
            world.write(".git/info/exclude", "PROMPT.md\n.claude/\n");
            world.write("PROMPT.md", PROMPT);
            let path = world.write_program(".claude/again.sh", &fill(STOP_HOOK));
            let hook = format!(
                r#"{{"hooks":{{"Stop":[{{"hooks":[{{"type":"command","command":"{}"}}]}}]}}}}"#,
                path.display()
            );
            world.write(".claude/settings.json", &hook);
            let finished =
                bash(&fill("claude -p --model MODEL --allowedTools Bash Read Edit Write < PROMPT.md"));
            (world.exists("../complete"), finished)
        }
        Way::Plimsoll | Way::Pack | Way::Memory => {
            let mut arguments =
                vec!["run", "--objective", "Do what fix_plan.md says.", "--max-iterations", SESSIONS];
            match way {
                Way::Pack => arguments.push("--pack"),
                Way::Memory => arguments.push("--memory"),
                Way::BareLoop | Way::StopHook | Way::Plimsoll => {}
            }
            arguments.extend(["--", "--model", MODEL, "--allowedTools", "Bash", "Read", "Edit", "Write"]);
            let finished = world.plimsoll(&arguments).timeout(DAWN).run();
            (finished.code == Some(0), finished)
        }
    }
}

/// The page about the nights: a row for each way.
pub fn page(outcomes: &[Outcome], nights: u64) -> String {
    let mut page = PAGE.replace("NIGHTS", &nights.to_string());
    for way in Way::ALL {
        let outcomes: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.way == way).collect();
        let sum = |part: &dyn Fn(&Score) -> u64| outcomes.iter().map(|one| part(&one.score)).sum::<u64>();
        let pair = |part: &dyn Fn(&Score) -> (u32, u32)| {
            share(sum(&|score| part(score).0.into()), sum(&|score| part(score).1.into()))
        };
        let well = outcomes.iter().filter(|outcome| outcome.ended_well()).count() as u64;
        let (done, items) = (sum(&|score| score.done.into()), sum(&|score| score.items.into()));
        let sessions = sum(&|score| score.sessions.into());
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} k |",
            way.name(),
            share(well, outcomes.len() as u64),
            share(done, items),
            sum(&|score| score.twice.into()),
            share(sum(&|score| score.right.into()), items),
            pair(&|score| score.own),
            pair(&|score| score.common),
            sum(&|score| score.dropped.into()),
            pair(&|score| score.resumes),
            done as f64 / sessions.max(1) as f64,
            sum(&|score| score.sent) / done.max(1) / 1_000,
        );
    }
    page + WORDS
}

fn share(part: u64, all: u64) -> String {
    let percent = (part * 100 + all / 2).checked_div(all);
    percent.map_or("–".to_owned(), |percent| format!("{percent} % ({part} of {all})"))
}

const PAGE: &str = include_str!("night/head.md");
const WORDS: &str = include_str!("night/tail.md");
