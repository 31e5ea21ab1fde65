//! `plimsoll doctor` about our module in Claude Code and the modules of other plugins, and the run's record of them.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::World;
use plimsoll_tests::{ScriptedAgent, honest_agent, run_with_objective};
use serde_json::{Value, json};

const SESSION: &str = "d8e9da22-d41b-4824-a1be-f318ff23689b";
const COMPACT_HANDLER: &str =
    "export const register = (on) => { on(\"session.compact\", ($, e, next) => next(e)); };\n";

/// Creates a project with our programs and a client that only prints its version.
fn world_with_client(version: &str) -> World {
    let mut world = World::new();
    let clients = world.home().join("clients");
    world.write_program(clients.join("claude"), &format!("#!/bin/sh\necho '{version} (Claude Code)'\n"));
    let path = [find_or_build_bin_dir(), clients, "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
    world.set_env("PATH", path.map(|folder| folder.display().to_string()).join(":"));
    world
}

fn world_with_module(version: &str) -> World {
    let world = world_with_client(version);
    world.plimsoll(&["init", "--module"]).run().expect_success();
    world
}

/// Records a session that began after the installation and has ended.
fn record_session(world: &World, module_reported_at: Option<&str>) {
    let payload = json!({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup", "cwd": world.project()});
    world.hook("plimsoll-session-start", &payload).run().expect_success();
    let payload = json!({"session_id": SESSION, "hook_event_name": "SessionEnd", "reason": "other", "cwd": world.project()});
    world.hook("plimsoll-session-end", &payload).run().expect_success();
    let path = format!(".claude/plimsoll/sessions/{SESSION}.json");
    let mut record = world.read_json(&path);
    // The times of a record are whole seconds, and this test takes less than one.
    record["started_at"] = "2126-01-06T22:00:00Z".into();
    if let Some(reported_at) = module_reported_at {
        record["module_reported_at"] = reported_at.into();
    }
    world.write(&path, &record.to_string());
}

fn run_doctor(world: &World) -> Value {
    world.plimsoll(&["doctor", "--json"]).run().stdout_json()
}

fn module_codes(report: &Value) -> Vec<&str> {
    let codes = report["findings"].as_array().expect("findings").iter();
    codes.filter_map(|finding| finding["code"].as_str()).filter(|code| code.starts_with("module.")).collect()
}

/// Returns the lines of the page about the module.
fn module_section(world: &World) -> String {
    let page = world.plimsoll(&["doctor"]).run().stdout;
    let mut lines =
        page.lines().skip_while(|line| line.get(9..).is_none_or(|line| !line.starts_with("Module ")));
    let first = lines.next().unwrap_or_default().to_owned();
    let section = lines.take_while(|line| line.starts_with(' ')).fold(first, |text, line| text + "\n" + line);
    world.replace_varying_parts_with_placeholders(&section)
}

/// Writes a plugin with this module into a folder.
fn write_plugin(world: &World, folder: &std::path::Path, name: &str, module: &str) {
    world.write(folder.join(".claude-plugin/plugin.json"), &json!({ "name": name }).to_string());
    world.write(folder.join("hooks/hooks.json"), &json!({ "modules": ["./module.js"] }).to_string());
    world.write(folder.join("hooks/module.js"), module);
}

fn user_skills(world: &World) -> std::path::PathBuf {
    world.home().join(".claude/skills")
}

#[test]
fn doctor_says_whether_the_last_session_loaded_the_module() {
    let world = world_with_client("2.1.329");
    assert_eq!(
        run_doctor(&world)["module"],
        json!({"installed": null, "plugin": null, "answers": null, "loaded_at": null, "others": []})
    );
    let world = world_with_module("2.1.329");
    let unknown =
        "ok       Module       installed by `plimsoll init`; the last session does not show whether it loads";
    assert_eq!(module_section(&world), unknown);
    record_session(&world, None);
    insta::assert_snapshot!(module_section(&world), @"
    warning  Module       installed by `plimsoll init`; the last session did not load it
        - the last session did not load the module. `--bare`, `--safe-mode`, managed settings or a
          switch of Anthropic's can turn modules off; the hooks keep working
        → start a session without these options; if the module stays off, `claude plugin list` may say
          why
    ");
    record_session(&world, Some("2126-01-06T22:00:01Z"));
    let loaded = "ok       Module       installed by `plimsoll init`; the last session loaded it";
    assert_eq!(module_section(&world), loaded);
    assert_eq!(
        run_doctor(&world)["module"],
        json!({"installed": "~/.claude/skills/plimsoll", "plugin": null, "answers": "init",
            "loaded_at": "2126-01-06T22:00:01Z", "others": []})
    );
}

#[test]
fn doctor_names_what_switches_the_module_off() {
    let with_settings = |settings: Value| {
        let world = world_with_module("2.1.329");
        record_session(&world, None);
        world.write(".claude/settings.json", &settings.to_string());
        world
    };
    for (world, expected) in [
        (world_with_module("2.1.286"), &["module.old_client"][..]),
        (with_settings(json!({})), &["module.not_loaded"]),
        (with_settings(json!({"disableAllHooks": true})), &["module.hooks_disabled"]),
        (with_settings(json!({"enabledPlugins": {"plimsoll@skills-dir": false}})), &["module.switched_off"]),
        (
            with_settings(json!({"env": {"DISABLE_AUTO_COMPACT": "1"}})),
            &["module.no_auto_compact", "module.not_loaded"],
        ),
    ] {
        let report = run_doctor(&world);
        assert_eq!(module_codes(&report), expected, "{report:#}");
    }
}

#[test]
fn with_the_plugin_the_module_of_init_answers() {
    let world = world_with_module("2.1.329");
    let plugin_folder = plimsoll_testkit::workspace_root().join("hooks-config/plugin");
    let list = json!({ "version": 2, "plugins": { "plimsoll@plimsoll": [{ "scope": "user", "installPath": plugin_folder }] } });
    world.write(world.home().join(".claude/plugins/installed_plugins.json"), &list.to_string());
    world.write(".claude/settings.json", r#"{"enabledPlugins": {"plimsoll@plimsoll": true}}"#);
    let module = run_doctor(&world)["module"].clone();
    assert_eq!((&module["plugin"], &module["answers"]), (&json!("plimsoll@plimsoll"), &json!("init")));
    assert_eq!(module["others"], json!([]), "our own plugin is not another's");
    world.plimsoll(&["init", "--no-module"]).run().expect_success();
    assert_eq!(run_doctor(&world)["module"]["answers"], "plugin");
}

#[test]
fn doctor_names_modules_of_other_plugins_that_change_sessions() {
    let world = world_with_client("2.1.329");
    write_plugin(&world, &user_skills(&world).join("a"), "a", COMPACT_HANDLER);
    write_plugin(&world, &user_skills(&world).join("off"), "off", COMPACT_HANDLER);
    write_plugin(&world, &user_skills(&world).join("harmless"), "harmless", "on(\"session.start\", f)");
    write_plugin(&world, &world.path(".claude/skills/project"), "project", "on('*', f)");
    // A module outside of the plugin's folder is not read, neither through a link nor by its path.
    world.write(user_skills(&world).join("outside.js"), COMPACT_HANDLER);
    write_plugin(&world, &user_skills(&world).join("linked"), "linked", "");
    std::fs::remove_file(user_skills(&world).join("linked/hooks/module.js")).expect("a file");
    std::os::unix::fs::symlink("../../outside.js", user_skills(&world).join("linked/hooks/module.js"))
        .expect("a link");
    write_plugin(&world, &user_skills(&world).join("above"), "above", "");
    world.write(user_skills(&world).join("above/hooks/hooks.json"), r#"{"modules": ["../../outside.js"]}"#);
    let installed = world.home().join("cache/b");
    write_plugin(&world, &installed, "b", "on(\"turn.complete\", f); on(\"prompt.submit\", f)");
    let list = json!({ "version": 2, "plugins": { "b@market": [{ "installPath": installed }] } });
    world.write(world.home().join(".claude/plugins/installed_plugins.json"), &list.to_string());
    world.write(
        world.home().join(".claude/settings.json"),
        r#"{"enabledPlugins": {"b@market": true, "off@skills-dir": false}}"#,
    );
    insta::assert_snapshot!(module_section(&world), @"
    ok       Module       not installed; 3 modules of other plugins
        note: ~/cache/b/hooks/module.js: a module of another plugin can act inside your sessions and those
          of `plimsoll run`: b@market (turn.complete, prompt.submit)
        → nothing if you trust it; a module that answers compactions, continues turns or changes prompts
          may work against a run
        note: ~/.claude/skills/a/hooks/module.js: a module of another plugin can act inside your sessions
          and those of `plimsoll run`: a@skills-dir (session.compact)
        → nothing if you trust it; a module that answers compactions, continues turns or changes prompts
          may work against a run
        note: .claude/skills/project/hooks/module.js: a module of another plugin can act inside your
          sessions and those of `plimsoll run`: project@skills-dir (*)
        → nothing if you trust it; a module that answers compactions, continues turns or changes prompts
          may work against a run
    ");
    let others = run_doctor(&world)["module"]["others"].clone();
    let plugins: Vec<&str> =
        others.as_array().expect("a list").iter().filter_map(|module| module["plugin"].as_str()).collect();
    assert_eq!(plugins, ["b@market", "a@skills-dir", "project@skills-dir"]);
}

#[test]
fn the_report_of_a_run_names_modules_of_other_plugins() {
    let mut world = World::new();
    write_plugin(&world, &user_skills(&world).join("a"), "a", COMPACT_HANDLER);
    let _model = ScriptedAgent::new(honest_agent).start(&mut world);
    world.write("fix_plan.md", "- [ ] Write a.txt\n");
    run_with_objective(&world, &[]).expect_success();
    let page = world.plimsoll(&["report", "-o", "-"]).run().expect_success().stdout;
    let sentence = "Modules of other plugins could act in these sessions: a@skills-dir (session.compact)";
    assert!(page.contains(sentence), "{page}");
}
