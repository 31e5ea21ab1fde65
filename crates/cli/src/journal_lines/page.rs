//! Renders log lines: the date when it changes, then time, iteration and sentence, in color if enabled.

use super::describer::DescribedLine;
use super::phrase::LineStyle;
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

    /// Prints a line immediately. Returns false if the output is closed.
    pub(crate) fn print_line(&mut self, line: &DescribedLine) -> bool {
        print_painted_lines(&self.render_line_with_heading_if_new_day(line), 14).is_ok()
    }

    /// Renders a line, preceded by the date if it is a new day.
    pub(crate) fn render_line_with_heading_if_new_day(&mut self, line: &DescribedLine) -> Vec<PaintedLine> {
        let local_time = line.recorded_at.map(|at| at.with_timezone(&Local));
        let new_day = local_time.map(|at| at.date_naive()).filter(|day| self.last_day != Some(*day));
        let heading = new_day.map(|day| day.format("── %A, %-d %B %Y").to_string());
        self.last_day = new_day.or(self.last_day);
        let time = line.recorded_at.map_or("--:--:--".to_owned(), format_local_clock_time);
        let iteration = line.iteration.map_or("-".to_owned(), |iteration| iteration.to_string());
        let painted_line = PaintedLine::plain(&format!("{time} {iteration:>3}  "))
            .with_text(self.ansi_style_code(line), &line.text);
        heading.map(|heading| PaintedLine::plain(&heading)).into_iter().chain([painted_line]).collect()
    }

    fn ansi_style_code(&self, line: &DescribedLine) -> Option<&'static str> {
        match line.style {
            _ if !self.use_colors => None,
            LineStyle::Plain => None,
            LineStyle::Bold => Some("1"),
            LineStyle::Good => Some("1;32"),
            LineStyle::Bad => Some("1;31"),
        }
    }
}

fn format_local_clock_time(time: DateTime<Utc>) -> String {
    time.with_timezone(&Local).format("%H:%M:%S").to_string()
}
