//! The inputs of a filter: the JSON values of a document, with the reading position for messages.

use super::program::validate_json;
use plimsoll_terminal::console::print_error;
use serde_json::Value;
use std::cell::Cell;
use std::rc::Rc;

/// An iterator over the JSON texts of a document, one value each.
pub(super) struct Inputs {
    texts: Box<dyn Iterator<Item = String>>,
    progress: Rc<Progress>,
}

/// The position up to which a document has been read, shared with its iterator.
#[derive(Debug, Default)]
pub(super) struct Progress {
    document_name: String,
    /// The unit of the position, such as `line`; empty if the document is a single value.
    unit: &'static str,
    last_position: Cell<usize>,
    has_input_error: Cell<bool>,
}

impl Progress {
    /// Renders the position of the value read last as a prefix for a message: `line 3 of FILE: `. Empty if nothing has been read.
    pub(super) fn render_position_prefix(&self) -> String {
        match (self.last_position.get(), self.unit) {
            (0, _) => String::new(),
            (_, "") => format!("{}: ", self.document_name),
            (position, unit) => format!("{unit} {position} of {}: ", self.document_name),
        }
    }

    /// Returns true if the document is missing or a line of it is not JSON.
    pub(super) fn has_input_error(&self) -> bool {
        self.has_input_error.get()
    }

    fn report_input_error(&self, message: &str) {
        print_error(&message);
        self.has_input_error.set(true);
    }
}

impl Inputs {
    fn new(
        document_name: &str,
        unit: &'static str,
        create_json_texts: impl FnOnce(Rc<Progress>) -> Box<dyn Iterator<Item = String>>,
    ) -> Inputs {
        let progress =
            Rc::new(Progress { document_name: document_name.to_owned(), unit, ..Progress::default() });
        Inputs { texts: create_json_texts(Rc::clone(&progress)), progress }
    }

    /// Creates inputs with a single JSON text.
    pub(super) fn from_text(document_name: &str, text: String) -> Inputs {
        Inputs::new(document_name, "", |progress| {
            Box::new(std::iter::once(text).inspect(move |_| progress.last_position.set(1)))
        })
    }

    /// Creates inputs from values that are produced lazily.
    pub(super) fn from_values(document_name: &str, values: impl Iterator<Item = Value> + 'static) -> Inputs {
        Inputs::new(document_name, "value", |progress| {
            let record_position_and_serialize = move |(index, value): (usize, Value)| {
                progress.last_position.set(index + 1);
                value.to_string()
            };
            Box::new(values.enumerate().map(record_position_and_serialize))
        })
    }

    /// Creates inputs from JSON lines. A line that is not JSON, such as a truncated one, is reported and skipped, so that
    /// the other lines are still processed.
    pub(super) fn from_json_lines_skipping_invalid(document_name: &str, text: &str) -> Inputs {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        Inputs::new(document_name, "line", |progress| {
            Box::new(lines.into_iter().enumerate().filter_map(move |(index, line)| {
                if line.trim().is_empty() {
                    return None;
                }
                progress.last_position.set(index + 1);
                match validate_json(&line) {
                    Ok(()) => Some(line),
                    Err(error) => {
                        progress.report_input_error(&format!(
                            "{}left out, because it is not JSON ({error})",
                            progress.render_position_prefix()
                        ));
                        None
                    }
                }
            }))
        })
    }

    /// Creates inputs for a missing document, which is reported only if the filter reads an input.
    pub(super) fn for_missing_document_reported_on_read(message: String) -> Inputs {
        Inputs::new("", "", |progress| {
            let mut message = Some(message);
            Box::new(std::iter::from_fn(move || {
                progress.report_input_error(&message.take()?);
                None
            }))
        })
    }

    /// Combines all values into a single array.
    pub(super) fn into_single_array(self) -> Inputs {
        let Inputs { texts, progress } = self;
        let array = std::iter::once_with(move || format!("[{}]", texts.collect::<Vec<_>>().join(",")));
        let array_progress = Rc::clone(&progress);
        Inputs { texts: Box::new(array.inspect(move |_| array_progress.last_position.set(0))), progress }
    }

    /// Returns the shared reading position, which stays current while the inputs are read.
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
