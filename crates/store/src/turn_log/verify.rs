//! Is the log what was written? Tamper-evident, not tamper-proof: who can write the files can write them all again.

use super::erase::erased_by;
use super::{Head, TurnLog};
use crate::StoreError;
use plimsoll_domain::digest::sha256;
use plimsoll_domain::log_line::{LogLine, NO_LINK, RecordKind};
use plimsoll_domain::turn::record::blobs_of;
use std::collections::{BTreeMap, BTreeSet};

/// What was found at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: u64,
    /// The record, if known.
    pub seq: Option<u64>,
    /// False for what is only said: erased contents, repaired ends.
    pub is_bad: bool,
    /// What.
    pub what: String,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Records that were read.
    pub records: u64,
    /// Turns among them.
    pub turns: u64,
    /// Erased contents.
    pub erased: u64,
    /// Records that an interrupted erasure has left as they were.
    pub unfinished: usize,
    /// What is to be said.
    pub findings: Vec<Finding>,
}

impl Report {
    /// True if nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.findings.iter().all(|finding| !finding.is_bad)
    }

    /// True if nothing is wrong but that an erasure was interrupted.
    pub fn is_only_unfinished(&self) -> bool {
        self.unfinished > 0
            && self.findings.iter().filter(|finding| finding.is_bad).count() == self.unfinished
    }
}

/// The state of a check on its way through the lines.
struct Check<'a> {
    log: &'a TurnLog,
    report: Report,
    link: String,
    /// What the link of the line before should have been, where it was not.
    true_link: Option<String>,
    seq: u64,
    numbers: BTreeMap<String, u64>,
    erased: BTreeMap<u64, u64>,
    erasures: BTreeSet<u64>,
    lost: u64,
}

impl TurnLog {
    /// Checks every line, every link, every content and every large piece.
    pub fn verify(&self) -> Result<Report, StoreError> {
        let mut check = Check {
            log: self,
            report: Report::default(),
            link: NO_LINK.to_owned(),
            true_link: None,
            seq: 0,
            numbers: BTreeMap::new(),
            erased: BTreeMap::new(),
            erasures: BTreeSet::new(),
            lost: 0,
        };
        let mut torn = None;
        for line in self.forwards()? {
            let line = line?;
            if !line.is_ended {
                torn = Some((line.place.line, line.bytes.len()));
                break;
            }
            match LogLine::parse(&line.bytes) {
                Some(parsed) => check.line(line.place.line, &parsed),
                None => check.say(line.place.line, None, true, "the line is no record".to_owned()),
            }
        }
        if let Some((line, bytes)) = torn {
            let what = format!("the end is torn ({bytes} bytes): the next writer moves it aside");
            check.say(line, None, false, what);
        }
        check.end();
        Ok(check.report)
    }
}

impl Check<'_> {
    fn say(&mut self, line: u64, seq: Option<u64>, is_bad: bool, what: String) {
        self.report.findings.push(Finding { line, seq, is_bad, what });
    }

    fn line(&mut self, line: u64, parsed: &LogLine<'_>) {
        let seq = parsed.header.seq;
        let bad = |check: &mut Self, what: String| check.say(line, Some(seq), true, what);
        self.report.records += 1;
        let follows = parsed.follows(&self.link);
        // A changed link breaks two lines: the next one may also follow what the link should be, so that one change is
        // one finding.
        let follows_truth = self.true_link.as_ref().is_some_and(|truth| parsed.follows(truth));
        if !follows && !follows_truth {
            bad(self, "does not follow the previous line: changed, moved, duplicated or inserted".to_owned());
        }
        self.true_link = (!follows && !follows_truth).then(|| parsed.link_after(&self.link));
        if seq != self.seq + 1 {
            bad(self, format!("is record {seq} where {} should stand", self.seq + 1));
        }
        if !parsed.is_whole() {
            bad(self, "its content is not what was written".to_owned());
        }
        if let Some(number) = parsed.header.number {
            let last = self.numbers.insert(parsed.header.stream.clone(), number).unwrap_or(0);
            if number != last + 1 {
                bad(self, format!("is turn {number} of its stream where {} should stand", last + 1));
            }
        }
        self.report.turns += u64::from(parsed.header.kind == RecordKind::Turn);
        self.content(line, parsed);
        self.seq = seq;
        parsed.link.clone_into(&mut self.link);
    }

    fn content(&mut self, line: u64, parsed: &LogLine<'_>) {
        let seq = parsed.header.seq;
        if parsed.is_erased() {
            self.report.erased += 1;
            self.erased.insert(seq, line);
            return;
        }
        for hash in blobs_of(parsed.content) {
            let fault = match self.log.blob(&hash) {
                Some(bytes) if sha256(&[&bytes]) == hash => continue,
                Some(_) => "has been changed",
                None => "is missing",
            };
            self.say(line, Some(seq), true, format!("its large piece {hash} {fault}"));
        }
        let fields: serde_json::Value = serde_json::from_str(parsed.content).unwrap_or_default();
        match parsed.header.kind {
            RecordKind::Erase => {
                self.erasures.extend(erased_by(parsed));
            }
            RecordKind::Repair => {
                let words = match (fields["lost_from"].as_u64(), fields["torn_bytes"].as_u64()) {
                    (Some(from), _) => {
                        self.lost = self.lost.max(fields["lost_to"].as_u64().unwrap_or(from));
                        format!(
                            "records {from} to {} were lost here; recorded again as far as the transcript still had them",
                            self.lost
                        )
                    }
                    (None, Some(bytes)) => format!("a torn end of {bytes} bytes was moved aside here"),
                    _ => "repaired here".to_owned(),
                };
                self.say(line, Some(seq), false, words);
            }
            _ => {}
        }
    }

    fn end(&mut self) {
        let (erased, erasures) = (std::mem::take(&mut self.erased), std::mem::take(&mut self.erasures));
        for (seq, line) in &erased {
            if erasures.contains(seq) {
                self.say(*line, Some(*seq), false, "erased".to_owned());
            } else {
                self.say(*line, Some(*seq), true, "erased, but no erasure was recorded".to_owned());
            }
        }
        for seq in erasures.iter().filter(|seq| !erased.contains_key(seq)) {
            self.report.unfinished += 1;
            let what = format!(
                "its erasure was interrupted, and is not finished: plimsoll turns erase --session {} record:{seq}",
                self.log.session_id
            );
            self.say(0, Some(*seq), true, what);
        }
        let Some(head) = Head::load(&self.log.head_path()) else { return };
        if head.seq > self.seq {
            let what =
                format!("the end has been cut off: records {} to {} are missing", self.seq + 1, head.seq);
            self.say(0, None, true, what);
        } else if head.seq == self.seq && head.link != self.link {
            self.say(0, None, true, "the last record is not the one that was written last".to_owned());
        }
    }
}
