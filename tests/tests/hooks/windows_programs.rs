//! Tests of the programs for Windows: the settings that they write, and the commands that they refuse. `scripts/wine.sh` runs
//! them.

use plimsoll_protocol::settings::PROGRAM_NAMES;
use plimsoll_testkit::world::{FinishedProgram, World};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A user's settings with what must not change: line ends of Windows, spacing, foreign hooks.
const USER_SETTINGS: &str = "{\r\n  \"zeta\": 1.50,\r\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"C:\\\\tools\\\\say.exe done\"}]}]}\r\n}\r\n";
const USER_FILE: &str = ".claude/settings.json";

/// Returns a world without our hooks, whose programs are for Windows.
fn world_requiring_windows_programs() -> World {
    let world = World::without_plimsoll_files();
    let build = world.plimsoll(&["--version", "--json"]).run().expect_success().stdout_json();
    let target = build["target"].as_str().unwrap_or_default();
    assert!(
        target.contains("windows"),
        "this test needs programs for Windows (scripts/wine.sh), and these are for {target}"
    );
    world
}

fn run_successfully(world: &World, arguments: &[&str]) -> FinishedProgram {
    world.plimsoll(arguments).run().expect_success()
}

/// Returns the commands of the hooks in a settings file that start our programs, in exec form.
fn our_hook_commands(settings: &Value) -> Vec<String> {
    let groups = settings["hooks"].as_object().into_iter().flat_map(|events| events.values());
    let entries = groups.flat_map(|groups| groups.as_array().into_iter().flatten());
    let hooks = entries.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
    let ours = hooks.filter(|hook| hook["args"].is_array());
    ours.map(|hook| hook["command"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the path on this machine of a path of Windows.
fn path_below_drive(world: &World, windows_path: &str) -> PathBuf {
    let home = world.home();
    let drive = home.ancestors().find(|folder| folder.ends_with("drive_c")).expect("a folder of drive C");
    drive.join(windows_path.strip_prefix("C:/").expect("a path of drive C"))
}

fn file_name(command: &str) -> &str {
    command.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns the relative paths and contents of all files below a folder.
fn files_below(folder: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in std::fs::read_dir(current).expect("a folder").map_while(Result::ok) {
            let path = entry.path();
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.insert((path.clone(), std::fs::read(path).expect("a file")));
            }
        }
    }
    files
}

#[test]
fn init_writes_exec_form_entries_and_uninstall_restores_the_file() {
    let world = world_requiring_windows_programs();
    for (scope, file) in
        [("--local", world.path(".claude/settings.local.json")), ("--user", world.home().join(USER_FILE))]
    {
        world.write(&file, USER_SETTINGS);
        let first = run_successfully(&world, &["init", scope]);
        assert!(first.stdout.contains("Kept: 1 hook of other programs"), "{scope}: {first:?}");
        let text = world.read(&file);
        let settings: Value = serde_json::from_str(&text).expect("JSON");
        let commands = our_hook_commands(&settings);
        assert!(commands.len() > 5, "{text}");
        for command in &commands {
            let program = command.strip_prefix(r"C:\plimsoll\").and_then(|name| name.strip_suffix(".exe"));
            assert!(program.is_some_and(|program| PROGRAM_NAMES.contains(&program)), "{command}");
        }
        assert_eq!(settings["statusLine"]["command"], "C:/plimsoll/plimsoll-statusline.exe");
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{text}");

        run_successfully(&world, &["init", scope]);
        assert_eq!(world.read(&file), text, "{scope}: a second time");
        run_successfully(&world, &["uninstall", scope]);
        assert_eq!(world.read(&file), USER_SETTINGS, "{scope}");
    }
}

#[test]
fn the_memory_is_installed_and_doctor_finds_no_fault_of_ours() {
    let world = world_requiring_windows_programs();
    run_successfully(&world, &["init", "--local", "--memory"]);
    let server = &world.read_json(".mcp.json")["mcpServers"]["plimsoll"];
    assert_eq!(server["command"], r"C:\plimsoll\plimsoll-mcp.exe", "{server}");
    let commands = our_hook_commands(&world.read_json(".claude/settings.local.json"));
    assert!(commands.iter().any(|command| file_name(command) == "plimsoll-memory.exe"), "{commands:?}");

    let before = files_below(&world.project());
    let doctor = world.plimsoll(&["doctor", "--json"]).run();
    let findings = doctor.stdout_json()["findings"].clone();
    let codes: Vec<&str> =
        findings.as_array().into_iter().flatten().filter_map(|finding| finding["code"].as_str()).collect();
    // Wine has neither the client nor git.
    assert!(codes.contains(&"client.missing"), "{findings:#}");
    let unexpected = ["settings.", "programs.", "memory.", "disk.", "hooks."];
    let ours: Vec<&&str> =
        codes.iter().filter(|code| unexpected.iter().any(|prefix| code.starts_with(prefix))).collect();
    assert!(ours.is_empty(), "{findings:#}");
    assert_eq!(files_below(&world.project()), before, "doctor writes nothing");

    run_successfully(&world, &["uninstall", "--local"]);
    assert!(!world.exists(".mcp.json") && !world.exists(".claude/settings.local.json"));
}

/// npm's packages have one file for all hooks, and npm may delete it.
#[test]
fn programs_of_an_npm_package_are_copied_under_each_name() {
    let mut world = world_requiring_windows_programs();
    let package = world.home().join("node_modules/@plimsoll/win32-x64/bin");
    let installed = path_below_drive(&world, "C:/plimsoll");
    std::fs::create_dir_all(&package).expect("a folder");
    for (from, to) in [("plimsoll", "plimsoll"), ("plimsoll-stop-gate", "plimsoll-hook")] {
        let copied = std::fs::copy(installed.join(format!("{from}.exe")), package.join(format!("{to}.exe")));
        copied.expect("a copy");
    }
    let data_folder = world.home().join("Jane Doe (x)");
    std::fs::create_dir_all(&data_folder).expect("a folder");
    world.set_env("XDG_DATA_HOME", data_folder.display().to_string());
    let program = package.join("plimsoll.exe").display().to_string();
    let run_package = |arguments: &[&str]| {
        world.plimsoll(arguments).env("PLIMSOLL_WINDOWS_PROGRAM", program.as_str()).run().expect_success()
    };
    run_package(&["init", "--user"]);

    let settings = world.read_json(world.home().join(USER_FILE));
    let status_line = settings["statusLine"]["command"].as_str().unwrap_or_default();
    assert!(!status_line.contains(['"', '\'', ' ', '(', '\\']), "{status_line}");
    assert!(status_line.ends_with("/bin/plimsoll-statusline.exe"), "{status_line}");
    let commands = our_hook_commands(&settings);
    let folder = commands[0].rsplit_once('\\').map(|(folder, _)| folder).unwrap_or_default();
    assert!(commands.iter().all(|command| command.starts_with(&format!(r"{folder}\"))), "{commands:?}");
    assert!(status_line.starts_with(&folder.replace('\\', "/")), "{status_line}");

    let version = env!("CARGO_PKG_VERSION");
    let copies = data_folder.join("plimsoll/versions").join(version).join("bin");
    let hook_program = std::fs::read(package.join("plimsoll-hook.exe")).expect("a file");
    for name in PROGRAM_NAMES.iter() {
        let copy = copies.join(format!("{name}.exe"));
        assert!(std::fs::read(&copy).is_ok_and(|bytes| bytes == hook_program), "{}", copy.display());
    }
    // Another build of the same version replaces the copies.
    let outdated = copies.join(format!("{}.exe", PROGRAM_NAMES[0]));
    std::fs::write(&outdated, "an earlier build").expect("a file");
    run_package(&["init", "--user"]);
    assert!(std::fs::read(&outdated).is_ok_and(|bytes| bytes == hook_program));
    run_package(&["uninstall", "--user"]);
    assert!(!world.exists(world.home().join(USER_FILE)));
}

#[test]
fn a_plan_with_line_ends_of_windows_is_estimated() {
    let world = world_requiring_windows_programs();
    world.write(
        "fix_plan.md",
        "# Plan\r\n\r\n- [x] Parse dates\r\n- [ ] Convert the table\r\n- [ ] Write it down\r\n",
    );
    let plan = run_successfully(&world, &["plan", "--json"]).stdout_json();
    let items: Vec<&Value> =
        plan["items"].as_array().into_iter().flatten().map(|item| &item["item"]).collect();
    assert_eq!(items, ["Convert the table", "Write it down"], "{plan:#}");
    assert_eq!(plan["complaints"], Value::Array(Vec::new()));
    let text = run_successfully(&world, &["plan"]).stdout;
    assert!(text.contains("Convert the table") && !text.contains('\r'), "{text}");
}

#[test]
fn runs_and_fleets_are_refused_in_one_line_and_change_nothing() {
    let world = world_requiring_windows_programs();
    world.write("fix_plan.md", "- [ ] Parse dates\n");
    let before = (files_below(&world.project()), files_below(&world.home()));
    for (arguments, command) in [
        (&["run", "Do it.", "--client", "claude"][..], "plimsoll run"),
        (&["run", "--workers", "2", "Do it."], "plimsoll run"),
        (&["run", "--resume"], "plimsoll run"),
        (&["start", "--objective", "Do it."], "plimsoll start"),
        (&["demo"], "plimsoll demo"),
        (&["fleet", "create", "night", "--todo", "fix_plan.md"], "plimsoll fleet"),
        (&["fleet", "join", "night"], "plimsoll fleet"),
    ] {
        let refused = world.plimsoll(arguments).run();
        let expected = format!("error: `{command}` is not on Windows yet: use WSL\n");
        assert_eq!((refused.code, refused.stdout.as_str(), &refused.stderr), (Some(1), "", &expected));
    }
    assert!((files_below(&world.project()), files_below(&world.home())) == before, "something changed");
}
