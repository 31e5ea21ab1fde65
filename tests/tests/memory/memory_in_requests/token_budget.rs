//! What the hooks add to a session: counted in its requests, and held against what docs/memory.md promises.
//!
//! For each conversation, in characters:
//!
//! ```text
//! added ≤ (starts + compactions) × SNAPSHOT
//!       + foreign changes: the words of each + WRAP
//!       + calls / 25 × REGISTERS
//! ```
//!
//! SNAPSHOT is all registers, the heap's index and all chunks, with their tags; REGISTERS is the same without the chunks. A
//! frame's conversation does not count its brief as a start: the brief is its prompt, and costs one SNAPSHOT for each
//! frame. A frame that returns is a foreign change of its parent's four registers R2, R3, R6 and R7.

use crate::memory_in_requests::harness::{Seen, Stage};
use plimsoll_domain::memory::{Memory, Register};
use plimsoll_testkit::scripted_model::Request;
use std::collections::BTreeMap;

/// The line that begins a block, the line that ends it, a label or the tags of a chunk: for each foreign change.
const WRAP: usize = 160;
/// The lines around a block, its labels, and the heap's account.
const FIXED: usize = 330;
/// A line of the index beside its description, or the tags of a chunk.
const LINE: usize = 110;
/// The register block comes again after so many calls.
const EVERY: usize = 25;

/// What was added to one conversation, and what may be.
#[derive(Default, Debug)]
struct Account {
    calls: usize,
    added: usize,
    allowed: usize,
    everything: usize,
}

pub(crate) struct Budget(BTreeMap<String, Account>);

impl Budget {
    /// Of everything that was played so far. Each conversation's requests grow until it is compacted, so that its last
    /// request before that, and its last of all, hold what was added.
    pub(crate) fn of(stage: &Stage) -> Budget {
        stage.seen("", |seen| {
            let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
            let names: Vec<String> = seen.iter().map(|seen| seen.who.clone()).collect();
            for who in names {
                let own: Vec<&&Seen> = seen.iter().filter(|seen| seen.who == who).collect();
                let (from, to) = (own[0].memory.revision, own[own.len() - 1].memory.revision);
                accounts
                    .entry(who.clone())
                    .or_insert_with(|| Account::of(&own, &stage.foreign_to(&who, from, to)));
            }
            Budget(accounts)
        })
    }

    pub(crate) fn assert_and_print(&self) {
        println!(
            "{:<8}{:>6}{:>9}{:>9}{:>12}   (characters; tokens are a quarter)",
            "", "calls", "added", "allowed", "every call"
        );
        for (who, account) in &self.0 {
            let Account { calls, added, allowed, everything } = account;
            println!("{who:<8}{calls:>6}{added:>9}{allowed:>9}{everything:>12}");
            assert!(added <= allowed, "{who}: {account:?}");
        }
        let sum = |part: fn(&Account) -> usize| self.0.values().map(part).sum::<usize>();
        let (added, everything) = (sum(|account| account.added), sum(|account| account.everything));
        println!("tokens  {} instead of {}", added / 4, everything / 4);
        assert!(added * 4 < everything, "{added} of {everything}");
    }
}

impl Account {
    fn of(seen: &[&&Seen], foreign: &[usize]) -> Account {
        let mut account = Account { calls: seen.len(), ..Account::default() };
        let mut before: Option<&Seen> = None;
        let mut starts = 0;
        let (mut largest, mut registers) = (0, 0);
        for one in seen {
            let is_new = before.is_some_and(|before| messages(&one.request) < messages(&before.request));
            if let Some(before) = before.filter(|_| is_new) {
                account.added += added(&before.request);
                starts += 1;
            }
            let Some(depth) = one.depth else { continue };
            let everything = overview(&one.memory, depth) + chunks(&one.memory);
            largest = largest.max(everything);
            registers = registers.max(overview(&one.memory, depth));
            account.everything += everything;
            before = Some(one);
        }
        account.added += before.map_or(0, |last| added(&last.request));
        let blocks = account.calls / EVERY * registers;
        account.allowed =
            (starts + 1) * largest + foreign.iter().map(|text| text + WRAP).sum::<usize>() + blocks;
        account
    }
}

fn messages(request: &Request) -> usize {
    request.body["messages"].as_array().map_or(0, Vec::len)
}

/// The blocks in what a conversation was told; not those of its brief, which is its prompt, nor of a tool that it asked.
fn added(request: &Request) -> usize {
    let all = request.body["messages"].as_array().into_iter().flatten();
    let texts = all.skip(1).flat_map(|message| match message["content"].as_str() {
        Some(text) => vec![text.to_owned()],
        None => {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
        }
    });
    // What the session's start tells may stand in the first message, beside the prompt.
    let first = request.body["messages"][0]["content"].to_string();
    let start = if first.contains("SessionStart") { blocks(&first) } else { 0 };
    texts.map(|text| blocks(&text)).sum::<usize>() + start
}

fn blocks(text: &str) -> usize {
    let (mut rest, mut sum) = (text, 0);
    while let Some(start) =
        ["<plimsoll-memory ", "<plimsoll-chunk "].iter().filter_map(|tag| rest.find(tag)).min()
    {
        rest = &rest[start..];
        let end = if rest.starts_with("<plimsoll-m") { "</plimsoll-memory>" } else { "</plimsoll-chunk>" };
        let length = rest.find(end).expect("a block ends") + end.len();
        sum += rest[..length].chars().count();
        rest = &rest[length..];
    }
    sum
}

/// The most that registers and index come to.
fn overview(memory: &Memory, depth: usize) -> usize {
    let registers = Register::ALL.iter().map(|register| {
        let text = &memory.frames[depth].registers[register.index()].text;
        text.chars().count() + text.matches('\n').count()
    });
    let index = memory.heap.iter().map(|chunk| chunk.description.chars().count() + LINE);
    registers.sum::<usize>() + index.sum::<usize>() + FIXED
}

/// The most that the chunks come to.
fn chunks(memory: &Memory) -> usize {
    memory.heap.iter().map(|chunk| chunk.char_count() + LINE).sum()
}
