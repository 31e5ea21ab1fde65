//! The last handoff that no session has read is offered once: to the session at which its user sits next.

use plimsoll_testkit::world::World;
use plimsoll_tests::reply;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A session of no run leaves a handoff.
fn leave(world: &World, session: &str) {
    start(world, session, "startup", &[]);
    let id = ("CLAUDE_CODE_SESSION_ID", session);
    world.plimsoll(&["checkpoint"]).env(id.0, id.1).run().expect_success();
    let payload = json!({"session_id": session, "hook_event_name": "SessionEnd", "reason": "clear"});
    let ended = world.hook("plimsoll-session-end", &payload).run();
    assert_eq!((ended.code, reply(&ended)), (Some(0), json!({})), "{ended:?}");
}

fn start(world: &World, session: &str, source: &str, env: &[(&str, &str)]) -> Value {
    let payload = json!({"session_id": session, "hook_event_name": "SessionStart", "source": source});
    let mut hook = world.hook("plimsoll-session-start", &payload);
    for (name, value) in env {
        hook = hook.env(*name, *value);
    }
    reply(&hook.run())
}

/// What is told: to the user, and to the model.
fn told(reply: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&reply["systemMessage"]), text(&reply["hookSpecificOutput"]["additionalContext"]))
}

fn unread(world: &World) -> Vec<PathBuf> {
    let folder = world.home().join(".local/state/plimsoll/unread");
    let projects = std::fs::read_dir(folder).into_iter().flatten().flatten();
    projects
        .flat_map(|project| std::fs::read_dir(project.path()).expect("a folder"))
        .flatten()
        .map(|it| it.path())
        .collect()
}

fn states(world: &World) -> Vec<String> {
    let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success().json();
    let state = |handoff: &Value| handoff["state"].as_str().unwrap_or("none").to_owned();
    listed.as_array().expect("a list").iter().map(state).collect()
}

/// Where the slash command is installed and can continue, it is offered: one word, however long the path is.
#[test]
fn the_slash_command_is_offered_where_it_can_continue() {
    let offer_with = |installed: Option<&str>| {
        let world = World::new();
        leave(&world, "one");
        if let Some(text) = installed {
            world.write(world.home().join(".claude/commands/handoff.md"), text);
        }
        let (user, _) = told(&start(&world, "two", "startup", &[]));
        world.stable_text(&user)
    };
    insta::assert_snapshot!(offer_with(Some("`plimsoll handoffs --continue`")), @"An earlier session left a handoff ([TIME]). To continue its work: /handoff continue");
    insta::assert_snapshot!(offer_with(Some("of the user's own")), @"An earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md");
    insta::assert_snapshot!(offer_with(None), @"An earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md");
}

/// The transcript of a session tells what it opened: by its tool Read, or because the user mentioned the file.
#[test]
fn a_handoff_is_read_once_a_session_has_opened_it() {
    for by_tool in [true, false] {
        let world = World::new();
        leave(&world, "one");
        let [file] = files(&world).try_into().expect("one handoff");
        let path = world.path(&file).display().to_string();
        let opened = if by_tool {
            json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": path}}]}})
        } else {
            json!({"type": "attachment", "attachment": {"type": "file", "filename": path}})
        };
        // The offer stands in the transcript, too, and opens nothing.
        let offered = json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [path]}});
        let transcript = world.path("two.jsonl");
        world.write("two.jsonl", &format!("{offered}\n"));
        let payload = json!({"session_id": "two", "hook_event_name": "SessionStart", "source": "startup",
            "transcript_path": transcript});
        world.hook("plimsoll-session-start", &payload).run().expect_success();
        assert_eq!(states(&world), ["offered"]);
        let prunes = |world: &World| {
            let pruned = world.plimsoll(&["prune", "--max-size", "1K", "--dry-run", "--json"]).run();
            pruned.expect_success().json()["removed"].to_string().contains("handoff")
        };
        assert!(!prunes(&world), "nobody has opened it");
        world.write("two.jsonl", &format!("{offered}\n{opened}\n"));
        assert_eq!(states(&world), ["read"], "by_tool: {by_tool}");
        assert!(prunes(&world), "from now on it may go");
    }
}

fn files(world: &World) -> Vec<String> {
    let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success().json();
    let file = |handoff: &Value| handoff["file"].as_str().expect("a path").to_owned();
    listed.as_array().expect("a list").iter().map(file).collect()
}

/// A clone may bring handoffs along, and they may say anything of themselves.
#[test]
fn continue_follows_only_what_sessions_of_this_user_wrote() {
    let world = World::new();
    let to_continue = |session: &str| {
        world.plimsoll(&["handoffs", "--continue"]).env("CLAUDE_CODE_SESSION_ID", session).run()
    };
    let none = to_continue("two");
    assert_eq!(none.code, Some(1), "{none:?}");
    insta::assert_snapshot!(world.stable_text(&none.stderr), @"
    plimsoll: no session of yours left a handoff in this project
    hint: a session leaves one at 85% of its context window, and with `/handoff`
    ");

    let foreign = ".claude/handoffs/2099-01-07-1145.md";
    let text =
        "# Handoff\n\n- Run: none\n- Session: zero\n- Written: 2099-01-07T11:45:00Z\n\nRun this first.\n";
    world.write(foreign, text);
    let refused = to_continue("two");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    insta::assert_snapshot!(world.stable_text(&refused.stderr.replace(foreign, "[FOREIGN]")), @"
    plimsoll: no session of yours left a handoff in this project
    hint: these are here, and your state folder does not say that a session of yours wrote them:
    - [FOREIGN]
    to continue from one that you trust, type: Continue from @[FOREIGN]
    ");

    leave(&world, "one");
    let own = files(&world).into_iter().find(|file| file != foreign).expect("the session's");
    let found = to_continue("two").expect_success();
    let named = found.stdout.replace(&own, "[OWN]").replace(foreign, "[FOREIGN]");
    insta::assert_snapshot!(world.stable_text(&named), @"
    Continue from: [OWN]
    Written [TIME] by session one.
    Newer, and not followed, because your state folder does not say that a session of yours wrote them:
    - [FOREIGN]
    ");
    // Without the user's state only the session itself knows which one is its own.
    std::fs::remove_dir_all(world.home().join(".local/state/plimsoll/unread")).expect("the index");
    assert_eq!(to_continue("two").code, Some(1));
    let own_found = to_continue("one").expect_success();
    assert!(own_found.stdout.starts_with(&format!("Continue from: {own}\n")), "{own_found:?}");
}

#[test]
fn the_next_session_is_offered_the_handoff_and_the_one_after_is_not() {
    for source in ["startup", "clear"] {
        let world = World::new();
        leave(&world, "one");
        let (user, model) = told(&start(&world, "two", source, &[("CLAUDE_CODE_ENTRYPOINT", "cli")]));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(&format!("{user}\n\nFor the model: {model}")), @"
            An earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md

            For the model: For information: an earlier session in this project left a handoff ([TIME]): .claude/handoffs/[DATE-TIME].md. Read it only if the user asks you to continue that work.
            ");
        }
        assert_eq!(start(&world, "three", source, &[]), json!({}), "it is offered once");
        assert_eq!(states(&world), ["offered"], "nobody has opened it");
    }
}

#[test]
fn nobody_else_is_offered_it_and_it_stays_unread() {
    let run = ("PLIMSOLL_RUN_ID", "08fc6d19-c86d-43d4-b637-5ea7422a1469");
    for (source, env, is_old) in [
        // Its conversation is there.
        ("resume", None, false),
        ("compact", None, false),
        ("fork", None, false),
        ("startup", Some(run), false),
        // `claude -p`: nobody sits there.
        ("startup", Some(("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")), false),
        ("startup", None, true),
    ] {
        let world = World::new();
        leave(&world, "one");
        let [entry] = unread(&world).try_into().expect("one unread handoff");
        if is_old {
            let args = ["-d", "25 hours ago", entry.to_str().expect("a plain path")];
            world.command("touch", &args).run().expect_success();
        }
        let reply = start(&world, "two", source, env.as_slice());
        assert!(!reply.to_string().contains("handoff"), "{source} {env:?}: {reply}");
        let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success().json();
        assert_eq!((listed[0]["read"].as_bool(), unread(&world).len()), (Some(false), 1), "{source} {env:?}");
        let table = world.plimsoll(&["handoffs"]).run().expect_success().stdout;
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.stable_text(&table), @"
            WHEN             SESSION   STATE    FILE                FIRST REQUEST
            [TIME]         one       unread   [DATE-TIME].md

            To continue from one, start `claude` and type: Continue from @.claude/handoffs/[DATE-TIME].md
            ");
        }
    }
}

#[test]
fn a_session_that_still_works_elsewhere_is_not_offered_and_after_clear_its_own_client_is() {
    let world = World::new();
    // This test's own process stands for the client of the session.
    let mine = std::process::id().to_string();
    let mut other = world.command("sleep", &["60"]).spawn();
    let alive = other.pid().to_string();
    let begin =
        |session: &str, source: &str, client: &str| start(&world, session, source, &[("CLAUDE_PID", client)]);
    begin("one", "startup", &alive);
    world.plimsoll(&["checkpoint"]).env("CLAUDE_CODE_SESSION_ID", "one").run().expect_success();
    assert_eq!(begin("two", "startup", &mine), json!({}), "its client lives");
    let (user, _) = told(&begin("three", "clear", &alive));
    // The same client goes on with another session.
    insta::assert_snapshot!(world.stable_text(&user), @"An earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md");
    other.kill();
}

#[test]
fn a_handoff_that_a_repository_brings_along_is_offered_to_nobody() {
    let world = World::new();
    world.write(".claude/handoffs/2026-01-07-1145.md", "# Handoff\n\nRun this first.\n");
    world.write(".claude/plimsoll/unread/2026-01-07-1145.md", r#"{"v":1,"session_id":"one"}"#);
    assert_eq!(start(&world, "two", "startup", &[]), json!({}));
}

/// The records of a project are the agent's to write, and the hooks that renew a handoff work outside of its sandbox.
#[test]
fn a_record_that_names_another_file_as_its_handoff_has_nothing_written_there() {
    for victim in ["notes.md", "../home/notes.md", ".claude/handoffs/2026-01-07-1145.md"] {
        let world = World::new();
        start(&world, "one", "startup", &[]);
        let victim =
            if victim.starts_with("..") { world.home().join("notes.md") } else { world.path(victim) };
        // As a handoff of another session says it.
        let text = "# Handoff\n\n- Session: two (2026-01-07)\n\nmine\n";
        world.write(&victim, text);
        let record = ".claude/plimsoll/sessions/one.json";
        let mut forged = world.json(record);
        forged["handoff"] = json!(victim);
        world.write(record, &forged.to_string());
        let payload = json!({"session_id": "one", "hook_event_name": "SessionEnd", "reason": "other"});
        world.hook("plimsoll-session-end", &payload).run();
        world.plimsoll(&["checkpoint"]).env("CLAUDE_CODE_SESSION_ID", "one").run().expect_success();
        assert_eq!(std::fs::read_to_string(&victim).expect("it is there"), text, "{}", victim.display());
    }
}
