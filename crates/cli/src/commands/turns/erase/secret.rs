//! `plimsoll turns erase --secrets`: finds records with text that looks like a secret, prints the location and
//! kind of each secret, and erases the records. Never prints the secret.

use super::{DRY_RUN_NOTICE, LOCK_TIMEOUT, TRANSCRIPT_NOTICE};
use crate::commands::turns::export::Redactor;
use plimsoll_domain::log_line::{LogLine, RecordKind};
use plimsoll_domain::text::count_with_noun;
use plimsoll_domain::turn::record::referenced_blob_hashes;
use plimsoll_flows::turns::{self, RecordBody, TurnsError};
use plimsoll_store::turn_log::{ErasureRequest, RawLine};
use plimsoll_store::{Project, StoreError, TurnLog, disk};
use plimsoll_terminal::console::{print_text, print_warning};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

/// Counts of the secrets found in the logs of a project, and of the records and files that contain them.
#[derive(Default)]
struct SecretTally {
    turn_count: usize,
    other_record_count: usize,
    unreferenced_file_count: usize,
    session_count: usize,
    kind_counts: BTreeMap<&'static str, usize>,
    /// Number of undecodable lines that seem to contain a secret. They are kept as evidence.
    unreadable_line_count: usize,
}

/// The records and files of one log that contain secrets.
#[derive(Default)]
struct LogSecrets {
    sequence_numbers: BTreeSet<u64>,
    unreferenced_files: Vec<PathBuf>,
}

pub(super) fn find_and_erase_secrets(
    project: &Project,
    session: Option<&str>,
    is_dry_run: bool,
) -> Result<ExitCode, TurnsError> {
    let mut logs = TurnLog::all_including_sessions_with_only_pending(project);
    if let Some(id_prefix) = session {
        logs.retain(|log| log.session_id().starts_with(id_prefix));
        if logs.is_empty() {
            return Err(TurnsError::NoSession(id_prefix.to_owned()));
        }
    }
    // Recorded only if there are logs, so that a project without logs gets no folder for the request.
    let request = ErasureRequest {
        removes_secrets: true,
        session_prefix: session.map(str::to_owned),
        ..ErasureRequest::default()
    };
    let request = Some(request).filter(|_| !is_dry_run && !logs.is_empty());
    if let Some(request) = &request {
        request.record_start(project)?;
    }
    let mut tally = SecretTally::default();
    for log in &logs {
        // Pending records have no number yet. Unless they are merged now, they would be added to the log after the search.
        log.merge_pending_records(LOCK_TIMEOUT)?;
        let secrets = tally.find_and_print_log_secrets(log)?;
        if !is_dry_run {
            log.erase_records_and_finish_interrupted(&secrets.sequence_numbers, LOCK_TIMEOUT)?;
            secrets
                .unreferenced_files
                .iter()
                .try_for_each(|path| log.remove_unreferenced_file(path, LOCK_TIMEOUT))?;
        }
    }
    if let Some(request) = &request {
        request.remove_this_and_covered_requests(project)?;
    }
    print_text(tally.render_summary(is_dry_run));
    if tally.unreadable_line_count > 0 {
        let lines = count_with_noun(tally.unreadable_line_count, "line");
        let verb = if tally.unreadable_line_count == 1 { "contains" } else { "contain" };
        print_warning(&format!(
            "{lines} of a log cannot be read but {verb} what looks like a secret; nothing was changed there\nhint: `plimsoll turns verify` names them"
        ));
    }
    Ok(if tally.unreadable_line_count > 0 && !is_dry_run { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl SecretTally {
    fn find_and_print_log_secrets(&mut self, log: &TurnLog) -> Result<LogSecrets, StoreError> {
        let mut secrets = LogSecrets::default();
        if log.exists() {
            for line in log.forward_lines()? {
                self.find_and_print_line_secrets(log, &line?, &mut secrets);
            }
        }
        for path in log.find_unreferenced_pending_and_torn_files()? {
            let kind = disk::read(&path)?.and_then(|bytes| plimsoll_secrets::first_secret_kind(&bytes));
            if let Some(kind) = kind {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                print_text(format!("{}, {name}: looks like {kind}", log.session_id()));
                *self.kind_counts.entry(kind).or_default() += 1;
                self.unreferenced_file_count += 1;
                secrets.unreferenced_files.push(path);
            }
        }
        self.session_count +=
            usize::from(!secrets.sequence_numbers.is_empty() || !secrets.unreferenced_files.is_empty());
        Ok(secrets)
    }

    fn find_and_print_line_secrets(&mut self, log: &TurnLog, line: &RawLine, secrets: &mut LogSecrets) {
        let Some(record) = turns::decode_record_keeping_error_in_body(log, line) else {
            self.unreadable_line_count +=
                usize::from(plimsoll_secrets::first_secret_kind(&line.bytes).is_some());
            return;
        };
        // Erasure records contain only numbers, and erased records have no content any more.
        if record.header.kind == RecordKind::Erasure || matches!(record.body, RecordBody::Erased) {
            return;
        }
        let mut redactor = Redactor::default();
        redactor.redact_record(&record);
        let mut locations: Vec<(String, &'static str)> = redactor
            .secret_locations()
            .iter()
            .map(|location| (format!(", {}", location.field), location.kind))
            .collect();
        if matches!(record.body, RecordBody::DecodeError(_)) {
            locations.extend(
                first_secret_kind_in_raw_content_and_blobs(log, line).map(|kind| (String::new(), kind)),
            );
        }
        if locations.is_empty() {
            return;
        }
        for (field, kind) in locations {
            print_text(format!("{}{field}: looks like {kind}", record.short_session_id_and_number()));
            *self.kind_counts.entry(kind).or_default() += 1;
        }
        secrets.sequence_numbers.insert(record.header.sequence_number);
        *(if record.is_turn_record() { &mut self.turn_count } else { &mut self.other_record_count }) += 1;
    }

    /// Summarizes the affected records and the kinds of secrets, and says what remains to be done.
    fn render_summary(&self, is_dry_run: bool) -> String {
        if self.session_count == 0 {
            return "Nothing in the turn log looks like a secret.".to_owned();
        }
        let counts_with_labels = [
            (self.turn_count, "turn"),
            (self.other_record_count, "other record"),
            (self.unreferenced_file_count, "loose file"),
        ];
        let count_texts: Vec<String> = counts_with_labels
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, label)| count_with_noun(count, label))
            .collect();
        let kind_texts: Vec<String> =
            self.kind_counts.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        let closing_sentence = if is_dry_run {
            DRY_RUN_NOTICE.to_owned()
        } else {
            format!("Erased here permanently. {TRANSCRIPT_NOTICE}")
        };
        let sessions = count_with_noun(self.session_count, "session");
        format!(
            "{} of {sessions} contained what looks like a secret: {}. {closing_sentence}",
            count_texts.join(", "),
            kind_texts.join(", ")
        )
    }
}

/// Returns the kind of the first secret in a record that cannot be decoded. Searches its line, then its existing blobs.
fn first_secret_kind_in_raw_content_and_blobs(log: &TurnLog, line: &RawLine) -> Option<&'static str> {
    let content = LogLine::parse(&line.bytes)?.content;
    let secret_kind_in_blobs = || {
        referenced_blob_hashes(content)
            .iter()
            .filter_map(|hash| log.read_blob(hash))
            .find_map(|blob| plimsoll_secrets::first_secret_kind(&blob))
    };
    plimsoll_secrets::first_secret_kind(content.as_bytes()).or_else(secret_kind_in_blobs)
}
