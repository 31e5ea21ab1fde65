//! What the segments show: only what is wanted is looked for.

use super::{StatusLineInvocation, git};
use crate::context::measure::{Question, thresholds};
use plimsoll_domain::log_line::MAIN;
use plimsoll_domain::reading::WindowSource;
use plimsoll_domain::record::StatusRecord;
use plimsoll_domain::statusline::{Segment, SegmentKind};
use plimsoll_domain::{SessionRecord, Status, Timestamp};
use plimsoll_policy::item_in_hand::item_in_hand;
use plimsoll_policy::statusline::{CacheView, Hidden, LimitView, LoadView, MemoryView, RunView, View};
use plimsoll_policy::window::{self, WindowEvidence};
use plimsoll_protocol::status::{Limit, StatusPayload};
use plimsoll_store::{clock, disk, environment, faults, memory, sessions, state_file};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// How long a fault of a hook is shown.
const FAULT_IS_NEWS_MINUTES: i64 = 60;

impl StatusLineInvocation<'_> {
    /// Everything; what git says is noted in the record.
    pub(super) fn view(&self, record: &mut StatusRecord) -> View {
        let payload = &self.payload;
        let directory = payload.workspace.current_dir.as_deref().or(payload.cwd.as_deref());
        let wanted = |kind| Some(()).filter(|()| self.shows(kind));
        let session = sessions::load_for_status_line(&self.project, &self.session_id);
        View {
            client: StatusPayload {
                model: payload.model.clone(),
                cost: payload.cost.clone(),
                version: payload.version.clone(),
                effort: payload.effort.clone(),
                ..StatusPayload::default()
            },
            directory: directory.map(tilde),
            git: wanted(SegmentKind::Git)
                .and(directory)
                .and_then(|folder| git::look(self, Path::new(folder), record)),
            load: self.load(record, &session),
            run: wanted(SegmentKind::Run).and_then(|()| self.run(record)),
            memory: wanted(SegmentKind::Memory).and_then(|()| self.memory()),
            cache: wanted(SegmentKind::Cache)
                .map(|()| self.cache())
                .filter(|cache| *cache != CacheView::default()),
            five_hour: wanted(SegmentKind::FiveHour)
                .and(payload.rate_limits.five_hour.as_ref())
                .and_then(limit),
            weekly: wanted(SegmentKind::Weekly).and(payload.rate_limits.seven_day.as_ref()).and_then(limit),
            spend: wanted(SegmentKind::Spend).and(payload.rate_limits.spend_limit.as_ref()).and_then(limit),
            health: wanted(SegmentKind::Health).and_then(|()| self.health(&session)),
            own: self.own(),
            colour: environment::variable("NO_COLOR").is_none(),
            columns: environment::number("COLUMNS")
                .filter(|columns| *columns >= 1.0)
                .map(|columns| columns as usize),
        }
    }

    fn load(&self, record: &StatusRecord, session: &SessionRecord) -> LoadView {
        let (window_told, model) = (&self.payload.context_window, self.payload.model.id.as_deref());
        let used = window_told.used();
        let window = window::window(&WindowEvidence {
            model,
            settings: Some(&self.settings.windows),
            status_line: window_told.context_window_size,
            client_version: self.payload.version.as_deref(),
            used: used.unwrap_or(0),
            ..WindowEvidence::default()
        });
        let question = Question {
            project: &self.project,
            settings: &self.settings,
            record: session,
            transcript: None,
            calls: &[],
        };
        let own = used
            .zip(window.as_ref())
            .and_then(|(used, window)| plimsoll_domain::reading::percent(used, window.tokens));
        // More is used than the client's window has: its percentage is one of a window that is not shown.
        let is_of_shown_window = window.as_ref().is_none_or(|window| window.source != WindowSource::Used);
        let of_client = window_told.percentage().filter(|_| is_of_shown_window);
        LoadView {
            percent: of_client.map(|percent| percent.round() as u64).or(own.map(|percent| percent.min(100))),
            used,
            thresholds: window.map(|window| thresholds(&question, &window, model)),
            fills: record.timed_fills(),
        }
    }

    /// The project's run, while it is open: every session here shows it.
    fn run(&self, record: &mut StatusRecord) -> Option<RunView> {
        record.run = state_file::glance(&self.project, record.run.as_ref(), item_in_hand);
        let glance = record.run.as_ref().filter(|glance| !glance.status.is_over())?;
        let until = |stamp: &Timestamp| {
            clock::moment(stamp).map(|moment| format!("until {}", clock::in_short(moment)))
        };
        let paused = || {
            glance.paused_until.as_ref().and_then(until).unwrap_or_else(|| "until you resume it".to_owned())
        };
        Some(RunView {
            iteration: glance.iteration,
            max_iterations: glance.max_iterations,
            done: glance.done,
            items: glance.done + glance.open,
            item: glance.item.clone(),
            checkpoint: glance.checkpoint,
            paused: (glance.status == Status::Paused).then(paused),
        })
    }

    /// The working memory, if this session has been shown it; another session's is not displayed.
    fn memory(&self) -> Option<MemoryView> {
        if !memory::exists(&self.project) {
            return None;
        }
        memory::seen(&self.project, &self.session_id).of(MAIN)?;
        memory::load(&self.project).ok().map(|memory| MemoryView::of(&memory))
    }

    fn cache(&self) -> CacheView {
        let cache = &self.payload.prompt_cache;
        CacheView {
            warm: cache.warm,
            hit_ratio: cache.hit_ratio,
            until: cache.expires_at.and_then(at).map(Timestamp::from),
        }
    }

    /// What is amiss with ourselves: people see it here, and nowhere else in time. Another session's fault is its own.
    fn health(&self, session: &SessionRecord) -> Option<String> {
        let fault = || {
            let fault = faults::last(&self.project)?;
            let at = clock::moment(&fault.at)?;
            let is_ours = fault.session_id.is_empty() || fault.session_id == self.session_id;
            let is_news = (clock::now() - at).num_minutes() < FAULT_IS_NEWS_MINUTES;
            let words = || format!("{} at {}: {}", fault.program, clock::in_short(at), fault.what);
            (is_ours && is_news).then(words)
        };
        let transcript_is_off = || self.has_no_transcript(session).then(|| "no transcript".to_owned());
        self.unsettled.clone().or_else(fault).or_else(transcript_is_off)
    }

    /// True for a session that has answered and whose transcript the client does not write. Its path is known to our hooks: a
    /// project without them does not need it.
    fn has_no_transcript(&self, session: &SessionRecord) -> bool {
        let path = session.start.transcript_path.as_deref();
        self.payload.context_window.used().is_some()
            && path.is_some_and(|path| !disk::exists(Path::new(path)))
    }

    /// The user's own segments that stand in a line.
    fn own(&self) -> BTreeMap<String, Result<String, Hidden>> {
        let look = &self.settings.statusline;
        let names = look.lines.iter().flatten();
        let own: BTreeMap<&str, &Segment> = names
            .filter_map(|name| Some((name.as_ref(), look.of(name)?)))
            .filter(|(name, _)| SegmentKind::named(name).is_none())
            .collect();
        let commands = own.iter().filter(|(_, segment)| segment.pointer.is_none());
        let commands: Vec<(&str, &[String])> =
            commands.filter_map(|(name, segment)| Some((*name, segment.command.as_deref()?))).collect();
        let mut values: BTreeMap<String, Result<String, Hidden>> = own
            .iter()
            .map(|(name, segment)| ((*name).to_owned(), self.pointed_at(segment.pointer.as_deref())))
            .collect();
        values.extend(self.printed_by(&commands));
        values
    }

    fn pointed_at(&self, pointer: Option<&str>) -> Result<String, Hidden> {
        let nowhere = "it has no pointer and no usable command: one in a project's file is ignored";
        let pointer = pointer.ok_or(Hidden::Nothing(nowhere))?;
        let document = plimsoll_domain::text::json_value(&String::from_utf8_lossy(self.input));
        match document.pointer(pointer) {
            None | Some(serde_json::Value::Null) => Err(Hidden::NothingAt(pointer.to_owned())),
            Some(serde_json::Value::String(text)) => Ok(text.clone()),
            Some(value) => Ok(value.to_string()),
        }
    }

    /// All programs are asked at once: the line waits for the slowest alone.
    fn printed_by(&self, commands: &[(&str, &[String])]) -> Vec<(String, Result<String, Hidden>)> {
        let deadline = |name: &str| self.settings.statusline.timeout(name);
        // Each within its own time: a new trigger kills a status line that is still at work (2.1.329).
        let asked: Vec<(&[String], Duration)> =
            commands.iter().map(|(name, command)| (*command, deadline(name))).collect();
        let outcomes = plimsoll_launcher::ask_programs(&asked, self.project.root(), self.input);
        let outputs = commands.iter().zip(outcomes);
        outputs.map(|((name, _), outcome)| ((*name).to_owned(), printed(outcome, deadline(name)))).collect()
    }
}

fn printed(outcome: plimsoll_launcher::Outcome, deadline: Duration) -> Result<String, Hidden> {
    if outcome.timed_out {
        return Err(Hidden::TookLonger(deadline));
    }
    if let Some(trouble) = outcome.trouble {
        return Err(Hidden::NotRun(trouble));
    }
    match outcome.code {
        Some(0) => Ok(String::from_utf8_lossy(&outcome.stdout).lines().next().unwrap_or_default().to_owned()),
        Some(code) => Err(Hidden::Exited(code)),
        None => Err(Hidden::Signalled),
    }
}

fn tilde(directory: &str) -> String {
    let home = environment::home().and_then(Path::to_str).filter(|home| home.len() > 1);
    match home.and_then(|home| directory.strip_prefix(home)) {
        Some(below) if below.is_empty() || below.starts_with('/') => format!("~{below}"),
        _ => directory.to_owned(),
    }
}

/// None for a limit that has been reset since the last response: what is used of it now, the client does not know.
fn limit(limit: &Limit) -> Option<LimitView> {
    let now = u64::try_from(clock::now().timestamp()).unwrap_or_default();
    let is_over = limit.resets_at.is_some_and(|reset| reset <= now);
    (!is_over).then(|| LimitView { percent: limit.used_percentage, reset: limit.resets_at.and_then(at) })
}

fn at(seconds: u64) -> Option<String> {
    clock::at(seconds).map(clock::in_short)
}
