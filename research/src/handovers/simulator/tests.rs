//! The score can be right and wrong: a correct prompt scores right, and each fault that was observed scores
//! wrong.

use super::ledger::{EditMethod, GroundTruth, ItemState, Ledger, LedgerEvent, StatedNextStep, UserChange};
use super::prompt_parser::ParsedPrompt;
use super::resume_score::{ResumeScore, score_resume};
use super::style::{AgentStyle, FolderKind};
use super::work::{Operation, SimulatedWork};
use plimsoll_testkit::SeededRng;
use tempfile::TempDir;

/// A project in which some steps were made, and the record of them.
struct Scenario {
    folder: TempDir,
    work: SimulatedWork,
    ledger: Ledger,
    style: AgentStyle,
}

impl Scenario {
    fn new(seed: u64) -> Scenario {
        let rng = SeededRng::new(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let work = SimulatedWork::random(rng);
        let mut scenario = Scenario {
            ledger: Ledger::new(folder.path().to_path_buf()),
            folder,
            style: AgentStyle { folder: FolderKind::Repository, ..AgentStyle::random(rng) },
            work,
        };
        for (path, text) in scenario.work.initial_files().to_vec() {
            scenario.write(&path, &text);
        }
        scenario.write("fix_plan.md", &scenario.work.plan_text());
        scenario.ledger.events.push(LedgerEvent::SessionStarted);
        scenario
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn perform_and_log_step(&mut self, item: usize, step: usize) {
        let path = |file: &str| self.folder.path().join(file);
        match self.work.items[item].steps[step].clone() {
            Operation::Edit { file, .. } => {
                let text = self.ledger.read_file(&file).expect("the file");
                let change = self.work.text_change_of_edit_step(item, step, &text).expect("a place");
                let mut lines: Vec<&str> = text.lines().collect();
                lines.splice(change.first_line - 1..change.last_line, change.new_text.lines());
                self.write(&file, &(lines.join("\n") + "\n"));
            }
            Operation::Create { file } => self.write(&file, &self.work.new_file_text(item, step, &file)),
            Operation::Rename { from, to } => {
                std::fs::create_dir_all(path(&to).parent().expect("a folder")).expect("a folder");
                std::fs::rename(path(&from), path(&to)).expect("a move");
            }
            Operation::Delete { file } => std::fs::remove_file(path(&file)).expect("the file"),
        }
        self.ledger.events.push(LedgerEvent::StepPerformed {
            item,
            step,
            edit_method: EditMethod::ClientTool,
        });
    }

    fn finish_item(&mut self, item: usize) {
        for step in 0..self.work.items[item].steps.len() {
            self.perform_and_log_step(item, step);
        }
        let name = &self.work.items[item].name;
        let plan = self.ledger.read_file("fix_plan.md").expect("the list");
        self.write("fix_plan.md", &plan.replace(&format!("[ ] {name}"), &format!("[x] {name}")));
        self.ledger.events.push(LedgerEvent::ItemTicked);
    }

    fn end_with_next_step(&mut self, item: usize, next_step: &str) {
        let (next, summary) = (Some(next_step.to_owned()), Some("kept apart, note 7".to_owned()));
        self.ledger.events.push(LedgerEvent::ClosingMessage {
            item: Some(item),
            next_step: next,
            names_location: false,
            summary,
        });
    }

    fn truth_for_next_session(&self, user_changes: &[UserChange]) -> GroundTruth {
        self.ledger
            .ground_truth_for_next_session(&self.work, FolderKind::Repository, user_changes)
            .expect("an open item")
    }

    fn score_prompt(&self, truth: &GroundTruth, text: &str) -> ResumeScore {
        score_resume(&ParsedPrompt::parse(text), truth, &self.work, &self.ledger, &self.style)
    }
}

/// The heading after the resume section, and the resume section for an item that is not begun.
const RULES_HEADING: &str = "## Rules of the run\n";
const ITEM_NOT_BEGUN_SECTION: &str = "## The last session\n\nIt finished its item. Your item is not begun.";

/// Returns the prompt that states everything correctly.
fn correct_prompt(scenario: &Scenario, truth: &GroundTruth) -> String {
    let name = &scenario.work.items[truth.item].name;
    let item_section = format!("## Your item\n\n> {name}\n");
    if truth.item_state != ItemState::Half {
        return format!("{item_section}\n{ITEM_NOT_BEGUN_SECTION}\n\n{RULES_HEADING}");
    }
    let line_range = truth.last_edit_lines.map_or("-".to_owned(), |(from, to)| format!("{from}-{to}"));
    let file_table = truth.last_edited_file.as_ref().map(|file| {
        format!("| File | Lines | Status |\n|---|---|---|\n| {file} | {line_range} | modified |\n")
    });
    let next_step = match &truth.next_step {
        StatedNextStep::ByLastSession(stated_text) => format!(
            "[f begins: claims by earlier sessions, unchecked]\n> Summary: kept apart, note 7\n> Next step: {stated_text}\n[f ends]\n"
        ),
        StatedNextStep::ByEarlierSession(_) | StatedNextStep::NotStated => String::new(),
    };
    format!(
        "{item_section}\n## This item is half done\n\n{}\n{next_step}\n{RULES_HEADING}",
        file_table.unwrap_or_default()
    )
}

/// Returns a scenario whose first item has this many steps made and a stated next step.
fn half_done_scenario(seed: u64, step_count: usize) -> Scenario {
    let mut scenario = Scenario::new(seed);
    (0..step_count).for_each(|step| scenario.perform_and_log_step(0, step));
    scenario.end_with_next_step(0, "give it its form (7)");
    scenario
}

#[test]
fn a_correct_prompt_is_scored_right_wherever_a_session_stops() {
    for seed in 1..40 {
        for steps in 1..3 {
            let scenario = half_done_scenario(seed, steps);
            let truth = scenario.truth_for_next_session(&[]);
            let resume = scenario.score_prompt(&truth, &correct_prompt(&scenario, &truth));
            assert!(resume.is_fully_correct() && !resume.is_sent_twice, "{seed} {steps}: {resume:#?}");
        }
        let mut scenario = Scenario::new(seed);
        scenario.finish_item(0);
        scenario.end_with_next_step(0, "look once more (7)");
        let truth = scenario.truth_for_next_session(&[]);
        assert_eq!((truth.item_state, truth.item), (ItemState::Ticked, 1));
        let resume = scenario.score_prompt(&truth, &correct_prompt(&scenario, &truth));
        assert!(resume.is_fully_correct(), "{seed}: {resume:#?}");
    }
}

/// Returns the scores for item, file, lines and next step.
fn scores(resume: &ResumeScore) -> [bool; 4] {
    [resume.is_item_correct, resume.is_file_correct, resume.are_lines_correct, resume.is_next_step_correct]
}

#[test]
fn each_fault_fails_only_its_own_score() {
    let scenario = (1..200)
        .map(|seed| half_done_scenario(seed, 2))
        .find(|scenario| {
            let truth = scenario.truth_for_next_session(&[]);
            truth.last_edit_lines.is_some_and(|(from, to)| from > 20 && to > from)
                && scenario.work.items[0].steps[0].affected_file().contains("helper")
        })
        .expect("such a seed");
    let truth = scenario.truth_for_next_session(&[]);
    let text = correct_prompt(&scenario, &truth);
    let (file, (from, to)) =
        (truth.last_edited_file.clone().expect("a file"), truth.last_edit_lines.expect("lines"));
    let table_head = "|---|---|---|\n";
    let helper = scenario.work.items[0].steps[0].affected_file();
    let name = &scenario.work.items[0].name;
    for (case_name, faulty_text, expected) in [
        (
            "the helper first",
            text.replacen(table_head, &format!("{table_head}| {helper} | 1-9 | modified |\n"), 1),
            [true, false, true, true],
        ),
        ("lines of before", text.replace(&format!("{from}-{to}"), "1-3"), [true, true, false, true]),
        ("the whole file", text.replace(&format!("{from}-{to}"), "1-900"), [true, true, false, true]),
        ("no lines", text.replace(&format!("{from}-{to}"), "-"), [true, true, false, true]),
        (
            "glued to the summary",
            text.replace("note 7\n> Next step, in its words:", "note 7 Next step:"),
            [true, true, true, false],
        ),
        (
            "not marked",
            text.replace("claims by earlier sessions, unchecked", "earlier sessions"),
            [true, true, true, false],
        ),
        (
            "twice",
            text.clone() + "\nNext step (unchecked): give it its form (7)\n",
            [true, true, true, false],
        ),
        (
            "another item in progress",
            text.replace(&format!("> {name}"), "> Another thing"),
            [false, true, true, true],
        ),
        (
            "said to be unbegun",
            text.replace("## This item is half done", ITEM_NOT_BEGUN_SECTION),
            [false, true, true, true],
        ),
        ("a file that is gone", text.replace(&file, "src/nowhere.rs"), [true, false, false, true]),
        (
            "nothing",
            text[text.find(RULES_HEADING).expect("there")..].to_owned(),
            [false, false, false, false],
        ),
    ] {
        assert_ne!(faulty_text, text, "{case_name}");
        let resume = scenario.score_prompt(&truth, &faulty_text);
        assert_eq!(scores(&resume), expected, "{case_name}: {resume:#?}");
    }
    assert!(scenario.score_prompt(&truth, &format!("{text}\n{text}")).is_sent_twice);
}

#[test]
fn a_place_named_only_in_the_quoted_next_step_counts() {
    let mut scenario = half_done_scenario(5, 2);
    let truth = scenario.truth_for_next_session(&[]);
    let (file, (_, to)) = (truth.last_edited_file.expect("a file"), truth.last_edit_lines.expect("lines"));
    scenario.end_with_next_step(0, &format!("{file} line {}, the rest", to + 1));
    let truth = scenario.truth_for_next_session(&[]);
    let text = correct_prompt(&scenario, &truth);
    let table = text.find("| File").expect("a table")..text.find("[f begins").expect("words");
    let text_without_table = text.replace(&text[table], "");
    assert_eq!(scores(&scenario.score_prompt(&truth, &text_without_table)), [true; 4]);
    let text_with_wrong_line = text_without_table.replace(&format!("line {}, the", to + 1), "line 2, the");
    assert_eq!(scores(&scenario.score_prompt(&truth, &text_with_wrong_line)), [true, false, false, false]);
}

#[test]
fn after_a_tick_leftovers_of_the_finished_item_are_faults() {
    let mut scenario = Scenario::new(3);
    scenario.finish_item(0);
    let truth = scenario.truth_for_next_session(&[]);
    let text = correct_prompt(&scenario, &truth);
    let name = &scenario.work.items[1].name;
    let file_of_finished_item = scenario.work.items[0]
        .steps
        .iter()
        .map(Operation::affected_file)
        .find(|file| !file.contains("helper") && scenario.ledger.file_exists(file));
    let file_of_finished_item = file_of_finished_item.expect("a file of its own");
    let text_with =
        |added_line: &str| text.replace(RULES_HEADING, &format!("{added_line}\n\n{RULES_HEADING}"));
    for (case_name, faulty_text, expected) in [
        ("progress", text_with("Progress on it (unverified): done"), [true, true, true, false]),
        ("next step", text_with("Next step (unchecked): begin it"), [true, true, true, false]),
        (
            "a file of before",
            text_with(&format!("| {file_of_finished_item} | - | modified |")),
            [true, false, true, true],
        ),
        (
            "in progress",
            text.replace(ITEM_NOT_BEGUN_SECTION, "## This item is half done"),
            [false, true, true, true],
        ),
        (
            "the finished one",
            text.replace(&format!("> {name}"), &format!("> {}", scenario.work.items[0].name)),
            [false, true, true, true],
        ),
    ] {
        assert_ne!(faulty_text, text, "{case_name}");
        let resume = scenario.score_prompt(&truth, &faulty_text);
        assert_eq!(scores(&resume), expected, "{case_name}: {resume:#?}");
    }
}

#[test]
fn mentioned_user_changes_are_counted() {
    let scenario = half_done_scenario(5, 2);
    let subject = "By hand".to_owned();
    let user_changes = [
        UserChange::OtherCommit { subject: subject.clone() },
        UserChange::Deleted { file: "src/z.ts".into(), subject },
    ];
    let truth = scenario.truth_for_next_session(&user_changes);
    let text = correct_prompt(&scenario, &truth);
    assert_eq!(scenario.score_prompt(&truth, &text).mentioned_user_changes, (0, 2));
    let text_with_commit =
        text.replace(RULES_HEADING, &format!("- 1 commit by others: abc By hand\n\n{RULES_HEADING}"));
    assert_eq!(scenario.score_prompt(&truth, &text_with_commit).mentioned_user_changes, (1, 2));
    let text_with_both = text_with_commit.replace("By hand\n", "By hand\n- src/z.ts is gone\n");
    assert_eq!(scenario.score_prompt(&truth, &text_with_both).mentioned_user_changes, (2, 2));
}

#[test]
fn a_stated_next_step_ages_with_a_session_and_ends_with_the_next_work() {
    let mut scenario = half_done_scenario(5, 1);
    assert_eq!(
        scenario.truth_for_next_session(&[]).next_step,
        StatedNextStep::ByLastSession("give it its form (7)".into())
    );
    scenario.ledger.events.push(LedgerEvent::SessionStarted);
    assert_eq!(
        scenario.truth_for_next_session(&[]).next_step,
        StatedNextStep::ByEarlierSession("give it its form (7)".into())
    );
    scenario.perform_and_log_step(0, 1);
    assert_eq!(scenario.truth_for_next_session(&[]).next_step, StatedNextStep::NotStated);
}
