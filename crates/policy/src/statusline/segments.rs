//! Each segment: its fields, its state, and why it has nothing to show.

use super::Hidden::{self, NotReported, Nothing};
use super::truncate::truncate;
use super::{CacheView, LimitView, View, level, load};
use crate::forecast::FEWEST;
use plimsoll_domain::level::{Level, Thresholds};
use plimsoll_domain::memory::Pressure;
use plimsoll_domain::statusline::{Colour, Format, Segment, SegmentKind, StatusLine, format};
use plimsoll_domain::text::{clip, clip_start, one_line, tokens};

/// The state of a segment, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing is known.
    Unknown,
    /// As it should be.
    Calm,
    /// It asks for attention.
    Warn,
    /// A checkpoint is due.
    Checkpoint,
    /// It is high time.
    Alarm,
}

impl Tone {
    pub(super) fn of_level(level: Option<Level>) -> Tone {
        match level {
            None => Tone::Unknown,
            Some(Level::L0) => Tone::Calm,
            Some(Level::L1) => Tone::Warn,
            Some(Level::L2) => Tone::Checkpoint,
            Some(Level::L3) => Tone::Alarm,
        }
    }
}

/// A segment that has something to show.
#[derive(Debug, Clone)]
pub(super) struct Piece<'a> {
    pub(super) name: &'a str,
    /// None for one of the user's own.
    pub(super) kind: Option<SegmentKind>,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) tone: Tone,
    pub(super) colour: Option<Colour>,
    /// As it is written.
    pub(super) text: String,
    writing: &'a str,
    dropped: Dropped,
}

impl Piece<'_> {
    /// The same without its groups; nothing may be left of it.
    pub(super) fn shortened(mut self) -> Option<Self> {
        self.dropped = Dropped::All;
        self.written()
    }

    /// The same without the groups that show this field.
    pub(super) fn without(mut self, field: &'static str) -> Option<Self> {
        if let Dropped::With(fields) = &mut self.dropped {
            fields.push(field);
        }
        self.written()
    }

    fn written(mut self) -> Option<Self> {
        let is_shown = |group: &str| match &self.dropped {
            Dropped::All => false,
            Dropped::With(fields) => !format::names(group, fields),
        };
        self.text = written(self.writing, &is_shown, &self.fields)?;
        Some(self)
    }

    /// Of the load line what says most in the fewest letters, unless that is all there is.
    pub(super) fn percent_alone(&self) -> Option<String> {
        let (_, percent) = self.fields.iter().find(|(name, _)| *name == "percent")?;
        (self.kind == Some(SegmentKind::Load) && percent.len() < self.text.len()).then(|| percent.clone())
    }

    /// The load line with a bar of so many cells.
    pub(super) fn with_bar(mut self, cells: u64, view: &View) -> Option<Self> {
        self.fields.iter_mut().filter(|(name, _)| *name == "bar").for_each(|(_, bar)| {
            *bar = load::bar(&view.load, cells);
        });
        self.written()
    }

    /// The same with its folder or branch in so many columns: a name keeps its beginning, a path its end.
    pub(super) fn truncated(mut self, columns: usize) -> Option<Self> {
        for (field, value) in &mut self.fields {
            match *field {
                "name" | "branch" => *value = truncate(value, columns),
                "path" => *value = clip_start(value, columns),
                _ => {}
            }
        }
        self.written()
    }
}

/// Groups that are left out.
#[derive(Debug, Clone)]
enum Dropped {
    /// Those that show one of these fields.
    With(Vec<&'static str>),
    All,
}

fn written(writing: &str, groups: &dyn Fn(&str) -> bool, fields: &Fields) -> Option<String> {
    let field = |name: &str| Some(fields.iter().find(|(field, _)| *field == name)?.1.as_str());
    format::write(writing, groups, &field)
}

type Fields = Vec<(&'static str, String)>;

/// A segment, or why it is hidden.
pub(super) fn piece<'a>(name: &'a str, view: &View, look: &'a StatusLine) -> Result<Piece<'a>, Hidden> {
    let configured = look.of(name);
    let wanted = configured.and_then(|segment| segment.min_columns);
    if let Some((wanted, columns)) = wanted.zip(view.columns).filter(|(wanted, columns)| columns < wanted) {
        return Err(Hidden::TooNarrow { wanted, columns });
    }
    let kind = SegmentKind::named(name);
    let of_own = configured.and_then(|segment| segment.format.as_ref()).map_or("{value}", Format::source);
    let writing = kind.map_or(of_own, |kind| look.writing(kind));
    let (fields, tone) = match kind {
        Some(kind) => fields(kind, view, configured, writing)?,
        None => own(name, view, configured)?,
    };
    let text = written(writing, &|_| true, &fields).ok_or(Nothing("its format shows none of its fields"))?;
    Ok(Piece {
        name,
        kind,
        fields,
        tone,
        colour: configured.and_then(|segment| segment.colour),
        text,
        writing,
        dropped: Dropped::With(Vec::new()),
    })
}

fn fields(
    kind: SegmentKind,
    view: &View,
    configured: Option<&Segment>,
    writing: &str,
) -> Result<(Fields, Tone), Hidden> {
    let client = &view.client;
    let fields = match kind {
        SegmentKind::Model => model(view)?,
        SegmentKind::Effort => {
            let level =
                name(client.effort.level.as_ref()).ok_or(NotReported("effort (some models have none)"))?;
            vec![("level", level)]
        }
        SegmentKind::Directory => directory(view)?,
        SegmentKind::Git => return git(view),
        SegmentKind::Load => return Ok(load(view, writing)),
        SegmentKind::Run => return run(view),
        SegmentKind::Memory => return memory(view),
        SegmentKind::ItemCost => growth(view)?,
        SegmentKind::Cache => {
            return cache(view.cache.as_ref().ok_or(NotReported("prompt cache before the first answer"))?);
        }
        SegmentKind::Cost => {
            let usd = usd(view).ok_or(NotReported("cost"))?;
            return Ok((vec![("usd", dollars(usd))], threshold(usd, configured, None)));
        }
        SegmentKind::Burn => return burn(view, configured),
        SegmentKind::FiveHour => return limit(view.five_hour.as_ref(), configured),
        SegmentKind::Weekly => return limit(view.weekly.as_ref(), configured),
        SegmentKind::Spend => return limit(view.spend.as_ref(), configured),
        SegmentKind::Lines => lines(view)?,
        SegmentKind::Version => {
            vec![("client", name(client.version.as_ref()).ok_or(NotReported("version"))?)]
        }
        SegmentKind::Health => return health(view),
    };
    Ok((fields, Tone::Calm))
}

fn model(view: &View) -> Result<Fields, Hidden> {
    let model = &view.client.model;
    let shown = name(model.display_name.as_ref().or(model.id.as_ref())).ok_or(NotReported("model"))?;
    Ok(vec![("name", shown), ("id", name(model.id.as_ref()).unwrap_or_default())])
}

fn directory(view: &View) -> Result<Fields, Hidden> {
    let path = one_line(view.directory.as_deref().unwrap_or_default());
    let path = Some(path).filter(|path| !path.is_empty()).ok_or(NotReported("working directory"))?;
    let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&path);
    Ok(vec![("name", clip(last, 40)), ("path", clip_start(&path, 80))])
}

fn lines(view: &View) -> Result<Fields, Hidden> {
    let cost = &view.client.cost;
    let both = cost.total_lines_added.zip(cost.total_lines_removed).ok_or(NotReported("lines"))?;
    let (added, removed) = Some(both).filter(|both| *both != (0, 0)).ok_or(Nothing("no line has changed"))?;
    Ok(vec![("added", added.to_string()), ("removed", removed.to_string())])
}

fn health(view: &View) -> Result<(Fields, Tone), Hidden> {
    let what = view.health.as_deref().ok_or(Nothing("nothing is wrong"))?;
    Ok((vec![("what", clip(&one_line(what), 60))], Tone::Alarm))
}

/// One that the user has made.
fn own(name: &str, view: &View, configured: Option<&Segment>) -> Result<(Fields, Tone), Hidden> {
    let value = view.own.get(name).ok_or(Nothing("it is in no line"))?.clone()?;
    let text = clip(&one_line(&value), 80);
    if text.is_empty() {
        return Err(Nothing("its value is empty"));
    }
    // A number may have a unit behind it: `42 %`, `3 open`.
    let number = text.split(|letter: char| !(letter.is_ascii_digit() || ".-".contains(letter))).next();
    let tone = number.and_then(|number| number.parse().ok());
    Ok((vec![("value", text.clone())], tone.map_or(Tone::Calm, |number| threshold(number, configured, None))))
}

/// Where the value of a user's segment comes from.
pub(super) fn source(segment: &Segment) -> String {
    match (&segment.pointer, &segment.command) {
        (Some(pointer), _) => format!("what the client reports, at {pointer}"),
        (_, Some(command)) => format!("the command {}", command.join(" ")),
        _ => String::new(),
    }
}

/// Foreign words: one line of them, and not too many.
fn name(text: Option<&String>) -> Option<String> {
    text.map(|text| clip(&one_line(text), 80)).filter(|text| !text.is_empty())
}

fn dollars(usd: f64) -> String {
    clip(&format!("${usd:.2}"), 12)
}

fn threshold(value: f64, configured: Option<&Segment>, usual: Option<(f64, f64)>) -> Tone {
    let warn = configured.and_then(|segment| segment.warn).or(usual.map(|(warn, _)| warn));
    let alarm = configured.and_then(|segment| segment.alarm).or(usual.map(|(_, alarm)| alarm));
    match value {
        value if alarm.is_some_and(|alarm| value >= alarm) => Tone::Alarm,
        value if warn.is_some_and(|warn| value >= warn) => Tone::Warn,
        _ => Tone::Calm,
    }
}

/// As wide as fits beside the rest on 100 columns, one cell for every five percent.
pub(super) const CELLS: u64 = 20;

/// A threshold on the load line, in tokens.
type Mark = fn(&Thresholds) -> u64;

/// Fields of the load segment: responses and minutes to a threshold.
const OUTLOOKS: [(&str, &str, Mark); 3] = [
    ("turns", "minutes", |thresholds| thresholds.auto_compact.tokens),
    ("turns_l1", "minutes_l1", |thresholds| thresholds.l1),
    ("turns_l2", "minutes_l2", |thresholds| thresholds.l2),
];

fn load(view: &View, writing: &str) -> (Fields, Tone) {
    let load = &view.load;
    let level = level(view);
    let known = |figure: Option<String>| figure.unwrap_or_default();
    let mut fields = vec![
        ("bar", load::bar(load, CELLS)),
        ("percent", load::percent(load)),
        ("used", known(load.used.map(tokens))),
        ("window", known(load.thresholds.map(|thresholds| tokens(thresholds.window)))),
        ("level", known(level.map(|level| level.to_string()))),
        ("left", known(load::left(load).map(tokens))),
    ];
    // A short record has no outlook, and drawing one costs more than the rest of the line.
    if load.fills.len() <= FEWEST {
        return (fields, Tone::of_level(level));
    }
    for (turns, minutes, threshold) in OUTLOOKS {
        if writing.contains(turns) || writing.contains(minutes) {
            let outlook = load::outlook(load, threshold);
            let minutes_left = outlook.and_then(|outlook| outlook.minutes);
            fields.push((turns, known(outlook.as_ref().map(load::turns))));
            fields.push((minutes, known(minutes_left.map(|minutes| format!("~{}", minutes.likely)))));
        }
    }
    // The figure may be known without the tokens that make it: then it says nothing of a level.
    (fields, Tone::of_level(level))
}

fn git(view: &View) -> Result<(Fields, Tone), Hidden> {
    let git = view.git.as_ref().ok_or(Nothing("the working directory is in no git repository"))?;
    let known = git.counts.unwrap_or_default();
    let count = |number: u64| if number > 0 { number.to_string() } else { String::new() };
    let stale = match git.counts {
        _ if !git.stale => "",
        Some(_) => "~",
        None => "…",
    };
    let fields = vec![
        ("branch", clip(&one_line(&git.branch), 40)),
        ("detached", if git.detached { "detached".to_owned() } else { String::new() }),
        (
            "worktree",
            git.worktree
                .as_deref()
                .map_or(String::new(), |name| format!("worktree {}", clip(&one_line(name), 24))),
        ),
        ("action", clip(&one_line(git.action.as_deref().unwrap_or_default()), 24)),
        ("ahead", count(known.ahead)),
        ("behind", count(known.behind)),
        ("conflicts", count(known.conflicts)),
        ("staged", count(known.staged)),
        ("modified", count(known.modified)),
        ("untracked", count(known.untracked)),
        ("stale", stale.to_owned()),
    ];
    let tone = match known.conflicts {
        0 if git.action.is_none() => Tone::Calm,
        0 => Tone::Warn,
        _ => Tone::Alarm,
    };
    Ok((fields, tone))
}

fn run(view: &View) -> Result<(Fields, Tone), Hidden> {
    let run = view.run.as_ref().ok_or(Nothing("no run is active in this project"))?;
    let of_items = |number: usize| if run.items > 0 { number.to_string() } else { String::new() };
    let fields = vec![
        ("iteration", run.iteration.to_string()),
        ("max", run.max_iterations.to_string()),
        ("done", of_items(run.done)),
        ("items", of_items(run.items)),
        ("item", run.item.as_deref().map_or(String::new(), |item| clip(&one_line(item), 32))),
        ("checkpoint", run.checkpoint.map_or(String::new(), |percent| format!("checkpoint {percent}%"))),
        ("until", run.paused.clone().unwrap_or_default()),
    ];
    Ok((fields, if run.paused.is_some() { Tone::Warn } else { Tone::Calm }))
}

/// `memory 1 calc · stale R2 R7 · heap 92% high`
fn memory(view: &View) -> Result<(Fields, Tone), Hidden> {
    let memory = view.memory.as_ref().ok_or(Nothing("this session does not use the working memory"))?;
    let stale: Vec<&str> = memory.stale.iter().map(|register| &register.key()[..2]).collect();
    let presses = memory.pressure > Pressure::Low;
    let pressing = |text: String| if presses { text } else { String::new() };
    let fields = vec![
        ("depth", memory.depth.to_string()),
        ("frame", if memory.depth > 0 { clip(&one_line(&memory.frame), 20) } else { String::new() }),
        ("stale", stale.join(" ")),
        ("heap", pressing(memory.heap_percent.to_string())),
        ("pressure", pressing(memory.pressure.word().to_owned())),
    ];
    Ok((fields, if presses { Tone::Warn } else { Tone::Calm }))
}

fn growth(view: &View) -> Result<Fields, Hidden> {
    let growths = load::growths(&view.load.fills);
    let last = growths.last().ok_or(Nothing("fewer than two responses since the window was empty"))?;
    Ok(vec![
        ("spark", load::spark(&growths)),
        ("last", tokens(*last)),
        ("median", load::median(&growths).map_or(String::new(), tokens)),
    ])
}

fn cache(cache: &CacheView) -> Result<(Fields, Tone), Hidden> {
    let warm = cache.warm.ok_or(Nothing("the client does not say whether it is warm"))?;
    let percent = |ratio: f64| format!("{:.0}%", (ratio * 100.0).clamp(0.0, 100.0));
    let fields = vec![
        ("state", if warm { "warm" } else { "cold" }.to_owned()),
        ("hit", cache.hit_ratio.map_or(String::new(), percent)),
        ("until", if warm { cache.until.clone().unwrap_or_default().to_string() } else { String::new() }),
    ];
    Ok((fields, if warm { Tone::Calm } else { Tone::Warn }))
}

/// What the session has cost.
fn usd(view: &View) -> Option<f64> {
    view.client.cost.total_cost_usd.filter(|dollars| dollars.is_finite())
}

/// In its first minute a session's cost in an hour is a wild guess.
const FIRST_MINUTE_MS: u64 = 60_000;

fn burn(view: &View, configured: Option<&Segment>) -> Result<(Fields, Tone), Hidden> {
    let usd = usd(view).ok_or(NotReported("cost"))?;
    let duration = view.client.cost.total_duration_ms.ok_or(NotReported("duration"))?;
    if duration < FIRST_MINUTE_MS {
        return Err(Nothing("the session is younger than a minute"));
    }
    let rate = usd * 3_600_000.0 / duration as f64;
    Ok((vec![("rate", dollars(rate))], threshold(rate, configured, None)))
}

/// When a limit is worth a look, and when it is near, in percent.
const LIMIT_WARN_ALARM: (f64, f64) = (75.0, 90.0);

fn limit(limit: Option<&LimitView>, configured: Option<&Segment>) -> Result<(Fields, Tone), Hidden> {
    let limit =
        limit.ok_or(NotReported("such limit (it does with a subscription, after the first answer)"))?;
    let percent = limit.percent.ok_or(Nothing("the client does not say how much of it is used"))?;
    let fields = vec![
        ("percent", format!("{:.0}%", percent.min(999.0))),
        ("reset", limit.reset.clone().unwrap_or_default()),
    ];
    Ok((fields, threshold(percent, configured, Some(LIMIT_WARN_ALARM))))
}
