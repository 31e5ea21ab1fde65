//! Costs in lists: a mark instead of a word tells how each was determined.

use plimsoll_domain::cost::{Cost, CostBasis, UNKNOWN_COST, format_usd};
use plimsoll_domain::text::to_safe_single_line;
use plimsoll_policy::usage::UsageEntry;
use plimsoll_terminal::console;
use std::collections::BTreeSet;

/// Formats a cost: `$1.20`, `~$1.20` if it is estimated, `≤$1.20` if it is an upper bound.
pub(crate) fn format_marked_cost(cost: Cost) -> String {
    let mark = match cost.basis {
        CostBasis::Reported => "",
        // An estimate of zero means that the cost is unknown.
        _ if cost.usd <= 0.0 => return UNKNOWN_COST.to_owned(),
        CostBasis::Estimated => "~",
        CostBasis::AtMost => "≤",
    };
    format!("{mark}{}", format_usd(cost.usd))
}

/// Explains the marks of the costs of these entries. Empty if they have none.
pub(crate) fn explain_marks_of_entries(entries: &[UsageEntry]) -> String {
    let unlisted = entries.iter().filter(|entry| entry.cost.basis == CostBasis::AtMost);
    let models: BTreeSet<String> =
        unlisted.map(|entry| to_safe_single_line(&entry.tariff.display_name())).collect();
    let costs: Vec<Cost> = entries.iter().map(|entry| entry.cost).collect();
    explain_marks(&costs, &models.into_iter().collect::<Vec<_>>().join(", "))
}

/// Explains the marks of these costs. Empty if they have none.
pub(crate) fn explain_marks(costs: &[Cost], unlisted_models: &str) -> String {
    let has_basis = |basis: CostBasis| costs.iter().any(|cost| cost.basis == basis && cost.usd > 0.0);
    let mut lines: Vec<String> = Vec::new();
    if has_basis(CostBasis::Estimated) {
        lines.push("~ estimated from tokens and list prices".to_owned());
    }
    if has_basis(CostBasis::AtMost) {
        lines.push(format!("≤ at most: no known price for {unlisted_models}"));
    }
    lines.join("\n")
}

/// Prints an explanation of marks below a list, unless it is empty.
pub(crate) fn print_explanation(explanation: &str) {
    if !explanation.is_empty() {
        console::print_text(format!("\n{explanation}"));
    }
}
