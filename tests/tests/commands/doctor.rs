//! `plimsoll doctor`: each thing that is wrong is named, with what to do; and where nothing is, it says so.

use plimsoll_protocol::settings::{self, HookSupport};
use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::{Finished, World};
use plimsoll_tests::{ScriptedAgent, honest};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
const MODERN: &str = "2.1.329 (Claude Code)";

/// A project with our programs and a client that only tells its version.
fn with_client(version: &str) -> World {
    let mut world = World::new();
    let clients = world.home().join("clients");
    world.write(clients.join("claude"), &format!("#!/bin/sh\necho '{version}'\n"));
    world.command("chmod", &["755", &clients.join("claude").display().to_string()]).run().expect_success();
    let path = [bin_dir(), clients, "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
    world.set_env("PATH", path.map(|folder| folder.display().to_string()).join(":"));
    world
}

/// The same, with our hooks in the project's settings.
fn installed(version: &str) -> World {
    let world = with_client(version);
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world
}

/// What the doctor says, with its findings by code and severity.
struct Visit {
    finished: Finished,
    document: Value,
}

fn visit(world: &World) -> Visit {
    let finished = world.plimsoll(&["doctor", "--json"]).run();
    let document = finished.json();
    Visit { finished, document }
}

impl Visit {
    fn findings(&self) -> &[Value] {
        self.document["findings"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn finding(&self, code: &str) -> &Value {
        let found = self.findings().iter().find(|finding| finding["code"] == code);
        found.unwrap_or_else(|| panic!("{code} is not among {:#?}", self.findings()))
    }

    /// Returns what the doctor says of a finding and what to do about it.
    fn advice(&self, world: &World, code: &str) -> String {
        let finding = self.finding(code);
        let text = |field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        world.stable_text(&format!("{}\n{}", text("what"), text("todo")))
    }

    /// The codes that are more than a note.
    fn troubles(&self) -> Vec<&str> {
        let more = self.findings().iter().filter(|finding| finding["severity"] != "note");
        more.filter_map(|finding| finding["code"].as_str()).collect()
    }
}

/// Returns the doctor's page without what differs from one world, one machine or one version to the next.
fn stable_page(world: &World, page: &str) -> String {
    let (before, rest) = page.split_once(" GB free").expect("the free space");
    let (before, _) = before.rsplit_once(' ').expect("a number");
    let page = format!("{before} [NUMBER] GB free{rest}").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    world.stable_text(&page)
}

/// Returns the lines of the page that belong to one check.
fn section(page: &str, check: &str) -> String {
    let is_of_check = |line: &&str| line.get(9..).is_some_and(|line| line.starts_with(check));
    let mut lines = page.lines().skip_while(|line| !is_of_check(line));
    let first = lines.next().unwrap_or(page).to_owned();
    let below = lines.take_while(|line| line.starts_with(' '));
    below.fold(first, |section, line| section + "\n" + line)
}

fn user_settings(world: &World, text: &str) {
    world.write(world.home().join(".claude/settings.json"), text);
}

fn elsewhere(folder: &str) -> String {
    let command = |program: &str| format!("{folder}/{program}");
    settings::install("{}", HookSupport::Modern, &command).unwrap().text
}

fn stop_hook(command: &str) -> Value {
    json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": command }] }] } })
}

#[test]
fn after_init_with_the_real_client_all_is_well_and_nothing_is_written() {
    let mut world = World::new();
    let _model = ScriptedAgent::new(honest).start(&mut world);
    for parts in [&["init", "--local"][..], &["init", "--local", "--memory"]] {
        world.plimsoll(parts).run().expect_success();
        let before = world.git(&["status", "--porcelain", "--ignored"]);
        let visit = visit(&world);
        assert_eq!(visit.finished.code, Some(0), "{:?}", visit.finished);
        assert_eq!(visit.troubles(), [""; 0], "{:#?}", visit.findings());
        assert!(visit.document["client"]["version"].as_str().unwrap().starts_with("2.1.329"));
        assert_eq!(world.git(&["status", "--porcelain", "--ignored"]), before);
    }
    // Whether others may read there depends on the umask.
    world.command("chmod", &["700", ".claude/plimsoll"]).run().expect_success();
    let page = world.plimsoll(&["doctor"]).run().expect_success().stdout;
    insta::assert_snapshot!(stable_page(&world, &page), @"
    ok       Programs     [VERSION] (13 programs in [BIN])
    ok       Client       Claude Code 2.1.329 ([WORLD]/client/claude)
    ok       Settings     hooks in .claude/settings.local.json (local)
    ok       Memory       the working memory is installed
    ok       Other loops  no other hook runs at Stop
    ok       Disk         [NUMBER] GB free, git repository, our records take 0 KB
    ok       Window       unknown until a session here has had its first answer
    ok       Hooks        no hook has failed within a day
    ok       Run          none

    All is well.
    ");
    let named = world.plimsoll(&["doctor", "--client", "/no/such/client"]).run();
    assert_eq!(named.code, Some(1), "{named:?}");
    insta::assert_snapshot!(section(&stable_page(&world, &named.stdout), "Client"), @"
    PROBLEM  Client       none
        - `/no/such/client` is not a program
        → name the client's own program: `plimsoll doctor --client PATH`
    ");
}

/// A scene, its expected troubles in the order of the checks, and the exit code.
type Scene = (&'static str, fn() -> World, &'static [&'static str], i32);

const SCENES: [Scene; 18] = [
    ("not installed", || with_client(MODERN), &["settings.none"], 0),
    ("broken settings", broken_settings, &["settings.unreadable", "settings.none"], 1),
    ("switched off by the user", switched_off, &["settings.hooks_disabled"], 1),
    ("twice", doubled, &["settings.doubled"], 0),
    ("gone", gone, &["settings.missing_program"], 1),
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
        plugin_astray,
        &["plugin.other_version", "plugin.two_servers"],
        0,
    ),
    ("a status line that is none", status_line_that_is_none, &["settings.bad_status_line"], 1),
    ("everybody writes", world_writable, &["disk.world_writable"], 0),
    ("a file in the way", file_in_the_way, &["disk.not_writable"], 1),
    ("not excluded", not_excluded, &["disk.not_excluded"], 0),
    ("a fault in our settings", own_settings, &["window.settings_fault", "faults.recent"], 1),
    ("a state that is none", broken_state, &["run.unreadable"], 1),
    ("a run without anybody", abandoned, &["run.abandoned"], 0),
];

#[test]
fn each_trouble_is_named_and_says_what_to_do() {
    for (name, scene, expected, code) in SCENES {
        let visit = visit(&scene());
        assert_eq!(visit.troubles(), expected, "{name}: {:#?}", visit.findings());
        assert_eq!(visit.finished.code, Some(code), "{name}: {:?}", visit.finished);
        for finding in visit.findings() {
            assert!(finding["todo"].as_str().is_some_and(|todo| todo.len() > 5), "{name}: {finding}");
        }
    }
}

#[test]
fn what_the_client_remembers_is_read_in_the_folder_of_the_users_choice() {
    let world = installed(MODERN);
    let in_force = |folder: &str| {
        world.write(world.home().join(folder).join(".claude.json"), r#"{"autoCompactEnabled": false}"#);
        let doctor = world.plimsoll(&["doctor", "--json"]);
        let doctor = doctor.env("CLAUDE_CONFIG_DIR", world.home().join("client").display().to_string());
        doctor.run().json()["window"]["in_force"].clone()
    };
    assert_eq!(in_force("."), json!([]), "not the home's, which the client does not read then");
    assert_eq!(in_force("client"), json!(["autoCompactEnabled: false"]));
}

fn broken_settings() -> World {
    let world = with_client(MODERN);
    world.write(".claude/settings.json", "{ broken");
    world
}

fn switched_off() -> World {
    let world = installed(MODERN);
    user_settings(&world, r#"{"disableAllHooks": true}"#);
    world
}

fn doubled() -> World {
    let world = installed(MODERN);
    let link = world.home().join("link");
    std::os::unix::fs::symlink(bin_dir(), &link).unwrap();
    user_settings(&world, &elsewhere(&link.display().to_string()));
    world
}

fn gone() -> World {
    let world = with_client(MODERN);
    world.write(".claude/settings.local.json", &elsewhere("/gone"));
    world.plimsoll(&["init", "--local"]).run().expect_success();
    let text = world.read(".claude/settings.local.json");
    world.write(
        ".claude/settings.local.json",
        &text
            .replace(&bin_dir().join("plimsoll-stop-gate").display().to_string(), "/gone/plimsoll-stop-gate"),
    );
    world
}

fn old_client() -> World {
    let world = with_client("2.0.77 (Claude Code)");
    world.write(".claude/settings.json", &elsewhere(&bin_dir().display().to_string()));
    exclude(&world);
    world
}

/// What `init` does beside the settings.
fn exclude(world: &World) {
    world.plimsoll(&["init", "--local"]).run().expect_success();
    world.command("rm", &[".claude/settings.local.json"]).run().expect_success();
}

fn no_client() -> World {
    let world = installed(MODERN);
    world.command("rm", &[&world.home().join("clients/claude").display().to_string()]).run().expect_success();
    world
}

fn loop_in_settings() -> World {
    let world = installed(MODERN);
    world.write(".claude/settings.json", &stop_hook(".claude/hooks/ralph-loop-stop.sh").to_string());
    world
}

/// As 2.1.329 leaves it after `claude plugin install`.
fn list_plugin(world: &World, name: &str, folder: &Path) {
    let list = json!({ "version": 2, "plugins": { name: [{ "scope": "user", "installPath": folder }] } });
    world.write(world.home().join(".claude/plugins/installed_plugins.json"), &list.to_string());
}

/// As it comes.
fn plugin_alone() -> World {
    let world = with_client(MODERN);
    list_plugin(&world, "plimsoll@plimsoll", &plimsoll_testkit::workspace_root().join("hooks-config/plugin"));
    user_settings(&world, r#"{"enabledPlugins": {"plimsoll@plimsoll": true}}"#);
    world
}

fn plugin_astray() -> World {
    let world = with_client(MODERN);
    let folder = world.home().join("plugin");
    let came = plimsoll_testkit::workspace_root().join("hooks-config/plugin/hooks/hooks.json");
    world.write(folder.join("hooks/hooks.json"), &std::fs::read_to_string(came).unwrap());
    world.write(folder.join(".claude-plugin/plugin.json"), r#"{"name": "plimsoll", "version": "0.0.1"}"#);
    list_plugin(&world, "plimsoll@plimsoll", &folder);
    user_settings(&world, r#"{"enabledPlugins": {"plimsoll@plimsoll": true}}"#);
    let server = json!({"mcpServers": {"plimsoll": {"command": "/opt/bin/plimsoll-mcp", "args": [], "alwaysLoad": true}}});
    world.write(".mcp.json", &server.to_string());
    world
}

fn status_line_that_is_none() -> World {
    let world = installed(MODERN);
    user_settings(&world, r#"{"statusLine": "starship"}"#);
    world
}

fn loop_as_plugin() -> World {
    let world = installed(MODERN);
    let folder = world.home().join(".claude/plugins/cache/m/ralph-loop/1.0.0");
    list_plugin(&world, "ralph-loop@m", &folder);
    let hooks = stop_hook("${CLAUDE_PLUGIN_ROOT}/hooks/stop-hook.sh").to_string();
    world.write(folder.join("hooks/hooks.json"), &hooks);
    world.write(folder.join(".claude-plugin/plugin.json"), r#"{"name": "ralph-loop"}"#);
    user_settings(&world, r#"{"enabledPlugins": {"ralph-loop@m": true, "other@m": true}}"#);
    world
}

fn world_writable() -> World {
    let world = installed(MODERN);
    world.command("chmod", &["777", ".claude"]).run().expect_success();
    world
}

fn file_in_the_way() -> World {
    let world = installed(MODERN);
    std::fs::remove_dir(world.path(".claude/plimsoll")).unwrap();
    world.write(".claude/plimsoll", "not a folder");
    world
}

fn not_excluded() -> World {
    let world = installed(MODERN);
    world.write(".git/info/exclude", "*.log\n");
    world
}

fn own_settings() -> World {
    let world = installed(MODERN);
    session(&world, "claude-opus-5-5", 50_000);
    world.write(".claude/plimsoll.json", r#"{"levels": {"l1": 99}}"#);
    hook(&world, "plimsoll-stop-gate", "Stop");
    world
}

fn broken_state() -> World {
    let world = installed(MODERN);
    world.write(".claude/ralph-state.json", "{ broken");
    world
}

fn abandoned() -> World {
    let world = installed(MODERN);
    world.plimsoll(&["start", "--objective", "Do it."]).run().expect_success();
    world
}

fn hook(world: &World, program: &str, event: &str) -> Finished {
    let payload = json!({
        "session_id": SESSION, "hook_event_name": event, "cwd": world.project(),
        "transcript_path": world.home().join("transcript.jsonl"),
    });
    let project = world.project().display().to_string();
    world.hook(program, &payload).env("CLAUDE_PROJECT_DIR", project).run().expect_success()
}

/// A session of no run, whose last answer was sent with so many tokens.
fn session(world: &World, model: &str, tokens: u64) {
    let usage = json!({ "input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1 });
    let line = json!({
        "type": "assistant", "isSidechain": false, "requestedModel": model, "timestamp": "2026-01-07T11:45:00.000Z",
        "message": { "id": "msg_1", "model": model, "role": "assistant", "content": [], "usage": usage },
    });
    world.write(world.home().join("transcript.jsonl"), &format!("{line}\n"));
    hook(world, "plimsoll-session-start", "SessionStart");
    hook(world, "plimsoll-post-tool", "PostToolBatch");
}

#[test]
fn the_window_is_told_with_its_sources_and_a_level_out_of_reach_is_noted() {
    let world = installed(MODERN);
    session(&world, "claude-opus-4-6", 40_000);
    world.write(".claude/plimsoll/windows.json", r#"{"claude-opus-4-6": 190000}"#);
    user_settings(&world, r#"{"env": {"DISABLE_AUTO_COMPACT": "1"}}"#);
    let visit = visit(&world);
    assert_eq!(visit.troubles(), [""; 0], "{:#?}", visit.findings());
    let window = &visit.document["window"];
    assert_eq!(window["window"], json!({ "tokens": 190_000, "source": "learned" }));
    assert_eq!(window["sources"][1], json!({ "tokens": 200_000, "source": "table" }));
    assert_eq!((&window["session_id"], &window["reading"]["used"]), (&json!(SESSION), &json!(40_000)));
    assert_eq!(visit.finding("window.out_of_reach")["severity"], "note");
    let page = world.plimsoll(&["doctor"]).run().expect_success().stdout;
    insta::assert_snapshot!(section(&stable_page(&world, &page), "Window"), @"
    ok       Window       190k tokens for claude-opus-4-6 (learned from the client)
        session [ID]: 21% (40k tokens, transcript)
        model claude-opus-4-6: as the present session was asked for
        not used: 200k (table of models)
        auto-compact threshold 157k (83%): the client compacts there
        levels: L1 62%, L2 72%, L3 77%
        in force: DISABLE_AUTO_COMPACT=1 in sessions, by the env of ~/.claude/settings.json; not in
          the figures here
        note: L2 (85%) and L3 (95%) would be out of reach, because the client acts at 83%: lowered to L2
          72%, L3 77%
        → nothing: they are reached in time now; for more room choose a model with a larger window, or
          smaller `margins` in your own settings
    ");
}

/// The payload of a status line as a session with an inherited `CLAUDE_CODE_CHILD_SESSION` was seen to get it (2.1.329).
fn status_line(world: &World, used: u64) -> String {
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
fn a_session_whose_transcript_is_not_written_is_named_in_the_line_and_by_the_doctor() {
    let world = installed(MODERN);
    hook(&world, "plimsoll-session-start", "SessionStart");
    insta::assert_snapshot!(status_line(&world, 0), @"Opus 5.5 │ project │ ⎇ main ?1 │ ▕░░░░░░░░░░░░░░┆░░┆░┃▏ ? │ $0.05");
    assert_eq!(visit(&world).troubles(), [""; 0]);
    insta::assert_snapshot!(status_line(&world, 460_000), @"Opus 5.5 │ project │ ⎇ main ?1 │ ▕██████████░░░░┆░░┆░┃▏ 46% 460k/1M · 507k left │ $0.05 │ ⚠ no transcript");
    let of_doctor = visit(&world);
    assert_eq!(of_doctor.troubles(), ["window.no_transcript"], "{:#?}", of_doctor.findings());
    insta::assert_snapshot!(of_doctor.advice(&world, "window.no_transcript"), @"
    Claude Code writes no transcript of the last session: usage is known only from its status line, and handoffs lack the session's words and commands
    start Claude Code without the variable that another session handed down: `env -u CLAUDE_CODE_CHILD_SESSION claude`
    ");
    // The client deletes transcripts after some weeks.
    let record = format!(".claude/plimsoll/sessions/{SESSION}.status.json");
    let mut old = world.json(&record);
    old["at"] = "2026-01-07T11:45:00.000Z".into();
    world.write(&record, &old.to_string());
    assert_eq!(visit(&world).troubles(), [""; 0]);
    world.write(world.home().join("transcript.jsonl"), "");
    insta::assert_snapshot!(status_line(&world, 470_000), @"Opus 5.5 │ project │ ⎇ main ?1 │ ▕██████████░░░░┆░░┆░┃▏ 47% 470k/1M · 497k left │ $0.05");
    assert_eq!(visit(&world).troubles(), [""; 0]);
}

#[test]
fn what_the_client_says_of_our_hooks_is_found_in_its_transcript() {
    let world = installed(MODERN);
    session(&world, "claude-opus-5-5", 40_000);
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
    let visit = visit(&world);
    assert_eq!(visit.troubles(), ["faults.client"], "{:#?}", visit.findings());
    insta::assert_snapshot!(visit.advice(&world, "faults.client"), @"
    the client could not run `/gone/plimsoll-stop-gate` (1 time in this session): ENOENT
    check that the program exists and starts; `plimsoll init` (with the option of its settings) writes its path again
    ");
}

#[test]
fn a_lock_that_somebody_holds_is_named_with_the_process() {
    let world = installed(MODERN);
    let path = world.path(".claude/ralph-state.json.lock");
    let _held = plimsoll_store::lock::acquire(&path, std::time::Duration::ZERO).unwrap();
    let visit = visit(&world);
    assert_eq!(visit.troubles(), ["disk.locked"], "{:#?}", visit.findings());
    let what = visit.finding("disk.locked")["what"].as_str().unwrap();
    let what = what.replace(&format!("process {} ", std::process::id()), "process [OF THIS TEST] ");
    insta::assert_snapshot!(world.stable_text(&what), @"process [OF THIS TEST] holds the state's lock: hooks wait for it until they time out");
}

#[test]
fn a_memory_without_its_server_is_named() {
    let world = with_client(MODERN);
    world.plimsoll(&["init", "--local", "--memory"]).run().expect_success();
    assert_eq!(visit(&world).troubles(), [""; 0]);
    world.command("rm", &[".mcp.json", ".claude/agents/frame.md"]).run().expect_success();
    assert_eq!(visit(&world).troubles(), ["memory.no_server", "memory.no_agent"]);
}

/// A folder with `plimsoll` and what these lines put beside it.
fn apart(world: &World, line: &str) -> PathBuf {
    let bin = world.home().join("apart");
    let from = bin_dir().display().to_string();
    let to = bin.display().to_string();
    let line = format!(
        "mkdir -p '{to}' && cd '{to}' && ln '{from}/plimsoll' . 2>/dev/null || cp '{from}/plimsoll' '{to}'; cd '{to}'; {line}"
    );
    world.command("sh", &["-c", &line]).run().expect_success();
    bin
}

#[test]
fn a_program_that_is_missing_or_broken_or_old_is_named() {
    let world = installed(MODERN);
    let script =
        |name: &str, words: &str| format!("printf '#!/bin/sh\\necho {words}\\n' > {name}; chmod 755 {name};");
    let line = [
        script("plimsoll-frame", r#"\047{"program":"plimsoll-frame","version":"0.0.1"}\047"#),
        script("plimsoll-memory", "{}"),
        script("plimsoll-post-tool", "plimsoll-post-tool 0.1.0"),
        "chmod 644 plimsoll-post-tool".to_owned(),
    ];
    let bin = apart(&world, &line.concat());
    let finished = world.command(bin.join("plimsoll"), &["doctor", "--json"]).run();
    let visit = Visit { document: finished.json(), finished };
    assert_eq!(visit.finished.code, Some(1), "{:?}", visit.finished);
    let place = |code: &str| {
        let place = visit.finding(code)["where"].as_str().map(PathBuf::from).unwrap();
        place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap()
    };
    assert_eq!(place("programs.other_version"), "plimsoll-frame");
    assert_eq!(place("programs.silent"), "plimsoll-memory");
    assert_eq!(place("programs.not_executable"), "plimsoll-post-tool");
    let first_missing = settings::PROGRAM_NAMES.iter().find(|name| !line.concat().contains(**name)).unwrap();
    assert_eq!(place("programs.missing"), *first_missing);
    assert!(visit.troubles().contains(&"programs.several"), "the one on the PATH is another");
}

#[test]
fn a_program_that_a_strangers_settings_name_is_judged_and_never_started() {
    let world = with_client(MODERN);
    let folder = world.home().join("theirs");
    for program in settings::PROGRAM_NAMES.iter() {
        world.write(folder.join(program), "#!/bin/sh\ntouch \"$HOME/was-started\"\n");
    }
    let line = format!("chmod 755 '{}'/*", folder.display());
    world.command("sh", &["-c", &line]).run().expect_success();
    world.write(".claude/settings.json", &elsewhere(&folder.display().to_string()));
    exclude(&world);
    let visit = visit(&world);
    assert!(visit.troubles().iter().all(|code| *code == "programs.other_version"), "{:#?}", visit.findings());
    assert_eq!(visit.finding("programs.other_version")["where"], ".claude/settings.json");
    assert!(!world.home().join("was-started").exists());
}

#[test]
fn an_entry_by_bare_name_is_named_and_init_gives_it_a_path() {
    let world = with_client(MODERN);
    let bare = settings::install("", HookSupport::Modern, &str::to_owned).unwrap().text;
    user_settings(&world, &bare);
    let found = visit(&world);
    assert_eq!((found.troubles(), found.finished.code), (vec!["settings.bare_name"], Some(0)));
    assert_eq!(found.finding("settings.bare_name")["where"], "~/.claude/settings.json");
    insta::assert_snapshot!(found.advice(&world, "settings.bare_name"), @"
    the settings name 6 programs without the folder: a client with another PATH (of an editor, the desktop, cron) does not find them
    run `plimsoll init` again with the option of those settings (--user, --local)
    ");
    world.plimsoll(&["init", "--user"]).run().expect_success();
    assert_eq!(visit(&world).troubles(), [""; 0]);
    // Such an entry searches the PATH on purpose.
    world.plimsoll(&["init", "--project", "--entries"]).run().expect_success();
    assert!(!visit(&world).troubles().contains(&"settings.bare_name"));
}

/// Programs of the hooks' names that leave a trace when they are started, and start only with a PATH.
fn wrappers(world: &World, folder: &Path) {
    for program in settings::PROGRAM_NAMES.iter() {
        let real = bin_dir().join(program).display().to_string();
        let text = format!("#!/bin/sh\n: >\"$HOME/was-started\"\nexec env '{real}' \"$@\"\n");
        world.write_program(folder.join(program), &text);
    }
}

#[test]
fn a_users_entry_that_does_not_start_with_an_empty_path_is_named() {
    let world = with_client(MODERN);
    let folder = world.home().join("wrappers");
    wrappers(&world, &folder);
    user_settings(&world, &elsewhere(&folder.display().to_string()));
    let found = visit(&world);
    assert!(world.home().join("was-started").exists());
    assert_eq!(found.finished.code, Some(1), "{:#?}", found.findings());
    let all: Vec<&str> =
        found.troubles().into_iter().filter(|code| *code == "settings.does_not_start").collect();
    assert_eq!(all.len(), 6, "each program once: {:#?}", found.findings());
    insta::assert_snapshot!(found.advice(&world, "settings.does_not_start"), @"
    the settings name [HOME]/wrappers/plimsoll-post-tool, which does not start with an empty PATH
    run `plimsoll init` again with the option of those settings (--user, --local)
    ");
}

#[test]
fn no_program_is_started_because_a_file_of_the_project_names_it_and_none_inside_it() {
    for (file, folder) in [
        (".claude/settings.local.json", "../home/wrappers"),
        (".claude/settings.local.json", "tools"),
        (".claude/settings.json", "../home/wrappers"),
        ("../home/.claude/settings.json", "tools"),
    ] {
        let world = with_client(MODERN);
        let folder = world.path(folder);
        wrappers(&world, &folder);
        let folder = folder.canonicalize().unwrap();
        world.write(file, &elsewhere(&folder.display().to_string()));
        let found = visit(&world);
        assert!(found.troubles().contains(&"programs.other_version"), "{file}: {:#?}", found.findings());
        assert!(!found.troubles().contains(&"settings.does_not_start"), "{file}: {:#?}", found.findings());
        assert!(!world.home().join("was-started").exists(), "{file}, {}", folder.display());
    }
}

#[test]
fn every_hook_program_tells_its_version_and_then_does_nothing_else() {
    let world = World::untouched();
    for program in settings::PROGRAM_NAMES.iter() {
        let finished = world.command(bin_dir().join(program), &["version"]).run().expect_success();
        let version = finished.stdout.strip_prefix(&format!("{program} ")).map(str::trim_end);
        assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "{finished:?}");
    }
    assert!(!Path::new(&world.path(".claude")).exists());
}

#[test]
fn every_program_says_which_build_it_is_and_all_say_the_same() {
    let world = World::untouched();
    let others = ["plimsoll", "plimsoll-fleet", "plimsoll-linear", "plimsoll-mcp"]
        .map(|program| (program, "--version"));
    let hooks = settings::PROGRAM_NAMES.iter().map(|program| (*program, "version"));
    let mut builds = Vec::new();
    for (program, word) in hooks.chain(others) {
        let finished = world.command(bin_dir().join(program), &[word, "--json"]).run().expect_success();
        let mut build = finished.json();
        assert_eq!(build["program"], program);
        assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
        assert!(build["target"].as_str().unwrap().contains("-linux-"), "{build}");
        build["program"] = Value::Null;
        builds.push(build);
    }
    builds.dedup();
    assert_eq!(builds.len(), 1, "{builds:#?}");
    let swapped = world.plimsoll(&["--json", "-V"]).run().expect_success().json();
    assert_eq!(swapped["target"], builds[0]["target"]);
    assert!(!Path::new(&world.path(".claude")).exists());
}

#[test]
fn programs_of_another_build_are_named_and_one_of_the_project_is_not_started() {
    let world = installed(MODERN);
    let told = r#"{"program":"plimsoll-frame","version":"VERSION","target":"other-target","commit":null}"#;
    let told = told.replace("VERSION", env!("CARGO_PKG_VERSION"));
    let bin = apart(&world, &format!("cp '{}/plimsoll-mcp' .", bin_dir().display()));
    world.write_program(bin.join("plimsoll-frame"), &format!("#!/bin/sh\necho '{told}'\n"));
    world.write_program("tools/plimsoll", "#!/bin/sh\ntouch \"$HOME/was-started\"\n");
    let old = world.home().join("old");
    let of_old = r#"{"program":"plimsoll","version":"0.0.9"}"#;
    world.write_program(old.join("plimsoll"), &format!("#!/bin/sh\necho '{of_old}'\n"));
    let path = [bin.clone(), old.clone(), world.path("tools")].map(|folder| folder.display().to_string());
    let path = format!("{}:/usr/bin:/bin", path.join(":"));
    let finished = world.command(bin.join("plimsoll"), &["doctor", "--json"]).env("PATH", path).run();
    let visit = Visit { document: finished.json(), finished };
    let other_build =
        visit.advice(&world, "programs.other_build").replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    // The rest names the build of these tests.
    let (other_build, _) = other_build.split_once(", and ").expect("two builds");
    insta::assert_snapshot!(other_build, @"plimsoll-frame is of another build than plimsoll: [VERSION] (other-target)");
    insta::assert_snapshot!(visit.advice(&world, "programs.several"), @"
    more than one plimsoll is on the PATH: [HOME]/apart/plimsoll; [HOME]/old/plimsoll, 0.0.9; [PROJECT]/tools/plimsoll
    remove the old ones
    ");
    assert!(!world.home().join("was-started").exists());
    let all = visit.document["programs"]["all"].as_array().unwrap().clone();
    let version = |place: &str| {
        let is_it = |one: &&Value| one["path"].as_str().is_some_and(|path| path.ends_with(place));
        all.iter().find(is_it).map(|one| one["version"].clone())
    };
    assert_eq!(version("/tools/plimsoll"), Some(Value::Null));
    assert_eq!(version("/old/plimsoll"), Some("0.0.9".into()));
    assert_eq!(version("/plimsoll-mcp"), Some(env!("CARGO_PKG_VERSION").into()));
}

/// A sandbox may put a file system in memory over the state folder: commands write there, and nothing of it stays.
#[test]
fn a_state_folder_that_is_gone_afterwards_is_named() {
    let world = World::untouched();
    let state = world.home().join(".local/state");
    std::fs::create_dir_all(&state).unwrap();
    let doctor = |before: &str| {
        let script = format!("{before} exec {} doctor --json", bin_dir().join("plimsoll").display());
        world.command("unshare", &["-rm", "sh", "-c", &script]).run()
    };
    let is_named = |finished: &Finished| finished.stdout.contains("disk.fleeting_state");
    let mounted = doctor(&format!("mount -t tmpfs tmpfs {} || exit 77;", state.display()));
    if mounted.code == Some(77) || mounted.stdout.is_empty() {
        eprintln!("NOT TESTED: no mount of its own can be made here");
        return;
    }
    assert!(is_named(&mounted), "{mounted:?}");
    assert!(!is_named(&doctor("")));
}
