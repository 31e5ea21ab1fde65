//! The table and the TSV file of a measurement.

use super::generator::ConversationTraits;
use super::judge::{Fact, Outcome, Verdict};
use super::player::JudgedCheckpoint;
use super::truth::Truth;
use serde_json::Value;
use std::fmt::Write as _;

/// The 97.5th percentile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.96;

/// What is stored of a judged checkpoint.
#[derive(Debug)]
pub struct MeasuredRow {
    pub conversation: usize,
    pub exchange_tokens: Option<usize>,
    pub compaction: usize,
    pub traits: ConversationTraits,
    pub truth: Truth,
    pub verdict: Verdict,
    pub text: String,
    pub milliseconds: f64,
    pub error: Option<String>,
}

impl MeasuredRow {
    pub fn new(
        conversation: usize,
        exchange_tokens: Option<usize>,
        traits: ConversationTraits,
        checkpoint: JudgedCheckpoint,
    ) -> MeasuredRow {
        MeasuredRow {
            conversation,
            exchange_tokens,
            compaction: checkpoint.compaction,
            traits,
            truth: checkpoint.truth,
            verdict: checkpoint.verdict,
            text: checkpoint.text,
            milliseconds: checkpoint.elapsed.as_secs_f64() * 1_000.0,
            error: checkpoint.error,
        }
    }
}

/// Returns the bounds of the 95 % interval of a share (Wilson), from 0 to 1.
pub fn confidence_interval(part: usize, total: usize) -> (f64, f64) {
    if total == 0 {
        return (0.0, 1.0);
    }
    let (count, share) = (total as f64, part as f64 / total as f64);
    let square = NORMAL_QUANTILE * NORMAL_QUANTILE;
    let center = (share + square / (2.0 * count)) / (1.0 + square / count);
    let half_width = NORMAL_QUANTILE / (1.0 + square / count)
        * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
    ((center - half_width).max(0.0), (center + half_width).min(1.0))
}

fn render_share(outcomes: impl Iterator<Item = Outcome>) -> String {
    let counted: Vec<Outcome> = outcomes.filter(|outcome| *outcome != Outcome::NotApplicable).collect();
    let kept = counted.iter().filter(|outcome| **outcome == Outcome::Kept).count();
    if counted.is_empty() {
        return "–".to_owned();
    }
    let (low, high) = confidence_interval(kept, counted.len());
    let percent = 100.0 * kept as f64 / counted.len() as f64;
    format!("{percent:.1}% [{:.1}–{:.1}] ({kept} of {})", 100.0 * low, 100.0 * high, counted.len())
}

/// Renders one table: a row for each fact, a column for each number of compactions and each budget.
pub fn render_table(rows: &[MeasuredRow], compactions: &[usize], budgets: &[Option<usize>]) -> String {
    let columns: Vec<(Option<usize>, usize)> = budgets
        .iter()
        .flat_map(|budget| compactions.iter().map(|compaction| (*budget, *compaction)))
        .collect();
    let rows_of_columns: Vec<Vec<&MeasuredRow>> = columns
        .iter()
        .map(|(budget, compaction)| {
            rows.iter()
                .filter(|row| row.exchange_tokens == *budget && row.compaction == *compaction)
                .collect()
        })
        .collect();
    let mut table = "| fact |".to_owned();
    for (budget, compaction) in &columns {
        let budget = budget.map_or(String::new(), |tokens| format!(", {tokens} tokens"));
        let _ = write!(
            table,
            " {compaction} {}{budget} |",
            if *compaction == 1 { "compaction" } else { "compactions" }
        );
    }
    let _ = writeln!(table, "\n|{}", " --- |".repeat(columns.len() + 1));
    let mut add_row = |label: &str, cell: &dyn Fn(&[&MeasuredRow]) -> String| {
        let cells: String = rows_of_columns.iter().map(|rows| format!(" {} |", cell(rows))).collect();
        let _ = writeln!(table, "| {label} |{cells}");
    };
    add_row("item, file, line, next step together", &|rows| {
        render_share(rows.iter().map(|row| row.verdict.outcome_of_item_file_line_and_step()))
    });
    for fact in Fact::ALL {
        add_row(fact.label(), &|rows| render_share(rows.iter().map(|row| row.verdict.outcome(fact))));
    }
    add_row("bytes of the text: median, 90th percentile, most", &|rows| {
        render_percentiles(rows.iter().map(|row| row.text.len() as f64))
    });
    add_row("tokens (bytes / 4)", &|rows| {
        render_percentiles(rows.iter().map(|row| row.text.len() as f64 / 4.0))
    });
    add_row("milliseconds, all rows written", &|rows| {
        render_percentiles(rows.iter().filter(|row| !row.traits.has_late_rows).map(|row| row.milliseconds))
    });
    add_row("milliseconds, last rows late", &|rows| {
        render_percentiles(rows.iter().filter(|row| row.traits.has_late_rows).map(|row| row.milliseconds))
    });
    add_row("checkpoints without a text", &|rows| {
        rows.iter().filter(|row| row.error.is_some()).count().to_string()
    });
    table
}

fn render_percentiles(values: impl Iterator<Item = f64>) -> String {
    let mut sorted_values: Vec<f64> = values.collect();
    sorted_values.sort_by(f64::total_cmp);
    let Some(last_index) = sorted_values.len().checked_sub(1) else { return "–".to_owned() };
    let at = |share: f64| sorted_values[(share * last_index as f64).round() as usize];
    format!("{:.0}, {:.0}, {:.0}", at(0.5), at(0.9), at(1.0))
}

/// Renders one line for each checkpoint, with the properties that may explain a loss.
pub fn render_tsv(rows: &[MeasuredRow]) -> String {
    let fact_names: Vec<String> = Fact::ALL.iter().map(|fact| format!("{fact:?}")).collect();
    let mut tsv = format!(
        "conversation\texchange_tokens\tcompaction\tbytes\tmilliseconds\tcopies\t{}\ttraits\trequest\tdecision\tfailure\tlast_edit\topen_result\tnext_step\terror\n",
        fact_names.join("\t")
    );
    for row in rows {
        let outcomes: Vec<&str> = Fact::ALL
            .iter()
            .map(|fact| match row.verdict.outcome(*fact) {
                Outcome::Kept => "kept",
                Outcome::Lost => "lost",
                Outcome::NotApplicable => "-",
            })
            .collect();
        let truth = serde_json::to_value(&row.truth).expect("a truth is JSON");
        let traits = serde_json::to_string(&row.traits).expect("the traits are JSON");
        let request = format!(
            "segment {}, {:?}, {} characters",
            row.truth.request_segment,
            row.truth.request_form,
            row.truth.request.chars().count()
        );
        let part = |name: &str| truth.get(name).map(Value::to_string).unwrap_or_default();
        let _ = writeln!(
            tsv,
            "{}\t{}\t{}\t{}\t{:.1}\t{}\t{}\t{traits}\t{request}\t{}\t{}\t{}\t{}\t{}\t{}",
            row.conversation,
            row.exchange_tokens.map_or("default".to_owned(), |tokens| tokens.to_string()),
            row.compaction,
            row.text.len(),
            row.milliseconds,
            row.verdict.request_copies,
            outcomes.join("\t"),
            part("decision"),
            part("failure"),
            part("last_edit"),
            part("unprocessed_result"),
            part("next_step"),
            row.error.as_deref().unwrap_or_default().replace(['\t', '\n'], " "),
        );
    }
    tsv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_wilson() {
        let rounded = |part, total| {
            let (low, high) = confidence_interval(part, total);
            ((low * 1_000.0).round(), (high * 1_000.0).round())
        };
        assert_eq!(rounded(200, 200), (981.0, 1_000.0));
        assert_eq!(rounded(196, 200), (950.0, 992.0));
        assert_eq!(rounded(0, 0), (0.0, 1_000.0));
    }

    #[test]
    fn facts_that_do_not_apply_are_not_counted() {
        let outcomes = [Outcome::Kept, Outcome::Lost, Outcome::NotApplicable, Outcome::Kept];
        assert!(render_share(outcomes.into_iter()).starts_with("66.7% ["));
        assert_eq!(render_share([Outcome::NotApplicable].into_iter()), "–");
        assert_eq!(render_percentiles([3.0, 1.0, 2.0].into_iter()), "2, 3, 3");
    }
}
