//! Renders log lines: time, iteration and sentence; the date when it changes; colors if they are wanted.

use super::describer::DescribedLine;
use super::phrase::Tone;
use chrono::{DateTime, Local, NaiveDate, Utc};
use plimsoll_terminal::console::{PaintedLine, print_painted_lines};

/// A log that is rendered line by line.
#[derive(Debug)]
pub(crate) struct LogPage {
    use_colors: bool,
    last_day: Option<NaiveDate>,
}

impl LogPage {
    pub(crate) fn new(use_colors: bool) -> LogPage {
        LogPage { use_colors, last_day: None }
    }

    /// Prints a line immediately. Returns false if the reader has closed the output.
    pub(crate) fn print_line(&mut self, line: &DescribedLine) -> bool {
        print_painted_lines(&self.render_lines(line)).is_ok()
    }

    /// Renders a line, preceded by the date if it is a new day.
    pub(crate) fn render_lines(&mut self, line: &DescribedLine) -> Vec<PaintedLine> {
        let local_time = line.at.map(|at| at.with_timezone(&Local));
        let day = local_time.map(|at| at.date_naive()).filter(|day| self.last_day != Some(*day));
        let heading = day.map(|day| day.format("── %A, %-d %B %Y").to_string());
        self.last_day = day.or(self.last_day);
        let time = line.at.map_or("--:--:--".to_owned(), wall_clock);
        let iteration = line.iteration.map_or("-".to_owned(), |iteration| iteration.to_string());
        let painted_line = PaintedLine::plain(&format!("{time} {iteration:>3}  "))
            .with_text(self.color_code(line), &line.text);
        heading.map(|heading| PaintedLine::plain(&heading)).into_iter().chain([painted_line]).collect()
    }

    fn color_code(&self, line: &DescribedLine) -> Option<&'static str> {
        match line.tone {
            _ if !self.use_colors => None,
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
