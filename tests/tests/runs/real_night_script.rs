//! `scripts/real-night.sh`, with the real client and a scripted model: the script asks before it spends money, keeps to
//! its cost cap, and scores the work with checks that no session sees.

use plimsoll_domain::TodoList;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{Launch, World};
use plimsoll_testkit::{client, find_or_build_bin_dir, workspace_root};
use serde_json::json;
use std::time::Duration;

/// The scripts that the agent writes for the tools. `days` is wrong for century years, which only the hidden check
/// tests.
const TOOL_SCRIPTS: [(&str, &str); 5] = [
    ("slug", r#"tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9][^a-z0-9]*/-/g; s/^-//; s/-$//'"#),
    (
        "roman",
        r#"case $1 in ''|*[!0-9]*) exit 2;; esac; [ "$1" -ge 1 ] && [ "$1" -le 3999 ] || exit 2
n=$1; for p in 1000M 900CM 500D 400CD 100C 90XC 50L 40XL 10X 9IX 5V 4IV 1I; do v=${p%%[A-Z]*}
while [ "$n" -ge "$v" ]; do printf %s "${p#"$v"}"; n=$((n - v)); done; done; echo"#,
    ),
    (
        "days",
        r#"case $1 in [0-9][0-9][0-9][0-9]-[0-9][0-9]) ;; *) exit 2;; esac
case ${1#*-} in 02) [ $((${1%-*} % 4)) = 0 ] && echo 29 || echo 28;; 04|06|09|11) echo 30;; 13) exit 2;; *) echo 31;; esac"#,
    ),
    (
        "csvsum",
        r#"[ -f "$1" ] || exit 2; awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i; if (!c) exit 2; next }
{ s += $c } END { if (c) print s + 0 }' "$1""#,
    ),
    (
        "range",
        r#"echo "$1" | tr , '\n' | awk -F- 'NF > 2 || /[^0-9-]/ { bad = 1; exit 2 } { for (i = $1 + 0; i <= $NF + 0; i++) print i }
END { exit bad ? 2 : 0 }' | sort -nu; echo "$1" | grep -Eq '^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$' || exit 2"#,
    ),
];

/// Does the first open item of the plan, and promises if none is open.
fn tool_writing_agent(request: &Request) -> Step {
    let last_result = request.all_tool_results().pop().map(|(_, text)| text).unwrap_or_default();
    if last_result.contains("NOTHING OPEN") {
        return Step::from_text("All tools are there.\n\n<promise>COMPLETE</promise>")
            .with_input_tokens(120_000);
    }
    if !last_result.is_empty() {
        return Step::from_text("It is done.").with_input_tokens(120_000);
    }
    Step::bash_call(tool_writing_script()).with_input_tokens(100_000)
}

/// Returns a shell script that writes the first open tool of the plan, tests it, ticks its item and commits it.
fn tool_writing_script() -> String {
    let mut script = String::from(
        "open=$(sed -n 's/^- \\[ \\] `bin\\/\\([a-z]*\\).*/\\1/p' fix_plan.md | head -1)\ncase $open in\n",
    );
    for (name, body) in TOOL_SCRIPTS {
        script += &format!("{name}) cat >bin/{name} <<'TOOL'\n#!/bin/sh\n{body}\nTOOL\n;;\n");
    }
    script += "*) echo NOTHING OPEN; exit;;\nesac\nchmod +x bin/$open && ./check.sh && \
               sed -i \"s/^- \\[ \\] .bin.$open/- [x] \\`bin\\/$open/\" fix_plan.md && git add -A && \
               git commit -qm \"$open\" && echo TOOL WRITTEN";
    script
}

const SUMMARY: &str = "Four tools are written.";

/// Works through the whole plan in one session. Its window is full after the fourth tool. It knows the name that it chose as long as
/// its conversation says it.
fn single_session_agent(request: &Request) -> Step {
    let text = request.full_text();
    let is_compacted = text.contains("[Plimsoll handoff") || text.contains(SUMMARY);
    if !is_compacted && request.assistant_message_count() == 0 {
        return Step::from_text("The collection is called lathe, because it is short.")
            .with_tool_call("Bash", json!({"command": "ls notes", "description": "notes"}))
            .with_input_tokens(30_000);
    }
    let last_result = request.all_tool_results().pop().map(|(_, text)| text).unwrap_or_default();
    if last_result.contains("NOTHING OPEN") {
        return Step::from_text("All tools are there.").with_input_tokens(60_000);
    }
    let name = if text.contains("called lathe") { "lathe" } else { "forgotten" };
    let rule = "$(sed -n 's/^Rule:.*`\\(# rule [0-9]*\\)`.*/\\1/p' notes/$open.md)";
    let header = format!("sed -i \"1a # part of {name}\\n{rule}\" bin/$open && ");
    let script =
        tool_writing_script().replace("chmod +x bin/$open && ", &format!("chmod +x bin/$open && {header}"));
    let tokens = 20_000 + 15_000 * request.assistant_message_count();
    Step::bash_call(script).with_input_tokens(tokens as u64)
}

fn night_command(world: &World, arguments: &[&str]) -> Launch {
    let script = workspace_root().join("scripts/real-night.sh");
    let client = client::find_claude_from_env_or_install_pinned().display().to_string();
    let command_line = [arguments, &["--client", &client]].concat();
    world
        .command(script, &command_line)
        .env("PLIMSOLL_BIN_DIR", find_or_build_bin_dir().display().to_string())
        .env("TMPDIR", world.home().display().to_string())
        .timeout(Duration::from_secs(200))
}

#[test]
fn nothing_is_spent_before_the_user_agrees_to_the_stated_cap() {
    let model = ScriptedModel::start(tool_writing_agent);
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    for answer in ["n\n", ""] {
        let declined = night_command(&world, &["--max-cost", "0.50"]).stdin(answer.to_owned()).run();
        assert_eq!(declined.code, Some(1), "{declined:?}");
        assert!(declined.stdout.contains("0.50 USD of your account, so 1.00 USD at most"), "{declined:?}");
        assert!(declined.stdout.contains("Nothing was spent."), "{declined:?}");
    }
    for arguments in [&["--max-cost", "much"][..], &["--ways", "bare,other"], &["--max-cost"], &["--fast"]] {
        let refused = night_command(&world, arguments).run();
        assert_eq!(refused.code, Some(2), "{arguments:?} {refused:?}");
    }
    assert_eq!(model.main_requests().len(), 0);
}

#[test]
fn both_ways_run_and_are_scored_by_checks_that_no_session_sees() {
    let model = ScriptedModel::start(tool_writing_agent);
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    let finished = night_command(&world, &["--yes", "--model", "sonnet"]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for way in ["bare", "plimsoll"] {
        let row = finished.stdout.lines().find(|line| line.starts_with(&format!("| {way} |"))).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // `days` is wrong, and its item is ticked.
        assert_eq!(cells[2..4], ["4 of 5", "1"], "{finished:?}");
        let [spent, each] = [4, 5].map(|cell| cells[cell].parse::<f64>().unwrap());
        assert!(spent > 0.0 && spent <= 2.0 && each > 0.0, "{row}");
        assert!(cells[6].parse::<u32>().unwrap() >= 5, "{row}");
    }
    let kept_folder =
        finished.stdout.lines().find_map(|line| line.strip_prefix("Everything is kept in ")).unwrap();
    let plan =
        std::fs::read_to_string(format!("{}/plimsoll/fix_plan.md", kept_folder.split(':').next().unwrap()));
    assert!(TodoList::parse(&plan.unwrap()).open_items().is_empty());
}

#[test]
fn a_way_ends_when_its_cost_cap_is_reached() {
    // Each session costs a third of a cent and does nothing.
    let model =
        ScriptedModel::start(|_: &Request| Step::from_text("I looked at it.").with_input_tokens(30_000));
    let mut world = World::new();
    world.put_client_on_path_with_model_and_settings(&model);
    let finished =
        night_command(&world, &["--yes", "--ways", "bare", "--model", "sonnet", "--max-cost", "0.02"]).run();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let row = finished.stdout.lines().find(|line| line.starts_with("| bare |")).unwrap();
    let sessions = model.main_requests().len();
    assert!((1..6).contains(&sessions), "{sessions} {row}");
}

#[test]
fn one_session_is_compacted_by_a_summary_or_by_a_handoff() {
    for (way, expected_summaries, expected_comments) in
        [("summary", 1, "9 of 10"), ("handoff", 0, "10 of 10")]
    {
        let model = ScriptedModel::start(single_session_agent)
            .with_compaction_step(Step::from_text(format!("<summary>{SUMMARY}</summary>")));
        let mut world = World::new();
        world.put_client_on_path_with_model_and_settings(&model);
        let settings_before = world.read(world.home().join(".config/plimsoll/settings.json"));
        let finished = night_command(&world, &["--yes", "--ways", way, "--model", "sonnet"]).run();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let row =
            finished.stdout.lines().find(|line| line.starts_with(&format!("| {way} |"))).expect("a row");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!((cells[2], &cells[6..9]), ("4 of 5", &["1", "1", expected_comments][..]), "{finished:?}");
        assert_eq!(model.requests_of_kind(RequestKind::Compaction).len(), expected_summaries, "{way}");
        assert_eq!(world.read(world.home().join(".config/plimsoll/settings.json")), settings_before);
    }
}
