//! A simulated night: the work, an agent that knows only what its request contains, token usage from the real size of each
//! request, and faults. Everything follows from one seed, so that different ways to run the same night can be compared.

mod dice;
mod knowledge;
mod score;
mod task;
mod troubles;

pub use dice::Dice;
pub use knowledge::{Hand, Knowledge};
pub use score::Score;
pub use task::{Item, Standing, Task};
pub(crate) use troubles::usage_limit;
pub use troubles::{Trouble, Troubles};

use crate::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use knowledge::open_items;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use task::{MARK, PART};

/// A real model thinks longer than the client's transcript writer lags.
const THINKING: Duration = Duration::from_millis(120);
/// The probability, in percent, that the writer of notes or a summary includes a fact.
const WRITES_DOWN: u64 = 80;
/// The percentage of agents that look at the files if they do not know where the previous session stopped; the others begin
/// at the top. The same percentage reads a lost fact again before it ends an item; the others guess.
const LOOKS: u64 = 50;

/// The agent of one night.
pub struct Agent {
    task: Task,
    project: PathBuf,
    dice: Dice,
    troubles: Troubles,
    /// Conversations so far: sessions, and what follows a compaction.
    epoch: u32,
    session: String,
    has_worked: bool,
    looked_up: BTreeSet<String>,
    score: Score,
}

/// A handle to a night, during it and after its end.
#[derive(Clone)]
pub struct Night {
    agent: Arc<Mutex<Agent>>,
}

impl Night {
    /// A model that works on this task in this project.
    pub fn start(task: Task, project: PathBuf, dice: Dice, troubles: Troubles) -> (ScriptedModel, Night) {
        let agent = Agent {
            task,
            project,
            dice,
            troubles,
            epoch: 0,
            session: String::new(),
            has_worked: false,
            looked_up: BTreeSet::new(),
            score: Score::default(),
        };
        let night = Night { agent: Arc::new(Mutex::new(agent)) };
        let asked = night.clone();
        let model = ScriptedModel::start_for_all(move |request| {
            asked.agent.lock().unwrap_or_else(PoisonError::into_inner).answer(request)
        });
        (model, night)
    }

    /// The figures, with what the files say.
    pub fn score(&self) -> Score {
        let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut score = agent.score.clone();
        score.look_at(&agent.task, &agent.project);
        score.troubles = agent.troubles.come;
        score
    }
}

impl Agent {
    fn answer(&mut self, request: &Request) -> Option<Step> {
        let tokens = request.bytes() as u64 / 4;
        let step = match request.kind {
            RequestKind::Compaction => self.summarize(request),
            RequestKind::Main => {
                self.notice_session(request);
                if let Some(trouble) = self.troubles.befall() {
                    return Some(trouble.usage(tokens).delay(THINKING));
                }
                self.score.sent += tokens;
                self.work(request)
            }
            RequestKind::Subagent | RequestKind::Side => return None,
        };
        Some(step.usage(tokens).delay(THINKING))
    }

    fn notice_session(&mut self, request: &Request) {
        let session = request.body["metadata"]["user_id"].to_string();
        if self.session != session {
            self.session = session;
            self.score.sessions += 1;
            self.begin_epoch();
        }
    }

    fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.has_worked = false;
    }

    /// Answers the client's compaction: facts that the summary leaves out are lost.
    fn summarize(&mut self, request: &Request) -> Step {
        let known = Knowledge::of(request);
        let notes = known.notes(|name| self.writes_down(name));
        self.score.compactions += 1;
        self.begin_epoch();
        Step::text(format!(
            "<analysis>What was done.</analysis><summary>The task: do the items of fix_plan.md. {notes} When all are \
             ticked, say {}</summary>",
            known.promise
        ))
    }

    fn writes_down(&self, name: &str) -> bool {
        self.thinks(&format!("note {} {name}", self.epoch))
    }

    fn thinks(&self, of: &str) -> bool {
        self.dice.happens(of, WRITES_DOWN)
    }

    fn looks(&self, about: &str) -> bool {
        self.dice.happens(&format!("look {} {about}", self.epoch), LOOKS)
    }

    fn work(&mut self, request: &Request) -> Step {
        let known = Knowledge::of(request);
        let last = request.last_text();
        let new = self.score.see(&known.facts, self.epoch);
        let step = self.next(&known, &last);
        if known.told_to_stop {
            return step;
        }
        // With the next step it writes down what it has just found, if it thinks of it, and at the warning what it has not
        // written down so far.
        let mut thought_of: Vec<&String> =
            new.iter().filter(|name| self.thinks(&format!("memory {} {name}", self.epoch))).collect();
        if last.contains("CCS_WARNING|L1") {
            let rest = known.facts.keys().filter(|name| !self.score.is_written(name));
            thought_of.extend(
                rest.filter(|name| !new.contains(name))
                    .filter(|name| self.thinks(&format!("warned {} {name}", self.epoch))),
            );
        }
        let has_heap = request.tools().contains(&"mcp__plimsoll__heap_alloc");
        thought_of.into_iter().fold(step, |step, name| {
            let fact = format!("FACT[{name}]={}", known.facts[name]);
            let step = match &known.notes_file {
                _ if has_heap => step.tool("mcp__plimsoll__heap_alloc", chunk(name, &fact)),
                Some(list) => step
                    .tool("Bash", json!({ "command": note_below(list, name, &fact), "description": "Note" })),
                None => return step,
            };
            self.score.write_down(name);
            step
        })
    }

    /// One step, as an agent takes it: stop when told, read what it was told to read, look at the list, look where to go
    /// on, convert, finish.
    fn next(&mut self, known: &Knowledge, last: &str) -> Step {
        if known.told_to_stop {
            let notes = known.notes(|name| self.writes_down(name));
            let written: Vec<String> =
                known.facts.keys().filter(|name| self.writes_down(name)).cloned().collect();
            written.iter().for_each(|name| self.score.write_down(name));
            return Step::text(format!(
                "Summary: {notes}\nProgress on the item: in the middle\nNext step: go on"
            ));
        }
        if let Some(handoff) = &known.handoff
            && self.looked_up.insert(format!("{} {handoff}", self.epoch))
        {
            return Step::bash(format!("cat '{handoff}'"));
        }
        if last.contains("; 0 open") || (known.left == Some(0) && known.hand.is_none()) {
            return Step::text(format!("All is done.\n\n{}", known.promise));
        }
        if last.contains("finished part-") {
            return Step::text("The item is done.");
        }
        match &known.hand {
            Some(hand) => self.go_on(known, hand),
            None => match open_items(last).first() {
                Some(file) => {
                    let file = file.clone();
                    self.go_on(known, &Hand { file, next: None, lines: None })
                }
                None if last.contains("# Plan") => Step::text(format!("All is done.\n\n{}", known.promise)),
                None => Step::bash("cat fix_plan.md"),
            },
        }
    }

    fn go_on(&mut self, known: &Knowledge, hand: &Hand) -> Step {
        let file = &hand.file;
        let Some(next) = hand.next else {
            let once = format!("{} place of {file}", self.epoch);
            let looks = known.is_begun || self.looks(&format!("place of {file}"));
            return if looks && self.looked_up.insert(once) {
                Step::bash(format!(
                    "echo \"At {file} line $(( $(grep -c '{MARK}$' {file}) + 1 )) of $(wc -l < {file})\""
                ))
            } else {
                self.convert(file, 1)
            };
        };
        if hand.lines.is_some_and(|lines| next > lines) {
            self.finish(known, file)
        } else {
            self.convert(file, next)
        }
    }

    fn convert(&mut self, file: &str, from: u32) -> Step {
        if !self.has_worked {
            self.has_worked = true;
            let begun = self.task.begun(&self.project).map(|(item, line)| (item.file.as_str(), line));
            self.score.resumed(begun, (file, from));
        }
        let to = from + PART - 1;
        Step::bash(format!(
            "sed -n '{from},{to}p' {file}; sed -i '{from},{to}s/$/{MARK}/' {file}; \
             echo \"converted {file} {from}-{to} of $(wc -l < {file})\""
        ))
    }

    fn finish(&mut self, known: &Knowledge, file: &str) -> Step {
        let needs = self.task.items.iter().find(|item| item.file == file).map(|item| item.needs.clone());
        let needs = needs.unwrap_or_default();
        if self.looked_up.insert(format!("needs of {file}")) {
            self.score.needed(&needs, &known.facts, file, self.epoch);
            let is_lost = needs.iter().any(|name| !known.facts.contains_key(name));
            if is_lost && self.looks(&format!("facts of {file}")) {
                return Step::bash(format!("grep -o 'FACT[^ ]*' {file} part-1.txt"));
            }
        }
        let facts: Vec<String> = needs
            .iter()
            .map(|name| format!("'{name}={}'", known.facts.get(name).map_or("a guess", String::as_str)))
            .collect();
        Step::bash(format!(
            "printf '%s\\n' {} > result-{file}; sed -i 's/^- \\[ \\] Convert {file}$/- [x] Convert {file}/' fix_plan.md; \
             git add -A; git commit -qm 'Convert {file}'; \
             echo \"finished {file}; $(grep -c '^- \\[ \\]' fix_plan.md) open\"",
            facts.join(" ")
        ))
    }
}

fn chunk(name: &str, fact: &str) -> Value {
    json!({ "name": name.replace(['.', '/'], "-"), "content": fact, "description": "found on the way" })
}

/// The command that adds a note below the item whose file contains the fact.
fn note_below(list: &str, name: &str, fact: &str) -> String {
    let file = name.split('/').next().unwrap_or(name);
    format!("sed -i '/^- \\[.\\] Convert {file}$/a\\  > {fact}' {list}")
}
