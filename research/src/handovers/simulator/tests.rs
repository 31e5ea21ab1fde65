//! The measure can pass and can fail: a true text is right, and each of the faults that were seen is wrong.

use super::ledger::{By, ByPerson, Class, Event, Ledger, Next, Truth};
use super::style::{Folder, Style};
use super::told::PromptFacts;
use super::verdict::{Resume, judge};
use super::work::{Op, Work};
use plimsoll_testkit::Dice;
use tempfile::TempDir;

/// A project in which some steps were made, and who made them.
struct Scene {
    folder: TempDir,
    work: Work,
    ledger: Ledger,
    style: Style,
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let dice = Dice::new(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let work = Work::new(dice);
        let mut scene = Scene {
            ledger: Ledger::new(folder.path().to_path_buf()),
            folder,
            style: Style { folder: Folder::Repository, ..Style::new(dice) },
            work,
        };
        for (path, text) in scene.work.files().to_vec() {
            scene.write(&path, &text);
        }
        scene.write("fix_plan.md", &scene.work.plan());
        scene.ledger.events.push(Event::Session);
        scene
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn make(&mut self, item: usize, step: usize) {
        let path = |file: &str| self.folder.path().join(file);
        match self.work.items[item].steps[step].clone() {
            Op::Edit { file, .. } => {
                let text = self.ledger.read(&file).expect("the file");
                let change = self.work.change(item, step, &text).expect("a place");
                let mut lines: Vec<&str> = text.lines().collect();
                lines.splice(change.first - 1..change.last, change.new.lines());
                self.write(&file, &(lines.join("\n") + "\n"));
            }
            Op::New { file } => self.write(&file, &self.work.fresh(item, step, &file)),
            Op::Rename { from, to } => {
                std::fs::create_dir_all(path(&to).parent().expect("a folder")).expect("a folder");
                std::fs::rename(path(&from), path(&to)).expect("a move");
            }
            Op::Delete { file } => std::fs::remove_file(path(&file)).expect("the file"),
        }
        self.ledger.events.push(Event::Step { item, step, by: By::Tool });
    }

    fn finish(&mut self, item: usize) {
        for step in 0..self.work.items[item].steps.len() {
            self.make(item, step);
        }
        let name = &self.work.items[item].name;
        let plan = self.ledger.read("fix_plan.md").expect("the list");
        self.write("fix_plan.md", &plan.replace(&format!("[ ] {name}"), &format!("[x] {name}")));
        self.ledger.events.push(Event::Tick);
    }

    fn say(&mut self, item: usize, next: &str) {
        let (next, summary) = (Some(next.to_owned()), Some("kept apart, note 7".to_owned()));
        self.ledger.events.push(Event::Said { item: Some(item), next, names_place: false, summary });
    }

    fn truth(&self, people: &[ByPerson]) -> Truth {
        self.ledger.truth(&self.work, Folder::Repository, people).expect("an open item")
    }

    fn judge(&self, truth: &Truth, text: &str) -> Resume {
        judge(&PromptFacts::read(text), truth, &self.work, &self.ledger, &self.style)
    }
}

/// What stands behind the resume.
const RULES: &str = "## Rules of the run\n";
const BEFORE: &str = "## The session before\n\nIt finished its item. Your item is not begun.";

/// What a session would be told by somebody who knows it all.
fn true_text(scene: &Scene, truth: &Truth) -> String {
    let name = &scene.work.items[truth.item].name;
    let item = format!("## Your item\n\n> {name}\n");
    if truth.class != Class::Half {
        return format!("{item}\n{BEFORE}\n\n{RULES}");
    }
    let lines = truth.lines.map_or("-".to_owned(), |(from, to)| format!("{from}-{to}"));
    let row = truth
        .file
        .as_ref()
        .map(|file| format!("| File | Lines | Status |\n|---|---|---|\n| {file} | {lines} | modified |\n"));
    let next = match &truth.next {
        Next::Said(words) => format!(
            "[f begins: claims by earlier sessions, unchecked]\n> It said: kept apart, note 7\n> Next step, in its words: {words}\n[f ends]\n"
        ),
        Next::Older(_) | Next::Nothing => String::new(),
    };
    format!("{item}\n## You take over this item half done\n\n{}\n{next}\n{RULES}", row.unwrap_or_default())
}

/// A seed whose first item has these two edits of the same file among its first steps, with lines in the last.
fn half_done(seed: u64, steps: usize) -> Scene {
    let mut scene = Scene::new(seed);
    (0..steps).for_each(|step| scene.make(0, step));
    scene.say(0, "give it its form (7)");
    scene
}

#[test]
fn a_true_text_is_right_wherever_a_session_stops() {
    for seed in 1..40 {
        for steps in 1..3 {
            let scene = half_done(seed, steps);
            let truth = scene.truth(&[]);
            let resume = scene.judge(&truth, &true_text(&scene, &truth));
            assert!(resume.is_right() && !resume.is_sent_twice, "{seed} {steps}: {resume:#?}");
        }
        let mut scene = Scene::new(seed);
        scene.finish(0);
        scene.say(0, "look once more (7)");
        let truth = scene.truth(&[]);
        assert_eq!((truth.class, truth.item), (Class::Ticked, 1));
        let resume = scene.judge(&truth, &true_text(&scene, &truth));
        assert!(resume.is_right(), "{seed}: {resume:#?}");
    }
}

/// The four scores of a text.
fn scores(resume: &Resume) -> [bool; 4] {
    [resume.item, resume.file, resume.line, resume.next]
}

#[test]
fn each_fault_costs_its_own_score() {
    let scene = (1..200)
        .map(|seed| half_done(seed, 2))
        .find(|scene| {
            let truth = scene.truth(&[]);
            truth.lines.is_some_and(|(from, to)| from > 20 && to > from)
                && scene.work.items[0].steps[0].file().contains("helper")
        })
        .expect("such a seed");
    let truth = scene.truth(&[]);
    let text = true_text(&scene, &truth);
    let (file, (from, to)) = (truth.file.clone().expect("a file"), truth.lines.expect("lines"));
    let rows = "|---|---|---|\n";
    let helper = scene.work.items[0].steps[0].file();
    let name = &scene.work.items[0].name;
    for (what, faulty, expected) in [
        (
            "the helper first",
            text.replacen(rows, &format!("{rows}| {helper} | 1-9 | modified |\n"), 1),
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
            text.replace("## You take over this item half done", BEFORE),
            [false, true, true, true],
        ),
        ("a file that is gone", text.replace(&file, "src/nowhere.rs"), [true, false, false, true]),
        ("nothing", text[text.find(RULES).expect("there")..].to_owned(), [false, false, false, false]),
    ] {
        assert_ne!(faulty, text, "{what}");
        let resume = scene.judge(&truth, &faulty);
        assert_eq!(scores(&resume), expected, "{what}: {resume:#?}");
    }
    assert!(scene.judge(&truth, &format!("{text}\n{text}")).is_sent_twice);
}

#[test]
fn a_place_that_only_the_sessions_words_name_is_told_with_them() {
    let mut scene = half_done(5, 2);
    let truth = scene.truth(&[]);
    let (file, (_, to)) = (truth.file.expect("a file"), truth.lines.expect("lines"));
    scene.say(0, &format!("{file} line {}, the rest", to + 1));
    let truth = scene.truth(&[]);
    let text = true_text(&scene, &truth);
    let table = text.find("| File").expect("a table")..text.find("[f begins").expect("words");
    let bare = text.replace(&text[table], "");
    assert_eq!(scores(&scene.judge(&truth, &bare)), [true; 4]);
    let elsewhere = bare.replace(&format!("line {}, the", to + 1), "line 2, the");
    assert_eq!(scores(&scene.judge(&truth, &elsewhere)), [true, false, false, false]);
}

#[test]
fn after_a_tick_nothing_is_handed_on() {
    let mut scene = Scene::new(3);
    scene.finish(0);
    let truth = scene.truth(&[]);
    let text = true_text(&scene, &truth);
    let name = &scene.work.items[1].name;
    let own = scene.work.items[0]
        .steps
        .iter()
        .map(Op::file)
        .find(|file| !file.contains("helper") && scene.ledger.exists(file));
    let own = own.expect("a file of its own");
    let add = |more: &str| text.replace(RULES, &format!("{more}\n\n{RULES}"));
    for (what, faulty, expected) in [
        ("progress", add("Progress on it (unverified): done"), [true, true, true, false]),
        ("next step", add("Next step (unchecked): begin it"), [true, true, true, false]),
        ("a file of before", add(&format!("| {own} | - | modified |")), [true, false, true, true]),
        (
            "in progress",
            text.replace(BEFORE, "## You take over this item half done"),
            [false, true, true, true],
        ),
        (
            "the finished one",
            text.replace(&format!("> {name}"), &format!("> {}", scene.work.items[0].name)),
            [false, true, true, true],
        ),
    ] {
        assert_ne!(faulty, text, "{what}");
        let resume = scene.judge(&truth, &faulty);
        assert_eq!(scores(&resume), expected, "{what}: {resume:#?}");
    }
}

#[test]
fn what_people_did_is_to_be_told() {
    let scene = half_done(5, 2);
    let subject = "By hand".to_owned();
    let people = [
        ByPerson::Other { subject: subject.clone() },
        ByPerson::Deleted { file: "src/z.ts".into(), subject },
    ];
    let truth = scene.truth(&people);
    let text = true_text(&scene, &truth);
    assert_eq!(scene.judge(&truth, &text).stale, (0, 2));
    let commit = text.replace(RULES, &format!("- 1 commit by others: abc By hand\n\n{RULES}"));
    assert_eq!(scene.judge(&truth, &commit).stale, (1, 2));
    let both = commit.replace("By hand\n", "By hand\n- src/z.ts is gone\n");
    assert_eq!(scene.judge(&truth, &both).stale, (2, 2));
}

#[test]
fn a_next_step_holds_until_something_is_done_and_older_words_may_be_left_out() {
    let mut scene = half_done(5, 1);
    assert_eq!(scene.truth(&[]).next, Next::Said("give it its form (7)".into()));
    scene.ledger.events.push(Event::Session);
    assert_eq!(scene.truth(&[]).next, Next::Older("give it its form (7)".into()));
    scene.make(0, 1);
    assert_eq!(scene.truth(&[]).next, Next::Nothing);
}
