//! The commands that the agent runs, and how it ends a turn.

use super::knowledge::{Knowledge, NotesLocation};
use super::rules::Rule;
use super::task::{CONVERTED_MARKER, DECISION_FACT, PART_LINES, SHORTCUT_COMMAND};
use plimsoll_testkit::scripted_model::Step;

/// Returns the agent's question about an item.
pub(super) fn question_text(file: &str) -> String {
    format!("Convert {file} waits for an answer: which harbour?")
}

/// Returns the command that ticks an item and commits.
pub(super) fn tick_command(file: &str) -> String {
    format!(
        "sed -i 's/^- \\[ \\] Convert {file}$/- [x] Convert {file}/' fix_plan.md; git add -A; \
         git commit -qm 'Convert {file}'; echo \"finished {file}; $(grep -c '^- \\[ \\]' fix_plan.md) open\""
    )
}

/// Returns a step that reads the plan and the notes file, if the prompt names one. If the prompt says to look
/// first, also runs `git status`.
pub(super) fn read_plan_and_notes(knowledge: &Knowledge) -> Step {
    let notes_argument = match &knowledge.notes_location {
        Some(NotesLocation::EndOfFile(file)) => format!(" {file}"),
        Some(NotesLocation::UnderItem(_)) | None => String::new(),
    };
    let git_command = if knowledge.states_rule(Rule::InspectFirst) { "; git status --short" } else { "" };
    Step::bash_call(format!("cat{notes_argument} fix_plan.md 2> /dev/null{git_command}"))
}

/// Returns a step that shows the progress in a file.
pub(super) fn show_file_progress(file: &str) -> Step {
    Step::bash_call(format!(
        "echo \"At {file} line $(( $(grep -c '{CONVERTED_MARKER}$' {file}) + 1 )) of $(wc -l < {file})\""
    ))
}

/// Returns a step that reads and converts one part of a file.
pub(super) fn convert_part(file: &str, first_line: u32) -> Step {
    let last_line = first_line + PART_LINES - 1;
    Step::bash_call(format!(
        "sed -n '{first_line},{last_line}p' {file}; sed -i '{first_line},{last_line}s/$/{CONVERTED_MARKER}/' {file}; \
         echo \"converted {file} {first_line}-{last_line} of $(wc -l < {file})\""
    ))
}

/// Returns the command that writes a note about an item.
pub(super) fn note_command(notes_location: &NotesLocation, file: &str, text: &str) -> String {
    match notes_location {
        NotesLocation::UnderItem(path) => {
            format!("sed -i '/^- \\[.\\] Convert {file}$/a\\  > {text}' {path}")
        }
        NotesLocation::EndOfFile(path) => {
            format!("mkdir -p \"$(dirname {path})\"; echo '- {text}' >> {path}")
        }
    }
}

/// Returns the command that searches for a decision of an earlier session: in the plan and the notes, in git,
/// and with the command that the prompt names.
pub(super) fn search_for_decision_command(knowledge: &Knowledge) -> String {
    let pattern = format!("'FACT\\[{DECISION_FACT}\\]=[0-9]+'");
    let notes_argument = match &knowledge.notes_location {
        Some(NotesLocation::EndOfFile(file)) => format!(" {file}"),
        Some(NotesLocation::UnderItem(_)) | None => String::new(),
    };
    let session_search_command = knowledge
        .search_command
        .as_ref()
        .map(|command| format!("; {}", command.replace("PATTERN", &pattern)));
    format!(
        "grep -hoE {pattern} fix_plan.md{notes_argument} 2> /dev/null; git log --format=%B | grep -oE {pattern}{}; \
         echo 'searched'",
        session_search_command.unwrap_or_default()
    )
}

/// Returns the command that tries the shortcut. The second try takes an extra argument.
pub(super) fn shortcut_command(file: &str, is_second_try: bool) -> String {
    format!("{SHORTCUT_COMMAND} {file}{}; true", if is_second_try { " again" } else { "" })
}

/// Returns the command that makes the project's test skip a file.
pub(super) fn weaken_test_command(file: &str) -> String {
    format!("sed -i 's/^  said=/  [ \"$file\" = {file} ] \\&\\& continue\\n&/' check.sh")
}

/// The reason why a turn ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TurnEnd {
    /// Everything is done, as far as the agent says.
    Done,
    /// An item or the session is finished, and work is left.
    WorkLeft,
    /// Only a person can help.
    Blocked,
}

/// Ends a turn. Appends a status block if the prompt asks for one, otherwise the promise if everything is done.
pub(super) fn end_turn_with_promise_or_status(
    knowledge: &Knowledge,
    message: &str,
    turn_end: TurnEnd,
) -> Step {
    let status = match turn_end {
        TurnEnd::Done => "COMPLETE\nEXIT_SIGNAL: true",
        TurnEnd::WorkLeft => "IN_PROGRESS\nEXIT_SIGNAL: false",
        TurnEnd::Blocked => "BLOCKED\nEXIT_SIGNAL: false",
    };
    let closing_line = if knowledge.promise_line.starts_with("EXIT_SIGNAL") {
        format!("\n\n---RALPH_STATUS---\nSTATUS: {status}\n---END_RALPH_STATUS---")
    } else if turn_end == TurnEnd::Done {
        format!("\n\n{}", knowledge.promise_line)
    } else {
        String::new()
    };
    Step::from_text(format!("{message}{closing_line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nights::simulator::Task;
    use plimsoll_testkit::SeededRng;
    use plimsoll_testkit::world::World;

    /// Runs a command in a project and returns its output.
    fn run_command(world: &World, command: &str) -> String {
        world.command("bash", &["-c", command]).run().stdout
    }

    #[test]
    fn a_weakened_test_skips_its_file_and_no_other_one() {
        let world = World::new().without_plimsoll_programs();
        Task::random(SeededRng::new(4), 3).write_and_commit_to_world(&world);
        let run_test = |file: &str| run_command(&world, &format!("./check.sh {file}"));
        assert!(run_test("part-1.txt").contains("FAIL part-1.txt"));
        run_command(&world, &weaken_test_command("part-1.txt"));
        assert!(run_test("part-1.txt").contains("OK: every test passes"));
        assert!(run_test("part-2.txt").contains("FAIL part-2.txt"));
    }

    #[test]
    fn learned_facts_are_in_no_file_until_they_are_noted() {
        let world = World::new().without_plimsoll_programs();
        Task::random(SeededRng::new(4), 3).write_and_commit_to_world(&world);
        assert!(
            run_command(&world, "grep -rE 'decision|dead-end' part-*.txt fix_plan.md check.sh; true")
                .is_empty()
        );
        assert!(!run_command(&world, "grep -rE 'dead-end\\]=[0-9]' . ; true").contains("dead-end"));
        let facts_printed_by = |command: &str| Knowledge::parse(&run_command(&world, command)).facts;
        assert!(facts_printed_by(&shortcut_command("part-1.txt", false)).is_empty());
        assert!(
            facts_printed_by(&shortcut_command("part-1.txt", true))
                .contains_key(super::super::task::DEAD_END_FACT)
        );

        let append_decision = |text: &str| format!("echo '- FACT[{DECISION_FACT}]={text}' >> ");
        let notes_knowledge = Knowledge::parse("Append what you find out to `progress.txt`.");
        assert!(facts_printed_by(&search_for_decision_command(&notes_knowledge)).is_empty());
        run_command(&world, &format!("{} progress.txt", append_decision("12345")));
        assert_eq!(
            facts_printed_by(&search_for_decision_command(&notes_knowledge))
                .get(DECISION_FACT)
                .map(String::as_str),
            Some("12345")
        );
        run_command(&world, "rm progress.txt; mkdir ~/sessions");
        run_command(&world, &format!("{} ~/sessions/one", append_decision("54321")));
        assert!(facts_printed_by(&search_for_decision_command(&notes_knowledge)).is_empty());
        let search_prompt = "Search what was said in earlier sessions with `grep -rhoE PATTERN ~/sessions`.";
        let search_knowledge = Knowledge::parse(search_prompt);
        assert_eq!(
            facts_printed_by(&search_for_decision_command(&search_knowledge))
                .get(DECISION_FACT)
                .map(String::as_str),
            Some("54321")
        );
    }
}
