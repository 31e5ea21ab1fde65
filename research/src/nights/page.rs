//! The page about the simulations, and its table. Every row is published, whichever setup does best in it.
//! `head.md` and `tail.md` also state figures in words: check them after each report.

use super::SimulationRow;
use super::loop_setups::{LOOP_SETUPS, LoopSetup, TEST_GATE_SETUP_KEY, find_loop_setup};
use super::simulator::price::TokenCounts;
use super::simulator::{AgentPersona, SimulationScore, price};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const PAGE_HEAD: &str = include_str!("head.md");
const PAGE_TAIL: &str = include_str!("tail.md");
const TSV_HEADER: &str = "seed\tway\tcharacter\tbuild\titems\tpassing\tfalse_ticks\tfindable\ttwice\tquestion\tfacts_kept\tfacts\tlearned_kept\tlearned_found\tlearned\ttest_changed\tnamed\tsessions\tcompactions\ttests\ttroubles\twritten\tread\toutput\tdollars\thours\tlost\tcode\trestarts\n";

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

/// Reads the rows from what `render_tsv` wrote, in which hours are rounded. Returns `None` if a row has another form.
pub fn parse_tsv(text: &str) -> Option<Vec<SimulationRow>> {
    text.strip_prefix(TSV_HEADER)?.lines().map(parse_tsv_row).collect()
}

fn parse_tsv_row(line: &str) -> Option<SimulationRow> {
    let columns: Vec<&str> = line.split('\t').collect();
    let column = |name: &str| {
        let position = TSV_HEADER.trim_end().split('\t').position(|heading| heading == name)?;
        columns.get(position).copied()
    };
    let count = |name: &str| column(name)?.parse::<u32>().ok();
    let tokens = |name: &str| column(name)?.parse::<u64>().ok();
    let hours = |name: &str| column(name)?.parse::<f64>().ok();
    let persona_name = column("character")?;
    let mut score = SimulationScore::default();
    score.items = count("items")?;
    score.passing = count("passing")?;
    score.false_ticks = count("false_ticks")?;
    score.false_ticks_found_by_test = count("findable")?;
    score.twice_converted_items = count("twice")?;
    score.is_question_asked = match column("question")? {
        "-" => None,
        answer => Some(answer == "asked"),
    };
    score.needed_facts_visible_and_all = (count("facts_kept")?, count("facts")?);
    score.learned_facts_visible_found_all =
        (count("learned_kept")?, count("learned_found")?, count("learned")?);
    score.is_test_changed = count("test_changed")? > 0;
    score.sessions = count("sessions")?;
    score.compactions = count("compactions")?;
    score.test_runs = count("tests")?;
    score.faults = count("troubles")?;
    score.tokens = TokenCounts {
        cache_write: tokens("written")?,
        cache_read: tokens("read")?,
        output: tokens("output")?,
    };
    score.hours = hours("hours")?;
    score.hours_without_answers = hours("lost")?;
    Some(SimulationRow {
        seed: tokens("seed")?,
        setup_key: column("way")?.to_owned(),
        persona: AgentPersona::ALL.into_iter().find(|persona| persona.name() == persona_name)?,
        build: column("build")?.to_owned(),
        score,
        exit_code: column("code")?.parse().ok(),
        restarts: count("restarts")?,
        names_changed_test: count("named")? > 0,
        seconds: 0,
    })
}

/// The rows of one setup, with one persona or with all.
struct RowGroup<'a>(Vec<&'a SimulationRow>);

impl<'a> RowGroup<'a> {
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

    fn item_count(&self) -> u64 {
        self.sum_count(|row| row.score.items)
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
            "| {} | {} | {} ({}) | {} | {} | {:.2} | {:.2} | {:.2} |\n",
            setup.name,
            render_percent(self.passing_items(), self.item_count()),
            self.sum_count(|row| row.score.false_ticks),
            self.sum_count(|row| row.score.false_ticks_found_by_test),
            render_percent(self.count_runs_ended_well(), self.0.len() as u64),
            self.sum_count(SimulationRow::count_waits_for_person),
            self.dollars_per_item(),
            self.amount_per_passing_item(|row| row.score.hours),
            self.sum_amount(|row| row.score.hours_without_answers) / self.0.len().max(1) as f64,
        )
    }
}

/// Renders the page, without the section about the harder simulations.
pub fn render_page(rows: &[SimulationRow], build: &str) -> String {
    let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
    let seed_ranges = render_number_ranges(&seeds.iter().copied().collect::<Vec<_>>());
    let template = PAGE_HEAD.to_owned() + PAGE_TAIL;
    let prices = format!(
        "{} for input, {} for cache writes, {:.2} for cache reads, {} for output",
        price::INPUT_PRICE,
        price::CACHE_WRITE_PRICE,
        price::CACHE_READ_PRICE,
        price::OUTPUT_PRICE
    );
    template
        .replace("NIGHTS", &rows.len().to_string())
        .replace("SEEDS", if seed_ranges.is_empty() { "none yet" } else { &seed_ranges })
        .replace("BUILD", build)
        .replace("RESULTS\n", &render_results_by_setup(rows))
        .replace("PERSONAS\n", &render_results_by_persona(rows))
        .replace("COMPARISON\n", &render_cost_comparison_with_rivals(rows))
        .replace("SETUPS\n", &render_setups_table())
        .replace("PRICES", &prices)
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

fn render_results_by_setup(rows: &[SimulationRow]) -> String {
    let mut text = String::from(
        "| setup | items that pass | false ticks | ended well | needed a person | $ per item | hours per item | hours lost per night |\n\
         | --- | --- | ---: | --- | ---: | ---: | ---: | ---: |\n",
    );
    for setup in LOOP_SETUPS {
        text += &RowGroup::for_setup_key(rows, setup.key, None).render_row(setup);
    }
    text + "\n"
}

fn render_results_by_persona(rows: &[SimulationRow]) -> String {
    let names = AgentPersona::ALL.map(AgentPersona::name).join(" | ");
    let mut text = format!("| setup | {names} |\n|{}\n", " --- |".repeat(1 + AgentPersona::ALL.len()));
    for setup in LOOP_SETUPS {
        let cells = AgentPersona::ALL.map(|persona| {
            let group = RowGroup::for_setup_key(rows, setup.key, Some(persona));
            render_percent(group.passing_items(), group.item_count())
        });
        let _ = writeln!(text, "| {} | {} |", setup.name, cells.join(" | "));
    }
    text
}

/// The keys of the setups with which prices are compared, in the order of the columns.
const RIVAL_KEYS: [&str; 3] = ["bare", "bare-sentences", TEST_GATE_SETUP_KEY];

/// Renders the ratio of Plimsoll's price (with `--verify`) to that of each rival, for all simulations and for those
/// without a question.
fn render_cost_comparison_with_rivals(rows: &[SimulationRow]) -> String {
    let rivals: Vec<&LoopSetup> = RIVAL_KEYS.iter().filter_map(|key| find_loop_setup(key)).collect();
    let mut text = String::from("| compared with | all nights | without a question |\n");
    text += "| --- | ---: | ---: |\n";
    let rows_without_question: Vec<SimulationRow> =
        rows.iter().filter(|row| row.score.is_question_asked.is_none()).cloned().collect();
    for rival in rivals {
        let ratios = [rows, &rows_without_question].map(|rows| {
            let [ours, theirs] =
                ["plimsoll-verify", rival.key].map(|key| RowGroup::for_setup_key(rows, key, None));
            render_ratio(ours.dollars_per_item(), theirs.dollars_per_item())
        });
        let _ = writeln!(text, "| {} | {} |", rival.name, ratios.join(" | "));
    }
    text
}

/// Renders `ours` divided by `theirs`, or a dash if one of them was not measured.
fn render_ratio(ours: f64, theirs: f64) -> String {
    if ours > 0.0 && theirs > 0.0 { format!("{:.2}", ours / theirs) } else { "–".to_owned() }
}

fn render_setups_table() -> String {
    let render_line =
        |setup: &LoopSetup| format!("| {} | {} | {} |\n", setup.name, setup.source, setup.setup_description);
    let head = "| setup | source | what runs |\n| --- | --- | --- |\n";
    head.to_owned() + &LOOP_SETUPS.iter().map(render_line).collect::<String>()
}

fn render_percent(part: u64, total: u64) -> String {
    let percent = (part * 100 + total / 2).checked_div(total);
    percent.map_or("–".to_owned(), |percent| format!("{percent}%"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handovers::{find_harder_simulations_section, replace_or_append_harder_simulations_section};

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

    #[test]
    fn prices_are_compared_with_and_without_questions() {
        let rows = [
            test_row("plimsoll-verify", 1, 4, 96, None),
            test_row(TEST_GATE_SETUP_KEY, 1, 4, 100, None),
            test_row("bare", 1, 4, 200, None),
            test_row("plimsoll-verify", 2, 4, 50, Some(true)),
            test_row(TEST_GATE_SETUP_KEY, 2, 2, 100, Some(false)),
        ];
        let table = render_cost_comparison_with_rivals(&rows);
        assert!(table.contains("| 0.55 | 0.96 |"), "{table}");
        assert!(table.contains("| 0.36 | 0.48 |"), "{table}");
        assert!(table.contains("| – | – |"), "{table}");
    }

    #[test]
    fn a_page_without_rows_states_no_results() {
        let page = render_page(&[], "b");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        for placeholder in ["RESULTS", "PERSONAS", "COMPARISON", "SETUPS", "NIGHTS", "SEEDS", "PRICES"] {
            assert!(!page.contains(placeholder), "{placeholder}");
        }
    }

    #[test]
    fn the_page_shows_the_published_rows() {
        let read = |name: &str| {
            let path = plimsoll_testkit::workspace_root().join("docs").join(name);
            std::fs::read_to_string(path).expect(name)
        };
        let (page, tsv) = (read("nights.md"), read("nights.tsv"));
        let rows = parse_tsv(&tsv).expect("rows");
        assert_eq!(render_tsv(&rows), tsv);
        let section = find_harder_simulations_section(&page).expect("the section");
        let rendered_page =
            replace_or_append_harder_simulations_section(&render_page(&rows, &rows[0].build), section);
        assert!(page == rendered_page, "scripts/nights.sh --page writes the page again");
    }
}
