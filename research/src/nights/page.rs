//! The page about the nights, and its rows: every row is published, whoever wins in it.

use super::simulator::price::Tokens;
use super::simulator::{Character, RULES, RuleOf, Task, price};
use super::ways::{GATE, Loop, WAYS, Way, way};
use super::{ITEMS, Row};
use plimsoll_testkit::Dice;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const HEAD: &str = include_str!("head.md");
const TAIL: &str = include_str!("tail.md");
const COLUMNS: &str = "seed\tway\tcharacter\tbuild\titems\tpassing\tfalse_ticks\tfindable\ttwice\tquestion\tfacts_kept\tfacts\tlearned_kept\tlearned_found\tlearned\ttest_changed\tnamed\tsessions\tcompactions\ttests\ttroubles\twritten\tread\toutput\tdollars\thours\tlost\tcode\trestarts\n";

/// The aim for the next build: the price of an item over its price with a test gate.
const AIM: f64 = 0.85;

/// The rows of these seeds that were played whole: in every way, with every character, with one build.
pub fn whole(rows: &[Row], build: &str, seeds: std::ops::RangeInclusive<u64>) -> Vec<Row> {
    let of_build: Vec<&Row> =
        rows.iter().filter(|row| row.build == build && seeds.contains(&row.seed)).collect();
    let has = |seed: u64, way: &Way, character: Character| {
        of_build.iter().any(|row| row.seed == seed && row.way == way.key && row.character == character)
    };
    let is_whole = |seed: &u64| WAYS.iter().all(|way| Character::ALL.iter().all(|one| has(*seed, way, *one)));
    let seeds: BTreeSet<u64> = of_build.iter().map(|row| row.seed).collect();
    let seeds: BTreeSet<u64> = seeds.into_iter().filter(is_whole).collect();
    of_build.into_iter().filter(|row| seeds.contains(&row.seed)).cloned().collect()
}

/// A line for each row.
pub fn table_of_rows(rows: &[Row]) -> String {
    let mut text = COLUMNS.to_owned();
    for row in rows {
        let score = &row.score;
        let question = score.question.map_or("-", |asked| if asked { "asked" } else { "unasked" });
        let code = row.code.map_or("-".to_owned(), |code| code.to_string());
        let counts = [score.items, score.passing, score.false_ticks, score.findable, score.twice];
        let (kept, searched, all) = score.learned;
        let test = [u32::from(score.is_test_changed), u32::from(row.names_changed_test)];
        let facts = [score.facts.0, score.facts.1, kept, searched, all, test[0], test[1]];
        let later = [score.sessions, score.compactions, score.tests, score.troubles];
        let tab = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("\t");
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{question}\t{}\t{}\t{}\t{}\t{}\t{:.3}\t{:.2}\t{:.2}\t{code}\t{}",
            row.seed,
            row.way,
            row.character.name(),
            row.build,
            tab(&counts),
            tab(&facts),
            tab(&later),
            score.tokens.written,
            score.tokens.read,
            score.tokens.output,
            score.tokens.dollars(),
            score.hours,
            score.lost,
            row.restarts,
        );
    }
    text
}

/// The sums of the rows of one way with one character.
struct Cell<'a>(Vec<&'a Row>);

impl<'a> Cell<'a> {
    fn of(rows: &'a [Row], way: &Way, character: Character) -> Cell<'a> {
        Cell::with(rows, way.key, Some(character))
    }

    /// Without a character: the rows of all.
    fn with(rows: &'a [Row], key: &str, character: Option<Character>) -> Cell<'a> {
        let is_of = |row: &&Row| row.way == key && character.is_none_or(|one| row.character == one);
        Cell(rows.iter().filter(is_of).collect())
    }

    fn sum(&self, part: impl Fn(&Row) -> u32) -> u64 {
        self.0.iter().map(|row| u64::from(part(row))).sum()
    }

    fn total(&self, part: impl Fn(&Row) -> f64) -> f64 {
        self.0.iter().map(|row| part(row)).sum()
    }

    fn passing(&self) -> u64 {
        self.sum(|row| row.score.passing)
    }

    fn each(&self, part: impl Fn(&Row) -> f64) -> f64 {
        self.total(part) / self.passing().max(1) as f64
    }

    fn dollars(&self) -> f64 {
        self.each(|row| row.score.tokens.dollars())
    }

    fn well(&self) -> u64 {
        self.0.iter().filter(|row| row.ended_well()).count() as u64
    }

    fn line(&self, way: &Way) -> String {
        format!(
            "| {} | {} | {} ({}) | {:.2} | {:.0} k | {:.2} | {:.2} | {} | {} | {:.2} | {} | {} |\n",
            way.name,
            share(self.passing(), self.sum(|row| row.score.items)),
            self.sum(|row| row.score.false_ticks),
            self.sum(|row| row.score.findable),
            self.dollars(),
            self.each(|row| row.score.tokens.sent() as f64 / 1_000.0),
            self.each(|row| row.score.hours),
            self.total(|row| row.score.lost) / self.0.len().max(1) as f64,
            share(self.well(), self.0.len() as u64),
            self.sum(Row::waits_for_people),
            self.passing() as f64 / self.sum(|row| row.score.sessions).max(1) as f64,
            share(self.sum(|row| row.score.facts.0), self.sum(|row| row.score.facts.1)),
            self.render_learned(),
        )
    }

    /// Renders how much of what stands in no file was in sight, and how many decisions were found by a search.
    fn render_learned(&self) -> String {
        let kept = share(self.sum(|row| row.score.learned.0), self.sum(|row| row.score.learned.2));
        match self.sum(|row| row.score.learned.1) {
            0 => kept,
            searched => format!("{kept}, {searched} found"),
        }
    }

    /// Returns the items that pass and the false ticks. Prices can be compared if these are equal.
    fn rightness(&self) -> (u64, u64) {
        (self.passing(), self.sum(|row| row.score.false_ticks))
    }

    fn tokens(&self) -> f64 {
        self.each(|row| (row.score.tokens.sent() + row.score.tokens.output) as f64)
    }
}

/// The page, without the part about the harder nights.
pub fn page(rows: &[Row], build: &str) -> String {
    let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
    let list = spans(&seeds.iter().copied().collect::<Vec<_>>());
    let page = HEAD.to_owned() + TAIL;
    page.replace("NIGHTS", &rows.len().to_string())
        .replace("SEEDS", if list.is_empty() { "none yet" } else { &list })
        .replace("BUILD", build)
        .replace("RESULTS\n", &results(rows))
        .replace("COMPARISON\n", &render_comparison(rows))
        .replace("TAMPERING\n", &render_tampering(rows))
        .replace("PRICE PARTS\n", &render_price_parts(rows))
        .replace("TARGETS\n", &targets(rows))
        .replace("WAYS\n", &ways())
        .replace("CHARACTERS\n", &characters())
        .replace("RULES\n", &rules())
        .replace("PRICES", &format!("{} for input, {} for what is written into the cache, {:.2} for what is read from it, {} for output", price::INPUT, price::CACHE_WRITE, price::CACHE_READ, price::OUTPUT))
}

/// Numbers in their order, neighbours put together.
fn spans(numbers: &[u64]) -> String {
    let spans = numbers.chunk_by(|one, next| one + 1 == *next).map(|span| match span {
        [first, .., last] => format!("{first} to {last}"),
        [one] => one.to_string(),
        [] => String::new(),
    });
    spans.collect::<Vec<_>>().join(", ")
}

fn results(rows: &[Row]) -> String {
    let mut text = String::new();
    for character in Character::ALL {
        let _ = write!(
            text,
            "### {}\n\n| way | items that pass | false ticks (findable) | $ an item | input an item | hours an item | hours lost a night | ended well | waited for a person | items a session | facts kept | learned and kept |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- | --- |\n",
            capital(character.name())
        );
        for way in WAYS {
            text += &Cell::of(rows, way, character).line(way);
        }
        text.push('\n');
    }
    text
}

fn capital(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

/// The ways with which prices are compared, in the order of the columns.
const RIVALS: [&str; 3] = ["bare", "bare-sentences", GATE];

/// Renders the price and the tokens of our way with the project's test over those of each rival, with and without the nights that
/// have a question.
fn render_comparison(rows: &[Row]) -> String {
    let rivals: Vec<&Way> = RIVALS.iter().filter_map(|key| way(key)).collect();
    let mut text = String::from("| nights | agent |");
    for rival in &rivals {
        let _ = write!(text, " $ / {0} | tokens / {0} |", rival.name);
    }
    text += " items that pass: Plimsoll `--verify`, bare with a test gate | false ticks | beside the test gate |\n| --- | --- |";
    text += &" ---: | ---: |".repeat(rivals.len());
    text += " --- | --- | --- |\n";
    let without: Vec<Row> = rows.iter().filter(|row| row.score.question.is_none()).cloned().collect();
    for (nights, rows) in [("all", rows), ("without a question", &without[..])] {
        let characters = Character::ALL.into_iter().map(Some).chain([None]);
        for character in characters {
            let of = |key: &str| Cell::with(rows, key, character);
            let (ours, gate) = (of("plimsoll-verify"), of(GATE));
            let _ = write!(text, "| {nights} | {} |", character.map_or("all", Character::name));
            for rival in &rivals {
                let rival = of(rival.key);
                let ratios = [ratio(ours.dollars(), rival.dollars()), ratio(ours.tokens(), rival.tokens())];
                for one in ratios {
                    let _ = write!(text, " {} |", one.map_or("–".to_owned(), |one| format!("{one:.2}")));
                }
            }
            let [(passing, false_ticks), (gate_passing, gate_ticks)] = [ours.rightness(), gate.rightness()];
            let _ = writeln!(
                text,
                " {}, {} | {false_ticks}, {gate_ticks} | {} |",
                share(passing, ours.sum(|row| row.score.items)),
                share(gate_passing, gate.sum(|row| row.score.items)),
                describe_lead(&ours, &gate),
            );
        }
    }
    text
}

/// Returns the first price over the second, or `None` if one of them was not measured.
fn ratio(ours: f64, theirs: f64) -> Option<f64> {
    (ours > 0.0 && theirs > 0.0).then(|| ours / theirs)
}

/// Describes a lead. One of less than 5% is called none.
fn describe_lead(ours: &Cell<'_>, theirs: &Cell<'_>) -> String {
    let Some(price) = ratio(ours.dollars(), theirs.dollars()) else { return "not measured".to_owned() };
    let price = match price {
        _ if price <= AIM => "clearly cheaper",
        _ if price <= 0.95 => "a little cheaper",
        _ if price < 1.05 => "costs about the same",
        _ => "dearer",
    };
    let [(passing, ticks), (their_passing, their_ticks)] = [ours.rightness(), theirs.rightness()];
    let right = match (passing.cmp(&their_passing), their_ticks.cmp(&ticks)) {
        (Ordering::Equal, Ordering::Equal) => "equally right",
        (Ordering::Greater | Ordering::Equal, Ordering::Greater | Ordering::Equal) => "right more often",
        (Ordering::Less | Ordering::Equal, Ordering::Less | Ordering::Equal) => "right less often",
        _ => "right in other items",
    };
    format!("{price}, {right}")
}

/// Renders the parts of the price with a test gate: those that a loop could save, and the one that none can.
fn render_price_parts(rows: &[Row]) -> String {
    let gate = Cell::with(rows, GATE, None);
    let dollars =
        |part: fn(&Tokens) -> u64, price: f64| gate.total(|row| part(&row.score.tokens) as f64 * price / 1e6);
    let text = gate
        .total(|row| Task::new(Dice::new(row.seed), ITEMS).bytes() as f64 / 4.0 * price::CACHE_WRITE / 1e6);
    let written = dollars(|tokens| tokens.written, price::CACHE_WRITE);
    let read = dollars(|tokens| tokens.read, price::CACHE_READ);
    let output = dollars(|tokens| tokens.output, price::OUTPUT);
    let all = written + read + output;
    if all <= 0.0 {
        return "What would reach the aim is not known before the nights are played.\n".to_owned();
    }
    let percent = |part: f64| format!("{:.0} %", part.max(0.0) / all * 100.0);
    format!(
        "What would reach the aim: of the price with a test gate, about {} is the text of the files, read once, which no loop can save. \
         The rest is what one could: {} for what else is written into the cache (how each session begins, and what is done again after \
         a trouble), {} for reading a conversation again with each answer (shorter conversations, subagents), and {} for the answers \
         (fewer of them).\n",
        percent(text),
        percent(written - text),
        percent(read),
        percent(output),
    )
}

/// Renders how often the tamperer weakened the project's test in each way, and how often the loop's output named that.
fn render_tampering(rows: &[Row]) -> String {
    let mut text = String::from(
        "| way | nights in which the test was weakened | of these, named at the end | false ticks (the test of the evening finds) |\n| --- | --- | --- | ---: |\n",
    );
    for way in WAYS {
        let cell = Cell::of(rows, way, Character::Tamperer);
        let changed = cell.sum(|row| u32::from(row.score.is_test_changed));
        let named = cell.sum(|row| u32::from(row.score.is_test_changed && row.names_changed_test));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} ({}) |",
            way.name,
            share(changed, cell.0.len() as u64),
            share(named, changed),
            cell.sum(|row| row.score.false_ticks),
            cell.sum(|row| row.score.findable),
        );
    }
    text
}

/// The targets, for each way of ours that is given the project's test.
fn targets(rows: &[Row]) -> String {
    let mut text = String::from("| target | way | measured | met |\n| --- | --- | --- | --- |\n");
    let is_met = |met: bool| if met { "yes" } else { "**no**" };
    let without: Vec<Row> = rows.iter().filter(|row| row.score.question.is_none()).cloned().collect();
    let verified = WAYS.iter().filter(|way| match way.run {
        Loop::Plimsoll(arguments) => arguments.contains(&"--verify"),
        Loop::Shell { .. } => false,
    });
    for way in verified {
        let mut add = |target: String, measured: String, met: Option<bool>| {
            let met = met.map_or("not measured", is_met);
            let _ = writeln!(text, "| {target} | {} | {measured} | {met} |", way.name);
        };
        for character in Character::ALL.into_iter().filter(|one| *one != Character::Stubborn) {
            let cell = Cell::of(rows, way, character);
            let (passing, items) = (cell.passing(), cell.sum(|row| row.score.items));
            let name = character.name();
            add(
                format!("{name}: items that pass ≥ 98 %"),
                share(passing, items),
                (items > 0).then_some(passing * 100 >= items * 98),
            );
            let price = ratio(cell.dollars(), Cell::with(rows, GATE, Some(character)).dollars());
            add(
                format!("{name}: price of an item ≤ 1.00 of the bare loop's with a test gate"),
                price.map_or("–".to_owned(), |price| format!("{price:.2}")),
                price.map(|price| price <= 1.0),
            );
        }
        for (nights, rows) in [("", rows), (" without a question", &without[..])] {
            let (ours, gate) = (Cell::with(rows, way.key, None), Cell::with(rows, GATE, None));
            let price = ratio(ours.dollars(), gate.dollars());
            let [(passing, ticks), (gate_passing, gate_ticks)] = [ours.rightness(), gate.rightness()];
            let is_as_right = passing >= gate_passing && ticks <= gate_ticks;
            add(
                format!(
                    "aim for the next build, all agents{nights}: ≤ {AIM:.2} of the price with a test gate, and no less right"
                ),
                price.map_or("–".to_owned(), |price| {
                    format!("{price:.2}, {}", if is_as_right { "no less right" } else { "less right" })
                }),
                price.map(|price| price <= AIM && is_as_right),
            );
        }
        let all = Cell::with(rows, way.key, None);
        let (well, nights) = (all.well(), all.0.len() as u64);
        let findable = all.sum(|row| row.score.findable);
        add(
            "no false tick that the test could have found".to_owned(),
            findable.to_string(),
            (nights > 0).then_some(findable == 0),
        );
        add(
            "nights that ended well: 100 %".to_owned(),
            share(well, nights),
            (nights > 0).then_some(well == nights),
        );
        let blocked = Cell(all.0.into_iter().filter(|row| row.score.question.is_some()).collect());
        let (passing, items) = (blocked.passing(), blocked.sum(|row| row.score.items));
        add(
            "a blocked item costs no other item anything".to_owned(),
            format!("{} pass in nights with one", share(passing, items)),
            (items > 0).then_some(passing == items),
        );
    }
    text
}

fn ways() -> String {
    let line = |way: &Way| format!("| {} | {} | {} |\n", way.name, way.source, way.played);
    let head = "| way | published | what is played |\n| --- | --- | --- |\n";
    head.to_owned() + &WAYS.iter().map(line).collect::<String>()
}

fn characters() -> String {
    let mut text = String::from(
        "| agent | writes down | looks | tests | leaves out | repairs | weakens | disobeys | claims | at once |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for character in Character::ALL {
        let one = character.habits();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            character.name(),
            one.remembers,
            one.looks,
            one.tests,
            one.leaves_out,
            one.repairs,
            one.weakens,
            one.disobeys,
            one.claims,
            one.at_once
        );
    }
    text
}

fn rules() -> String {
    let line = |rule: &RuleOf| format!("| {} | {} |\n", rule.notices, rule.does);
    let head = "| what it notices | what it does |\n| --- | --- |\n";
    head.to_owned() + &RULES.iter().map(line).collect::<String>()
}

fn share(part: u64, all: u64) -> String {
    let percent = (part * 100 + all / 2).checked_div(all);
    percent.map_or("–".to_owned(), |percent| format!("{percent} % ({part} of {all})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nights::simulator::Score;

    /// A night with four items, of which so many pass, at a price.
    fn row(way: &str, seed: u64, passing: u32, dollars: u64, question: Option<bool>) -> Row {
        // Twenty dollars for a million tokens of output.
        let tokens = Tokens { output: dollars * 50_000, ..Tokens::default() };
        let mut score = Score::default();
        (score.items, score.passing, score.question, score.tokens) = (4, passing, question, tokens);
        Row {
            seed,
            way: way.to_owned(),
            character: Character::Perfect,
            build: "b".to_owned(),
            score,
            code: Some(0),
            restarts: 0,
            names_changed_test: false,
            seconds: 1,
        }
    }

    /// Returns the line of all agents for these nights.
    fn line(rows: &[Row], nights: &str) -> String {
        let table = render_comparison(rows);
        let beginning = format!("| {nights} | all |");
        table.lines().find(|line| line.starts_with(&beginning)).expect("a line").to_owned()
    }

    #[test]
    fn prices_are_compared_with_and_without_questions_and_small_leads_are_said_to_be_none() {
        let rows = [
            row("plimsoll-verify", 1, 4, 96, None),
            row(GATE, 1, 4, 100, None),
            row("bare", 1, 4, 200, None),
            row("plimsoll-verify", 2, 4, 50, Some(true)),
            row(GATE, 2, 2, 100, Some(false)),
        ];
        let (all, without) = (line(&rows, "all"), line(&rows, "without a question"));
        assert!(without.contains("| 0.48 |") && without.contains("| 0.96 |"), "{without}");
        assert!(without.ends_with("| costs about the same, equally right |"), "{without}");
        assert!(all.ends_with("| clearly cheaper, right more often |"), "{all}");
        assert!(targets(&rows).contains("| 0.96, no less right | **no** |"), "{}", targets(&rows));
    }

    #[test]
    fn a_page_without_rows_claims_nothing() {
        let page = page(&[], "b");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        for placeholder in
            ["COMPARISON", "PRICE PARTS", "TAMPERING", "TARGETS", "RESULTS", "WAYS", "CHARACTERS", "RULES"]
        {
            assert!(!page.contains(placeholder), "{placeholder}");
        }
        assert!(line(&[], "all").ends_with("| not measured |"));
    }
}
