//! Generates conversations with a known truth. The distribution is described at the top of `handoffs`.

mod author;
mod calls;
mod edits;
mod ending;
mod failures;
mod incidents;
mod prompts;
mod schedule;
#[cfg(test)]
mod tests;
mod work_list;

use super::events::Event;
use super::phrases::Language;
use super::random_draws::Draws;
use super::themes::THEMES;
use super::truth::Truth;
use author::Author;
use serde::Serialize;

/// A conversation up to its last compaction.
#[derive(Debug)]
pub struct Conversation {
    pub traits: ConversationTraits,
    /// The files that the project has before the conversation, all committed.
    pub initial_files: Vec<(String, String)>,
    pub segments: Vec<Segment>,
}

/// What happens between two compactions, and what is true at its end.
#[derive(Debug)]
pub struct Segment {
    pub events: Vec<Event>,
    pub truth: Truth,
    /// Number of tool calls of the main conversation.
    pub call_count: usize,
    /// The size of the segment in the model's context.
    pub byte_count: usize,
}

/// Properties of a whole conversation.
#[derive(Clone, Debug, Serialize)]
pub struct ConversationTraits {
    pub theme: &'static str,
    #[serde(skip)]
    pub theme_index: usize,
    #[serde(skip)]
    pub language: Language,
    pub is_ascii: bool,
    pub list_kind: ListKind,
    pub takes_items_out_of_order: bool,
    pub has_secrets: bool,
    pub has_secret_in_request: bool,
    pub is_interrupted: bool,
    pub queues_prompts: bool,
    pub has_unusual_paths: bool,
    pub renames_file: bool,
    pub formats_all_files: bool,
    pub has_subagent_rows: bool,
    /// The first segment may be smaller than the budget of the last exchanges.
    pub is_short_at_first: bool,
    /// The last rows reach the transcript only after the checkpoint has begun.
    pub has_late_rows: bool,
    /// Older clients repeat each message in an `api-request-blob` row.
    pub client_version: &'static str,
}

/// Where the items of the work are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ListKind {
    PlanFile,
    TodoWrite,
    Tasks,
    None,
}

impl ConversationTraits {
    fn draw(index: usize, draws: &mut Draws) -> ConversationTraits {
        use Language::{English, EnglishWithEmoji, French, German, Japanese, Polish, Russian};
        let language = draws.pick_weighted(&[
            (80, English),
            (4, EnglishWithEmoji),
            (5, German),
            (3, French),
            (2, Polish),
            (3, Russian),
            (3, Japanese),
        ]);
        let list_kind = draws.pick_weighted(&[
            (35, ListKind::PlanFile),
            (20, ListKind::TodoWrite),
            (15, ListKind::Tasks),
            (30, ListKind::None),
        ]);
        let has_secrets = draws.bool_with_percent(15);
        ConversationTraits {
            theme: THEMES[index % THEMES.len()].name,
            theme_index: index % THEMES.len(),
            language,
            is_ascii: language == English,
            list_kind,
            takes_items_out_of_order: list_kind == ListKind::PlanFile && draws.bool_with_percent(10),
            has_secrets,
            has_secret_in_request: has_secrets && draws.bool_with_percent(20),
            is_interrupted: draws.bool_with_percent(15),
            queues_prompts: draws.bool_with_percent(15),
            has_unusual_paths: draws.bool_with_percent(8),
            renames_file: draws.bool_with_percent(4),
            formats_all_files: draws.bool_with_percent(4),
            has_subagent_rows: draws.bool_with_percent(20),
            is_short_at_first: draws.bool_with_percent(20),
            has_late_rows: draws.bool_with_percent(25),
            client_version: if draws.bool_with_percent(50) { "2.1.329" } else { "2.1.332" },
        }
    }
}

/// Generates the conversation with this number, from 0, up to its last compaction.
pub fn generate_conversation(seed: u64, index: usize, segment_count: usize) -> Conversation {
    let draws = Draws::new(seed.wrapping_mul(1_000_003).wrapping_add(index as u64), "conversation");
    let traits = ConversationTraits::draw(index, &mut draws.substream("traits"));
    let mut author = Author::new(traits.clone(), &draws);
    let initial_files = author.files.all_contents();
    let segments = (1..=segment_count).map(|number| author.write_segment(number, &draws)).collect();
    Conversation { traits, initial_files, segments }
}
