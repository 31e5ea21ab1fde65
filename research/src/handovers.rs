//! Harder nights: what each session was told by the one before, scored.

pub mod simulator;

use plimsoll_testkit::Dice;
use plimsoll_testkit::world::{Finished, World};
use serde::{Deserialize, Serialize};
use simulator::{ByPerson, Folder, Handover, Morning, Resume, Style, Work};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// A window of a million tokens: the usage is scripted, and the client itself never compacts.
const MODEL: &str = "opus";
/// A whole night ends before that.
pub const SESSIONS: u32 = 16;
/// Longer than any night that still moves.
const DAWN: Duration = Duration::from_secs(900);

/// How a night went.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The programs that were played with.
    pub programs: String,
    /// The night.
    pub seed: u64,
    /// Its agent and folder.
    pub style: Style,
    /// What each session was told.
    pub resumes: Vec<Resume>,
    /// What it came to.
    pub morning: Morning,
    /// The exit code of the run.
    pub code: Option<i32>,
    /// How long it took.
    pub seconds: f64,
    /// What the run printed last.
    pub last_words: String,
}

/// Plays the night of a seed with the real client, of so many sessions at most; `programs` is how the outcome calls what it was
/// played with.
pub fn play(seed: u64, programs: &str, sessions: u32) -> Outcome {
    play_in(seed, programs, sessions, |_| ())
}

/// The same with the replayed client.
pub fn replay(seed: u64, programs: &str, sessions: u32) -> Outcome {
    play_in(seed, programs, sessions, |world| world.use_real_client_in(&[]))
}

fn play_in(seed: u64, programs: &str, sessions: u32, prepare: impl Fn(&mut World)) -> Outcome {
    let dice = Dice::new(seed);
    let (style, work) = (Style::new(dice), Work::new(dice));
    let mut world = lay_out(&style, &work);
    let (model, handover) = Handover::start(work, style, world.project(), dice);
    world.use_model(&model);
    prepare(&mut world);
    let start = Instant::now();
    let finished = if style.people {
        with_people(&world, &style, sessions, &handover, dice)
    } else {
        run(&world, &style, sessions)
    };
    let seconds = start.elapsed().as_secs_f64();
    keep_requests(seed, programs, &model, &finished);
    Outcome {
        programs: programs.to_owned(),
        seed,
        style,
        resumes: handover.resumes(),
        morning: handover.morning(),
        code: finished.code,
        seconds,
        last_words: finished.stdout.lines().last().unwrap_or_default().to_owned(),
    }
}

fn lay_out(style: &Style, work: &Work) -> World {
    let mut world = World::without_git();
    world.set_env("ANTHROPIC_API_KEY", "");
    world.set_env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-scripted-model-only-000000");
    for (path, text) in work.files() {
        world.write(path, text);
    }
    world.write("fix_plan.md", &work.plan());
    // A night lasts a minute here: three checkpoints in it are no sign of trouble.
    world.write_user_settings(&serde_json::json!({"thrash": {"checkpoints": 0}}));
    if style.folder != Folder::Plain {
        world.git(&["init", "--quiet", "-b", "main"]);
        world.git(&["config", "user.name", "Test"]);
        world.git(&["config", "user.email", "test@example.invalid"]);
    }
    if style.folder == Folder::Repository {
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "The work"]);
    }
    world
}

fn run(world: &World, style: &Style, sessions: u32) -> Finished {
    let sessions = sessions.to_string();
    let mut arguments =
        vec!["run", "--objective", "Do what fix_plan.md says.", "--max-iterations", &sessions];
    if style.pack {
        arguments.push("--pack");
    }
    if style.verify {
        arguments.extend(["--verify", "test -d src"]);
    }
    arguments.extend(["--", "--model", MODEL, "--allowedTools", "Bash", "Read", "Edit", "Write"]);
    world.plimsoll(&arguments).timeout(DAWN).run()
}

/// Session by session; between two of them somebody may have been at the files.
fn with_people(world: &World, style: &Style, most: u32, handover: &Handover, dice: Dice) -> Finished {
    let mut finished = run(world, style, 1);
    for sessions in 2..=most {
        // 3: as many sessions as were allowed.
        if finished.code != Some(3) {
            break;
        }
        if handover.is_open() {
            somebody(world, handover, dice, sessions);
        }
        let sessions = sessions.to_string();
        finished = world.plimsoll(&["run", "--resume", "--max-iterations", &sessions]).timeout(DAWN).run();
    }
    finished
}

fn somebody(world: &World, handover: &Handover, dice: Dice, session: u32) {
    let subject = format!("By hand before session {session}");
    let commit = |path: &str| {
        world.git(&["add", "-A", "--", path]);
        world.git(&["commit", "-qm", &subject, "--", path]);
    };
    let throw = dice.number(&format!("somebody before {session}"), 100);
    let deed = match (throw, handover.file_in_progress()) {
        (0..=19, Some((file, _))) => {
            let text = world.read(&file);
            let mark = if file.ends_with(".py") { "#" } else { "//" };
            world.write(&file, &format!("{mark} looked through\n{mark} by hand\n\n{text}"));
            commit(&file);
            ByPerson::Edited { file, subject }
        }
        (20..=39, Some((file, true))) if file.contains("helper") || file.contains("src/") => {
            std::fs::remove_file(world.path(&file)).expect("the file is there");
            commit(&file);
            ByPerson::Deleted { file, subject }
        }
        (40..=69, _) => {
            let text = world.read("docs/guide.md");
            world.write("docs/guide.md", &format!("{text}More of it.\n"));
            commit("docs/guide.md");
            ByPerson::Other { subject }
        }
        _ => return,
    };
    handover.note_person(deed);
}

/// With `PLIMSOLL_KEEP_REQUESTS=FOLDER` the conversation is kept there, to look at.
fn keep_requests(
    seed: u64,
    programs: &str,
    model: &plimsoll_testkit::scripted_model::ScriptedModel,
    finished: &Finished,
) {
    let Some(folder) = std::env::var_os("PLIMSOLL_KEEP_REQUESTS").map(std::path::PathBuf::from) else {
        return;
    };
    let requests = model.main_requests();
    let texts = requests.iter().map(|request| format!("=== {}\n{}\n", request.number, request.last_text()));
    let text: String = texts.collect::<String>() + &format!("=== the run\n{finished:?}\n");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(format!("{programs}-{seed}.txt")), text).expect("a file");
}

const HEAD: &str = include_str!("handovers/head.md");
const TAIL: &str = include_str!("handovers/tail.md");
const BEGIN: &str = "<!-- harder nights: begin -->\n";
const END: &str = "<!-- harder nights: end -->\n";

/// The part of docs/nights.md about the harder nights, with its marks.
pub fn section_of(page: &str) -> Option<&str> {
    let start = page.find(BEGIN)?;
    Some(&page[start..page.find(END)? + END.len()])
}

/// The page with this part in the place of the one before, or at its end.
pub fn with_section(page: &str, section: &str) -> String {
    match section_of(page) {
        Some(old) => page.replace(old, section),
        None => format!("{}\n\n{section}", page.trim_end()),
    }
}

/// The part about the harder nights: of the seeds that every one of these programs has played.
pub fn section(outcomes: &[Outcome], programs: &[&str]) -> String {
    let seeds_of = |name: &str| -> BTreeSet<u64> {
        outcomes.iter().filter(|one| one.programs == name).map(|one| one.seed).collect()
    };
    let seeds = programs.iter().map(|name| seeds_of(name)).reduce(|all, one| &all & &one).unwrap_or_default();
    let of = |name: &str| -> Vec<&Outcome> {
        outcomes.iter().filter(|one| one.programs == name && seeds.contains(&one.seed)).collect()
    };
    let resumes: usize = programs.iter().flat_map(|name| of(name)).map(|one| one.resumes.len()).sum();
    let bound = |seed: Option<&u64>| seed.copied().unwrap_or_default().to_string();
    let mut text = format!("{BEGIN}{HEAD}")
        .replace("RESUMES", &resumes.to_string())
        .replace("NIGHTS", &seeds.len().to_string())
        .replace("FIRST", &bound(seeds.first()))
        .replace("LAST", &bound(seeds.last()));
    text.push_str("| programs | item | file | line | next step | all four | sent twice | people |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | ---: | --- |\n");
    for name in programs {
        let resumes: Vec<&Resume> = of(name).into_iter().flat_map(|one| &one.resumes).collect();
        let right = |part: &dyn Fn(&Resume) -> bool| {
            share(resumes.iter().filter(|resume| part(resume)).count(), resumes.len())
        };
        let people = |part: &dyn Fn(&Resume) -> u32| resumes.iter().map(|one| part(one) as usize).sum();
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            right(&|one| one.item),
            right(&|one| one.file),
            right(&|one| one.line),
            right(&|one| one.next),
            right(&Resume::is_right),
            resumes.iter().filter(|resume| resume.is_sent_twice).count(),
            share(people(&|one| one.stale.0), people(&|one| one.stale.1)),
        );
    }
    text.push_str("\n| programs | resumes of a half-done item | after a tick | before any work | ended well | right | again | begun twice | reopened | sessions |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: |\n");
    for name in programs {
        let nights = of(name);
        let resumes: Vec<&Resume> = nights.iter().flat_map(|one| &one.resumes).collect();
        let class = |class: &str| {
            let all: Vec<&&Resume> = resumes.iter().filter(|resume| resume.class == class).collect();
            share(all.iter().filter(|resume| resume.is_right()).count(), all.len())
        };
        let sum = |part: &dyn Fn(&Morning) -> u32| nights.iter().map(|one| part(&one.morning) as usize).sum();
        let well = nights.iter().filter(|one| one.code == Some(0)).count();
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            class("Half"),
            class("Ticked"),
            class("Fresh"),
            share(well, nights.len()),
            share(sum(&|one| one.done), sum(&|one| one.items)),
            sum(&|one| one.steps_twice),
            sum(&|one| one.begun_twice),
            sum(&|one| one.reopened),
            sum(&|one| one.sessions),
        );
    }
    format!("{text}{TAIL}{END}")
}

fn share(part: usize, all: usize) -> String {
    let percent = (part * 100 + all / 2).checked_div(all);
    percent.map_or("–".to_owned(), |percent| format!("{percent} % ({part} of {all})"))
}
