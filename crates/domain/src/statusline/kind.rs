//! The segments of ours, by name.

use super::about::{self, About};
use strum::VariantArray;

/// A segment of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum SegmentKind {
    /// The model.
    Model,
    /// How hard it thinks.
    Effort,
    /// The working directory.
    Directory,
    /// The repository there.
    Git,
    /// The load line: how full the window is.
    Load,
    /// The project's run.
    Run,
    /// The working memory.
    Memory,
    /// What each turn added.
    ItemCost,
    /// The prompt cache.
    Cache,
    /// What the session has cost.
    Cost,
    /// What it costs in an hour.
    Burn,
    /// The five-hour limit.
    FiveHour,
    /// The weekly limit.
    Weekly,
    /// The limit of what may be spent.
    Spend,
    /// Lines changed.
    Lines,
    /// The client's version.
    Version,
    /// A hook of ours that failed.
    Health,
}

impl SegmentKind {
    /// All of them, as the default line and then the rest have them.
    pub const ALL: &[SegmentKind] = SegmentKind::VARIANTS;

    /// The segment of a name.
    pub fn named(name: &str) -> Option<SegmentKind> {
        SegmentKind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// The names of all, for people.
    pub fn names() -> String {
        SegmentKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    }

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Its fields, with what they are.
    pub fn fields(self) -> &'static [(&'static str, &'static str)] {
        self.about().fields
    }

    /// How it is written unless the user says otherwise.
    pub fn writing(self) -> &'static str {
        self.about().format
    }

    /// What it shows.
    pub fn words(self) -> &'static str {
        self.about().words
    }

    /// Where that comes from.
    pub fn source(self) -> &'static str {
        self.about().source
    }

    fn about(self) -> &'static About {
        match self {
            SegmentKind::Model => &about::MODEL,
            SegmentKind::Effort => &about::EFFORT,
            SegmentKind::Directory => &about::DIRECTORY,
            SegmentKind::Git => &about::GIT,
            SegmentKind::Load => &about::LOAD,
            SegmentKind::Run => &about::RUN,
            SegmentKind::Memory => &about::MEMORY,
            SegmentKind::ItemCost => &about::ITEM_COST,
            SegmentKind::Cache => &about::CACHE,
            SegmentKind::Cost => &about::COST,
            SegmentKind::Burn => &about::BURN,
            SegmentKind::FiveHour => &about::FIVE_HOUR,
            SegmentKind::Weekly => &about::WEEKLY,
            SegmentKind::Spend => &about::SPEND,
            SegmentKind::Lines => &about::LINES,
            SegmentKind::Version => &about::VERSION,
            SegmentKind::Health => &about::HEALTH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{Format, fields};
    use super::*;

    #[test]
    fn every_segment_is_written_with_its_own_fields_and_known_by_its_name() {
        for kind in SegmentKind::ALL {
            Format::try_from(kind.writing().to_owned()).unwrap();
            let known: Vec<&str> = kind.fields().iter().map(|(name, _)| *name).collect();
            assert!(fields(kind.writing()).iter().all(|field| known.contains(field)), "{kind:?}");
            assert_eq!(SegmentKind::named(kind.name()), Some(*kind));
        }
    }
}
