//! Plays a few of the generated conversations with the real program: what the measurement of
//! `plimsoll_research::handoffs` must keep in every conversation.

use plimsoll_research::handoffs::judge::{Fact, Outcome};
use plimsoll_research::handoffs::{MeasurementOptions, measure};
use plimsoll_testkit::find_or_build_bin_dir;

/// Facts that no budget and no length of the conversation may lose.
const ALWAYS_KEPT_FACTS: [Fact; 10] = [
    Fact::Request,
    Fact::Additions,
    Fact::File,
    Fact::SecretsHidden,
    Fact::OneCopyOfRequest,
    Fact::OneMarker,
    Fact::FinishedRequestsNotCurrent,
    Fact::RevertedEditsNotShown,
    Fact::DoneItemsNotCurrent,
    Fact::DoneStepsNotNext,
];

#[test]
fn requests_and_files_survive_one_and_three_compactions() {
    let options = MeasurementOptions {
        plimsoll: find_or_build_bin_dir().join("plimsoll"),
        seed: 2,
        conversations: 12,
        compactions: vec![1, 3],
        threads: 2,
        ..MeasurementOptions::default()
    };
    let rows = measure(&options);
    assert_eq!(rows.len(), 24);
    for row in &rows {
        let lost_facts: Vec<Fact> = ALWAYS_KEPT_FACTS
            .into_iter()
            .filter(|fact| row.verdict.outcome(*fact) == Outcome::Lost)
            .collect();
        assert!(
            lost_facts.is_empty() && row.error.is_none(),
            "conversation {}, compaction {}: {lost_facts:?} {:?}\n{:#?}\n{}",
            row.conversation,
            row.compaction,
            row.error,
            row.truth,
            row.text
        );
    }
}
