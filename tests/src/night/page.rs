//! The page about the nights, and its rows: every row is published, whoever wins in it.

use super::Row;
use super::ways::{Loop, WAYS, Way};
use plimsoll_testkit::night::{Character, RULES, price};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const HEAD: &str = include_str!("head.md");
const TAIL: &str = include_str!("tail.md");
const COLUMNS: &str = "seed\tway\tcharacter\tbuild\titems\tpassing\tfalse_ticks\tfindable\ttwice\tquestion\tfacts_kept\tfacts\tsessions\tcompactions\ttests\ttroubles\twritten\tread\toutput\tdollars\thours\tlost\tcode\trestarts\n";

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
        let later =
            [score.facts.0, score.facts.1, score.sessions, score.compactions, score.tests, score.troubles];
        let tab = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join("\t");
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{question}\t{}\t{}\t{}\t{}\t{:.3}\t{:.2}\t{:.2}\t{code}\t{}",
            row.seed,
            row.way,
            row.character.name(),
            row.build,
            tab(&counts),
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
        Cell(rows.iter().filter(|row| row.way == way.key && row.character == character).collect())
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
            "| {} | {} | {} ({}) | {:.2} | {:.0} k | {:.2} | {:.2} | {} | {} | {:.2} | {} |\n",
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
        )
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
            "### {}\n\n| way | items that pass | false ticks (findable) | $ an item | input an item | hours an item | hours lost a night | ended well | waited for a person | items a session | facts kept |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |\n",
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

/// The targets, for each way of ours that is given the project's test.
fn targets(rows: &[Row]) -> String {
    let mut text = String::from("| target | way | measured | met |\n| --- | --- | --- | --- |\n");
    let is_met = |met: bool| if met { "yes" } else { "**no**" };
    let bare = &WAYS[0];
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
            let most = if character == Character::Perfect { 1.05 } else { 0.90 };
            let ratio = cell.dollars() / Cell::of(rows, bare, character).dollars();
            add(
                format!("{name}: price of an item ≤ {most:.2} of the bare loop's"),
                format!("{ratio:.2}"),
                (items > 0).then_some(ratio <= most),
            );
        }
        let all = Cell(rows.iter().filter(|row| row.way == way.key).collect());
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
        "| agent | writes down | looks | tests | leaves out | repairs | claims | at once |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for character in Character::ALL {
        let one = character.habits();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            character.name(),
            one.remembers,
            one.looks,
            one.tests,
            one.leaves_out,
            one.repairs,
            one.claims,
            one.at_once
        );
    }
    text
}

fn rules() -> String {
    let line = |rule: &plimsoll_testkit::night::RuleOf| format!("| {} | {} |\n", rule.notices, rule.does);
    let head = "| what it notices | what it does |\n| --- | --- |\n";
    head.to_owned() + &RULES.iter().map(line).collect::<String>()
}

fn share(part: u64, all: u64) -> String {
    let percent = (part * 100 + all / 2).checked_div(all);
    percent.map_or("–".to_owned(), |percent| format!("{percent} % ({part} of {all})"))
}
