//! The agent's commands, and how it ends a turn.

use super::knowledge::{Knowledge, Notes};
use super::rules::Rule;
use super::task::{DECISION, MARK, PART, QUICK_WAY};
use plimsoll_testkit::scripted_model::Step;

/// What it asks about an item.
pub(super) fn question(file: &str) -> String {
    format!("Convert {file} waits for an answer: which harbour?")
}

/// The command that ticks an item and commits.
pub(super) fn ticking(file: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] Convert {file}$/- [x] Convert {file}/' fix_plan.md; git add -A; \
         git commit -qm 'Convert {file}'; echo \"finished {file}; $(grep -c '^- \\[ \\]' fix_plan.md) open\""
    )
}

/// Reads the plan and, if the prompt asks for notes elsewhere, these; who is told to look first asks git as well.
pub(super) fn read_plan(known: &Knowledge) -> Step {
    let notes = match &known.notes {
        Some(Notes::After(file)) => format!(" {file}"),
        Some(Notes::Under(_)) | None => String::new(),
    };
    let git = if known.has(Rule::LookFirst) { "; git status --short" } else { "" };
    Step::bash(format!("cat{notes} fix_plan.md 2> /dev/null{git}"))
}

/// Looks how far a file is.
pub(super) fn look(file: &str) -> Step {
    Step::bash(format!("echo \"At {file} line $(( $(grep -c '{MARK}$' {file}) + 1 )) of $(wc -l < {file})\""))
}

/// Converts a part, and reads it.
pub(super) fn convert(file: &str, from: u32) -> Step {
    let to = from + PART - 1;
    Step::bash(format!(
        "sed -n '{from},{to}p' {file}; sed -i '{from},{to}s/$/{MARK}/' {file}; \
         echo \"converted {file} {from}-{to} of $(wc -l < {file})\""
    ))
}

/// The command that notes something about an item.
pub(super) fn note(notes: &Notes, file: &str, words: &str) -> String {
    match notes {
        Notes::Under(list) => format!("sed -i '/^- \\[.\\] Convert {file}$/a\\  > {words}' {list}"),
        Notes::After(list) => format!("mkdir -p \"$(dirname {list})\"; echo '- {words}' >> {list}"),
    }
}

/// The command that searches for a decision of an earlier session: in the plan and the notes, in git, and with the command that the prompt names.
pub(super) fn search_decision(known: &Knowledge) -> String {
    let pattern = format!("'FACT\\[{DECISION}\\]=[0-9]+'");
    let notes = match &known.notes {
        Some(Notes::After(file)) => format!(" {file}"),
        Some(Notes::Under(_)) | None => String::new(),
    };
    let sessions = known.search.as_ref().map(|command| format!("; {}", command.replace("PATTERN", &pattern)));
    format!(
        "grep -hoE {pattern} fix_plan.md{notes} 2> /dev/null; git log --format=%B | grep -oE {pattern}{}; \
         echo 'searched'",
        sessions.unwrap_or_default()
    )
}

/// The command that tries the quick way, and a second time with more effort.
pub(super) fn try_quick_way(file: &str, is_second: bool) -> String {
    format!("{QUICK_WAY} {file}{}; true", if is_second { " again" } else { "" })
}

/// The command that makes the project's test skip a file.
pub(super) fn weaken_test(file: &str) -> String {
    format!("sed -i 's/^  said=/  [ \"$file\" = {file} ] \\&\\& continue\\n&/' check.sh")
}

/// Why a turn ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum End {
    /// Everything is done, as far as the agent says.
    Done,
    /// An item is, or the session is.
    Open,
    /// Only a person can help.
    Blocked,
}

/// The end of a turn: with the line that the prompt wants if everything is done, and with a status if it wants one.
pub(super) fn say(known: &Knowledge, words: &str, end: End) -> Step {
    let status = match end {
        End::Done => "COMPLETE\nEXIT_SIGNAL: true",
        End::Open => "IN_PROGRESS\nEXIT_SIGNAL: false",
        End::Blocked => "BLOCKED\nEXIT_SIGNAL: false",
    };
    let line = if known.promise.starts_with("EXIT_SIGNAL") {
        format!("\n\n---RALPH_STATUS---\nSTATUS: {status}\n---END_RALPH_STATUS---")
    } else if end == End::Done {
        format!("\n\n{}", known.promise)
    } else {
        String::new()
    };
    Step::text(format!("{words}{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nights::simulator::Task;
    use plimsoll_testkit::Dice;
    use plimsoll_testkit::world::World;

    /// Returns what the commands of an answer print in a project.
    fn output(world: &World, command: &str) -> String {
        world.command("bash", &["-c", command]).run().stdout
    }

    #[test]
    fn a_weakened_test_skips_its_file_and_no_other_one() {
        let world = World::new().without_plimsoll();
        Task::new(Dice::new(4), 3).lay_out(&world);
        let test = |file: &str| output(&world, &format!("./check.sh {file}"));
        assert!(test("part-1.txt").contains("FAIL part-1.txt"));
        output(&world, &weaken_test("part-1.txt"));
        assert!(test("part-1.txt").contains("OK: every test passes"));
        assert!(test("part-2.txt").contains("FAIL part-2.txt"));
    }

    #[test]
    fn what_is_learned_stands_in_no_file_until_it_is_written_down() {
        let world = World::new().without_plimsoll();
        Task::new(Dice::new(4), 3).lay_out(&world);
        assert!(
            output(&world, "grep -rE 'decision|dead-end' part-*.txt fix_plan.md check.sh; true").is_empty()
        );
        assert!(!output(&world, "grep -rE 'dead-end\\]=[0-9]' . ; true").contains("dead-end"));
        let facts = |command: &str| Knowledge::read(&output(&world, command)).facts;
        assert!(facts(&try_quick_way("part-1.txt", false)).is_empty());
        assert!(facts(&try_quick_way("part-1.txt", true)).contains_key(super::super::task::DEAD_END));

        let note = |text: &str| format!("echo '- FACT[{DECISION}]={text}' >> ");
        let asked = Knowledge::read("Append what you find out to `progress.txt`.");
        assert!(facts(&search_decision(&asked)).is_empty());
        output(&world, &format!("{} progress.txt", note("12345")));
        assert_eq!(facts(&search_decision(&asked)).get(DECISION).map(String::as_str), Some("12345"));
        output(&world, "rm progress.txt; mkdir ~/sessions");
        output(&world, &format!("{} ~/sessions/one", note("54321")));
        assert!(facts(&search_decision(&asked)).is_empty());
        let told = "Search what was said in earlier sessions with `grep -rhoE PATTERN ~/sessions`.";
        let searches = Knowledge::read(told);
        assert_eq!(facts(&search_decision(&searches)).get(DECISION).map(String::as_str), Some("54321"));
    }
}
