//! The page about the simulations, and its table. Every row is published, whichever setup does best in it.

use super::loop_setups::{LOOP_SETUPS, LoopKind, LoopSetup, TEST_GATE_SETUP_KEY, find_loop_setup};
use super::simulator::price::TokenCounts;
use super::simulator::{AgentPersona, RULES, RuleEntry, Task, price};
use super::{ITEMS_PER_SIMULATION, SimulationRow};
use plimsoll_testkit::SeededRng;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const PAGE_HEAD: &str = include_str!("head.md");
const PAGE_TAIL: &str = include_str!("tail.md");
const TSV_HEADER: &str = "seed\tway\tcharacter\tbuild\titems\tpassing\tfalse_ticks\tfindable\ttwice\tquestion\tfacts_kept\tfacts\tlearned_kept\tlearned_found\tlearned\ttest_changed\tnamed\tsessions\tcompactions\ttests\ttroubles\twritten\tread\toutput\tdollars\thours\tlost\tcode\trestarts\n";

/// The target for the next build: the price of an item, divided by its price in the setup with a test gate.
const TARGET_PRICE_RATIO: f64 = 0.85;

/// Returns the rows of the seeds that have a row of this build for every setup and every persona.
pub fn rows_of_seeds_with_every_setup_and_persona(
    rows: &[SimulationRow],
    build: &str,
    seeds: std::ops::RangeInclusive<u64>,
) -> Vec<SimulationRow> {
    let rows_of_build: Vec<&SimulationRow> =
        rows.iter().filter(|row| row.build == build && seeds.contains(&row.seed)).collect();
    let has_row = |seed: u64, setup: &LoopSetup, persona: AgentPersona| {
        rows_of_build
            .iter()
            .any(|row| row.seed == seed && row.setup_key == setup.key && row.persona == persona)
    };
    let is_complete = |seed: &u64| {
        LOOP_SETUPS
            .iter()
            .all(|setup| AgentPersona::ALL.iter().all(|persona| has_row(*seed, setup, *persona)))
    };
    let seeds: BTreeSet<u64> = rows_of_build.iter().map(|row| row.seed).collect();
    let complete_seeds: BTreeSet<u64> = seeds.into_iter().filter(is_complete).collect();
    rows_of_build.into_iter().filter(|row| complete_seeds.contains(&row.seed)).cloned().collect()
}

/// Renders the rows as tab-separated values with a header line.
pub fn render_tsv(rows: &[SimulationRow]) -> String {
    let mut text = TSV_HEADER.to_owned();
    for row in rows {
        let score = &row.score;
        let question =
            score.is_question_asked.map_or("-", |is_asked| if is_asked { "asked" } else { "unasked" });
        let code = row.exit_code.map_or("-".to_owned(), |code| code.to_string());
        let counts = [
            score.items,
            score.passing,
            score.false_ticks,
            score.false_ticks_found_by_test,
            score.twice_converted_items,
        ];
        let (visible, found_by_search, needed) = score.learned_facts_visible_found_all;
        let test_counts = [u32::from(score.is_test_changed), u32::from(row.names_changed_test)];
        let fact_counts = [
            score.needed_facts_visible_and_all.0,
            score.needed_facts_visible_and_all.1,
            visible,
            found_by_search,
            needed,
            test_counts[0],
            test_counts[1],
        ];
        let session_counts = [score.sessions, score.compactions, score.test_runs, score.faults];
        let join_with_tabs =
            |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("\t");
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{question}\t{}\t{}\t{}\t{}\t{}\t{:.3}\t{:.2}\t{:.2}\t{code}\t{}",
            row.seed,
            row.setup_key,
            row.persona.name(),
            row.build,
            join_with_tabs(&counts),
            join_with_tabs(&fact_counts),
            join_with_tabs(&session_counts),
            score.tokens.cache_write,
            score.tokens.cache_read,
            score.tokens.output,
            score.tokens.cost_dollars(),
            score.hours,
            score.hours_without_answers,
            row.restarts,
        );
    }
    text
}

/// The rows of one setup, with one persona or with all.
struct RowGroup<'a>(Vec<&'a SimulationRow>);

impl<'a> RowGroup<'a> {
    fn for_setup_and_persona(
        rows: &'a [SimulationRow],
        setup: &LoopSetup,
        persona: AgentPersona,
    ) -> RowGroup<'a> {
        RowGroup::for_setup_key(rows, setup.key, Some(persona))
    }

    /// Selects the rows of a setup. Without a persona, selects the rows of all personas.
    fn for_setup_key(
        rows: &'a [SimulationRow],
        setup_key: &str,
        persona: Option<AgentPersona>,
    ) -> RowGroup<'a> {
        let is_selected = |row: &&SimulationRow| {
            row.setup_key == setup_key && persona.is_none_or(|wanted_persona| row.persona == wanted_persona)
        };
        RowGroup(rows.iter().filter(is_selected).collect())
    }

    fn sum_count(&self, count_of: impl Fn(&SimulationRow) -> u32) -> u64 {
        self.0.iter().map(|row| u64::from(count_of(row))).sum()
    }

    fn sum_amount(&self, amount_of: impl Fn(&SimulationRow) -> f64) -> f64 {
        self.0.iter().map(|row| amount_of(row)).sum()
    }

    fn passing_items(&self) -> u64 {
        self.sum_count(|row| row.score.passing)
    }

    fn amount_per_passing_item(&self, amount_of: impl Fn(&SimulationRow) -> f64) -> f64 {
        self.sum_amount(amount_of) / self.passing_items().max(1) as f64
    }

    fn dollars_per_item(&self) -> f64 {
        self.amount_per_passing_item(|row| row.score.tokens.cost_dollars())
    }

    fn count_runs_ended_well(&self) -> u64 {
        self.0.iter().filter(|row| row.ended_with_all_items_correct()).count() as u64
    }

    fn render_row(&self, setup: &LoopSetup) -> String {
        format!(
            "| {} | {} | {} ({}) | {:.2} | {:.0} k | {:.2} | {:.2} | {} | {} | {:.2} | {} | {} |\n",
            setup.name,
            render_share(self.passing_items(), self.sum_count(|row| row.score.items)),
            self.sum_count(|row| row.score.false_ticks),
            self.sum_count(|row| row.score.false_ticks_found_by_test),
            self.dollars_per_item(),
            self.amount_per_passing_item(|row| row.score.tokens.input() as f64 / 1_000.0),
            self.amount_per_passing_item(|row| row.score.hours),
            self.sum_amount(|row| row.score.hours_without_answers) / self.0.len().max(1) as f64,
            render_share(self.count_runs_ended_well(), self.0.len() as u64),
            self.sum_count(SimulationRow::count_waits_for_person),
            self.passing_items() as f64 / self.sum_count(|row| row.score.sessions).max(1) as f64,
            render_share(
                self.sum_count(|row| row.score.needed_facts_visible_and_all.0),
                self.sum_count(|row| row.score.needed_facts_visible_and_all.1)
            ),
            self.render_learned_fact_share_and_found_count(),
        )
    }

    /// Renders how many learned facts, which are in no file, were still visible, and how many decisions a search
    /// found.
    fn render_learned_fact_share_and_found_count(&self) -> String {
        let visible_share = render_share(
            self.sum_count(|row| row.score.learned_facts_visible_found_all.0),
            self.sum_count(|row| row.score.learned_facts_visible_found_all.2),
        );
        match self.sum_count(|row| row.score.learned_facts_visible_found_all.1) {
            0 => visible_share,
            found_count => format!("{visible_share}, {found_count} found"),
        }
    }

    /// Returns the number of passing items and of false ticks. Prices are comparable if both are equal.
    fn passing_items_and_false_ticks(&self) -> (u64, u64) {
        (self.passing_items(), self.sum_count(|row| row.score.false_ticks))
    }

    fn tokens_per_item(&self) -> f64 {
        self.amount_per_passing_item(|row| (row.score.tokens.input() + row.score.tokens.output) as f64)
    }
}

/// Renders the page, without the section about the harder simulations.
pub fn render_page(rows: &[SimulationRow], build: &str) -> String {
    let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
    let seed_ranges = render_number_ranges(&seeds.iter().copied().collect::<Vec<_>>());
    let template = PAGE_HEAD.to_owned() + PAGE_TAIL;
    template.replace("NIGHTS", &rows.len().to_string())
        .replace("SEEDS", if seed_ranges.is_empty() { "none yet" } else { &seed_ranges })
        .replace("BUILD", build)
        .replace("RESULTS\n", &render_results_by_persona(rows))
        .replace("COMPARISON\n", &render_cost_comparison_with_rivals(rows))
        .replace("TAMPERING\n", &render_tamperer_results_by_setup(rows))
        .replace("PRICE PARTS\n", &describe_cost_shares_of_test_gate_setup(rows))
        .replace("TARGETS\n", &render_targets_table(rows))
        .replace("WAYS\n", &render_setups_table())
        .replace("CHARACTERS\n", &render_persona_behavior_table())
        .replace("RULES\n", &render_rules_table())
        .replace("PRICES", &format!("{} for input, {} for what is written into the cache, {:.2} for what is read from it, {} for output", price::INPUT_PRICE, price::CACHE_WRITE_PRICE, price::CACHE_READ_PRICE, price::OUTPUT_PRICE))
}

/// Renders ascending numbers, with consecutive ones combined into ranges.
fn render_number_ranges(numbers: &[u64]) -> String {
    let ranges = numbers.chunk_by(|number, next| number + 1 == *next).map(|range| match range {
        [first, .., last] => format!("{first} to {last}"),
        [number] => number.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(", ")
}

fn render_results_by_persona(rows: &[SimulationRow]) -> String {
    let mut text = String::new();
    for persona in AgentPersona::ALL {
        let _ = write!(
            text,
            "### {}\n\n| way | items that pass | false ticks (findable) | $ an item | input an item | hours an item | hours lost a night | ended well | waited for a person | items a session | facts kept | learned and kept |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- | --- |\n",
            capitalize(persona.name())
        );
        for setup in LOOP_SETUPS {
            text += &RowGroup::for_setup_and_persona(rows, setup, persona).render_row(setup);
        }
        text.push('\n');
    }
    text
}

fn capitalize(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

/// The keys of the setups with which prices are compared, in the order of the columns.
const RIVAL_KEYS: [&str; 3] = ["bare", "bare-sentences", TEST_GATE_SETUP_KEY];

/// Renders the ratio of Plimsoll's price and tokens (with `--verify`) to those of each rival, for all
/// simulations and for those without a question.
fn render_cost_comparison_with_rivals(rows: &[SimulationRow]) -> String {
    let rivals: Vec<&LoopSetup> = RIVAL_KEYS.iter().filter_map(|key| find_loop_setup(key)).collect();
    let mut text = String::from("| nights | agent |");
    for rival in &rivals {
        let _ = write!(text, " $ / {0} | tokens / {0} |", rival.name);
    }
    text += " items that pass: Plimsoll `--verify`, bare with a test gate | false ticks | beside the test gate |\n| --- | --- |";
    text += &" ---: | ---: |".repeat(rivals.len());
    text += " --- | --- | --- |\n";
    let rows_without_question: Vec<SimulationRow> =
        rows.iter().filter(|row| row.score.is_question_asked.is_none()).cloned().collect();
    for (filter_label, rows) in [("all", rows), ("without a question", &rows_without_question[..])] {
        let personas = AgentPersona::ALL.into_iter().map(Some).chain([None]);
        for persona in personas {
            let rows_for_key = |key: &str| RowGroup::for_setup_key(rows, key, persona);
            let (our_rows, test_gate_rows) =
                (rows_for_key("plimsoll-verify"), rows_for_key(TEST_GATE_SETUP_KEY));
            let _ = write!(text, "| {filter_label} | {} |", persona.map_or("all", AgentPersona::name));
            for rival in &rivals {
                let rival_rows = rows_for_key(rival.key);
                let ratios = [
                    ratio_if_measured(our_rows.dollars_per_item(), rival_rows.dollars_per_item()),
                    ratio_if_measured(our_rows.tokens_per_item(), rival_rows.tokens_per_item()),
                ];
                for ratio in ratios {
                    let _ =
                        write!(text, " {} |", ratio.map_or("–".to_owned(), |value| format!("{value:.2}")));
                }
            }
            let [(passing, false_ticks), (gate_passing, gate_false_ticks)] =
                [our_rows.passing_items_and_false_ticks(), test_gate_rows.passing_items_and_false_ticks()];
            let _ = writeln!(
                text,
                " {}, {} | {false_ticks}, {gate_false_ticks} | {} |",
                render_share(passing, our_rows.sum_count(|row| row.score.items)),
                render_share(gate_passing, test_gate_rows.sum_count(|row| row.score.items)),
                compare_price_and_correctness_in_words(&our_rows, &test_gate_rows),
            );
        }
    }
    text
}

/// Returns `ours` divided by `theirs`, or `None` if one of them was not measured.
fn ratio_if_measured(ours: f64, theirs: f64) -> Option<f64> {
    (ours > 0.0 && theirs > 0.0).then(|| ours / theirs)
}

/// Compares price and correctness. A price difference of less than 5% counts as the same price.
fn compare_price_and_correctness_in_words(our_rows: &RowGroup<'_>, their_rows: &RowGroup<'_>) -> String {
    let Some(price_ratio) = ratio_if_measured(our_rows.dollars_per_item(), their_rows.dollars_per_item())
    else {
        return "not measured".to_owned();
    };
    let price_text = match price_ratio {
        _ if price_ratio <= TARGET_PRICE_RATIO => "clearly cheaper",
        _ if price_ratio <= 0.95 => "a little cheaper",
        _ if price_ratio < 1.05 => "costs about the same",
        _ => "dearer",
    };
    let [(our_passing, our_false_ticks), (their_passing, their_false_ticks)] =
        [our_rows.passing_items_and_false_ticks(), their_rows.passing_items_and_false_ticks()];
    let correctness_text = match (our_passing.cmp(&their_passing), their_false_ticks.cmp(&our_false_ticks)) {
        (Ordering::Equal, Ordering::Equal) => "equally right",
        (Ordering::Greater | Ordering::Equal, Ordering::Greater | Ordering::Equal) => "right more often",
        (Ordering::Less | Ordering::Equal, Ordering::Less | Ordering::Equal) => "right less often",
        _ => "right in other items",
    };
    format!("{price_text}, {correctness_text}")
}

/// Renders which shares of the cost in the setup with a test gate a loop could save, and which share no loop
/// can.
fn describe_cost_shares_of_test_gate_setup(rows: &[SimulationRow]) -> String {
    let test_gate_rows = RowGroup::for_setup_key(rows, TEST_GATE_SETUP_KEY, None);
    let dollars_for = |token_count: fn(&TokenCounts) -> u64, price: f64| {
        test_gate_rows.sum_amount(|row| token_count(&row.score.tokens) as f64 * price / 1e6)
    };
    let file_text_dollars = test_gate_rows.sum_amount(|row| {
        Task::random(SeededRng::new(row.seed), ITEMS_PER_SIMULATION).file_bytes_without_blocked_items() as f64
            / 4.0
            * price::CACHE_WRITE_PRICE
            / 1e6
    });
    let cache_write_dollars = dollars_for(|tokens| tokens.cache_write, price::CACHE_WRITE_PRICE);
    let cache_read_dollars = dollars_for(|tokens| tokens.cache_read, price::CACHE_READ_PRICE);
    let output_dollars = dollars_for(|tokens| tokens.output, price::OUTPUT_PRICE);
    let total_dollars = cache_write_dollars + cache_read_dollars + output_dollars;
    if total_dollars <= 0.0 {
        return "What would reach the aim is not known before the nights are played.\n".to_owned();
    }
    let percent = |part: f64| format!("{:.0} %", part.max(0.0) / total_dollars * 100.0);
    format!(
        "What would reach the aim: of the price with a test gate, about {} is the text of the files, read once, which no loop can save. \
         The rest is what one could: {} for what else is written into the cache (how each session begins, and what is done again after \
         a trouble), {} for reading a conversation again with each answer (shorter conversations, subagents), and {} for the answers \
         (fewer of them).\n",
        percent(file_text_dollars),
        percent(cache_write_dollars - file_text_dollars),
        percent(cache_read_dollars),
        percent(output_dollars),
    )
}

/// Renders, for each setup, how often the tamperer weakened the project's test and how often the loop's output
/// reported that.
fn render_tamperer_results_by_setup(rows: &[SimulationRow]) -> String {
    let mut text = String::from(
        "| way | nights in which the test was weakened | of these, named at the end | false ticks (the test of the evening finds) |\n| --- | --- | --- | ---: |\n",
    );
    for setup in LOOP_SETUPS {
        let row_group = RowGroup::for_setup_and_persona(rows, setup, AgentPersona::Tamperer);
        let weakened_count = row_group.sum_count(|row| u32::from(row.score.is_test_changed));
        let reported_count =
            row_group.sum_count(|row| u32::from(row.score.is_test_changed && row.names_changed_test));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} ({}) |",
            setup.name,
            render_share(weakened_count, row_group.0.len() as u64),
            render_share(reported_count, weakened_count),
            row_group.sum_count(|row| row.score.false_ticks),
            row_group.sum_count(|row| row.score.false_ticks_found_by_test),
        );
    }
    text
}

/// Renders the targets for each Plimsoll setup that has a verify command.
fn render_targets_table(rows: &[SimulationRow]) -> String {
    let mut text = String::from("| target | way | measured | met |\n| --- | --- | --- | --- |\n");
    let met_text = |is_met: bool| if is_met { "yes" } else { "**no**" };
    let rows_without_question: Vec<SimulationRow> =
        rows.iter().filter(|row| row.score.is_question_asked.is_none()).cloned().collect();
    let setups_with_verify = LOOP_SETUPS.iter().filter(|setup| match setup.loop_kind {
        LoopKind::Plimsoll(arguments) => arguments.contains(&"--verify"),
        LoopKind::Shell { .. } => false,
    });
    for setup in setups_with_verify {
        let mut add_target = |target: String, measured: String, is_met: Option<bool>| {
            let met = is_met.map_or("not measured", met_text);
            let _ = writeln!(text, "| {target} | {} | {measured} | {met} |", setup.name);
        };
        for persona in AgentPersona::ALL.into_iter().filter(|persona| *persona != AgentPersona::Stubborn) {
            let row_group = RowGroup::for_setup_and_persona(rows, setup, persona);
            let (passing, items) = (row_group.passing_items(), row_group.sum_count(|row| row.score.items));
            let name = persona.name();
            add_target(
                format!("{name}: items that pass ≥ 98 %"),
                render_share(passing, items),
                (items > 0).then_some(passing * 100 >= items * 98),
            );
            let price_ratio = ratio_if_measured(
                row_group.dollars_per_item(),
                RowGroup::for_setup_key(rows, TEST_GATE_SETUP_KEY, Some(persona)).dollars_per_item(),
            );
            add_target(
                format!("{name}: price of an item ≤ 1.00 of the bare loop's with a test gate"),
                price_ratio.map_or("–".to_owned(), |price| format!("{price:.2}")),
                price_ratio.map(|price| price <= 1.0),
            );
        }
        for (filter_label, rows) in [("", rows), (" without a question", &rows_without_question[..])] {
            let (our_rows, test_gate_rows) = (
                RowGroup::for_setup_key(rows, setup.key, None),
                RowGroup::for_setup_key(rows, TEST_GATE_SETUP_KEY, None),
            );
            let price_ratio =
                ratio_if_measured(our_rows.dollars_per_item(), test_gate_rows.dollars_per_item());
            let [(passing, false_ticks), (gate_passing, gate_false_ticks)] =
                [our_rows.passing_items_and_false_ticks(), test_gate_rows.passing_items_and_false_ticks()];
            let is_as_correct = passing >= gate_passing && false_ticks <= gate_false_ticks;
            add_target(
                format!(
                    "aim for the next build, all agents{filter_label}: ≤ {TARGET_PRICE_RATIO:.2} of the price with a test gate, and no less right"
                ),
                price_ratio.map_or("–".to_owned(), |price| {
                    format!("{price:.2}, {}", if is_as_correct { "no less right" } else { "less right" })
                }),
                price_ratio.map(|price| price <= TARGET_PRICE_RATIO && is_as_correct),
            );
        }
        let all_rows = RowGroup::for_setup_key(rows, setup.key, None);
        let (ended_well, simulation_count) = (all_rows.count_runs_ended_well(), all_rows.0.len() as u64);
        let false_ticks_found_by_test = all_rows.sum_count(|row| row.score.false_ticks_found_by_test);
        add_target(
            "no false tick that the test could have found".to_owned(),
            false_ticks_found_by_test.to_string(),
            (simulation_count > 0).then_some(false_ticks_found_by_test == 0),
        );
        add_target(
            "nights that ended well: 100 %".to_owned(),
            render_share(ended_well, simulation_count),
            (simulation_count > 0).then_some(ended_well == simulation_count),
        );
        let simulations_with_question =
            RowGroup(all_rows.0.into_iter().filter(|row| row.score.is_question_asked.is_some()).collect());
        let (passing, items) = (
            simulations_with_question.passing_items(),
            simulations_with_question.sum_count(|row| row.score.items),
        );
        add_target(
            "a blocked item costs no other item anything".to_owned(),
            format!("{} pass in nights with one", render_share(passing, items)),
            (items > 0).then_some(passing == items),
        );
    }
    text
}

fn render_setups_table() -> String {
    let render_line =
        |setup: &LoopSetup| format!("| {} | {} | {} |\n", setup.name, setup.source, setup.setup_description);
    let head = "| way | published | what is played |\n| --- | --- | --- |\n";
    head.to_owned() + &LOOP_SETUPS.iter().map(render_line).collect::<String>()
}

fn render_persona_behavior_table() -> String {
    let mut text = String::from(
        "| agent | writes down | looks | tests | leaves out | repairs | weakens | disobeys | claims | at once |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for persona in AgentPersona::ALL {
        let behavior = persona.behavior();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            persona.name(),
            behavior.remembers_percent,
            behavior.inspects_percent,
            behavior.tests_percent,
            behavior.omits_last_part_percent,
            behavior.repairs_percent,
            behavior.weakens_percent,
            behavior.disobeys_percent,
            behavior.falsely_claims_done_percent,
            behavior.items_at_once
        );
    }
    text
}

fn render_rules_table() -> String {
    let render_line = |rule: &RuleEntry| format!("| {} | {} |\n", rule.notice_text, rule.effect_text);
    let head = "| what it notices | what it does |\n| --- | --- |\n";
    head.to_owned() + &RULES.iter().map(render_line).collect::<String>()
}

fn render_share(part: u64, total: u64) -> String {
    let percent = (part * 100 + total / 2).checked_div(total);
    percent.map_or("–".to_owned(), |percent| format!("{percent} % ({part} of {total})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nights::simulator::SimulationScore;

    /// Returns a row with four items, of which this many pass, at this price.
    fn test_row(
        setup_key: &str,
        seed: u64,
        passing: u32,
        dollars: u64,
        question: Option<bool>,
    ) -> SimulationRow {
        // A million output tokens cost twenty dollars.
        let tokens = TokenCounts { output: dollars * 50_000, ..TokenCounts::default() };
        let mut score = SimulationScore::default();
        (score.items, score.passing, score.is_question_asked, score.tokens) = (4, passing, question, tokens);
        SimulationRow {
            seed,
            setup_key: setup_key.to_owned(),
            persona: AgentPersona::Perfect,
            build: "b".to_owned(),
            score,
            exit_code: Some(0),
            restarts: 0,
            names_changed_test: false,
            seconds: 1,
        }
    }

    /// Returns the comparison's line of all agents for these simulations.
    fn comparison_line(rows: &[SimulationRow], filter_label: &str) -> String {
        let table = render_cost_comparison_with_rivals(rows);
        let beginning = format!("| {filter_label} | all |");
        table.lines().find(|line| line.starts_with(&beginning)).expect("a line").to_owned()
    }

    #[test]
    fn prices_are_compared_with_and_without_questions() {
        let rows = [
            test_row("plimsoll-verify", 1, 4, 96, None),
            test_row(TEST_GATE_SETUP_KEY, 1, 4, 100, None),
            test_row("bare", 1, 4, 200, None),
            test_row("plimsoll-verify", 2, 4, 50, Some(true)),
            test_row(TEST_GATE_SETUP_KEY, 2, 2, 100, Some(false)),
        ];
        let (line_of_all_simulations, line_without_question) =
            (comparison_line(&rows, "all"), comparison_line(&rows, "without a question"));
        assert!(
            line_without_question.contains("| 0.48 |") && line_without_question.contains("| 0.96 |"),
            "{line_without_question}"
        );
        assert!(
            line_without_question.ends_with("| costs about the same, equally right |"),
            "{line_without_question}"
        );
        assert!(
            line_of_all_simulations.ends_with("| clearly cheaper, right more often |"),
            "{line_of_all_simulations}"
        );
        assert!(
            render_targets_table(&rows).contains("| 0.96, no less right | **no** |"),
            "{}",
            render_targets_table(&rows)
        );
    }

    #[test]
    fn a_page_without_rows_states_no_results() {
        let page = render_page(&[], "b");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        for placeholder in
            ["COMPARISON", "PRICE PARTS", "TAMPERING", "TARGETS", "RESULTS", "WAYS", "CHARACTERS", "RULES"]
        {
            assert!(!page.contains(placeholder), "{placeholder}");
        }
        assert!(comparison_line(&[], "all").ends_with("| not measured |"));
    }
}
