//! The page: time, iteration, sentence; the date where it changes; colours where they are wanted.

use super::phrase::Tone;
use super::tell::LogLine;
use chrono::{DateTime, Local, NaiveDate, Utc};
use plimsoll_terminal::console::{Painted, paint};

/// A page that is written from above.
#[derive(Debug)]
pub(crate) struct LogPage {
    colours: bool,
    day: Option<NaiveDate>,
}

impl LogPage {
    /// An empty page.
    pub(crate) fn new(colours: bool) -> LogPage {
        LogPage { colours, day: None }
    }

    /// Prints a line at once; false when the reader is gone.
    pub(crate) fn print(&mut self, line: &LogLine) -> bool {
        paint(&self.lines(line)).is_ok()
    }

    /// The line, with the date above it where it is another day's.
    pub(crate) fn lines(&mut self, line: &LogLine) -> Vec<Painted> {
        let at = line.at.map(|at| at.with_timezone(&Local));
        let day = at.map(|at| at.date_naive()).filter(|day| self.day != Some(*day));
        let heading = day.map(|day| day.format("── %A, %-d %B %Y").to_string());
        self.day = day.or(self.day);
        let time = line.at.map_or("--:--:--".to_owned(), wall_clock);
        let iteration = line.iteration.map_or("-".to_owned(), |iteration| iteration.to_string());
        let painted =
            Painted::plain(&format!("{time} {iteration:>3}  ")).then(self.colour(line), &line.words);
        heading.map(|heading| Painted::plain(&heading)).into_iter().chain([painted]).collect()
    }

    fn colour(&self, line: &LogLine) -> Option<&'static str> {
        match line.tone {
            _ if !self.colours => None,
            Tone::Plain => None,
            Tone::Bold => Some("1"),
            Tone::Good => Some("1;32"),
            Tone::Bad => Some("1;31"),
        }
    }
}

fn wall_clock(at: DateTime<Utc>) -> String {
    at.with_timezone(&Local).format("%H:%M:%S").to_string()
}
