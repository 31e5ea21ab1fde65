//! The status line: one line, and each part shows or leaves itself out by itself.

use session::level::{Level, Marks};
use session::memory::{Memory, Pressure, Register, share};
use session::text::{clip, one_line};

/// What the line may show.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The model as a person reads it.
    pub model: Option<String>,
    /// The last part of the working directory.
    pub directory: Option<String>,
    /// The branch, or the first letters of a detached HEAD.
    pub branch: Option<String>,
    /// The client's own figure, whole percent.
    pub percent: Option<u64>,
    /// Tokens sent with the last request.
    pub used: Option<u64>,
    /// Where the levels begin.
    pub marks: Option<Marks>,
    /// The project's run, while it goes on.
    pub run: Option<RunView>,
    /// The working memory, where the session has it in mind.
    pub memory: Option<MemoryView>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// False with `NO_COLOR`.
    pub colour: bool,
}

/// The project's run, while it goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunView {
    /// The present iteration.
    pub iteration: u32,
    /// The last one allowed.
    pub max_iterations: u32,
    /// Ticked items.
    pub done: usize,
    /// All items; 0 without a to-do list.
    pub items: usize,
    /// True while it waits.
    pub paused: bool,
}

/// What the line says of the working memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryView {
    /// How deep the present frame lies; 0 is the root.
    pub depth: usize,
    /// Its name; empty for the root.
    pub frame: String,
    /// What the heap holds, in percent of its ceiling.
    pub heap_percent: usize,
    /// How near that is.
    pub pressure: Pressure,
    /// Registers of every step that nobody writes.
    pub stale: Vec<Register>,
}

impl MemoryView {
    /// Of a memory.
    pub fn of(memory: &Memory) -> MemoryView {
        MemoryView {
            depth: memory.depth(),
            frame: memory.top().name.clone(),
            heap_percent: share(memory.heap_size()),
            pressure: memory.pressure(),
            stale: memory.stale(),
        }
    }
}

/// As wide as fits beside the rest on 100 columns, one cell for every five percent.
const CELLS: u64 = 20;

/// The line.
pub fn render(view: &View) -> String {
    let text = |part: &Option<String>| {
        part.as_deref().map(|part| clip(&one_line(part), 40)).filter(|part| !part.is_empty())
    };
    let parts = [
        text(&view.model),
        text(&view.directory),
        text(&view.branch).map(|branch| format!("⎇ {branch}")),
        Some(load_line(view)),
        view.run.as_ref().map(run),
        view.memory.as_ref().map(memory),
        view.cost_usd.map(|dollars| format!("${dollars:.2}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" │ ")
}

/// The load line: fill, the marks of L1 and L2 (`┆`), of the ceiling (`┃`), and the percent or `?`.
pub fn load_line(view: &View) -> String {
    let filled = view.percent.map_or(0, |percent| (percent * CELLS).div_ceil(100).min(CELLS));
    let cell_of = |tokens: u64, marks: &Marks| (tokens * CELLS / marks.window.max(1)).min(CELLS - 1);
    let cells: String = (0..CELLS)
        .map(|cell| {
            let at = |tokens: fn(&Marks) -> u64| {
                view.marks.is_some_and(|marks| cell_of(tokens(&marks), &marks) == cell)
            };
            match cell {
                _ if at(|marks| marks.ceiling.tokens) => '┃',
                cell if cell < filled => '█',
                _ if at(|marks| marks.l1) || at(|marks| marks.l2) => '┆',
                _ => '░',
            }
        })
        .collect();
    let figure = view.percent.map_or("?".to_owned(), |percent| format!("{percent}%"));
    paint(&format!("▕{cells}▏ {figure}"), level(view), view.colour)
}

fn level(view: &View) -> Option<Level> {
    view.marks.zip(view.used).map(|(marks, used)| marks.level(used))
}

fn paint(text: &str, level: Option<Level>, colour: bool) -> String {
    let code = match level {
        _ if !colour => return text.to_owned(),
        None => "2",
        Some(Level::L0) => "32",
        Some(Level::L1) => "33",
        Some(Level::L2) => "35",
        Some(Level::L3) => "1;31",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

fn run(run: &RunView) -> String {
    let items = if run.items > 0 { format!(" · {}/{} items", run.done, run.items) } else { String::new() };
    let paused = if run.paused { " paused" } else { "" };
    format!("ralph {}/{}{items}{paused}", run.iteration, run.max_iterations)
}

/// `memory 1 calc · stale R2 R7 · heap 92% high`
fn memory(memory: &MemoryView) -> String {
    let frame =
        if memory.depth > 0 { format!(" {}", clip(&one_line(&memory.frame), 20)) } else { String::new() };
    let stale: String = memory.stale.iter().map(|register| format!(" {}", &register.key()[..2])).collect();
    let parts = [
        Some(format!("memory {}{frame}", memory.depth)),
        (!stale.is_empty()).then(|| format!("stale{stale}")),
        (memory.pressure > Pressure::Low)
            .then(|| format!("heap {}% {}", memory.heap_percent, memory.pressure.word())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::{Knobs, ceiling, marks};
    use session::Settings;

    fn view(percent: u64) -> View {
        let settings = Settings::default();
        let marks = marks(
            1_000_000,
            ceiling(1_000_000, None, &Knobs::default()),
            &settings.levels,
            &settings.margins,
        );
        View {
            model: Some("Opus 5.5".into()),
            directory: Some("project".into()),
            branch: Some("main".into()),
            percent: Some(percent),
            used: Some(percent * 10_000),
            marks: Some(marks),
            run: Some(RunView { iteration: 2, max_iterations: 50, done: 1, items: 3, paused: false }),
            memory: None,
            cost_usd: Some(0.123),
            colour: false,
        }
    }

    #[test]
    fn the_line_shows_fill_marks_and_ceiling() {
        assert_eq!(
            render(&view(43)),
            "Opus 5.5 │ project │ ⎇ main │ ▕█████████░░░░░┆░░┆░┃▏ 43% │ ralph 2/50 · 1/3 items │ $0.12"
        );
    }

    #[test]
    fn the_memory_shows_its_depth_and_what_asks_for_attention() {
        let calm = MemoryView {
            depth: 0,
            frame: String::new(),
            heap_percent: 12,
            pressure: Pressure::Low,
            stale: Vec::new(),
        };
        let tense = MemoryView {
            depth: 2,
            frame: "write-tests".into(),
            heap_percent: 92,
            pressure: Pressure::High,
            stale: vec![Register::Next, Register::Status],
        };
        for (memory, shown) in
            [(calm, "memory 0"), (tense, "memory 2 write-tests · stale R2 R7 · heap 92% high")]
        {
            let line = render(&View { memory: Some(memory), ..View::default() });
            assert_eq!(line.split(" │ ").last(), Some(shown));
        }
    }

    #[test]
    fn unknown_is_a_question_mark_and_never_zero() {
        assert_eq!(render(&View::default()), "▕░░░░░░░░░░░░░░░░░░░░▏ ?");
        assert!(load_line(&view(0)).ends_with("0%"));
    }

    #[test]
    fn names_cannot_smuggle_escapes_or_line_breaks_into_the_line() {
        let line = render(&View { branch: Some("a\u{1b}[31m\nb\u{7}".into()), ..View::default() });
        assert!(!line.contains('\u{1b}') && !line.contains('\n') && !line.contains('\u{7}'), "{line:?}");
    }

    #[test]
    fn colour_tells_the_level() {
        let painted = |percent| render(&View { colour: true, ..view(percent) });
        assert!(painted(10).contains("\u{1b}[32m"));
        assert!(painted(72).contains("\u{1b}[33m"));
        assert!(painted(87).contains("\u{1b}[35m"));
        assert!(painted(97).contains("\u{1b}[1;31m"));
    }
}
