//! Taking contents away for good. The log says first that it will; then the lines are written again without them,
//! each as long as before, so that neither the chain nor the head changes.

use super::packed::{packed, plain_name};
use super::{NewRecord, TurnLog, draft};
use crate::limited::LimitedFile;
use crate::{StoreError, disk, io};
use plimsoll_domain::log_line::{Header, LogLine, RecordKind, erased};
use plimsoll_domain::turn::record::blobs_of;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The records that an erasure takes away.
struct Erasable {
    requested: BTreeSet<u64>,
    /// An earlier erasure speaks of them, and they still have their contents.
    unfinished: BTreeSet<u64>,
}

/// The records of which a record of an erasure speaks: only earlier ones, whatever it says.
pub(super) fn erased_by(erasure: &LogLine<'_>) -> Vec<u64> {
    let fields: serde_json::Value = serde_json::from_str(erasure.content).unwrap_or_default();
    let seqs = fields["seqs"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64);
    seqs.filter(|seq| *seq < erasure.header.seq).collect()
}

impl TurnLog {
    /// Takes the contents of these records away, and of those of which an erasure speaks that was interrupted; answers how many
    /// there were. Their numbers, times and links stay.
    pub fn erase(&self, seqs: &BTreeSet<u64>, timeout: Duration) -> Result<usize, StoreError> {
        let mut writer = self.write(timeout)?;
        let Erasable { requested, unfinished } = self.erasable(seqs)?;
        let seqs = &requested.union(&unfinished).copied().collect::<BTreeSet<u64>>();
        if seqs.is_empty() {
            return Ok(0);
        }
        if !requested.is_subset(&unfinished) {
            writer.append(&[NewRecord::event(RecordKind::Erase, &json!({"seqs": requested}))])?;
        }
        // What a turn held is in the head, too.
        writer.note_memory(None);
        // Whatever happens from here on, the log says what was meant to go. The lock is kept to the end.
        writer.settle()?;
        // No other process has the lock.
        self.drafts().iter().try_for_each(|path| disk::remove(path))?;
        let (count, gone) = self.rewrite(seqs)?;
        // Lines before pieces: no record may name a piece that is gone. A kill in between leaves pieces that none
        // names, which the next erasure removes.
        self.drop_blobs(&gone)?;
        // A torn end may hold what was erased, and a compressed form that a kill has left beside this one.
        disk::remove(&packed(&self.path()))?;
        disk::remove(&self.torn())?;
        drop(writer);
        Ok(count)
    }

    /// The records that hold the same as these records of another log: turns of the same answer, and whatever has the same
    /// content. What was erased is found, too: its line keeps the hash of its content.
    pub fn records_like(&self, other: &TurnLog, seqs: &BTreeSet<u64>) -> Result<BTreeSet<u64>, StoreError> {
        let mut wanted = Vec::new();
        for line in other.forwards()? {
            let line = line?;
            let header = LogLine::parse(&line.bytes).map(|parsed| parsed.header);
            wanted.extend(header.filter(|header| seqs.contains(&header.seq)));
        }
        let is_wanted = |header: &Header| {
            wanted.iter().any(|wanted| {
                let is_same_answer = wanted.message.is_some() && wanted.message == header.message;
                wanted.kind == header.kind
                    && wanted.stream == header.stream
                    && (is_same_answer || wanted.content == header.content)
            })
        };
        let mut found = BTreeSet::new();
        for line in self.forwards()? {
            let line = line?;
            let header = LogLine::parse(&line.bytes).map(|parsed| parsed.header);
            found.extend(header.filter(is_wanted).map(|header| header.seq));
        }
        Ok(found)
    }

    /// Those that are there: a later record must not be born erased, and what says that others went stays.
    fn erasable(&self, seqs: &BTreeSet<u64>) -> Result<Erasable, StoreError> {
        let (mut found, mut whole, mut announced) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for line in self.forwards()? {
            let line = line?;
            let Some(parsed) = LogLine::parse(&line.bytes) else { continue };
            let seq = parsed.header.seq;
            if parsed.header.kind == RecordKind::Erase {
                announced.extend(erased_by(&parsed));
                continue;
            }
            found.insert(seq);
            if !parsed.is_erased() {
                whole.insert(seq);
            }
        }
        Ok(Erasable {
            requested: found.intersection(seqs).copied().collect(),
            unfinished: whole.intersection(&announced).copied().collect(),
        })
    }

    /// What a rewriting or packing that was killed has left: it contains what others erase.
    pub(crate) fn drafts(&self) -> Vec<PathBuf> {
        let begins = format!("{}.jsonl.", self.session_id);
        let is_draft =
            |name: &String| name.trim_start_matches('.').starts_with(&begins) && name.ends_with(disk::DRAFT);
        disk::names(&self.folder).into_iter().filter(is_draft).map(|name| self.folder.join(name)).collect()
    }

    fn rewrite(&self, seqs: &BTreeSet<u64>) -> Result<(usize, BTreeSet<String>), StoreError> {
        let path = self.path();
        let draft = disk::draft_beside(&path);
        let mut count = 0;
        let mut gone = BTreeSet::new();
        let mut out = BufWriter::new(LimitedFile(disk::open_to_append(&draft)?));
        for line in self.forwards()? {
            let line = line?;
            let target = LogLine::parse(&line.bytes).filter(|parsed| {
                seqs.contains(&parsed.header.seq) && parsed.header.kind != RecordKind::Erase
            });
            let written = match target {
                Some(parsed) if !parsed.is_erased() => {
                    count += 1;
                    gone.extend(blobs_of(parsed.content));
                    out.write_all(erased(&parsed, line.bytes.len()).as_bytes())
                }
                _ => out.write_all(&line.bytes),
            };
            let end: &[u8] = if line.is_ended { b"\n" } else { b"" };
            written.and_then(|()| out.write_all(end)).map_err(io("write", &draft))?;
        }
        // Only then are the lines gone for good: before, a power cut may bring the old log back.
        draft::put_in_place(out, &draft, &path, None)?;
        Ok((count, gone))
    }

    /// A large piece that another record still names stays. Where every record can be read, whatever none of them
    /// names goes, also what an erasure that was killed has left.
    fn drop_blobs(&self, gone: &BTreeSet<String>) -> Result<(), StoreError> {
        let (mut named, mut is_readable) = (BTreeSet::new(), true);
        for line in self.forwards()? {
            match LogLine::parse(&line?.bytes) {
                Some(parsed) if parsed.is_whole() => named.extend(blobs_of(parsed.content)),
                _ => is_readable = false,
            }
        }
        let folder = self.blob_folder();
        let is_due = |name: &String| {
            let piece = plain_name(name);
            (is_readable || gone.contains(piece)) && !named.contains(piece)
        };
        disk::names(&folder).into_iter().filter(is_due).try_for_each(|name| disk::remove(&folder.join(name)))
    }
}
