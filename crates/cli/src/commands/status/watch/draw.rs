//! The screen: a pure function from what is known, and how the user looks at it, to cells.

use super::keys::{KEYS, Look};
use super::scene::Scene;
use crate::commands::status::screen::INDENT;
use crate::journal_lines::Tone;
use crate::run_status::View;
use crate::run_status::words::{next, standing, title_word, troubles};
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::text::{one_line, tokens};
use plimsoll_domain::{Reading, Status};
use plimsoll_store::clock;
use plimsoll_terminal::columns::clip;
use plimsoll_terminal::duration::for_people;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

/// The load line is no longer.
const MOST_CELLS: usize = 60;
/// And no shorter.
const LEAST_CELLS: usize = 8;
/// With fewer rows everything is given to the head.
const ROWS_FOR_LOG: usize = 9;

type Row = (String, Style);

/// Draws it; nothing is written outside of the area.
pub(super) fn draw(scene: &Scene, look: &Look, area: Rect, buffer: &mut Buffer) {
    let (rows, columns) = (usize::from(area.height), usize::from(area.width));
    let foot = usize::from(rows > 3);
    let least = if rows >= ROWS_FOR_LOG { rows / 3 } else { 0 };
    let mut page = head(scene, look, columns);
    page.truncate(rows.saturating_sub(foot + least));
    let room = rows.saturating_sub(page.len() + foot);
    page.extend(if look.help { help(look) } else { log(scene, look, columns, room) });
    page.resize(rows.saturating_sub(foot), (String::new(), Style::new()));
    if foot > 0 {
        page.push((" q quit   ↑↓ PgUp PgDn log   ? help".to_owned(), look.dim()));
    }
    for ((text, style), y) in page.into_iter().take(rows).zip(area.y..) {
        buffer.set_line(area.x, y, &Line::styled(clip(&one_line_of(&text), columns), style), area.width);
    }
}

/// Nothing that a file says reaches the terminal as a command; leading spaces are ours.
fn one_line_of(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let plain = text[indent..].chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    " ".repeat(indent).chars().chain(plain).collect()
}

fn head(scene: &Scene, look: &Look, columns: usize) -> Vec<Row> {
    let Some(view) = &scene.view else {
        let words = match &scene.trouble {
            Some(trouble) => trouble.clone(),
            None => format!("There is no run in {}. Waiting for one: plimsoll run", scene.root),
        };
        return vec![(words, Style::new())];
    };
    let view = View { width: columns, ..view.clone() };
    let state = &view.state;
    let plain = |words: String| (words, Style::new());
    let mut rows = vec![title(&view, look)];
    rows.extend(load(scene, look, columns));
    rows.push((titled("Status", &standing(&view).to_string()), look.tone(tone(state.lifecycle.status()))));
    rows.extend(countdown(&view).map(|words| plain(titled("Pause", &words))));
    rows.extend(view.in_hand().map(|words| plain(titled("Current item", &words))));
    rows.extend(view.items().into_iter().map(plain));
    rows.extend(view.workers().into_iter().map(plain));
    rows.push(plain(titled("Cost", &view.cost())));
    rows.extend(view.checkpoints().map(|words| plain(titled("Handoff", &words))));
    rows.extend(view.quota().map(|words| plain(titled("Quota", &words))));
    rows.extend(troubles(state).map(|words| (titled("Trouble", &words), look.tone(Tone::Bad))));
    rows.push(plain(titled("Time", &view.time())));
    if !view.activity.continues_by_itself() {
        rows.push(plain(titled("Next", &next(&view))));
    }
    rows
}

fn titled(title: &str, words: &str) -> String {
    format!("{title:<INDENT$}{}", one_line(words))
}

fn title(view: &View, look: &Look) -> Row {
    let state = &view.state;
    let name = one_line(&state.options.task_name);
    let words = format!(
        "{name} · session {}/{} · {}",
        view.figures.sessions_started,
        state.options.max_iterations,
        title_word(view)
    );
    (words, look.tone(Tone::Bold))
}

fn tone(status: Status) -> Tone {
    match status {
        Status::Completed => Tone::Good,
        Status::Running | Status::Paused | Status::Cancelled => Tone::Plain,
        // It ended before it was done.
        _ => Tone::Bad,
    }
}

/// How long a pause still lasts.
fn countdown(view: &View) -> Option<String> {
    let paused = Some(&view.state.lifecycle).filter(|lifecycle| lifecycle.status() == Status::Paused)?;
    let until = clock::moment(paused.paused_until()?)?;
    let left = (until - view.now).num_seconds();
    let words = if left > 0 { format!("{} left", for_people(left)) } else { "over by now".to_owned() };
    Some(format!("{words}, until {}", clock::for_people(until)))
}

/// The load line with its figure, and the positions of the thresholds.
fn load(scene: &Scene, look: &Look, columns: usize) -> Vec<Row> {
    let Some(reading) = &scene.reading else {
        return vec![(titled("Load", "? (nothing has been measured yet)"), look.dim())];
    };
    let thresholds = scene.thresholds.as_ref();
    let level = thresholds.map(|thresholds| thresholds.level(reading.projected()));
    let figure = match (reading.percent_used(), level) {
        (Some(percent), Some(level)) => {
            format!("{percent}% {} {level} ({})", tokens(reading.used), level.word())
        }
        (Some(percent), None) => format!("{percent}% {}", tokens(reading.used)),
        (None, _) => format!("? {}", tokens(reading.used)),
    };
    let room = columns.saturating_sub(INDENT + figure.len() + 3).clamp(LEAST_CELLS, MOST_CELLS);
    let line = titled("Load", &format!("▕{}▏ {figure}", cells(reading, thresholds, room)));
    let legend = thresholds.map(|thresholds| (titled("", &legend(thresholds)), look.dim()));
    let ahead =
        scene.checkpoint_in.map(|ahead| (titled("", &format!("L2 in {}", ahead.words())), look.dim()));
    [(line, look.level(level))].into_iter().chain(legend).chain(ahead).collect()
}

fn cells(reading: &Reading, thresholds: Option<&Thresholds>, count: usize) -> String {
    let window = reading.window.as_ref().map_or(u64::MAX, |window| window.tokens.max(1));
    let place = |tokens: u64| (u128::from(tokens) * count as u128 / u128::from(window)) as usize;
    let filled = place(reading.used).min(count).max(usize::from(reading.used > 0 && window < u64::MAX));
    let cell = |at: usize| {
        let is_mark = |tokens: u64| place(tokens).min(count - 1) == at;
        match thresholds {
            Some(thresholds) if is_mark(thresholds.auto_compact.tokens) => '┃',
            _ if at < filled => '█',
            Some(thresholds) if [thresholds.l1, thresholds.l2, thresholds.l3].into_iter().any(is_mark) => '┆',
            _ => '░',
        }
    };
    (0..count).map(cell).collect()
}

fn legend(thresholds: &Thresholds) -> String {
    let [l1, l2, l3, auto_compact] =
        [thresholds.l1, thresholds.l2, thresholds.l3, thresholds.auto_compact.tokens]
            .map(|threshold| thresholds.percent(threshold));
    format!("L1 {l1}% · L2 {l2}% · L3 {l3}% · auto-compact {auto_compact}%")
}

fn help(look: &Look) -> Vec<Row> {
    let keys = KEYS.map(|(key, words)| (format!(" {key:<16}{words}"), Style::new()));
    [(rule("keys", 0), look.dim())].into_iter().chain(keys).collect()
}

/// The part of the log that the user looks at, under a rule.
fn log(scene: &Scene, look: &Look, columns: usize, room: usize) -> Vec<Row> {
    let Some(lines) = room.checked_sub(1).filter(|lines| *lines > 0) else { return Vec::new() };
    let all = &scene.log;
    let end = all.len().saturating_sub(look.above).max(lines.min(all.len()));
    let start = end.saturating_sub(lines);
    let below = all.len() - end;
    let title = if below > 0 { format!("log, {below} more below") } else { "log".to_owned() };
    let shown = all[start..end].iter().map(|(words, tone)| (words.clone(), look.tone(*tone)));
    [(rule(&title, columns), look.dim())].into_iter().chain(shown).collect()
}

fn rule(title: &str, columns: usize) -> String {
    let words = format!("── {title} ");
    let rest = columns.saturating_sub(words.chars().count());
    format!("{words}{}", "─".repeat(rest))
}

impl Look {
    fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn coloured(&self, style: Style, colour: Color) -> Style {
        if self.colours { style.fg(colour) } else { style }
    }

    fn tone(&self, tone: Tone) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        match tone {
            Tone::Plain => Style::new(),
            Tone::Bold => bold,
            Tone::Good => self.coloured(bold, Color::Green),
            Tone::Bad => self.coloured(bold, Color::Red),
        }
    }

    /// As the status line has them.
    fn level(&self, level: Option<Level>) -> Style {
        match level {
            None => self.dim(),
            Some(Level::L0) => self.coloured(Style::new(), Color::Green),
            Some(Level::L1) => self.coloured(Style::new(), Color::Yellow),
            Some(Level::L2) => self.coloured(Style::new(), Color::Magenta),
            Some(Level::L3) => self.coloured(Style::new().add_modifier(Modifier::BOLD), Color::Red),
        }
    }
}
