//! What can be run in the README and in the guide is run, page by page, each as one story in one project, with the real
//! client. What stands behind ``` says how a block is taken:
//!
//! - `sh`: a shell runs it, and it succeeds;
//! - `sh by FILE`, also of `console`, `sql`, `yaml` and `ini`: that file tests it, and names the page;
//! - `sh not run: REASON`, also of `text`: no test can run it;
//! - `console`: what stands behind each `$ ` is run, and what stands below is what comes out; `…` is any text;
//! - `json FILE`: goes into that file of the project, or of the home (`~/`); settings of ours must be taken without a word;
//! - `text`: for the eye alone; no command may hide there.

use crate::architecture_pages::MODULE_PAGES;
use plimsoll_domain::prompt::BEGIN_MARK;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::dates::{agent, project};
use plimsoll_tests::{ScriptedAgent, assert_said_once};
use std::time::{Duration, Instant};

pub(crate) struct Block {
    pub(crate) place: String,
    pub(crate) how: String,
    pub(crate) text: String,
}

fn page(name: &str) -> String {
    std::fs::read_to_string(workspace_root().join(name)).expect(name)
}

/// The fenced blocks of a page; a fence in a list is indented.
pub(crate) fn blocks(name: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for (line, number) in page(name).lines().zip(1..) {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, inside) {
            (Some(how), false) => {
                let how = how.to_owned();
                blocks.push(Block { place: format!("{name}:{number}"), how, text: String::new() });
                inside = true;
            }
            (Some(_), true) => inside = false,
            (None, true) => {
                let text = &mut blocks.last_mut().expect("inside of one").text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!inside, "{name}: a block without an end");
    blocks
}

fn bash(world: &World, lines: &str) -> Finished {
    let script = format!("set -eu\n{lines}");
    world.command("bash", &["-c", &script]).timeout(Duration::from_secs(120)).run()
}

fn tell(pages: &[&str]) -> World {
    let mut world = project();
    let model = ScriptedAgent::new(|turn| agent(turn).delay(Duration::from_millis(30)))
        .with_real_client()
        .start(&mut world);
    for block in pages.iter().flat_map(|page| blocks(page)) {
        let place = &block.place;
        match block.how.split_once(' ').unwrap_or((&block.how, "")) {
            ("sh", "") => {
                let finished = bash(&world, &block.text);
                assert_eq!(finished.code, Some(0), "{place}: {finished:?}");
            }
            ("console", "") => console(&world, &block),
            (_, more) if more.starts_with("by ") || more.starts_with("not run: ") => {}
            ("json", file) => {
                // The user's own files lie in the home.
                let path = match file.strip_prefix("~/") {
                    Some(below) => world.home().join(below),
                    None => world.path(file),
                };
                world.write(path, &block.text);
                let finished = world.plimsoll(&["status"]).run().expect_success();
                assert_eq!(finished.stderr, "", "{place}");
            }
            ("text", _) => {}
            _ => panic!("{place}: {:?} is no way to take a block", block.how),
        }
    }
    let requests = model.main_requests();
    requests
        .iter()
        .filter(|one| one.answers() == 0 && one.text().contains(BEGIN_MARK))
        .for_each(assert_said_once);
    world
}

/// Each command with what it prints.
fn console(world: &World, block: &Block) {
    for part in format!("\n{}", block.text).split("\n$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let finished = bash(world, command);
        assert_eq!(finished.code, Some(0), "{}: {command}: {finished:?}", block.place);
        let (shown, printed) = (shown.trim_end(), finished.stdout.trim_end());
        assert!(
            is_like(shown, printed),
            "{}: {command} prints\n{printed}\nand the page shows\n{shown}",
            block.place
        );
    }
}

/// Whether a text is the one that is shown, where `…` stands for anything.
fn is_like(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn what_is_shown_is_compared_and_not_waved_through() {
    assert!(is_like("a … c … e", "a b c d e") && is_like("a", "a") && is_like("…", ""));
    assert!(!is_like("a … c", "a b") && !is_like("a", "a b") && !is_like("a … c … c", "a b c"));
}

/// Pages about the code, which are no part of the guide.
pub(crate) const OTHER_PAGES: [&str; 5] =
    ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "scripts/release/README.md", "tests/README.md"];

/// Words that begin a line that somebody may copy into a shell.
const COMMANDS: [&str; 12] =
    ["$", "bwrap", "cargo", "claude", "curl", "eval", "export", "git", "npm", "npx", "plimsoll", "while"];

/// Returns the text of a file, or of all files in a folder.
fn text_of(path: &std::path::Path) -> String {
    if !path.is_dir() {
        return std::fs::read_to_string(path).unwrap_or_default();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| text_of(&entry.path())).collect()
}

#[test]
fn each_block_is_run_or_says_why_not() {
    for name in PAGES.iter().chain(&OTHER_PAGES).chain(&MODULE_PAGES) {
        let is_told = PAGES.contains(name);
        for block in blocks(name) {
            let place = &block.place;
            let (kind, more) = block.how.split_once(' ').unwrap_or((&block.how, ""));
            let mut words = block.text.lines().filter_map(|line| line.split(' ').next());
            match (kind, more) {
                ("sh" | "console" | "sql" | "yaml" | "ini", by) if by.starts_with("by ") => {
                    let file = &by["by ".len()..];
                    let text = text_of(&workspace_root().join(file));
                    assert!(text.contains(name), "{place}: {file} does not name the page that it tests");
                }
                ("sh" | "text", reason) if reason.starts_with("not run: ") => {}
                ("sh" | "console", "") | ("json", _) => assert!(is_told, "{place}: nothing runs it"),
                ("text", "") => {
                    let command = words.find(|word| COMMANDS.contains(word));
                    assert_eq!(command, None, "{place}: nothing runs this command");
                }
                _ => panic!("{place}: {:?} is no way to take a block", block.how),
            }
        }
    }
}

/// Command lines that no test here runs are at least ones that `plimsoll` understands.
#[test]
fn the_command_lines_of_all_blocks_are_understood() {
    let mut count = 0;
    for block in PAGES.iter().flat_map(|name| blocks(name)) {
        // In a plain `text` no line begins with a command, and the names of spans are none.
        let is_plain = ["text", "text not run: the names of spans"].contains(&block.how.as_str());
        if is_plain || !["sh", "console", "text"].iter().any(|kind| block.how.starts_with(kind)) {
            continue;
        }
        for line in block.text.replace("\\\n", " ").lines() {
            // The other lines show what is printed.
            let is_command = !block.how.starts_with("console") || line.starts_with("$ ");
            let Some(words) = plimsoll_words(line).filter(|_| is_command) else { continue };
            let parsed = plimsoll_cli::command_line_definition().try_get_matches_from(&words);
            if let Err(error) = parsed {
                assert!(!error.use_stderr(), "{}: {line}\n{words:?}\n{error}", block.place);
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
    let words = plimsoll_words("x=1 nohup /bin/plimsoll run 'a  b' -- --c > d # e").expect("a command");
    assert_eq!(words, ["plimsoll", "run", "a  b", "--", "--c"]);
}

/// Returns the words of the line's first command of ours, up to an operator of the shell or a comment.
fn plimsoll_words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    let start = words
        .iter()
        .position(|word| word == "plimsoll" || word.ends_with("/bin/plimsoll") && !word.contains('='))?;
    // A folder of that name is made and entered in the same way.
    if words[..start].iter().any(|word| ["git", "cd", "npx", "install"].contains(&word.as_str())) {
        return None;
    }
    let is_operator = |word: &String| {
        let begins = |start: &str| word.starts_with(start);
        ["|", "&", ";", ">", "<", "2>", "#", "}", ")"].iter().any(|start| begins(start))
    };
    let rest = words[start + 1..].iter().take_while(|word| !is_operator(word));
    let rest: Vec<String> = rest.map(|word| word.trim_end_matches(';').to_owned()).collect();
    Some(["plimsoll".to_owned()].into_iter().chain(rest).collect())
}

#[test]
fn every_page_of_the_guide_is_told_here_and_named_in_the_readme() {
    let folder = std::fs::read_dir(workspace_root().join("docs")).expect("docs/");
    let mut names: Vec<String> =
        folder.map(|entry| format!("docs/{}", entry.expect("an entry").file_name().display())).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    let mut told = PAGES[1..].to_vec();
    told.sort_unstable();
    assert_eq!(names, told);
    let readme = page("README.md");
    for name in names {
        assert!(readme.contains(&format!("({name})")), "{name} is not in the README's list");
    }
}

/// `[words](page.md#part)`: the page is there, and a heading of it makes that part.
#[test]
fn every_link_leads_somewhere() {
    for name in PAGES.iter().chain(&OTHER_PAGES).chain(&MODULE_PAGES) {
        let text = page(name);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") {
                continue;
            }
            let (file, part) = target.split_once('#').unwrap_or((target, ""));
            let folder = workspace_root().join(name);
            let path = if file.is_empty() { folder } else { folder.parent().expect("a folder").join(file) };
            assert!(path.exists(), "{name}: {target}");
            if !part.is_empty() {
                let page = std::fs::read_to_string(&path).expect(target);
                let anchors: Vec<String> =
                    page.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
                assert!(anchors.iter().any(|anchor| anchor == part), "{name}: {target} in {anchors:?}");
            }
        }
    }
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Who types what the README says, from nothing but the programs, has a first run that completes within three minutes.
#[test]
fn the_readme_leads_to_a_first_run_that_completes() {
    let begun = Instant::now();
    let world = tell(&["README.md"]);
    assert_eq!(world.json(".claude/ralph-state.json")["status"], "completed");
    assert!(world.home().join(".claude/settings.json").exists() && !world.exists(".claude/settings.json"));
    assert!(begun.elapsed() < Duration::from_secs(180), "{:?}", begun.elapsed());
}

#[test]
fn the_demo_of_the_readme_ends_well() {
    let world = World::without_git();
    let client = plimsoll_testkit::client::claude();
    let finished = world.plimsoll(&["demo", "--client", &client.display().to_string()]);
    let finished = finished.timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for words in ["checkpoint", "completed"] {
        assert!(finished.stdout.contains(words), "{}", finished.stdout);
    }
}

macro_rules! pages {
    ($($test:ident $page:literal $(+ $before:literal)?;)*) => {
        // The README has a test of its own, and a page that is told before another one has none.
        const PAGES: &[&str] = &["README.md", $($page, $($before,)?)*];
        $(#[test] fn $test() { tell(&[$($before,)? $page]); })*
    };
}

pages! {
    clients "docs/clients.md";
    compare "docs/compare.md";
    concepts "docs/concepts.md";
    questions "docs/faq.md";
    several_machines "docs/fleet.md";
    forecast "docs/forecast.md";
    json_output "docs/json.md";
    notes_in_linear "docs/linear.md";
    memory_worth "docs/memory-worth.md";
    memory "docs/memory.md";
    nights "docs/nights.md";
    performance "docs/performance.md";
    platforms "docs/platforms.md";
    recipes "docs/recipes.md";
    reference "docs/reference.md";
    settings "docs/settings.md";
    a_start "docs/start.md";
    the_status_line "docs/statusline.md";
    telemetry "docs/telemetry.md";
    a_night_and_every_turn "docs/turns.md" + "docs/night.md";
    upgrading "docs/upgrade.md";
    several_workers "docs/workers.md";
}

/// The row of a status, and in the columns of `plimsoll gate` and `plimsoll run` the number that comes first.
#[test]
fn the_table_of_exit_codes_says_what_programs_end_with() {
    use plimsoll_domain::exit_status::ExitStatus;
    use plimsoll_domain::verdict::{ContinueKind, PauseKind};
    use plimsoll_domain::{RunStatus, Verdict};
    let text = page("docs/reference.md");
    let (_, section) = text.split_once("## Exit codes and markers\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let number = |words: &str| -> Option<u8> {
        words.trim().split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok())
    };
    let mut seen = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| ")) {
        let row = row.replace("\\|", "/");
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [statuses, _, gate, run] = cells[..] else { panic!("{row}") };
        let statuses = statuses.split('(').next().unwrap_or_default().split(',').map(str::trim);
        for status in statuses {
            let Ok(status) = serde_json::from_value::<RunStatus>(status.into()) else { continue };
            let reason = String::new();
            let verdict = if status.has_ended() {
                Verdict::Stop { status, reason }
            } else if status == RunStatus::Paused {
                Verdict::Pause { kind: PauseKind::Limit, until: None, reason }
            } else {
                Verdict::Continue { kind: ContinueKind::NextItem, reason }
            };
            assert_eq!(number(gate), Some(verdict.gate_exit_status().code()), "{row}");
            if status != RunStatus::Running {
                assert_eq!(number(run), Some(status.exit_code()), "{row}");
            }
            seen.push(status);
        }
    }
    assert_eq!(seen.len(), 10, "{seen:?}");
    let named: Vec<u8> =
        section.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    // A program that does not start has the same code everywhere.
    let unnamed = ExitStatus::ALL.map(ExitStatus::code).into_iter().filter(|code| !named.contains(code));
    assert_eq!(unnamed.collect::<Vec<_>>(), [ExitStatus::ProgramNotFound.code()]);
}
