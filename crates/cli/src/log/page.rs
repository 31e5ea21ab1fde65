//! The page: time, iteration, sentence; the date where it changes; colours where they are wanted.

use super::sentence::Tone;
use super::tell::Told;
use chrono::{DateTime, Local, NaiveDate, Utc};
use std::io::Write;

/// A page that is written from above.
#[derive(Debug)]
pub(super) struct Page {
    colours: bool,
    day: Option<NaiveDate>,
}

impl Page {
    /// An empty page.
    pub(super) fn new(colours: bool) -> Page {
        Page { colours, day: None }
    }

    /// Prints a line at once; false when nobody reads any more.
    pub(super) fn print(&mut self, told: &Told) -> bool {
        let mut out = std::io::stdout();
        let text: String = self.lines(told).into_iter().map(|line| line + "\n").collect();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
    }

    /// The line, with the date above it where it is another day's.
    pub(super) fn lines(&mut self, told: &Told) -> Vec<String> {
        let at = told.at.map(|at| at.with_timezone(&Local));
        let day = at.map(|at| at.date_naive()).filter(|day| self.day != Some(*day));
        let heading = day.map(|day| day.format("── %A, %-d %B %Y").to_string());
        self.day = day.or(self.day);
        let time = told.at.map_or("--:--:--".to_owned(), wall_clock);
        let iteration = told.iteration.map_or("-".to_owned(), |iteration| iteration.to_string());
        let line = format!("{time} {iteration:>3}  {}", self.painted(told));
        heading.into_iter().chain([line]).collect()
    }

    fn painted(&self, told: &Told) -> String {
        let code = match told.tone {
            _ if !self.colours => return told.words.clone(),
            Tone::Plain => return told.words.clone(),
            Tone::Bold => "1",
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
        };
        format!("\u{1b}[{code}m{}\u{1b}[0m", told.words)
    }
}

fn wall_clock(at: DateTime<Utc>) -> String {
    at.with_timezone(&Local).format("%H:%M:%S").to_string()
}
