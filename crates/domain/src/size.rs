//! How large an item is: the size that the plan states, and the tokens that items of this run actually used.

use serde::{Deserialize, Serialize};

/// How large an item is, as its text may state it: `- [ ] Parse dates (medium)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemSize {
    /// Below 50 lines.
    Trivial,
    /// 50 to 150 lines.
    Simple,
    /// 150 to 300 lines.
    Medium,
    /// More than 300 lines.
    Complex,
    /// Does not fit into one context window: the item must be split.
    VeryComplex,
}

/// The beginning of each size annotation. A closing bracket or a comma follows it: `(simple, after: 2)`.
const SIZE_ANNOTATIONS: [(&str, ItemSize); 5] = [
    ("(very complex", ItemSize::VeryComplex),
    ("(trivial", ItemSize::Trivial),
    ("(simple", ItemSize::Simple),
    ("(medium", ItemSize::Medium),
    ("(complex", ItemSize::Complex),
];

impl ItemSize {
    /// Returns the size that the text of an item states in brackets, if any.
    pub fn parse_from_item(item_text: &str) -> Option<ItemSize> {
        let item_text = crate::item_check::text_before_verify_command(item_text).to_lowercase();
        let has_annotation = |annotation: &str| {
            item_text
                .match_indices(annotation)
                .any(|(index, _)| item_text[index + annotation.len()..].starts_with([')', ',']))
        };
        SIZE_ANNOTATIONS.iter().find(|(annotation, _)| has_annotation(annotation)).map(|(_, size)| *size)
    }

    /// Returns the size of a change with this many lines. Never returns [`ItemSize::VeryComplex`].
    pub fn from_line_count(line_count: u64) -> ItemSize {
        match line_count {
            0..50 => ItemSize::Trivial,
            50..150 => ItemSize::Simple,
            150..300 => ItemSize::Medium,
            _ => ItemSize::Complex,
        }
    }

    /// Returns the name of the size, such as `very complex`.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemSize::Trivial => "trivial",
            ItemSize::Simple => "simple",
            ItemSize::Medium => "medium",
            ItemSize::Complex => "complex",
            ItemSize::VeryComplex => "very complex",
        }
    }

    /// Returns the largest share of a context window that an item of this size is expected to use, in
    /// percent.
    pub fn expected_max_window_percent(self) -> u64 {
        match self {
            ItemSize::Trivial => 10,
            ItemSize::Simple => 20,
            ItemSize::Medium => 40,
            ItemSize::Complex => 60,
            ItemSize::VeryComplex => 100,
        }
    }
}

/// The tokens that sessions have used for an item that is still open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenItemCost {
    pub item: String,
    /// Growth of the context windows of these sessions, in tokens.
    pub tokens: u64,
}

/// How far the growth of a session's context has been measured. The file holds the numbers as a list, in the order of the
/// fields: named fields would make every hook program larger by several kilobytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct ContextGrowth {
    /// Bytes of the transcript that have been read.
    pub read_bytes: u64,
    /// Growth of the context up to `read_bytes`, in tokens.
    pub growth_tokens: u64,
    /// The highest usage since the last compaction; `None` before the first response.
    pub peak_usage: Option<u64>,
    /// The part of the growth that items have been charged with, in tokens.
    pub attributed_tokens: u64,
}

impl ContextGrowth {
    /// Adds the tokens by which a usage exceeds the highest one since the last compaction. The first usage only sets the
    /// starting point.
    pub fn add_growth_above_peak(&mut self, usage_tokens: u64) {
        let peak_usage = self.peak_usage.get_or_insert(usage_tokens);
        self.growth_tokens = self.growth_tokens.saturating_add(usage_tokens.saturating_sub(*peak_usage));
        *peak_usage = usage_tokens.max(*peak_usage);
    }
}

impl From<Vec<u64>> for ContextGrowth {
    fn from(numbers: Vec<u64>) -> ContextGrowth {
        let number_at = |index: usize| numbers.get(index).copied().unwrap_or_default();
        // Every response uses tokens, so 0 means that there was none.
        let peak_usage = Some(number_at(2)).filter(|peak| *peak > 0);
        ContextGrowth {
            read_bytes: number_at(0),
            growth_tokens: number_at(1),
            peak_usage,
            attributed_tokens: number_at(3),
        }
    }
}

impl From<ContextGrowth> for Vec<u64> {
    fn from(
        ContextGrowth { read_bytes, growth_tokens: tokens, peak_usage: peak, attributed_tokens: charged }: ContextGrowth,
    ) -> Vec<u64> {
        vec![read_bytes, tokens, peak.unwrap_or_default(), charged]
    }
}

/// The tokens that one item used, and its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemCost {
    /// The size that the item stated, or that was derived from the files that it names.
    pub size: Option<ItemSize>,
    /// Growth of its sessions' contexts from the start of the item to its tick, in tokens.
    pub tokens: u64,
}

/// An item that the current iteration ticked, with its cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredMeasuredItem", into = "StoredMeasuredItem")]
pub struct MeasuredItem {
    pub item: String,
    /// The recorded cost; `None` if it is unknown.
    pub cost: Option<ItemCost>,
}

/// The form of a [`MeasuredItem`] in the file: a plain text if the cost is unknown.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredMeasuredItem {
    Unmeasured(String),
    Measured {
        item: String,
        #[serde(flatten)]
        cost: ItemCost,
    },
}

impl From<StoredMeasuredItem> for MeasuredItem {
    fn from(stored: StoredMeasuredItem) -> MeasuredItem {
        match stored {
            StoredMeasuredItem::Unmeasured(item) => MeasuredItem { item, cost: None },
            StoredMeasuredItem::Measured { item, cost } => MeasuredItem { item, cost: Some(cost) },
        }
    }
}

impl From<MeasuredItem> for StoredMeasuredItem {
    fn from(MeasuredItem { item, cost }: MeasuredItem) -> StoredMeasuredItem {
        match cost {
            Some(cost) => StoredMeasuredItem::Measured { item, cost },
            None => StoredMeasuredItem::Unmeasured(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_item_survives_a_round_trip() {
        let cost = ItemCost { size: Some(ItemSize::Simple), tokens: 7 };
        let measured = |cost| MeasuredItem { item: "one".to_owned(), cost };
        for (text, expected) in [
            (r#""one""#, measured(None)),
            (r#"{"item":"one","size":"simple","tokens":7}"#, measured(Some(cost))),
        ] {
            assert_eq!(serde_json::from_str::<MeasuredItem>(text).unwrap(), expected);
            assert_eq!(serde_json::to_string(&expected).unwrap(), text);
        }
    }

    #[test]
    fn measured_growth_is_stored_as_a_list_that_may_be_short() {
        let growth =
            |peak| ContextGrowth { read_bytes: 9, growth_tokens: 5, peak_usage: peak, attributed_tokens: 4 };
        for (text, expected) in [("[9,5,7,4]", growth(Some(7))), ("[9,5,0,4]", growth(None))] {
            assert_eq!(serde_json::from_str::<ContextGrowth>(text).unwrap(), expected);
            assert_eq!(serde_json::to_string(&expected).unwrap(), text);
        }
        let short = ContextGrowth { read_bytes: 9, ..ContextGrowth::default() };
        assert_eq!(serde_json::from_str::<ContextGrowth>("[9]").unwrap(), short);
    }

    #[test]
    fn an_item_states_its_size_in_brackets() {
        for (item, size) in [
            ("Parse dates (medium)", Some(ItemSize::Medium)),
            ("Rewrite the parser (Very Complex)", Some(ItemSize::VeryComplex)),
            ("(complex) Rewrite", Some(ItemSize::Complex)),
            ("Make it simple", None),
            ("Make it (simple, after: 2)", Some(ItemSize::Simple)),
            ("Make it (simple, verify: cargo test)", Some(ItemSize::Simple)),
            ("Make it (verify: test (complex))", None),
            ("Undo what is (simpleton)", None),
            ("A simple (but long) one", None),
        ] {
            assert_eq!(ItemSize::parse_from_item(item), size, "{item}");
        }
    }
}
