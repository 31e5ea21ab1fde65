//! `plimsoll doctor` names each problem with what to do about it, and says so if there is none.

use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::{FinishedProgram, World};
use plimsoll_tests::{ScriptedAgent, honest_agent};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
const MODERN_VERSION: &str = "2.1.329 (Claude Code)";

/// Creates a project with our programs and a client that only prints its version.
fn world_with_client(version: &str) -> World {
    let mut world = World::new();
    let clients = world.home().join("clients");
    world.write(clients.join("claude"), &format!("#!/bin/sh\necho '{version}'\n"));
    world.command("chmod", &["755", &clients.join("claude").display().to_string()]).run().expect_success();
    let path = [find_or_build_bin_dir(), clients, "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
    world.set_env("PATH", path.map(|folder| folder.display().to_string()).join(":"));
    world
}

/// Creates a project with our hooks in its settings, and a client that only prints its version.
fn world_with_hooks(version: &str) -> World {
    let world = world_with_client(version);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world
}

/// The result of `plimsoll doctor --json`, with its findings by code and severity.
struct DoctorReport {
    finished: FinishedProgram,
    document: Value,
}

fn run_doctor(world: &World) -> DoctorReport {
    let finished = world.plimsoll(&["doctor", "--json"]).run();
    let document = finished.stdout_json();
    DoctorReport { finished, document }
}

impl DoctorReport {
    fn findings(&self) -> &[Value] {
        self.document["findings"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn finding(&self, code: &str) -> &Value {
        let matching_finding = self.findings().iter().find(|finding| finding["code"] == code);
        matching_finding.unwrap_or_else(|| panic!("{code} is not among {:#?}", self.findings()))
    }

    /// Returns what the doctor says of a finding and what to do about it.
    fn description_and_advice(&self, world: &World, code: &str) -> String {
        let finding = self.finding(code);
        let text = |field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        world.replace_varying_parts_with_placeholders(&format!("{}\n{}", text("what"), text("todo")))
    }

    /// Returns the codes of the findings that are more than a note.
    fn codes_above_note(&self) -> Vec<&str> {
        let above_note = self.findings().iter().filter(|finding| finding["severity"] != "note");
        above_note.filter_map(|finding| finding["code"].as_str()).collect()
    }
}

/// Returns the doctor's page without what differs from one world, one machine or one version to the next.
fn stable_page(world: &World, page: &str) -> String {
    let (before, rest) = page.split_once(" GB free").expect("the free space");
    let (before, _) = before.rsplit_once(' ').expect("a number");
    let page = format!("{before} [NUMBER] GB free{rest}").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    world.replace_varying_parts_with_placeholders(&page)
}

/// Returns the lines of the page that belong to one check.
fn page_section_of_check(page: &str, check: &str) -> String {
    let is_of_check = |line: &&str| line.get(9..).is_some_and(|line| line.starts_with(check));
    let mut lines = page.lines().skip_while(|line| !is_of_check(line));
    let first = lines.next().unwrap_or(page).to_owned();
    let continuation_lines = lines.take_while(|line| line.starts_with(' '));
    continuation_lines.fold(first, |section, line| section + "\n" + line)
}

fn write_user_settings(world: &World, text: &str) {
    world.write(world.home().join(".claude/settings.json"), text);
}

fn settings_with_programs_in(folder: &str) -> String {
    let command = |program: &str| format!("{folder}/{program}");
    settings::install_or_update_our_entries("{}", HookSupport::Modern, &command).unwrap().text
}

fn settings_with_stop_hook(command: &str) -> Value {
    json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": command }] }] } })
}

#[test]
fn after_init_doctor_finds_no_problem_and_writes_nothing() {
    let mut world = World::new();
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    for init_arguments in [&["init", "--local"][..], &["init", "--local", "--memory"]] {
        world.plimsoll(init_arguments).run().expect_success();
        let before = world.git(&["status", "--porcelain", "--ignored"]);
        let report = run_doctor(&world);
        assert_eq!(report.finished.code, Some(0), "{:?}", report.finished);
        assert_eq!(report.codes_above_note(), [""; 0], "{:#?}", report.findings());
        assert!(report.document["client"]["version"].as_str().unwrap().starts_with("2.1.332"));
        assert_eq!(world.git(&["status", "--porcelain", "--ignored"]), before);
    }
    // Whether others may read there depends on the umask.
    world.command("chmod", &["700", ".claude/plimsoll"]).run().expect_success();
    let page = world.plimsoll(&["doctor"]).run().expect_success().stdout;
    insta::assert_snapshot!(stable_page(&world, &page), @"
    ok       Programs     [VERSION] (13 programs in [BIN])
    ok       Client       Claude Code 2.1.332 ([WORLD]/client/claude)
    ok       Settings     hooks in .claude/settings.local.json (local)
    ok       Memory       the working memory is installed
    ok       Other loops  no other hook runs at Stop
    ok       Disk         [NUMBER] GB free, git repository, our records take 0 KB
    ok       Window       unknown until a session here has had its first answer
    ok       Hooks        no hook has failed within a day
    ok       Run          none

    All is well.
    ");
    let missing_client = world.plimsoll(&["doctor", "--client", "/no/such/client"]).run();
    assert_eq!(missing_client.code, Some(1), "{missing_client:?}");
    insta::assert_snapshot!(page_section_of_check(&stable_page(&world, &missing_client.stdout), "Client"), @"
    PROBLEM  Client       none
        - `/no/such/client` is not a program
        → name Claude Code's own program: `plimsoll doctor --client PATH`
    ");
}

/// A scenario: its name, its world, the expected codes in the order of the checks, and the exit code.
type Scenario = (&'static str, fn() -> World, &'static [&'static str], i32);

const SCENARIOS: [Scenario; 18] = [
    ("not installed", || world_with_client(MODERN_VERSION), &["settings.none"], 0),
    ("broken settings", broken_settings, &["settings.unreadable", "settings.none"], 1),
    ("switched off by the user", hooks_disabled_by_user, &["settings.hooks_disabled"], 1),
    ("twice", hooks_installed_twice, &["settings.doubled"], 0),
    ("gone", missing_program, &["settings.missing_program"], 1),
    (
        "an old client",
        old_client,
        &["client.classic", "settings.unknown_event", "settings.newer_than_client"],
        1,
    ),
    ("no client", no_client, &["client.missing"], 1),
    ("another loop in the settings", loop_in_settings, &["loops.known"], 0),
    ("another loop as a plugin", loop_as_plugin, &["loops.known"], 0),
    ("our plugin alone", plugin_alone, &[], 0),
    (
        "our plugin of another version, beside our server",
        plugin_of_other_version,
        &["plugin.other_version", "plugin.two_servers"],
        0,
    ),
    ("a status line that is none", invalid_status_line, &["settings.bad_status_line"], 1),
    ("everybody writes", world_writable, &["disk.world_writable"], 0),
    ("a file in the way", file_in_the_way, &["disk.not_writable"], 1),
    ("not excluded", not_excluded, &["disk.not_excluded"], 0),
    ("a fault in our settings", invalid_plimsoll_settings, &["window.settings_fault", "faults.recent"], 1),
    ("a state that is none", broken_state, &["run.unreadable"], 1),
    ("a run without anybody", abandoned_run, &["run.abandoned"], 0),
];

#[test]
fn each_problem_is_named_with_what_to_do() {
    for (name, create_world, expected, code) in SCENARIOS {
        let report = run_doctor(&create_world());
        assert_eq!(report.codes_above_note(), expected, "{name}: {:#?}", report.findings());
        assert_eq!(report.finished.code, Some(code), "{name}: {:?}", report.finished);
        for finding in report.findings() {
            assert!(finding["todo"].as_str().is_some_and(|todo| todo.len() > 5), "{name}: {finding}");
        }
    }
}

#[test]
fn doctor_reads_the_clients_state_from_claude_config_dir() {
    let world = world_with_hooks(MODERN_VERSION);
    let in_force = |folder: &str| {
        world.write(world.home().join(folder).join(".claude.json"), r#"{"autoCompactEnabled": false}"#);
        let doctor = world.plimsoll(&["doctor", "--json"]);
        let doctor = doctor.env("CLAUDE_CONFIG_DIR", world.home().join("client").display().to_string());
        doctor.run().stdout_json()["window"]["in_force"].clone()
    };
    assert_eq!(in_force("."), json!([]), "not the home's, which the client does not read then");
    assert_eq!(in_force("client"), json!(["autoCompactEnabled: false"]));
}

fn broken_settings() -> World {
    let world = world_with_client(MODERN_VERSION);
    world.write(".claude/settings.json", "{ broken");
    world
}

fn hooks_disabled_by_user() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    write_user_settings(&world, r#"{"disableAllHooks": true}"#);
    world
}

fn hooks_installed_twice() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    let link = world.home().join("link");
    std::os::unix::fs::symlink(find_or_build_bin_dir(), &link).unwrap();
    write_user_settings(&world, &settings_with_programs_in(&link.display().to_string()));
    world
}

fn missing_program() -> World {
    let world = world_with_client(MODERN_VERSION);
    world.write(".claude/settings.local.json", &settings_with_programs_in("/gone"));
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let text = world.read(".claude/settings.local.json");
    world.write(
        ".claude/settings.local.json",
        &text.replace(
            &find_or_build_bin_dir().join("plimsoll-stop-gate").display().to_string(),
            "/gone/plimsoll-stop-gate",
        ),
    );
    world
}

fn old_client() -> World {
    let world = world_with_client("2.0.77 (Claude Code)");
    world.write(
        ".claude/settings.json",
        &settings_with_programs_in(&find_or_build_bin_dir().display().to_string()),
    );
    run_init_without_settings(&world);
    world
}

/// Does what `init` does except for the settings.
fn run_init_without_settings(world: &World) {
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world.command("rm", &[".claude/settings.local.json"]).run().expect_success();
}

fn no_client() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    world.command("rm", &[&world.home().join("clients/claude").display().to_string()]).run().expect_success();
    world
}

fn loop_in_settings() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    world.write(
        ".claude/settings.json",
        &settings_with_stop_hook(".claude/hooks/ralph-loop-stop.sh").to_string(),
    );
    world
}

/// Lists a plugin as Claude Code 2.1.329 does after `claude plugin install`.
fn list_plugin(world: &World, name: &str, folder: &Path) {
    let list = json!({ "version": 2, "plugins": { name: [{ "scope": "user", "installPath": folder }] } });
    world.write(world.home().join(".claude/plugins/installed_plugins.json"), &list.to_string());
}

/// Creates a project with our plugin as it is shipped, and without other hooks.
fn plugin_alone() -> World {
    let world = world_with_client(MODERN_VERSION);
    list_plugin(&world, "plimsoll@plimsoll", &plimsoll_testkit::workspace_root().join("hooks-config/plugin"));
    write_user_settings(&world, r#"{"enabledPlugins": {"plimsoll@plimsoll": true}}"#);
    world
}

fn plugin_of_other_version() -> World {
    let world = world_with_client(MODERN_VERSION);
    let folder = world.home().join("plugin");
    let shipped_hooks = plimsoll_testkit::workspace_root().join("hooks-config/plugin/hooks/hooks.json");
    world.write(folder.join("hooks/hooks.json"), &std::fs::read_to_string(shipped_hooks).unwrap());
    world.write(folder.join(".claude-plugin/plugin.json"), r#"{"name": "plimsoll", "version": "0.0.1"}"#);
    list_plugin(&world, "plimsoll@plimsoll", &folder);
    write_user_settings(&world, r#"{"enabledPlugins": {"plimsoll@plimsoll": true}}"#);
    let server = json!({"mcpServers": {"plimsoll": {"command": "/opt/bin/plimsoll-mcp", "args": [], "alwaysLoad": true}}});
    world.write(".mcp.json", &server.to_string());
    world
}

fn invalid_status_line() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    write_user_settings(&world, r#"{"statusLine": "starship"}"#);
    world
}

fn loop_as_plugin() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    let folder = world.home().join(".claude/plugins/cache/m/ralph-loop/1.0.0");
    list_plugin(&world, "ralph-loop@m", &folder);
    let hooks = settings_with_stop_hook("${CLAUDE_PLUGIN_ROOT}/hooks/stop-hook.sh").to_string();
    world.write(folder.join("hooks/hooks.json"), &hooks);
    world.write(folder.join(".claude-plugin/plugin.json"), r#"{"name": "ralph-loop"}"#);
    write_user_settings(&world, r#"{"enabledPlugins": {"ralph-loop@m": true, "other@m": true}}"#);
    world
}

fn world_writable() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    world.command("chmod", &["777", ".claude"]).run().expect_success();
    world
}

fn file_in_the_way() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    std::fs::remove_dir(world.path(".claude/plimsoll")).unwrap();
    world.write(".claude/plimsoll", "not a folder");
    world
}

fn not_excluded() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    world.write(".git/info/exclude", "*.log\n");
    world
}

fn invalid_plimsoll_settings() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    record_session_with_usage(&world, "claude-opus-5-5", 50_000);
    world.write(".claude/plimsoll.json", r#"{"levels": {"l1": 99}}"#);
    run_hook(&world, "plimsoll-stop-gate", "Stop");
    world
}

fn broken_state() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    world.write(".claude/ralph-state.json", "{ broken");
    world
}

fn abandoned_run() -> World {
    let world = world_with_hooks(MODERN_VERSION);
    world.plimsoll(&["start", "--objective", "Do it."]).run().expect_success();
    world
}

fn run_hook(world: &World, program: &str, event: &str) -> FinishedProgram {
    let payload = json!({
        "session_id": SESSION, "hook_event_name": event, "cwd": world.project(),
        "transcript_path": world.home().join("transcript.jsonl"),
    });
    let project = world.project().display().to_string();
    world.hook(program, &payload).env("CLAUDE_PROJECT_DIR", project).run().expect_success()
}

/// Records a session outside a run, whose last response used this many tokens.
fn record_session_with_usage(world: &World, model: &str, tokens: u64) {
    let usage = json!({ "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 });
    let line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": model, "timestamp": "2026-01-07T11:45:00.000Z",
        "message": { "id": "msg_1", "model": model, "role": "assistant", "content": [], "usage": usage },
    });
    world.write(world.home().join("transcript.jsonl"), &format!("{line}\n"));
    run_hook(world, "plimsoll-session-start", "SessionStart");
    run_hook(world, "plimsoll-post-tool", "PostToolBatch");
}

#[test]
fn doctor_shows_the_windows_sources_and_notes_an_unreachable_threshold() {
    let world = world_with_hooks(MODERN_VERSION);
    record_session_with_usage(&world, "claude-opus-4-6", 40_000);
    world.write(".claude/plimsoll/windows.json", r#"{"claude-opus-4-6": 190000}"#);
    write_user_settings(&world, r#"{"env": {"DISABLE_AUTO_COMPACT": "1"}}"#);
    let report = run_doctor(&world);
    assert_eq!(report.codes_above_note(), [""; 0], "{:#?}", report.findings());
    let window = &report.document["window"];
    assert_eq!(window["window"], json!({ "tokens": 190_000, "source": "learned" }));
    assert_eq!(window["sources"][1], json!({ "tokens": 200_000, "source": "table" }));
    assert_eq!((&window["session_id"], &window["reading"]["used"]), (&json!(SESSION), &json!(40_000)));
    assert_eq!(report.finding("window.out_of_reach")["severity"], "note");
    let page = world.plimsoll(&["doctor"]).run().expect_success().stdout;
    insta::assert_snapshot!(page_section_of_check(&stable_page(&world, &page), "Window"), @"
    ok       Window       190k tokens for claude-opus-4-6 (learned from Claude Code)
        session [ID]: 21% (40k tokens, transcript)
        model claude-opus-4-6: as the present session was asked for
        not used: 200k (table of models)
        auto-compact threshold 157k (83%): Claude Code compacts there
        levels: L1 62%, L2 72%, L3 77%
        in force: DISABLE_AUTO_COMPACT=1 in sessions, by the env of ~/.claude/settings.json; not in
          the figures here
        note: L2 (85%) and L3 (95%) would be out of reach, because Claude Code acts at 83%: lowered to L2
          72%, L3 77%
        → nothing to do: the thresholds are below it; for more room choose a model with a larger window,
          or smaller `margins` in your own settings
    ");
}

/// Runs the status line with the payload that 2.1.329 sent in a session with an inherited `CLAUDE_CODE_CHILD_SESSION`.
fn run_status_line(world: &World, used: u64) -> String {
    let payload = json!({
        "session_id": SESSION, "transcript_path": world.home().join("transcript.jsonl"), "cwd": world.project(),
        "model": {"id": "claude-opus-5-5", "display_name": "Opus 5.5"},
        "workspace": {"current_dir": world.project(), "project_dir": world.project()},
        "version": "2.1.329", "cost": {"total_cost_usd": 0.05, "total_duration_ms": 18_136},
        "context_window": {
            "total_input_tokens": used, "context_window_size": 1_000_000, "used_percentage": used / 10_000,
            "current_usage": if used == 0 { json!(null) } else {
                json!({"input_tokens": 10, "output_tokens": 50, "cache_read_input_tokens": used - 10})
            },
        },
    });
    world.hook("plimsoll-statusline", &payload).env("NO_COLOR", "1").run().expect_success().stdout
}

#[test]
fn a_missing_transcript_is_named_in_the_status_line_and_by_doctor() {
    let world = world_with_hooks(MODERN_VERSION);
    run_hook(&world, "plimsoll-session-start", "SessionStart");
    insta::assert_snapshot!(run_status_line(&world, 0), @"Opus 5.5 │ project │ ⎇ main ?1 │ ▕░░░░░░░░░░░░░░┆░░┆░┃▏ ? │ $0.05");
    assert_eq!(run_doctor(&world).codes_above_note(), [""; 0]);
    insta::assert_snapshot!(run_status_line(&world, 460_000), @"Opus 5.5 │ project │ ⎇ main ?1 │ ▕██████████░░░░┆░░┆░┃▏ 46% 460k/1M · 507k left │ $0.05 │ ⚠ no transcript");
    let report = run_doctor(&world);
    assert_eq!(report.codes_above_note(), ["window.no_transcript"], "{:#?}", report.findings());
    insta::assert_snapshot!(report.description_and_advice(&world, "window.no_transcript"), @"
    Claude Code writes no transcript of the last session: usage is known only from its status line, and handoffs lack the session's words and commands
    start Claude Code without the variable that another session handed down: `env -u CLAUDE_CODE_CHILD_SESSION claude`
    ");
    // The client deletes transcripts after some weeks.
    let record = format!(".claude/plimsoll/sessions/{SESSION}.status.json");
    let mut old = world.read_json(&record);
    old["at"] = "2026-01-07T11:45:00.000Z".into();
    world.write(&record, &old.to_string());
    assert_eq!(run_doctor(&world).codes_above_note(), [""; 0]);
    world.write(world.home().join("transcript.jsonl"), "");
    insta::assert_snapshot!(run_status_line(&world, 470_000), @"Opus 5.5 │ project │ ⎇ main ?1 │ ▕██████████░░░░┆░░┆░┃▏ 47% 470k/1M · 497k left │ $0.05");
    assert_eq!(run_doctor(&world).codes_above_note(), [""; 0]);
}

#[test]
fn doctor_finds_hook_errors_in_the_clients_transcript() {
    let world = world_with_hooks(MODERN_VERSION);
    record_session_with_usage(&world, "claude-opus-5-5", 40_000);
    let transcript = world.home().join("transcript.jsonl");
    let error = |command: &str| {
        let attachment = json!({ "type": "hook_non_blocking_error", "hookEvent": "Stop", "stderr": "ENOENT", "command": command });
        json!({ "type": "attachment", "timestamp": "2026-01-07T11:46:00.000Z", "attachment": attachment })
            .to_string()
    };
    let lines = [
        world.read(&transcript),
        error("lint"),
        "\n".to_owned(),
        error("/gone/plimsoll-stop-gate"),
        "\n".to_owned(),
    ];
    world.write(&transcript, &lines.concat());
    let report = run_doctor(&world);
    assert_eq!(report.codes_above_note(), ["faults.client"], "{:#?}", report.findings());
    insta::assert_snapshot!(report.description_and_advice(&world, "faults.client"), @"
    Claude Code could not run `/gone/plimsoll-stop-gate` (1 time in this session): ENOENT
    check that the program exists and starts; `plimsoll init` (with the option of its settings) writes its path again
    ");
}

#[test]
fn a_held_lock_is_named_with_its_process() {
    let world = world_with_hooks(MODERN_VERSION);
    let path = world.path(".claude/ralph-state.json.lock");
    let _held = plimsoll_store::lock::acquire(&path, std::time::Duration::ZERO).unwrap();
    let report = run_doctor(&world);
    assert_eq!(report.codes_above_note(), ["disk.locked"], "{:#?}", report.findings());
    let what = report.finding("disk.locked")["what"].as_str().unwrap();
    let what = what.replace(&format!("process {} ", std::process::id()), "process [OF THIS TEST] ");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&what), @"process [OF THIS TEST] holds the state's lock: hooks wait for it until they time out");
}

#[test]
fn a_memory_without_its_server_or_agent_is_named() {
    let world = world_with_client(MODERN_VERSION);
    world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    assert_eq!(run_doctor(&world).codes_above_note(), [""; 0]);
    world.command("rm", &[".mcp.json", ".claude/agents/frame.md"]).run().expect_success();
    assert_eq!(run_doctor(&world).codes_above_note(), ["memory.no_server", "memory.no_agent"]);
}

/// Creates a folder with `plimsoll` and the files that this shell command adds, and returns its path.
fn separate_program_folder(world: &World, setup_command: &str) -> PathBuf {
    let bin = world.home().join("apart");
    let source = find_or_build_bin_dir().display().to_string();
    let target = bin.display().to_string();
    let script = format!(
        "mkdir -p '{target}' && cd '{target}' && ln '{source}/plimsoll' . 2>/dev/null || cp '{source}/plimsoll' '{target}'; cd '{target}'; {setup_command}"
    );
    world.command("sh", &["-c", &script]).run().expect_success();
    bin
}

#[test]
fn a_missing_broken_or_old_program_is_named() {
    let world = world_with_hooks(MODERN_VERSION);
    let script = |name: &str, output: &str| {
        format!("printf '#!/bin/sh\\necho {output}\\n' > {name}; chmod 755 {name};")
    };
    let commands = [
        script("plimsoll-frame", r#"\047{"program":"plimsoll-frame","version":"0.0.1"}\047"#),
        script("plimsoll-memory", "{}"),
        script("plimsoll-post-tool", "plimsoll-post-tool 0.1.0"),
        "chmod 644 plimsoll-post-tool".to_owned(),
    ];
    let bin = separate_program_folder(&world, &commands.concat());
    let finished = world.command(bin.join("plimsoll"), &["doctor", "--json"]).run();
    let report = DoctorReport { document: finished.stdout_json(), finished };
    assert_eq!(report.finished.code, Some(1), "{:?}", report.finished);
    let file_name = |code: &str| {
        let path = report.finding(code)["where"].as_str().map(PathBuf::from).unwrap();
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap()
    };
    assert_eq!(file_name("programs.other_version"), "plimsoll-frame");
    assert_eq!(file_name("programs.silent"), "plimsoll-memory");
    assert_eq!(file_name("programs.not_executable"), "plimsoll-post-tool");
    let first_missing =
        settings::PROGRAM_NAMES.iter().find(|name| !commands.concat().contains(**name)).unwrap();
    assert_eq!(file_name("programs.missing"), *first_missing);
    assert!(report.codes_above_note().contains(&"programs.several"), "the one on the PATH is another");
}

#[test]
fn a_program_named_by_project_settings_is_checked_but_not_started() {
    let world = world_with_client(MODERN_VERSION);
    let folder = world.home().join("theirs");
    for program in settings::PROGRAM_NAMES.iter() {
        world.write(folder.join(program), "#!/bin/sh\ntouch \"$HOME/was-started\"\n");
    }
    let line = format!("chmod 755 '{}'/*", folder.display());
    world.command("sh", &["-c", &line]).run().expect_success();
    world.write(".claude/settings.json", &settings_with_programs_in(&folder.display().to_string()));
    run_init_without_settings(&world);
    let report = run_doctor(&world);
    assert!(
        report.codes_above_note().iter().all(|code| *code == "programs.other_version"),
        "{:#?}",
        report.findings()
    );
    assert_eq!(report.finding("programs.other_version")["where"], ".claude/settings.json");
    assert!(!world.home().join("was-started").exists());
}

#[test]
fn an_entry_with_a_bare_name_is_named_and_init_writes_its_path() {
    let world = world_with_client(MODERN_VERSION);
    let bare = settings::install_or_update_our_entries("", HookSupport::Modern, &str::to_owned).unwrap().text;
    write_user_settings(&world, &bare);
    let report = run_doctor(&world);
    assert_eq!((report.codes_above_note(), report.finished.code), (vec!["settings.bare_name"], Some(0)));
    assert_eq!(report.finding("settings.bare_name")["where"], "~/.claude/settings.json");
    insta::assert_snapshot!(report.description_and_advice(&world, "settings.bare_name"), @"
    the settings name 6 programs without the folder: a client with another PATH (of an editor, the desktop, cron) does not find them
    run `plimsoll init` again with the option of those settings (--user, --local)
    ");
    world.plimsoll(&["init", "--user"]).run().expect_success();
    assert_eq!(run_doctor(&world).codes_above_note(), [""; 0]);
    // Entries made with `--entries` search the PATH on purpose.
    world.plimsoll(&["init", "--project", "--entries"]).run().expect_success();
    assert!(!run_doctor(&world).codes_above_note().contains(&"settings.bare_name"));
}

/// Creates programs with the hooks' names that create a file when they are started, and that start only with a PATH.
fn write_wrappers(world: &World, folder: &Path) {
    for program in settings::PROGRAM_NAMES.iter() {
        let real = find_or_build_bin_dir().join(program).display().to_string();
        let text = format!("#!/bin/sh\n: >\"$HOME/was-started\"\nexec env '{real}' \"$@\"\n");
        world.write_program(folder.join(program), &text);
    }
}

#[test]
fn a_user_entry_that_cannot_start_with_an_empty_path_is_named() {
    let world = world_with_client(MODERN_VERSION);
    let folder = world.home().join("wrappers");
    write_wrappers(&world, &folder);
    write_user_settings(&world, &settings_with_programs_in(&folder.display().to_string()));
    let report = run_doctor(&world);
    assert!(world.home().join("was-started").exists());
    assert_eq!(report.finished.code, Some(1), "{:#?}", report.findings());
    let codes: Vec<&str> =
        report.codes_above_note().into_iter().filter(|code| *code == "settings.does_not_start").collect();
    assert_eq!(codes.len(), 6, "each program once: {:#?}", report.findings());
    insta::assert_snapshot!(report.description_and_advice(&world, "settings.does_not_start"), @"
    the settings name [HOME]/wrappers/plimsoll-post-tool, which does not start with an empty PATH
    run `plimsoll init` again with the option of those settings (--user, --local)
    ");
}

#[test]
fn no_program_is_started_if_project_settings_name_it_or_it_is_inside() {
    for (file, folder) in [
        (".claude/settings.local.json", "../home/wrappers"),
        (".claude/settings.local.json", "tools"),
        (".claude/settings.json", "../home/wrappers"),
        ("../home/.claude/settings.json", "tools"),
    ] {
        let world = world_with_client(MODERN_VERSION);
        let folder = world.path(folder);
        write_wrappers(&world, &folder);
        let folder = folder.canonicalize().unwrap();
        world.write(file, &settings_with_programs_in(&folder.display().to_string()));
        let report = run_doctor(&world);
        assert!(
            report.codes_above_note().contains(&"programs.other_version"),
            "{file}: {:#?}",
            report.findings()
        );
        assert!(
            !report.codes_above_note().contains(&"settings.does_not_start"),
            "{file}: {:#?}",
            report.findings()
        );
        assert!(!world.home().join("was-started").exists(), "{file}, {}", folder.display());
    }
}

#[test]
fn every_hook_program_prints_its_version_and_does_nothing_else() {
    let world = World::without_plimsoll_files();
    for program in settings::PROGRAM_NAMES.iter() {
        let finished =
            world.command(find_or_build_bin_dir().join(program), &["version"]).run().expect_success();
        let version = finished.stdout.strip_prefix(&format!("{program} ")).map(str::trim_end);
        assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "{finished:?}");
    }
    assert!(!Path::new(&world.path(".claude")).exists());
}

#[test]
fn every_program_reports_the_same_build() {
    let world = World::without_plimsoll_files();
    let other_programs = ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp"]
        .map(|program| (program, "--version"));
    let hooks = settings::PROGRAM_NAMES.iter().map(|program| (*program, "version"));
    let mut builds = Vec::new();
    for (program, word) in hooks.chain(other_programs) {
        let finished =
            world.command(find_or_build_bin_dir().join(program), &[word, "--json"]).run().expect_success();
        let mut build = finished.stdout_json();
        assert_eq!(build["program"], program);
        assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
        assert!(build["target"].as_str().unwrap().contains("-linux-"), "{build}");
        build["program"] = Value::Null;
        builds.push(build);
    }
    builds.dedup();
    assert_eq!(builds.len(), 1, "{builds:#?}");
    let swapped = world.plimsoll(&["--json", "-V"]).run().expect_success().stdout_json();
    assert_eq!(swapped["target"], builds[0]["target"]);
    assert!(!Path::new(&world.path(".claude")).exists());
}

#[test]
fn programs_of_another_build_are_named_and_project_programs_not_started() {
    let world = world_with_hooks(MODERN_VERSION);
    let frame_version =
        r#"{"program":"plimsoll-frame","version":"VERSION","target":"other-target","commit":null}"#;
    let frame_version = frame_version.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let bin = separate_program_folder(
        &world,
        &format!("cp '{}/plimsoll-mcp' .", find_or_build_bin_dir().display()),
    );
    world.write_program(bin.join("plimsoll-frame"), &format!("#!/bin/sh\necho '{frame_version}'\n"));
    world.write_program("tools/plimsoll", "#!/bin/sh\ntouch \"$HOME/was-started\"\n");
    let old = world.home().join("old");
    let old_version = r#"{"program":"plimsoll","version":"0.0.9"}"#;
    world.write_program(old.join("plimsoll"), &format!("#!/bin/sh\necho '{old_version}'\n"));
    let path = [bin.clone(), old.clone(), world.path("tools")].map(|folder| folder.display().to_string());
    let path = format!("{}:/usr/bin:/bin", path.join(":"));
    let finished = world.command(bin.join("plimsoll"), &["doctor", "--json"]).env("PATH", path).run();
    let report = DoctorReport { document: finished.stdout_json(), finished };
    let other_build = report
        .description_and_advice(&world, "programs.other_build")
        .replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    // The rest names the build of these tests.
    let (other_build, _) = other_build.split_once(", and ").expect("two builds");
    insta::assert_snapshot!(other_build, @"plimsoll-frame is of another build than plimsoll: [VERSION] (other-target)");
    insta::assert_snapshot!(report.description_and_advice(&world, "programs.several"), @"
    more than one plimsoll is on the PATH: [HOME]/apart/plimsoll; [HOME]/old/plimsoll, 0.0.9; [PROJECT]/tools/plimsoll
    remove the old ones
    ");
    assert!(!world.home().join("was-started").exists());
    let programs = report.document["programs"]["all"].as_array().unwrap().clone();
    let version = |path_end: &str| {
        let is_program = |one: &&Value| one["path"].as_str().is_some_and(|path| path.ends_with(path_end));
        programs.iter().find(is_program).map(|one| one["version"].clone())
    };
    assert_eq!(version("/tools/plimsoll"), Some(Value::Null));
    assert_eq!(version("/old/plimsoll"), Some("0.0.9".into()));
    assert_eq!(version("/plimsoll-mcp"), Some(env!("CARGO_PKG_VERSION").into()));
}

/// A sandbox may put an in-memory file system over the state folder: commands write there, and nothing is kept.
#[test]
fn a_state_folder_that_is_not_kept_is_named() {
    let world = World::without_plimsoll_files();
    let state = world.home().join(".local/state");
    std::fs::create_dir_all(&state).unwrap();
    let doctor = |before: &str| {
        let script =
            format!("{before} exec {} doctor --json", find_or_build_bin_dir().join("plimsoll").display());
        world.command("unshare", &["-rm", "sh", "-c", &script]).run()
    };
    let is_named = |finished: &FinishedProgram| finished.stdout.contains("disk.fleeting_state");
    let mounted = doctor(&format!("mount -t tmpfs tmpfs {} || exit 77;", state.display()));
    if mounted.code == Some(77) || mounted.stdout.is_empty() {
        eprintln!("NOT TESTED: no mount of its own can be made here");
        return;
    }
    assert!(is_named(&mounted), "{mounted:?}");
    assert!(!is_named(&doctor("")));
}
