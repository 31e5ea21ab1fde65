//! A run's spans and logs, from its first event to its last: standard input tells the events, and ends with the run's process;
//! the journal is read beside it. Whatever becomes of the collector, nobody waits for us, and we end soon after the run.

use crate::attributes::{Attributes, clean};
use crate::collector::{Collector, CollectorError};
use crate::delivery::deliver;
use crate::journal_tail::JournalTail;
use crate::logs;
use crate::queue::Queue;
use crate::spans::Spans;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
use plimsoll_domain::RunId;
use plimsoll_domain::journal::{JournalEntry, JournalEvent, LogSource, StreamEntry, StreamEvent};
use plimsoll_policy::telemetry::exporter::{ExportTarget, ExporterConfig, Signal, parse_resource_attributes};
use plimsoll_policy::telemetry::{self, trace::TraceContext};
use plimsoll_store::{Project, clock, disk, environment, journal};
use prost::Message;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How often the journal is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// What is left at the run's end has this long.
const AT_END: Duration = Duration::from_secs(5);
/// What is said of what was under way then.
const UNANSWERED: &str = "the collector has not answered five seconds after the run's end";
/// Our own events have a few kilobytes.
const LONGEST_LINE: u64 = 1024 * 1024;
/// What a journal may have grown at the end is read up to this many pieces.
const LAST_PIECES: usize = 16;

/// Follows a run; the journal is read from this byte on.
pub(crate) fn follow(from: u64) {
    let mut events = Events(BufReader::new(std::io::stdin()));
    let Some((first, run_id)) = events.next().and_then(|first| first.run_id.clone().map(|id| (first, id)))
    else {
        return;
    };
    let project = Project::with_local_files(&environment::current_dir());
    let trace =
        TraceContext::for_run(&run_id, environment::variable(telemetry::TRACEPARENT_VARIABLE).as_deref());
    let exporter = ExporterConfig::from_variables(environment::variable);
    let about = resource_of(&first, &run_id);
    let spans =
        Pipe::start(Signal::Traces, exporter.traces.filter(|_| trace.is_recorded()), spans_of(&about));
    let records = Pipe::start(Signal::Logs, exporter.logs, logs_of(&about));
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (is_over, records) = (Arc::clone(&is_over), records.queue());
        let (tail, run_id, trace) =
            (JournalTail::of(project.journal_path(), from), run_id.clone(), trace.clone());
        std::thread::spawn(move || read_journal(tail, &is_over, &run_id, &trace, &records))
    };
    tell_all(first, &mut events, &run_id, &trace, &spans, &records);
    is_over.store(true, Ordering::Release);
    let _ = reader.join();
    let until = Instant::now() + AT_END;
    // Both at once: what hangs of the one takes nothing from the other's time.
    spans.queue.close(until);
    records.queue.close(until);
    let (lost_spans, lost_records) = (spans.end(until), records.end(until));
    report(&project, &run_id, lost_spans.as_ref(), lost_records.as_ref());
}

/// What `plimsoll run` tells, one event after the other.
struct Events<R>(BufReader<R>);

impl<R: Read> Iterator for Events<R> {
    type Item = StreamEntry;

    fn next(&mut self) -> Option<StreamEntry> {
        loop {
            let mut line = Vec::new();
            match (&mut self.0).take(LONGEST_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            if let Some(entry) = StreamEntry::from_line_bytes(&line) {
                return Some(entry);
            }
        }
    }
}

fn tell_all(
    first: StreamEntry,
    events: &mut impl Iterator<Item = StreamEntry>,
    run_id: &RunId,
    trace: &TraceContext,
    spans: &Pipe<Span>,
    records: &Pipe<LogRecord>,
) {
    let mut made = Spans::of(run_id, trace.clone());
    for entry in std::iter::once(first).chain(events) {
        spans.put(made.take(&entry));
        records.put(logs::record(&entry, LogSource::Stream, run_id, trace, now()));
    }
    spans.put(made.cut_off(now()));
}

fn read_journal(
    mut tail: JournalTail,
    is_over: &AtomicBool,
    run_id: &RunId,
    trace: &TraceContext,
    records: &Queue<LogRecord>,
) {
    let look = |tail: &mut JournalTail| {
        let entries = tail.look().into_iter();
        let entries = entries.map(StreamEntry::from);
        records
            .put(entries.filter_map(|entry| logs::record(&entry, LogSource::Journal, run_id, trace, now())));
    };
    while !is_over.load(Ordering::Acquire) {
        look(&mut tail);
        std::thread::sleep(LOOK_INTERVAL);
    }
    for _ in 0..LAST_PIECES {
        look(&mut tail);
        if !tail.has_more() {
            break;
        }
    }
}

fn now() -> u64 {
    let nanos = clock::now().timestamp_nanos_opt();
    nanos.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0)
}

/// The way of one signal: a queue, and a thread that sends what is in it.
struct Pipe<T> {
    queue: Arc<Queue<T>>,
    /// Closed when all has been sent; none if nothing is.
    sent: Option<std::sync::mpsc::Receiver<()>>,
    /// True if the signal is exported.
    is_on: bool,
}

impl<T: Send + 'static> Pipe<T> {
    fn start(
        signal: Signal,
        target: Option<ExportTarget>,
        encode: impl Fn(Vec<T>) -> Vec<u8> + Send + 'static,
    ) -> Pipe<T> {
        let queue = Arc::new(Queue::default());
        let Some(target) = target else { return Pipe { queue, sent: None, is_on: false } };
        let collector = match Collector::new(signal, &target) {
            Ok(collector) => collector,
            Err(error) => {
                queue.note_trouble(with_hint(&error));
                return Pipe { queue, sent: None, is_on: true };
            }
        };
        let (done, sent) = channel();
        let waiting = Arc::clone(&queue);
        std::thread::spawn(move || {
            deliver(&waiting, &collector, encode);
            drop(done);
        });
        Pipe { queue, sent: Some(sent), is_on: true }
    }

    fn queue(&self) -> Arc<Queue<T>> {
        Arc::clone(&self.queue)
    }

    fn put(&self, items: impl IntoIterator<Item = T>) {
        self.queue.put(items);
    }

    /// Waits for what is left of a queue that is closed; answers with how many did not arrive, and why.
    fn end(&self, until: Instant) -> Option<(u64, String)> {
        if let Some(sent) = &self.sent {
            let left = until.saturating_duration_since(Instant::now());
            let _ = sent.recv_timeout(left + Duration::from_millis(200));
        }
        Some(self.queue.lost()).filter(|(lost, _)| self.is_on && *lost > 0)
    }
}

fn with_hint(error: &CollectorError) -> String {
    match error {
        CollectorError::File(error) => format!("{error}; {}", error.hint()),
        CollectorError::Address
        | CollectorError::Certificate { .. }
        | CollectorError::NoFile(_)
        | CollectorError::Trust(_) => error.to_string(),
    }
}

/// What all spans and logs of the run have in common: what the user has set, and what the client's carry too.
fn resource_of(first: &StreamEntry, run_id: &RunId) -> Resource {
    let mut about = Attributes::default();
    about.text("service.name", "plimsoll").text("service.version", env!("CARGO_PKG_VERSION"));
    for (name, value) in parse_resource_attributes(
        &environment::variable(telemetry::RESOURCE_ATTRIBUTES_VARIABLE).unwrap_or_default(),
    ) {
        about.text(&name, &value);
    }
    if let Some(name) = environment::variable("OTEL_SERVICE_NAME") {
        about.text("service.name", &name);
    }
    about.text(telemetry::RUN_ID_LABEL, run_id.as_str());
    if let StreamEvent::Journal(JournalEvent::RunStarted(begun) | JournalEvent::RunResumed(begun)) =
        &first.event
    {
        let name = begun.task_name.as_deref().map(|name| telemetry::clip_label_value(&clean(name)));
        about.maybe(telemetry::RUN_NAME_LABEL, name.as_deref());
    }
    Resource { attributes: about.list(), ..Resource::default() }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "plimsoll".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn spans_of(about: &Resource) -> impl Fn(Vec<Span>) -> Vec<u8> + Send + use<> {
    let about = about.clone();
    move |spans| {
        let scope_spans = vec![ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() }];
        let resource = Some(about.clone());
        let all = ResourceSpans { resource, scope_spans, ..ResourceSpans::default() };
        TracesData { resource_spans: vec![all] }.encode_to_vec()
    }
}

fn logs_of(about: &Resource) -> impl Fn(Vec<LogRecord>) -> Vec<u8> + Send + use<> {
    let about = about.clone();
    move |log_records| {
        let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..ScopeLogs::default() }];
        let resource = Some(about.clone());
        let all = ResourceLogs { resource, scope_logs, ..ResourceLogs::default() };
        LogsData { resource_logs: vec![all] }.encode_to_vec()
    }
}

/// Says once, in the journal, what did not arrive. A worktree may be gone by now: its journal is not made again.
fn report(project: &Project, run_id: &RunId, spans: Option<&(u64, String)>, logs: Option<&(u64, String)>) {
    if (spans.is_none() && logs.is_none()) || !disk::exists(&project.journal_path()) {
        return;
    }
    let count = |lost: Option<&(u64, String)>| lost.map_or(0, |(count, _)| *count);
    let mut troubles = [spans, logs].into_iter().flatten().map(|(_, trouble)| trouble.as_str());
    let trouble = troubles.find(|trouble| !trouble.is_empty()).unwrap_or(UNANSWERED);
    let event = JournalEvent::TelemetryLost {
        span_count: count(spans),
        log_count: count(logs),
        last_error: trouble.to_owned(),
    };
    let _ = journal::append_entry(project, JournalEntry::new(event).with_run(Some((run_id, 0))));
}
