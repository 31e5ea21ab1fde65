//! Exports a run's spans and logs from its first event to its last. The events arrive on standard input, which is closed when the
//! run's process ends; the journal is read in parallel. The run never waits for this program. This program exits soon
//! after the run, even if the collector does not respond.

use crate::attributes::{Attributes, redact_and_truncate_to_line};
use crate::collector::{Collector, CollectorError};
use crate::delivery::send_batches_until_closed;
use crate::journal_tail::JournalTail;
use crate::logs;
use crate::queue::ExportQueue;
use crate::spans::SpanBuilder;
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

/// Interval between two reads of the journal.
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time limit for sending the remaining spans and logs after the run's end.
const FINAL_SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// The reported error if `FINAL_SEND_TIMEOUT` expires before any error was recorded.
const NO_RESPONSE_MESSAGE: &str = "the collector has not answered five seconds after the run's end";
/// Maximum number of bytes read as one line; events have a few kilobytes.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
/// Maximum number of journal reads after the run's end, because an agent could keep filling the journal.
const MAX_FINAL_READS: usize = 16;

/// Exports the spans and logs of one run until it ends, and records losses in the journal. The journal is read from the byte
/// offset `journal_offset`.
pub(crate) fn export_run_telemetry_from_stdin(journal_offset: u64) {
    let mut entries = StreamEntries(BufReader::new(std::io::stdin()));
    let Some((first_entry, run_id)) =
        entries.next().and_then(|entry| entry.run_id.clone().map(|run_id| (entry, run_id)))
    else {
        return;
    };
    let project = Project::with_local_files(&environment::current_dir());
    let trace = TraceContext::from_valid_traceparent_or_run_id(
        &run_id,
        environment::variable(telemetry::TRACEPARENT_VARIABLE).as_deref(),
    );
    let exporter_config = ExporterConfig::from_variables_if_telemetry_enabled(environment::variable);
    let resource = build_resource_from_environment_and_run(&first_entry, &run_id);
    let span_exporter = SignalExporter::start_thread_if_configured(
        Signal::Traces,
        exporter_config.traces.filter(|_| trace.is_sampled()),
        span_encoder(&resource),
    );
    let log_exporter = SignalExporter::start_thread_if_configured(
        Signal::Logs,
        exporter_config.logs,
        log_encoder(&resource),
    );
    let has_run_ended = Arc::new(AtomicBool::new(false));
    let journal_thread = {
        let (has_run_ended, log_queue) = (Arc::clone(&has_run_ended), log_exporter.queue());
        let (tail, run_id, trace) =
            (JournalTail::from_offset(project.journal_path(), journal_offset), run_id.clone(), trace.clone());
        std::thread::spawn(move || {
            export_journal_until_run_ends(tail, &has_run_ended, &run_id, &trace, &log_queue);
        })
    };
    export_stream_entries(first_entry, &mut entries, &run_id, &trace, &span_exporter, &log_exporter);
    has_run_ended.store(true, Ordering::Release);
    let _ = journal_thread.join();
    let deadline = Instant::now() + FINAL_SEND_TIMEOUT;
    // Both queues are closed before waiting, so that they are sent in parallel until the same deadline.
    span_exporter.queue.close(deadline);
    log_exporter.queue.close(deadline);
    let (lost_spans, lost_logs) = (
        span_exporter.wait_until_sent_and_count_lost(deadline),
        log_exporter.wait_until_sent_and_count_lost(deadline),
    );
    record_losses_in_existing_journal(&project, &run_id, lost_spans.as_ref(), lost_logs.as_ref());
}

/// An iterator over the events that `plimsoll run` writes. Lines that are not events are skipped.
struct StreamEntries<R>(BufReader<R>);

impl<R: Read> Iterator for StreamEntries<R> {
    type Item = StreamEntry;

    fn next(&mut self) -> Option<StreamEntry> {
        loop {
            let mut line = Vec::new();
            match (&mut self.0).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            if let Some(entry) = StreamEntry::from_line_bytes(&line) {
                return Some(entry);
            }
        }
    }
}

fn export_stream_entries(
    first_entry: StreamEntry,
    entries: &mut impl Iterator<Item = StreamEntry>,
    run_id: &RunId,
    trace: &TraceContext,
    span_exporter: &SignalExporter<Span>,
    log_exporter: &SignalExporter<LogRecord>,
) {
    let mut span_builder = SpanBuilder::new(run_id, trace.clone());
    for entry in std::iter::once(first_entry).chain(entries) {
        span_exporter.push_all(span_builder.handle_entry_and_take_ended_spans(&entry));
        log_exporter.push_all(logs::log_record_if_from_source_and_run(
            &entry,
            LogSource::Stream,
            run_id,
            trace,
            now_unix_nanos(),
        ));
    }
    span_exporter.push_all(span_builder.end_all_and_mark_run_failed(now_unix_nanos()));
}

fn export_journal_until_run_ends(
    mut tail: JournalTail,
    has_run_ended: &AtomicBool,
    run_id: &RunId,
    trace: &TraceContext,
    log_queue: &ExportQueue<LogRecord>,
) {
    let export_new_entries = |tail: &mut JournalTail| {
        let entries = tail.read_new_entries().into_iter();
        let entries = entries.map(StreamEntry::from);
        log_queue.push_all_and_drop_oldest_if_full(entries.filter_map(|entry| {
            logs::log_record_if_from_source_and_run(
                &entry,
                LogSource::Journal,
                run_id,
                trace,
                now_unix_nanos(),
            )
        }));
    };
    while !has_run_ended.load(Ordering::Acquire) {
        export_new_entries(&mut tail);
        std::thread::sleep(JOURNAL_POLL_INTERVAL);
    }
    for _ in 0..MAX_FINAL_READS {
        export_new_entries(&mut tail);
        if !tail.has_unread_bytes() {
            break;
        }
    }
}

fn now_unix_nanos() -> u64 {
    let nanos = clock::now().timestamp_nanos_opt();
    nanos.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0)
}

/// The export of one signal: a queue, and a thread that sends its items.
struct SignalExporter<T> {
    queue: Arc<ExportQueue<T>>,
    /// Disconnected when the sending thread ends; `None` if there is no such thread.
    done_receiver: Option<std::sync::mpsc::Receiver<()>>,
    /// True if the user configured a target, even if it cannot be used. Only then are losses reported.
    is_configured: bool,
}

impl<T: Send + 'static> SignalExporter<T> {
    fn start_thread_if_configured(
        signal: Signal,
        target: Option<ExportTarget>,
        encode_batch: impl Fn(Vec<T>) -> Vec<u8> + Send + 'static,
    ) -> SignalExporter<T> {
        let queue = Arc::new(ExportQueue::default());
        let Some(target) = target else {
            return SignalExporter { queue, done_receiver: None, is_configured: false };
        };
        let collector = match Collector::new(signal, &target) {
            Ok(collector) => collector,
            Err(error) => {
                queue.set_last_error(render_error_with_hint_if_any(&error));
                return SignalExporter { queue, done_receiver: None, is_configured: true };
            }
        };
        let (done_sender, done_receiver) = channel();
        let thread_queue = Arc::clone(&queue);
        std::thread::spawn(move || {
            send_batches_until_closed(&thread_queue, &collector, encode_batch);
            drop(done_sender);
        });
        SignalExporter { queue, done_receiver: Some(done_receiver), is_configured: true }
    }

    fn queue(&self) -> Arc<ExportQueue<T>> {
        Arc::clone(&self.queue)
    }

    fn push_all(&self, items: impl IntoIterator<Item = T>) {
        self.queue.push_all_and_drop_oldest_if_full(items);
    }

    /// Waits until the remaining items of the closed queue are sent, or the deadline has passed. Returns the number of
    /// lost items and the last error, or `None` if none was lost or no target is configured.
    fn wait_until_sent_and_count_lost(&self, deadline: Instant) -> Option<(u64, String)> {
        if let Some(done_receiver) = &self.done_receiver {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let _ = done_receiver.recv_timeout(remaining + Duration::from_millis(200));
        }
        Some(self.queue.lost_count_and_last_error())
            .filter(|(lost_count, _)| self.is_configured && *lost_count > 0)
    }
}

fn render_error_with_hint_if_any(error: &CollectorError) -> String {
    match error {
        CollectorError::CertificateFileUnreadable(error) => format!("{error}; {}", error.hint()),
        CollectorError::InvalidAddress
        | CollectorError::InvalidCertificateFile { .. }
        | CollectorError::CertificateFileMissing(_)
        | CollectorError::Trust(_) => error.to_string(),
    }
}

/// Builds the resource of all spans and logs: the user's attributes from the environment, and the run labels that the client's own
/// spans also have.
fn build_resource_from_environment_and_run(first_entry: &StreamEntry, run_id: &RunId) -> Resource {
    let mut attributes = Attributes::default();
    attributes.add_text("service.name", "plimsoll").add_text("service.version", env!("CARGO_PKG_VERSION"));
    for (name, value) in parse_resource_attributes(
        &environment::variable(telemetry::RESOURCE_ATTRIBUTES_VARIABLE).unwrap_or_default(),
    ) {
        attributes.add_text(&name, &value);
    }
    if let Some(name) = environment::variable("OTEL_SERVICE_NAME") {
        attributes.add_text("service.name", &name);
    }
    attributes.add_text(telemetry::RUN_ID_LABEL, run_id.as_str());
    if let StreamEvent::Journal(JournalEvent::RunStarted(run_start) | JournalEvent::RunResumed(run_start)) =
        &first_entry.event
    {
        let run_name = run_start
            .task_name
            .as_deref()
            .map(|name| telemetry::clip_label_value(&redact_and_truncate_to_line(name)));
        attributes.add_text_if_not_empty(telemetry::RUN_NAME_LABEL, run_name.as_deref());
    }
    Resource { attributes: attributes.to_key_values(), ..Resource::default() }
}

fn instrumentation_scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "plimsoll".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn span_encoder(run_resource: &Resource) -> impl Fn(Vec<Span>) -> Vec<u8> + Send + use<> {
    let run_resource = run_resource.clone();
    move |spans| {
        let scope_spans =
            vec![ScopeSpans { scope: Some(instrumentation_scope()), spans, ..ScopeSpans::default() }];
        let resource = Some(run_resource.clone());
        let resource_spans = ResourceSpans { resource, scope_spans, ..ResourceSpans::default() };
        TracesData { resource_spans: vec![resource_spans] }.encode_to_vec()
    }
}

fn log_encoder(run_resource: &Resource) -> impl Fn(Vec<LogRecord>) -> Vec<u8> + Send + use<> {
    let run_resource = run_resource.clone();
    move |log_records| {
        let scope_logs =
            vec![ScopeLogs { scope: Some(instrumentation_scope()), log_records, ..ScopeLogs::default() }];
        let resource = Some(run_resource.clone());
        let resource_logs = ResourceLogs { resource, scope_logs, ..ResourceLogs::default() };
        LogsData { resource_logs: vec![resource_logs] }.encode_to_vec()
    }
}

/// Records in the journal how many spans and logs were lost. Does nothing if there is no journal, because a removed worktree must
/// not be created again.
fn record_losses_in_existing_journal(
    project: &Project,
    run_id: &RunId,
    lost_spans: Option<&(u64, String)>,
    lost_logs: Option<&(u64, String)>,
) {
    if (lost_spans.is_none() && lost_logs.is_none()) || !disk::exists(&project.journal_path()) {
        return;
    }
    let lost_count = |lost: Option<&(u64, String)>| lost.map_or(0, |(count, _)| *count);
    let mut errors = [lost_spans, lost_logs].into_iter().flatten().map(|(_, error)| error.as_str());
    let error = errors.find(|error| !error.is_empty()).unwrap_or(NO_RESPONSE_MESSAGE);
    let event = JournalEvent::TelemetryLost {
        span_count: lost_count(lost_spans),
        log_count: lost_count(lost_logs),
        last_error: error.to_owned(),
    };
    let _ = journal::append_entry(project, JournalEntry::new(event).with_run(Some((run_id, 0))));
}
