//! How large an item is: what the plan says about it, and what items of this run really took.

use serde::{Deserialize, Serialize};

/// The complexity classes of the original design, as an item may state them: `- [ ] Parse dates (medium)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Below 50 lines.
    Trivial,
    /// 50 to 150 lines.
    Simple,
    /// 150 to 300 lines.
    Medium,
    /// More than 300 lines.
    Complex,
    /// Fits no window: it must be split.
    VeryComplex,
}

/// Behind them comes the bracket's end, or a comma and more: `(simple, after: 2)`.
const WORDS: [(&str, Size); 5] = [
    ("(very complex", Size::VeryComplex),
    ("(trivial", Size::Trivial),
    ("(simple", Size::Simple),
    ("(medium", Size::Medium),
    ("(complex", Size::Complex),
];

impl Size {
    /// The size that an item states.
    pub fn stated(item: &str) -> Option<Size> {
        let item = crate::item_check::words(item).to_lowercase();
        let is_stated = |word: &str| {
            item.match_indices(word).any(|(place, _)| item[place + word.len()..].starts_with([')', ',']))
        };
        WORDS.iter().find(|(word, _)| is_stated(word)).map(|(_, size)| *size)
    }

    /// The size of a change in so many lines.
    pub fn of_lines(lines: u64) -> Size {
        match lines {
            0..50 => Size::Trivial,
            50..150 => Size::Simple,
            150..300 => Size::Medium,
            _ => Size::Complex,
        }
    }

    /// As the original's table names it.
    pub fn word(self) -> &'static str {
        match self {
            Size::Trivial => "trivial",
            Size::Simple => "simple",
            Size::Medium => "medium",
            Size::Complex => "complex",
            Size::VeryComplex => "very complex",
        }
    }

    /// The upper end of the share of a window that the original's table gives it, in percent.
    pub fn percent(self) -> u64 {
        match self {
            Size::Trivial => 10,
            Size::Simple => 20,
            Size::Medium => 40,
            Size::Complex => 60,
            Size::VeryComplex => 100,
        }
    }
}

/// What sessions took for an item that is still open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenItemCost {
    /// The item.
    pub item: String,
    /// The growth of their fills, in tokens.
    pub tokens: u64,
}

/// How far the growth of a session's context has been measured. In the file it is the list of its figures, in their order:
/// named fields would make every hook program larger by several kilobytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct MeasuredGrowth {
    /// Bytes of the transcript that have been read.
    pub read_bytes: u64,
    /// Growth up to there, in tokens.
    pub tokens: u64,
    /// The highest usage since the last compaction; none before the first response.
    pub peak: Option<u64>,
    /// The part of the growth that items were charged with.
    pub charged: u64,
}

impl MeasuredGrowth {
    /// Adds what a usage exceeds the highest one since the last compaction by; the first one is where growth begins.
    pub fn add_usage(&mut self, usage: u64) {
        let peak = self.peak.get_or_insert(usage);
        self.tokens = self.tokens.saturating_add(usage.saturating_sub(*peak));
        *peak = usage.max(*peak);
    }
}

impl From<Vec<u64>> for MeasuredGrowth {
    fn from(figures: Vec<u64>) -> MeasuredGrowth {
        let figure = |place: usize| figures.get(place).copied().unwrap_or_default();
        // No response uses no tokens.
        let peak = Some(figure(2)).filter(|peak| *peak > 0);
        MeasuredGrowth { read_bytes: figure(0), tokens: figure(1), peak, charged: figure(3) }
    }
}

impl From<MeasuredGrowth> for Vec<u64> {
    fn from(MeasuredGrowth { read_bytes, tokens, peak, charged }: MeasuredGrowth) -> Vec<u64> {
        vec![read_bytes, tokens, peak.unwrap_or_default(), charged]
    }
}

/// What one item took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemCost {
    /// What it had stated, or the files that it names made it.
    pub size: Option<Size>,
    /// By how much the contexts of its sessions grew from its beginning to its tick, in tokens.
    pub tokens: u64,
}

/// An item that the current iteration ticked, and what it took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredMeasuredItem", into = "StoredMeasuredItem")]
pub struct MeasuredItem {
    /// The item.
    pub item: String,
    /// What was noted as its cost; none if that is not known.
    pub cost: Option<ItemCost>,
}

/// As it is in the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredMeasuredItem {
    Item(String),
    Measured {
        item: String,
        #[serde(flatten)]
        cost: ItemCost,
    },
}

impl From<StoredMeasuredItem> for MeasuredItem {
    fn from(stored: StoredMeasuredItem) -> MeasuredItem {
        match stored {
            StoredMeasuredItem::Item(item) => MeasuredItem { item, cost: None },
            StoredMeasuredItem::Measured { item, cost } => MeasuredItem { item, cost: Some(cost) },
        }
    }
}

impl From<MeasuredItem> for StoredMeasuredItem {
    fn from(MeasuredItem { item, cost }: MeasuredItem) -> StoredMeasuredItem {
        match cost {
            Some(cost) => StoredMeasuredItem::Measured { item, cost },
            None => StoredMeasuredItem::Item(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_item_is_read_as_it_was_written() {
        let cost = ItemCost { size: Some(Size::Simple), tokens: 7 };
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
    fn measured_growth_is_a_list_of_figures_and_a_short_one_is_read() {
        let growth = |peak| MeasuredGrowth { read_bytes: 9, tokens: 5, peak, charged: 4 };
        for (text, expected) in [("[9,5,7,4]", growth(Some(7))), ("[9,5,0,4]", growth(None))] {
            assert_eq!(serde_json::from_str::<MeasuredGrowth>(text).unwrap(), expected);
            assert_eq!(serde_json::to_string(&expected).unwrap(), text);
        }
        let short = MeasuredGrowth { read_bytes: 9, ..MeasuredGrowth::default() };
        assert_eq!(serde_json::from_str::<MeasuredGrowth>("[9]").unwrap(), short);
    }

    #[test]
    fn an_item_states_its_size_in_brackets() {
        for (item, size) in [
            ("Parse dates (medium)", Some(Size::Medium)),
            ("Rewrite the parser (Very Complex)", Some(Size::VeryComplex)),
            ("(complex) Rewrite", Some(Size::Complex)),
            ("Make it simple", None),
            ("Make it (simple, after: 2)", Some(Size::Simple)),
            ("Make it (simple, verify: cargo test)", Some(Size::Simple)),
            ("Make it (verify: test (complex))", None),
            ("Undo what is (simpleton)", None),
            ("A simple (but long) one", None),
        ] {
            assert_eq!(Size::stated(item), size, "{item}");
        }
    }
}
