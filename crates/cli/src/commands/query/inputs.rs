//! What a document gives: JSON texts, one value each, and how far they have been read.

use super::program::is_json;
use plimsoll_terminal::console::say_error;
use serde_json::Value;
use std::cell::Cell;
use std::rc::Rc;

/// JSON texts, one value each.
pub(super) struct Inputs {
    texts: Box<dyn Iterator<Item = String>>,
    progress: Rc<Progress>,
}

/// How far a document has been read.
#[derive(Debug, Default)]
pub(super) struct Progress {
    name: String,
    /// What is counted; empty if there is but one value.
    unit: &'static str,
    read: Cell<usize>,
    is_faulty: Cell<bool>,
}

impl Progress {
    /// The place of the value that was read last, as an addition to a message.
    pub(super) fn place(&self) -> String {
        match (self.read.get(), self.unit) {
            (0, _) => String::new(),
            (_, "") => format!(" in {}", self.name),
            (read, unit) => format!(" at {unit} {read} of {}", self.name),
        }
    }

    /// True if something could not be read, or was no JSON.
    pub(super) fn is_faulty(&self) -> bool {
        self.is_faulty.get()
    }

    fn blame(&self, words: &str) {
        say_error(&words);
        self.is_faulty.set(true);
    }
}

impl Inputs {
    fn new(
        name: &str,
        unit: &'static str,
        read: impl FnOnce(Rc<Progress>) -> Box<dyn Iterator<Item = String>>,
    ) -> Inputs {
        let progress = Rc::new(Progress { name: name.to_owned(), unit, ..Progress::default() });
        Inputs { texts: read(Rc::clone(&progress)), progress }
    }

    /// One JSON text.
    pub(super) fn one(name: &str, text: String) -> Inputs {
        Inputs::new(name, "", |progress| {
            Box::new(std::iter::once(text).inspect(move |_| progress.read.set(1)))
        })
    }

    /// Values that are made as they are asked for.
    pub(super) fn values(name: &str, values: impl Iterator<Item = Value> + 'static) -> Inputs {
        Inputs::new(name, "value", |progress| {
            let text = move |(index, value): (usize, Value)| {
                progress.read.set(index + 1);
                value.to_string()
            };
            Box::new(values.enumerate().map(text))
        })
    }

    /// JSON lines. One that is not JSON (a torn one, say) is reported and skipped, so that a bad line never loses the
    /// good ones.
    pub(super) fn lines(name: &str, text: &str) -> Inputs {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Inputs::new(name, "line", |progress| {
            Box::new(lines.into_iter().enumerate().filter_map(move |(index, line)| {
                if line.trim().is_empty() {
                    return None;
                }
                progress.read.set(index + 1);
                match is_json(&line) {
                    Ok(()) => Some(line),
                    Err(why) => {
                        progress.blame(&format!("left out{}: not JSON ({why})", progress.place()));
                        None
                    }
                }
            }))
        })
    }

    /// A document that is missed only when something is asked of it.
    pub(super) fn missing(complaint: String) -> Inputs {
        Inputs::new("", "", |progress| {
            let mut complaint = Some(complaint);
            Box::new(std::iter::from_fn(move || {
                progress.blame(&complaint.take()?);
                None
            }))
        })
    }

    /// All values as one array.
    pub(super) fn slurped(self) -> Inputs {
        let Inputs { texts, progress } = self;
        let whole = std::iter::once_with(move || format!("[{}]", texts.collect::<Vec<_>>().join(",")));
        let of_whole = Rc::clone(&progress);
        Inputs { texts: Box::new(whole.inspect(move |_| of_whole.read.set(0))), progress }
    }

    /// How far they have been read, also while they are being read.
    pub(super) fn progress(&self) -> Rc<Progress> {
        Rc::clone(&self.progress)
    }
}

impl Iterator for Inputs {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.texts.next()
    }
}
