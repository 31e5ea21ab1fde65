//! What the hooks add to a session, counted in its requests and compared with what docs/memory.md promises.
//!
//! For each conversation, in characters:
//!
//! ```text
//! added ≤ (starts + compactions) × SNAPSHOT
//!       + foreign changes: the words of each + WRAP_CHARS
//!       + calls / 25 × REGISTERS
//! ```
//!
//! SNAPSHOT is the size of all registers, the heap's index and all chunks, with their tags; REGISTERS is SNAPSHOT
//! without the chunks. A frame's conversation does not count its brief as a start: the brief is its prompt and costs
//! one SNAPSHOT for each frame. The return of a frame is a foreign change of its parent's four registers R2, R3, R6
//! and R7.

use crate::memory_in_requests::harness::{RecordedRequest, ScriptedSessions};
use plimsoll_domain::memory::{Memory, Register};
use plimsoll_testkit::scripted_model::Request;
use std::collections::BTreeMap;

/// For each foreign change: the lines that begin and end a block, and a label or the tags of a chunk.
const WRAP_CHARS: usize = 160;
/// The lines around a block, its labels, and the line with the heap's size.
const FIXED_CHARS: usize = 330;
/// A line of the index beside its description, or the tags of a chunk.
const LINE_CHARS: usize = 110;
/// The block of registers is repeated after this many calls.
const CALLS_PER_REGISTER_BLOCK: usize = 25;

/// What was added to one conversation and what may be added, in characters.
#[derive(Default, Debug)]
struct ConversationAccount {
    call_count: usize,
    added_chars: usize,
    allowed_chars: usize,
    full_memory_chars: usize,
}

pub(crate) struct Budget(BTreeMap<String, ConversationAccount>);

impl Budget {
    /// Computes the budget of everything played so far. A conversation's requests grow until it is compacted, so its
    /// last request before each compaction, and its last request of all, contain what was added.
    pub(crate) fn from_sessions(sessions: &ScriptedSessions) -> Budget {
        sessions.inspect_requests("", |requests| {
            let mut accounts: BTreeMap<String, ConversationAccount> = BTreeMap::new();
            let names: Vec<String> = requests.iter().map(|recorded| recorded.conversation.clone()).collect();
            for conversation in names {
                let own_requests: Vec<&&RecordedRequest> =
                    requests.iter().filter(|recorded| recorded.conversation == conversation).collect();
                let (from_rev, to_rev) =
                    (own_requests[0].memory.revision, own_requests[own_requests.len() - 1].memory.revision);
                accounts.entry(conversation.clone()).or_insert_with(|| {
                    ConversationAccount::from_requests(
                        &own_requests,
                        &sessions.foreign_change_sizes(&conversation, from_rev, to_rev),
                    )
                });
            }
            Budget(accounts)
        })
    }

    pub(crate) fn assert_and_print(&self) {
        println!(
            "{:<8}{:>6}{:>9}{:>9}{:>12}   (characters; tokens are a quarter)",
            "", "calls", "added", "allowed", "every call"
        );
        for (conversation, account) in &self.0 {
            let ConversationAccount {
                call_count: calls,
                added_chars: added,
                allowed_chars: allowed,
                full_memory_chars: everything,
            } = account;
            println!("{conversation:<8}{calls:>6}{added:>9}{allowed:>9}{everything:>12}");
            assert!(added <= allowed, "{conversation}: {account:?}");
        }
        let sum = |chars_of: fn(&ConversationAccount) -> usize| self.0.values().map(chars_of).sum::<usize>();
        let (added, everything) =
            (sum(|account| account.added_chars), sum(|account| account.full_memory_chars));
        println!("tokens  {} instead of {}", added / 4, everything / 4);
        assert!(added * 4 < everything, "{added} of {everything}");
    }
}

impl ConversationAccount {
    fn from_requests(requests: &[&&RecordedRequest], foreign_sizes: &[usize]) -> ConversationAccount {
        let mut account =
            ConversationAccount { call_count: requests.len(), ..ConversationAccount::default() };
        let mut previous: Option<&RecordedRequest> = None;
        let mut starts = 0;
        let (mut largest_snapshot, mut largest_overview) = (0, 0);
        for recorded in requests {
            let is_after_compaction = previous
                .is_some_and(|before| message_count(&recorded.request) < message_count(&before.request));
            if let Some(last_before_compaction) = previous.filter(|_| is_after_compaction) {
                account.added_chars += count_added_chars(&last_before_compaction.request);
                starts += 1;
            }
            let Some(depth) = recorded.frame_depth else { continue };
            let snapshot = overview_limit(&recorded.memory, depth) + chunks_limit(&recorded.memory);
            largest_snapshot = largest_snapshot.max(snapshot);
            largest_overview = largest_overview.max(overview_limit(&recorded.memory, depth));
            account.full_memory_chars += snapshot;
            previous = Some(recorded);
        }
        account.added_chars += previous.map_or(0, |last| count_added_chars(&last.request));
        let register_block_chars = account.call_count / CALLS_PER_REGISTER_BLOCK * largest_overview;
        account.allowed_chars = (starts + 1) * largest_snapshot
            + foreign_sizes.iter().map(|text| text + WRAP_CHARS).sum::<usize>()
            + register_block_chars;
        account
    }
}

fn message_count(request: &Request) -> usize {
    request.body["messages"].as_array().map_or(0, Vec::len)
}

/// Counts the blocks that hooks sent to a conversation. Those of its brief, which is its prompt, and those in the
/// results of tools that it called do not count.
fn count_added_chars(request: &Request) -> usize {
    let messages = request.body["messages"].as_array().into_iter().flatten();
    let texts = messages.skip(1).flat_map(|message| match message["content"].as_str() {
        Some(text) => vec![text.to_owned()],
        None => {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
        }
    });
    // The text of the session's start may stand in the first message, beside the prompt.
    let first_message = request.body["messages"][0]["content"].to_string();
    let start_chars =
        if first_message.contains("SessionStart") { count_block_chars(&first_message) } else { 0 };
    texts.map(|text| count_block_chars(&text)).sum::<usize>() + start_chars
}

fn count_block_chars(text: &str) -> usize {
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

/// Returns the largest possible size of the registers and the index.
fn overview_limit(memory: &Memory, depth: usize) -> usize {
    let registers = Register::ALL.iter().map(|register| {
        let text = &memory.frames[depth].registers[register.index()].text;
        text.chars().count() + text.matches('\n').count()
    });
    let index = memory.heap.iter().map(|chunk| chunk.description.chars().count() + LINE_CHARS);
    registers.sum::<usize>() + index.sum::<usize>() + FIXED_CHARS
}

/// Returns the largest possible size of the chunks.
fn chunks_limit(memory: &Memory) -> usize {
    memory.heap.iter().map(|chunk| chunk.char_count() + LINE_CHARS).sum()
}
