//! What the agent does to the files: the steps, the tick, the commits.

use super::agent::{Agent, Phase, commit};
use super::ledger::{By, Event};
use super::style::{At, Break, Commits, Hands};
use super::work::Op;
use plimsoll_testkit::scripted_model::Step;
use serde_json::json;

impl Agent {
    /// One step, and what comes with it.
    pub(super) fn make(&mut self, item: usize, step: usize) -> Step {
        self.session.made += 1;
        let comes = self.session.course.comes;
        let here = self.breaks(At::Step(self.session.made));
        if here && comes == Break::Limit {
            self.session.next -= 1;
            return self.hit_limit();
        }
        let by_tool = match self.style.hands {
            Hands::Shell => false,
            Hands::Tools => true,
            Hands::Both => self.dice.happens(&format!("tool for {item} {step}"), 50),
        };
        let (mut answer, by) = self.deed(item, step, by_tool);
        self.ledger.events.push(Event::Step { item, step, by });
        let commits = self.style.commits == Commits::OnTheWay;
        let leaves = here && matches!(comes, Break::L2 | Break::L3 | Break::Crash);
        let at_commit = matches!(self.session.course.at, At::Commit(_));
        if commits && (!leaves || at_commit) {
            let message = self.message(item, Some(step));
            answer = answer.tool("Bash", json!({ "command": commit(&message), "description": "Commit" }));
            self.ledger.events.push(Event::Commit);
        }
        if here && matches!(comes, Break::Unfinished | Break::Manual) {
            self.session.phase = Phase::Stopping;
        }
        if here && comes == Break::Crash {
            self.ended = "crash";
            let kill = "sleep 0.3; kill -9 ${CLAUDE_PID:-$PPID}; sleep 5";
            answer = answer.tool("Bash", json!({ "command": kill, "description": "Test" }));
        }
        answer
    }

    pub(super) fn message(&self, item: usize, step: Option<usize>) -> String {
        let name = &self.work.items[item].name;
        match step {
            _ if self.style.wip => format!("wip: {name}"),
            Some(step) => format!("{name}: part {}", step + 1),
            None => name.clone(),
        }
    }

    pub(super) fn deed(&self, item: usize, step: usize, by_tool: bool) -> (Step, By) {
        let path = |file: &str| self.ledger.path(file).display().to_string();
        match &self.work.items[item].steps[step] {
            Op::Edit { .. } => self.edit(item, step, by_tool),
            Op::New { file } => {
                let text = self.work.fresh(item, step, file);
                if by_tool {
                    let input = json!({ "file_path": path(file), "content": text });
                    return (Step::default().tool("Write", input), By::Tool);
                }
                (
                    Step::bash(format!(
                        "mkdir -p \"$(dirname {file})\" && cat > '{file}' <<'END'\n{text}END"
                    )),
                    By::Shell,
                )
            }
            Op::Rename { from, to } => {
                let mover = if self.dice.happens(&format!("git mv {item} {step}"), 50) {
                    format!("git mv '{from}' '{to}' 2>/dev/null || mv '{from}' '{to}'")
                } else {
                    format!("mv '{from}' '{to}'")
                };
                (Step::bash(format!("mkdir -p \"$(dirname {to})\" && ({mover})")), By::Shell)
            }
            Op::Delete { file } => (Step::bash(format!("rm -f '{file}'")), By::Shell),
        }
    }

    fn edit(&self, item: usize, step: usize, by_tool: bool) -> (Step, By) {
        let file = self.ledger.file_now(&self.work, item, step).unwrap_or_default();
        let text = self.ledger.read(&file).unwrap_or_default();
        let Some(change) = self.work.change(item, step, &text) else {
            return (Step::bash(format!("tail -3 '{file}'")), By::Shell);
        };
        if by_tool {
            let path = self.ledger.path(&file).display().to_string();
            let head = head_above(&text, change.first);
            let (old, new) = (head.clone() + &change.old, head + &change.new);
            let input = json!({ "file_path": path, "old_string": old, "new_string": new });
            let read = json!({ "file_path": path });
            return (Step::default().tool("Read", read).tool("Edit", input), By::Tool);
        }
        let new = change.new.replace('\n', "\\\n");
        (Step::bash(format!("sed -i '{},{}c\\\n{new}' '{file}'", change.first, change.last)), By::Shell)
    }

    /// The item is done, as far as it knows: the tick, and the commit.
    pub(super) fn finish(&mut self, item: usize) -> Step {
        self.session.phase = Phase::Ticked;
        let name = &self.work.items[item].name;
        let commits = self.style.commits != Commits::Never;
        if self.session.course.forgets_tick && !self.forgot.contains(&item) {
            self.forgot.push(item);
            self.session.phase = Phase::Stopping;
            self.session.course.comes = Break::Unfinished;
            let message = self.message(item, None);
            self.ledger.events.extend(commits.then_some(Event::Commit));
            return Step::bash(if commits { commit(&message) } else { "ls src".to_owned() });
        }
        let tick = format!("sed -i 's/^- \\[ \\] {name} *$/- [x] {name}/' fix_plan.md");
        self.ledger.events.push(Event::Tick);
        self.breaks(At::Tick);
        if commits && !self.style.ticks_uncommitted {
            self.ledger.events.push(Event::Commit);
            return Step::bash(format!("{tick}; {}", commit(&self.message(item, None))));
        }
        Step::bash(format!("{tick}; tail -3 fix_plan.md"))
    }
}

/// The lines from the function's head to the change: with them the text is found once only.
fn head_above(text: &str, first: usize) -> String {
    let lines: Vec<&str> = text.lines().take(first - 1).collect();
    let start = lines.iter().rposition(|line| line.is_empty()).map_or(0, |place| place + 1);
    lines[start..].iter().map(|line| format!("{line}\n")).collect()
}
