//! Runs the code blocks of the README and the guide, page by page, each page as one sequence in one project, with the
//! real client. The text after ``` says how a block is handled:
//!
//! - `sh`: a shell runs it, and it must succeed;
//! - `sh by FILE`, also with `console`, `sql`, `yaml` and `ini`: that file tests it, and names the page;
//! - `sh not run: REASON`, also with `text`: no test can run it;
//! - `console`: the command after each `$ ` is run and must print the lines below it; `…` matches any text;
//! - `json FILE`: is written to that file of the project, or of the home (`~/`); settings of ours must be accepted
//!   without a message;
//! - `text`: is only shown, and must not contain a command.

use crate::architecture_pages::MODULE_PAGES;
use plimsoll_domain::prompt::BEGIN_MARK;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::dates::{date_agent, dates_project};
use plimsoll_tests::{ScriptedAgent, assert_each_block_line_sent_once};
use std::time::{Duration, Instant};

pub(crate) struct CodeBlock {
    pub(crate) location: String,
    pub(crate) info_string: String,
    pub(crate) text: String,
}

fn read_page(name: &str) -> String {
    std::fs::read_to_string(workspace_root().join(name)).expect(name)
}

/// Returns the fenced code blocks of a page; a fence in a list is indented.
pub(crate) fn code_blocks(name: &str) -> Vec<CodeBlock> {
    let mut blocks: Vec<CodeBlock> = Vec::new();
    let mut is_inside = false;
    for (line, number) in read_page(name).lines().zip(1..) {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, is_inside) {
            (Some(info_string), false) => {
                let how = info_string.to_owned();
                blocks.push(CodeBlock {
                    location: format!("{name}:{number}"),
                    info_string: how,
                    text: String::new(),
                });
                is_inside = true;
            }
            (Some(_), true) => is_inside = false,
            (None, true) => {
                let text = &mut blocks.last_mut().expect("inside of one").text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!is_inside, "{name}: a block without an end");
    blocks
}

fn run_bash(world: &World, lines: &str) -> FinishedProgram {
    let script = format!("set -eu\n{lines}");
    world.command("bash", &["-c", &script]).timeout(Duration::from_secs(120)).run()
}

fn run_pages(pages: &[&str]) -> World {
    let mut world = dates_project();
    let model = ScriptedAgent::new(|turn| date_agent(turn).with_delay(Duration::from_millis(30)))
        .with_real_client()
        .start(&mut world);
    for block in pages.iter().flat_map(|page| code_blocks(page)) {
        let location = &block.location;
        match block.info_string.split_once(' ').unwrap_or((&block.info_string, "")) {
            ("sh", "") => {
                let finished = run_bash(&world, &block.text);
                assert_eq!(finished.code, Some(0), "{location}: {finished:?}");
            }
            ("console", "") => check_console_block(&world, &block),
            (_, argument) if argument.starts_with("by ") || argument.starts_with("not run: ") => {}
            ("json", file) => {
                // The user's own files lie in the home.
                let path = match file.strip_prefix("~/") {
                    Some(relative_path) => world.home().join(relative_path),
                    None => world.path(file),
                };
                world.write(path, &block.text);
                let finished = world.plimsoll(&["status"]).run().expect_success();
                assert_eq!(finished.stderr, "", "{location}");
            }
            ("text", _) => {}
            _ => panic!("{location}: {:?} is no way to take a block", block.info_string),
        }
    }
    let requests = model.main_requests();
    requests
        .iter()
        .filter(|one| one.assistant_message_count() == 0 && one.full_text().contains(BEGIN_MARK))
        .for_each(assert_each_block_line_sent_once);
    world
}

/// Runs each command of a block and compares its output with the one that the page shows.
fn check_console_block(world: &World, block: &CodeBlock) {
    for part in format!("\n{}", block.text).split("\n$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let finished = run_bash(world, command);
        assert_eq!(finished.code, Some(0), "{}: {command}: {finished:?}", block.location);
        let (shown, printed) = (shown.trim_end(), finished.stdout.trim_end());
        assert!(
            matches_shown_text(shown, printed),
            "{}: {command} prints\n{printed}\nand the page shows\n{shown}",
            block.location
        );
    }
}

/// Returns true if a printed text matches the shown text, in which `…` stands for anything.
fn matches_shown_text(shown: &str, printed: &str) -> bool {
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
fn shown_output_must_match_except_at_an_ellipsis() {
    assert!(
        matches_shown_text("a … c … e", "a b c d e")
            && matches_shown_text("a", "a")
            && matches_shown_text("…", "")
    );
    assert!(
        !matches_shown_text("a … c", "a b")
            && !matches_shown_text("a", "a b")
            && !matches_shown_text("a … c … c", "a b c")
    );
}

/// Pages about the code, which are not part of the guide.
pub(crate) const OTHER_PAGES: [&str; 6] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/SUMMARY.md",
    "scripts/release/README.md",
    "tests/README.md",
];

/// First words of lines that a reader may copy into a shell.
const SHELL_COMMANDS: [&str; 12] =
    ["$", "bwrap", "cargo", "claude", "curl", "eval", "export", "git", "npm", "npx", "plimsoll", "while"];

/// Returns the text of a file, or of all files in a folder.
fn read_file_or_folder(path: &std::path::Path) -> String {
    if !path.is_dir() {
        return std::fs::read_to_string(path).unwrap_or_default();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| read_file_or_folder(&entry.path())).collect()
}

#[test]
fn each_code_block_is_run_or_states_why_not() {
    for name in PAGES.iter().chain(&OTHER_PAGES).chain(&MODULE_PAGES) {
        let is_guide_page = PAGES.contains(name);
        for block in code_blocks(name) {
            let location = &block.location;
            let (kind, more) = block.info_string.split_once(' ').unwrap_or((&block.info_string, ""));
            let mut words = block.text.lines().filter_map(|line| line.split(' ').next());
            match (kind, more) {
                ("sh" | "console" | "sql" | "yaml" | "ini", by) if by.starts_with("by ") => {
                    let file = &by["by ".len()..];
                    let text = read_file_or_folder(&workspace_root().join(file));
                    assert!(text.contains(name), "{location}: {file} does not name the page that it tests");
                }
                ("sh" | "text", reason) if reason.starts_with("not run: ") => {}
                ("sh" | "console", "") | ("json", _) => assert!(is_guide_page, "{location}: nothing runs it"),
                ("text", "") => {
                    let command = words.find(|word| SHELL_COMMANDS.contains(word));
                    assert_eq!(command, None, "{location}: nothing runs this command");
                }
                _ => panic!("{location}: {:?} is no way to take a block", block.info_string),
            }
        }
    }
}

/// Command lines that no test here runs must at least be valid for `plimsoll`.
#[test]
fn plimsoll_accepts_the_command_lines_of_all_code_blocks() {
    let mut count = 0;
    for block in PAGES.iter().flat_map(|name| code_blocks(name)) {
        // In a plain `text` block no line begins with a command, and names of spans are not commands.
        let is_plain = ["text", "text not run: the names of spans"].contains(&block.info_string.as_str());
        if is_plain || !["sh", "console", "text"].iter().any(|kind| block.info_string.starts_with(kind)) {
            continue;
        }
        for line in block.text.replace("\\\n", " ").lines() {
            // The other lines show what is printed.
            let is_command = !block.info_string.starts_with("console") || line.starts_with("$ ");
            let Some(words) = words_of_plimsoll_command(line).filter(|_| is_command) else { continue };
            let parsed = plimsoll_cli::command_line_definition().try_get_matches_from(&words);
            if let Err(error) = parsed {
                assert!(!error.use_stderr(), "{}: {line}\n{words:?}\n{error}", block.location);
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
    let words =
        words_of_plimsoll_command("x=1 nohup /bin/plimsoll run 'a  b' -- --c > d # e").expect("a command");
    assert_eq!(words, ["plimsoll", "run", "a  b", "--", "--c"]);
}

/// Returns the words of the line's first command of ours, up to an operator of the shell or a comment.
fn words_of_plimsoll_command(line: &str) -> Option<Vec<String>> {
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
    // A folder of that name is created and entered with the same word, so these lines are skipped.
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
fn every_guide_page_is_run_here_and_linked_in_the_readme() {
    let folder = std::fs::read_dir(workspace_root().join("docs")).expect("docs/");
    let mut names: Vec<String> =
        folder.map(|entry| format!("docs/{}", entry.expect("an entry").file_name().display())).collect();
    names.retain(|name| name.ends_with(".md") && name != "docs/SUMMARY.md");
    names.sort();
    let mut tested_pages = PAGES[1..].to_vec();
    tested_pages.sort_unstable();
    assert_eq!(names, tested_pages);
    let readme = read_page("README.md");
    for name in names {
        assert!(readme.contains(&format!("({name})")), "{name} is not in the README's list");
    }
}

/// For `[words](page.md#part)`, the page must exist and one of its headings must have that anchor.
#[test]
fn every_link_has_an_existing_target() {
    for name in PAGES.iter().chain(&OTHER_PAGES).chain(&MODULE_PAGES) {
        let text = read_page(name);
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
                    page.lines().filter(|line| line.starts_with('#')).map(heading_anchor).collect();
                assert!(anchors.iter().any(|anchor| anchor == part), "{name}: {target} in {anchors:?}");
            }
        }
    }
}

/// Returns the anchor by which links refer to a heading.
fn heading_anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// A user who types what the README says, starting with nothing but the programs, has a completed first run within
/// three minutes.
#[test]
fn the_readme_leads_to_a_completed_first_run() {
    let started_at = Instant::now();
    let world = run_pages(&["README.md"]);
    assert_eq!(world.read_json(".claude/ralph-state.json")["status"], "completed");
    assert!(world.home().join(".claude/settings.json").exists() && !world.exists(".claude/settings.json"));
    assert!(started_at.elapsed() < Duration::from_secs(180), "{:?}", started_at.elapsed());
}

#[test]
fn the_readme_demo_completes() {
    let world = World::without_git();
    let client = plimsoll_testkit::client::find_claude_from_env_or_install_pinned();
    let finished = world.plimsoll(&["demo", "--client", &client.display().to_string()]);
    let finished = finished.timeout(Duration::from_secs(120)).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for words in ["checkpoint", "completed"] {
        assert!(finished.stdout.contains(words), "{}", finished.stdout);
    }
}

macro_rules! pages {
    ($($test:ident $page:literal $(+ $before:literal)?;)*) => {
        // The README has a test of its own, and a page that runs before another one has none.
        const PAGES: &[&str] = &["README.md", $($page, $($before,)?)*];
        $(#[test] fn $test() { run_pages(&[$($before,)? $page]); })*
    };
}

pages! {
    clients_page_works "docs/clients.md";
    compare_page_works "docs/compare.md";
    concepts_page_works "docs/concepts.md";
    coming_from_page_works "docs/coming-from.md";
    fleet_page_works "docs/fleet.md";
    forecast_page_works "docs/forecast.md";
    json_page_works "docs/json.md";
    linear_page_works "docs/linear.md";
    memory_worth_page_works "docs/memory-worth.md";
    memory_page_works "docs/memory.md";
    nights_page_works "docs/nights.md";
    performance_page_works "docs/performance.md";
    platforms_page_works "docs/platforms.md";
    shell_loops_page_works "docs/shell-loops.md";
    handoff_page_works "docs/handoff.md";
    measuring_page_works "docs/measuring.md";
    module_page_works "docs/module.md";
    teams_page_works "docs/teams.md";
    troubleshooting_page_works "docs/troubleshooting.md";
    reference_page_works "docs/reference.md";
    settings_page_works "docs/settings.md";
    start_page_works "docs/start.md";
    statusline_page_works "docs/statusline.md";
    telemetry_page_works "docs/telemetry.md";
    turns_and_night_pages_work "docs/turns.md" + "docs/night.md";
    upgrade_page_works "docs/upgrade.md";
    usage_page_works "docs/usage.md";
    workers_page_works "docs/workers.md";
}

/// Compares the first number in the columns of `plimsoll gate` and `plimsoll run`, in the row of each status.
#[test]
fn the_exit_code_table_matches_the_programs() {
    use plimsoll_domain::exit_status::ExitStatus;
    use plimsoll_domain::verdict::{ContinueKind, PauseKind};
    use plimsoll_domain::{RunStatus, Verdict};
    let text = read_page("docs/reference.md");
    let (_, section) = text.split_once("## Exit codes and markers\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let first_number = |words: &str| -> Option<u8> {
        words.trim().split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok())
    };
    let mut seen_statuses = Vec::new();
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
                Verdict::Pause { kind: PauseKind::Limit, pause_end: None, reason }
            } else {
                Verdict::Continue { kind: ContinueKind::NextItem, reason }
            };
            assert_eq!(first_number(gate), Some(verdict.gate_exit_status().code()), "{row}");
            if status != RunStatus::Running {
                assert_eq!(first_number(run), Some(status.exit_code()), "{row}");
            }
            seen_statuses.push(status);
        }
    }
    assert_eq!(seen_statuses.len(), 10, "{seen_statuses:?}");
    let named: Vec<u8> =
        section.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    // A program that does not start has the same code everywhere.
    let unnamed = ExitStatus::ALL.map(ExitStatus::code).into_iter().filter(|code| !named.contains(code));
    assert_eq!(unnamed.collect::<Vec<_>>(), [ExitStatus::ProgramNotFound.code()]);
}
