//! The agent's last messages: notes for the next session, and the promise.

use super::agent::{Agent, Phase};
use super::ledger::Event;
use super::style::{Break, Sloppy, Words};
use super::work::Op;
use plimsoll_testkit::scripted_model::Step;

impl Agent {
    pub(super) fn say(&mut self, comes: Break) -> Step {
        let (next, names_place) = self.next_step();
        let number = self.session.number;
        let (seed, item) = (self.dice.number("word", 900) + 100, self.session.item);
        let is_ticked = item.is_some_and(|item| self.ledger.is_ticked(&self.work, item));
        let summary = format!("the forms are kept apart by kind, note {seed}.{number}");
        let progress = if is_ticked { "finished".to_owned() } else { format!("{} parts", self.session.next) };
        let told_to_stop = comes == Break::L2;
        let is_prose = next.is_none() || (comes == Break::Unfinished && number.is_multiple_of(2));
        if comes == Break::Manual && !self.session.has_committed {
            self.session.has_committed = true;
            let next = next.unwrap_or_default();
            self.ledger.events.push(Event::Said {
                item,
                next: Some(next.clone()).filter(|next| !next.is_empty()),
                names_place,
                summary: Some(summary.clone()),
            });
            let next = if next.is_empty() { String::new() } else { format!(" --next '{next}'") };
            return Step::bash(format!(
                "plimsoll checkpoint --summary '{summary}' --progress '{progress}'{next}"
            ));
        }
        self.session.phase = Phase::Over;
        self.ended = match comes {
            Break::L2 if is_ticked => "L2 after a tick",
            Break::L2 => "L2",
            Break::Manual => "checkpoint on demand",
            _ => "end of the turn",
        };
        if comes == Break::Manual {
            return Step::text("I leave it here.");
        }
        if is_prose {
            self.ledger.events.push(Event::Said { item, next: None, names_place: false, summary: None });
            let words = if told_to_stop {
                "The window is full, I stop here."
            } else {
                "This is what I could do now."
            };
            return Step::text(words);
        }
        let next = next.unwrap_or_default();
        self.ledger.events.push(Event::Said {
            item,
            next: Some(next.clone()),
            names_place,
            summary: Some(summary.clone()),
        });
        Step::text(format!(
            "I stop here.\n\nSummary: {summary}\nProgress on the item: {progress}\nNext step: {next}"
        ))
    }

    /// The next step as the agent sees it, and whether the text names the place.
    pub(super) fn next_step(&self) -> (Option<String>, bool) {
        let unique = format!("{}.{}", self.dice.number("word", 900) + 100, self.session.number);
        let Some(item) = self.session.item else { return (None, false) };
        let name = self.work.items[item].name.to_lowercase();
        match self.session.course.words {
            Words::Prose => (None, false),
            _ if self.ledger.is_ticked(&self.work, item) => {
                (Some(format!("look once more over \"{name}\" ({unique})")), false)
            }
            Words::Place => {
                let truth = self.truth().filter(|truth| truth.item == item);
                match truth.and_then(|truth| Some((truth.file?, truth.lines?.1 + 1))) {
                    Some((file, line)) => {
                        (Some(format!("{file} line {line}, the rest of the forms ({unique})")), true)
                    }
                    None => (Some(format!("begin with the forms of \"{name}\" ({unique})")), false),
                }
            }
            Words::Deed => {
                let steps = &self.work.items[item].steps;
                let left = (0..steps.len()).find(|step| self.ledger.is_left(&self.work, item, *step));
                let deed = match left.map(|step| &steps[step]) {
                    Some(Op::Edit { file, function, .. }) => {
                        format!("give {function} of {file} its new form")
                    }
                    Some(Op::New { file }) => format!("write {file}"),
                    Some(Op::Rename { from, to }) => format!("move {from} to {to}"),
                    Some(Op::Delete { file }) => format!("take {file} away"),
                    None => "tick it".to_owned(),
                };
                (Some(format!("{deed} ({unique})")), false)
            }
        }
    }

    /// Everything is ticked.
    pub(super) fn promise(&mut self) -> Step {
        self.session.phase = Phase::Over;
        self.ended = "promise";
        let promise = self.session.told.promise.clone().unwrap_or_default();
        let is_mended = self.has_promised_badly && self.session.told.was_refused;
        let text = match self.style.sloppy {
            Some(sloppy) if !is_mended => {
                self.has_promised_badly = true;
                match sloppy {
                    Sloppy::Bold => format!("**{promise}**"),
                    Sloppy::After => format!("{promise}\n\nIt was a pleasure."),
                    Sloppy::Bare => "<promise>COMPLETE</promise>".to_owned(),
                }
            }
            _ => promise,
        };
        Step::text(format!("All is done.\n\n{text}"))
    }
}
