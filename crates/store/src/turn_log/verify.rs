//! Verifies that a log is what was written. Tamper-evident, not tamper-proof: anybody who can write the files
//! can rewrite all of them.

use super::erasure::sequence_numbers_in_erasure;
use super::{LogHead, TurnLog};
use crate::StoreError;
use plimsoll_domain::digest::sha256_hex;
use plimsoll_domain::log_line::{EMPTY_CHAIN_HASH, LogLine, RecordKind};
use plimsoll_domain::turn::record::referenced_blob_hashes;
use std::collections::{BTreeMap, BTreeSet};

/// A problem or a remark about one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
    /// The line number, from 1; 0 if the finding is about the whole log.
    pub line_number: u64,
    /// The number of the record, if known.
    pub sequence_number: Option<u64>,
    /// False for a mere remark, such as erased contents or a repaired end.
    pub is_error: bool,
    pub description: String,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerificationReport {
    /// How many records were read.
    pub record_count: u64,
    /// How many of them are turns.
    pub turn_count: u64,
    /// How many contents are erased.
    pub erased_count: u64,
    /// How many records an interrupted erasure has not erased.
    pub unfinished_erasure_count: usize,
    pub findings: Vec<LogFinding>,
}

impl VerificationReport {
    /// Returns true if there are no errors.
    pub fn is_intact(&self) -> bool {
        self.findings.iter().all(|finding| !finding.is_error)
    }

    /// Returns true if the only errors are interrupted erasures.
    pub fn has_only_unfinished_erasures(&self) -> bool {
        self.unfinished_erasure_count > 0
            && self.findings.iter().filter(|finding| finding.is_error).count()
                == self.unfinished_erasure_count
    }
}

/// The state of a verification between two lines.
struct LogVerifier<'a> {
    log: &'a TurnLog,
    report: VerificationReport,
    last_chain_hash: String,
    /// If the last line's chain hash was wrong, the one that it should have had.
    expected_chain_hash: Option<String>,
    last_sequence_number: u64,
    last_turn_numbers: BTreeMap<String, u64>,
    erased_line_numbers: BTreeMap<u64, u64>,
    requested_erasures: BTreeSet<u64>,
    last_missing_sequence_number: u64,
}

impl TurnLog {
    /// Verifies every line, chain hash, content and blob.
    pub fn verify(&self) -> Result<VerificationReport, StoreError> {
        let mut verifier = LogVerifier {
            log: self,
            report: VerificationReport::default(),
            last_chain_hash: EMPTY_CHAIN_HASH.to_owned(),
            expected_chain_hash: None,
            last_sequence_number: 0,
            last_turn_numbers: BTreeMap::new(),
            erased_line_numbers: BTreeMap::new(),
            requested_erasures: BTreeSet::new(),
            last_missing_sequence_number: 0,
        };
        let mut torn_line = None;
        for line in self.forward_lines()? {
            let line = line?;
            if !line.has_newline {
                torn_line = Some((line.start.line_number, line.bytes.len()));
                break;
            }
            match LogLine::parse(&line.bytes) {
                Some(parsed) => verifier.check_chain_numbers_and_content(line.start.line_number, &parsed),
                None => verifier.add_finding(
                    line.start.line_number,
                    None,
                    true,
                    "the line is not a record".to_owned(),
                ),
            }
        }
        if let Some((line_number, byte_count)) = torn_line {
            let description = format!("the end is torn ({byte_count} bytes): the next writer moves it aside");
            verifier.add_finding(line_number, None, false, description);
        }
        verifier.check_erasures_and_head();
        Ok(verifier.report)
    }
}

impl LogVerifier<'_> {
    fn add_finding(
        &mut self,
        line_number: u64,
        sequence_number: Option<u64>,
        is_error: bool,
        description: String,
    ) {
        self.report.findings.push(LogFinding { line_number, sequence_number, is_error, description });
    }

    /// Checks a record's chain hash, sequence number, turn number, content and blobs.
    fn check_chain_numbers_and_content(&mut self, line_number: u64, parsed: &LogLine<'_>) {
        let sequence_number = parsed.header.sequence_number;
        let add_error = |verifier: &mut Self, description: String| {
            verifier.add_finding(line_number, Some(sequence_number), true, description);
        };
        self.report.record_count += 1;
        let follows_last_line = parsed.is_chained_to(&self.last_chain_hash);
        // A changed chain hash makes two lines wrong. The next line may therefore also be chained to the
        // expected hash, so that one change is reported once.
        let follows_expected_chain_hash =
            self.expected_chain_hash.as_ref().is_some_and(|link| parsed.is_chained_to(link));
        if !follows_last_line && !follows_expected_chain_hash {
            add_error(
                self,
                "does not follow the previous line: changed, moved, duplicated or inserted".to_owned(),
            );
        }
        self.expected_chain_hash = (!follows_last_line && !follows_expected_chain_hash)
            .then(|| parsed.compute_chain_hash_after(&self.last_chain_hash));
        if sequence_number != self.last_sequence_number + 1 {
            add_error(
                self,
                format!(
                    "is record {sequence_number}, but {} is expected here",
                    self.last_sequence_number + 1
                ),
            );
        }
        if !parsed.has_intact_content() {
            add_error(self, "its content is not what was written".to_owned());
        }
        if let Some(number) = parsed.header.turn_number {
            let last_number =
                self.last_turn_numbers.insert(parsed.header.stream.clone(), number).unwrap_or(0);
            if number != last_number + 1 {
                add_error(
                    self,
                    format!("is turn {number} of its stream, but {} is expected here", last_number + 1),
                );
            }
        }
        self.report.turn_count += u64::from(parsed.header.kind == RecordKind::Turn);
        self.check_blobs_erasures_and_repairs(line_number, parsed);
        self.last_sequence_number = sequence_number;
        parsed.chain_hash.clone_into(&mut self.last_chain_hash);
    }

    /// Checks the blobs of a record, or counts it if it is erased. Collects the numbers in erasure records, and
    /// reports repairs.
    fn check_blobs_erasures_and_repairs(&mut self, line_number: u64, parsed: &LogLine<'_>) {
        let sequence_number = parsed.header.sequence_number;
        if parsed.is_erased() {
            self.report.erased_count += 1;
            self.erased_line_numbers.insert(sequence_number, line_number);
            return;
        }
        for hash in referenced_blob_hashes(parsed.content) {
            let problem = match self.log.read_blob(&hash) {
                Some(bytes) if sha256_hex(&[&bytes]) == hash => continue,
                Some(_) => "has been changed",
                None => "is missing",
            };
            self.add_finding(
                line_number,
                Some(sequence_number),
                true,
                format!("its large piece {hash} {problem}"),
            );
        }
        let fields: serde_json::Value = serde_json::from_str(parsed.content).unwrap_or_default();
        match parsed.header.kind {
            RecordKind::Erasure => {
                self.requested_erasures.extend(sequence_numbers_in_erasure(parsed));
            }
            RecordKind::Repair => {
                let description = match (fields["lost_from"].as_u64(), fields["torn_bytes"].as_u64()) {
                    (Some(first_missing_sequence_number), _) => {
                        self.last_missing_sequence_number = self
                            .last_missing_sequence_number
                            .max(fields["lost_to"].as_u64().unwrap_or(first_missing_sequence_number));
                        format!(
                            "records {first_missing_sequence_number} to {} were lost here; recorded again as far as the transcript still had them",
                            self.last_missing_sequence_number
                        )
                    }
                    (None, Some(byte_count)) => {
                        format!("a torn end of {byte_count} bytes was moved aside here")
                    }
                    _ => "repaired here".to_owned(),
                };
                self.add_finding(line_number, Some(sequence_number), false, description);
            }
            _ => {}
        }
    }

    /// Compares the erased records with the recorded erasures, and the end of the log with its head.
    fn check_erasures_and_head(&mut self) {
        let (erased_line_numbers, requested_erasures) =
            (std::mem::take(&mut self.erased_line_numbers), std::mem::take(&mut self.requested_erasures));
        for (sequence_number, line_number) in &erased_line_numbers {
            if requested_erasures.contains(sequence_number) {
                self.add_finding(*line_number, Some(*sequence_number), false, "erased".to_owned());
            } else {
                self.add_finding(
                    *line_number,
                    Some(*sequence_number),
                    true,
                    "erased, but no erasure was recorded".to_owned(),
                );
            }
        }
        for sequence_number in
            requested_erasures.iter().filter(|number| !erased_line_numbers.contains_key(number))
        {
            self.report.unfinished_erasure_count += 1;
            let description = format!(
                "its erasure was interrupted; repeat it: plimsoll turns erase --session {} record:{sequence_number}",
                self.log.session_id
            );
            self.add_finding(0, Some(*sequence_number), true, description);
        }
        let Some(head) = LogHead::load(&self.log.head_path()) else { return };
        if head.sequence_number > self.last_sequence_number {
            let description = format!(
                "the end has been cut off: records {} to {} are missing",
                self.last_sequence_number + 1,
                head.sequence_number
            );
            self.add_finding(0, None, true, description);
        } else if head.sequence_number == self.last_sequence_number && head.link != self.last_chain_hash {
            self.add_finding(
                0,
                None,
                true,
                "the last record is not the one that was written last".to_owned(),
            );
        }
    }
}
