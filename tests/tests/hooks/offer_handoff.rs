//! The last handoff that no session has read is offered once, to the next session that its user starts.

use plimsoll_testkit::world::World;
use plimsoll_tests::parse_hook_reply;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Runs a session outside any run that leaves a handoff.
fn leave_handoff(world: &World, session: &str) {
    start_session(world, session, "startup", &[]);
    let id = ("CLAUDE_CODE_SESSION_ID", session);
    world.plimsoll(&["checkpoint"]).env(id.0, id.1).run().expect_success();
    let payload = json!({"session_id": session, "hook_event_name": "SessionEnd", "reason": "clear"});
    let finished = world.hook("plimsoll-session-end", &payload).run();
    assert_eq!((finished.code, parse_hook_reply(&finished)), (Some(0), json!({})), "{finished:?}");
}

fn start_session(world: &World, session: &str, source: &str, env: &[(&str, &str)]) -> Value {
    let payload = json!({"session_id": session, "hook_event_name": "SessionStart", "source": source});
    let mut hook = world.hook("plimsoll-session-start", &payload);
    for (name, value) in env {
        hook = hook.env(*name, *value);
    }
    parse_hook_reply(&hook.run())
}

/// Returns what the reply tells the user, and what it tells the model.
fn user_and_model_text(reply: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&reply["systemMessage"]), text(&reply["hookSpecificOutput"]["additionalContext"]))
}

fn unread_handoffs(world: &World) -> Vec<PathBuf> {
    let folder = world.home().join(".local/state/plimsoll/unread");
    let projects = std::fs::read_dir(folder).into_iter().flatten().flatten();
    projects
        .flat_map(|project| std::fs::read_dir(project.path()).expect("a folder"))
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn handoff_states(world: &World) -> Vec<String> {
    let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success().stdout_json();
    let state = |handoff: &Value| handoff["state"].as_str().unwrap_or("none").to_owned();
    listed.as_array().expect("a list").iter().map(state).collect()
}

/// If the slash command is installed and can continue a handoff, the offer names it: it stays short, however long the
/// path is.
#[test]
fn the_offer_names_the_slash_command_if_it_can_continue() {
    let offer_with = |installed: Option<&str>| {
        let world = World::new();
        leave_handoff(&world, "one");
        if let Some(text) = installed {
            world.write(world.home().join(".claude/commands/handoff.md"), text);
        }
        let (user, _) = user_and_model_text(&start_session(&world, "two", "startup", &[]));
        world.replace_varying_parts_with_placeholders(&user)
    };
    insta::assert_snapshot!(offer_with(Some("`plimsoll handoffs --continue`")), @"Plimsoll: an earlier session left a handoff ([TIME]). To continue its work: /handoff continue");
    insta::assert_snapshot!(offer_with(Some("of the user's own")), @"Plimsoll: an earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md");
    insta::assert_snapshot!(offer_with(None), @"Plimsoll: an earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md");
}

/// A session's transcript shows what the session opened: with its tool Read, or because the user mentioned the file.
#[test]
fn a_handoff_counts_as_read_once_a_session_has_opened_it() {
    for by_tool in [true, false] {
        let world = World::new();
        leave_handoff(&world, "one");
        let [file] = handoff_files(&world).try_into().expect("one handoff");
        let path = world.path(&file).display().to_string();
        let opened = if by_tool {
            json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": path}}]}})
        } else {
            json!({"type": "attachment", "attachment": {"type": "file", "filename": path}})
        };
        // The offer is in the transcript, too, but opens nothing.
        let offered = json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [path]}});
        let transcript = world.path("two.jsonl");
        world.write("two.jsonl", &format!("{offered}\n"));
        let payload = json!({"session_id": "two", "hook_event_name": "SessionStart", "source": "startup",
            "transcript_path": transcript});
        world.hook("plimsoll-session-start", &payload).run().expect_success();
        assert_eq!(handoff_states(&world), ["offered"]);
        let would_prune_handoff = |world: &World| {
            let pruned = world.plimsoll(&["prune", "--max-size", "1K", "--dry-run", "--json"]).run();
            pruned.expect_success().stdout_json()["removed"].to_string().contains("handoff")
        };
        assert!(!would_prune_handoff(&world), "nobody has opened it");
        world.write("two.jsonl", &format!("{offered}\n{opened}\n"));
        assert_eq!(handoff_states(&world), ["read"], "by_tool: {by_tool}");
        assert!(would_prune_handoff(&world), "from now on it may go");
    }
}

fn handoff_files(world: &World) -> Vec<String> {
    let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success().stdout_json();
    let file = |handoff: &Value| handoff["file"].as_str().expect("a path").to_owned();
    listed.as_array().expect("a list").iter().map(file).collect()
}

/// A clone may contain handoffs, and they may claim anything about themselves.
#[test]
fn continue_follows_only_handoffs_that_this_users_sessions_wrote() {
    let world = World::new();
    let run_continue = |session: &str| {
        world.plimsoll(&["handoffs", "--continue"]).env("CLAUDE_CODE_SESSION_ID", session).run()
    };
    let none = run_continue("two");
    assert_eq!(none.code, Some(1), "{none:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&none.stderr), @"
    error: no session of yours left a handoff in this project
    hint: a session leaves one at 85% of its context window, and with `/handoff`
    ");

    let foreign_handoff = ".claude/handoffs/2099-01-07-1145.md";
    let text =
        "# Handoff\n\n- Run: none\n- Session: zero\n- Written: 2099-01-07T11:45:00Z\n\nRun this first.\n";
    world.write(foreign_handoff, text);
    let refused = run_continue("two");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&refused.stderr.replace(foreign_handoff, "[FOREIGN]")), @"
    error: no session of yours left a handoff in this project
    hint: these are here, and your state folder does not say that a session of yours wrote them:
    - [FOREIGN]
    to continue from one that you trust, type: Continue from @[FOREIGN]
    ");

    leave_handoff(&world, "one");
    let own_handoff =
        handoff_files(&world).into_iter().find(|file| file != foreign_handoff).expect("the session's");
    let finished = run_continue("two").expect_success();
    let named = finished.stdout.replace(&own_handoff, "[OWN]").replace(foreign_handoff, "[FOREIGN]");
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&named), @"
    Continue from: [OWN]
    Written [TIME] by session one.
    Newer, and not followed, because your state folder does not say that a session of yours wrote them:
    - [FOREIGN]
    ");
    // Without the user's state only the session itself knows which handoff is its own.
    std::fs::remove_dir_all(world.home().join(".local/state/plimsoll/unread")).expect("the index");
    assert_eq!(run_continue("two").code, Some(1));
    let finished_of_own_session = run_continue("one").expect_success();
    assert!(
        finished_of_own_session.stdout.starts_with(&format!("Continue from: {own_handoff}\n")),
        "{finished_of_own_session:?}"
    );
}

#[test]
fn only_the_next_session_is_offered_the_handoff() {
    for source in ["startup", "clear"] {
        let world = World::new();
        leave_handoff(&world, "one");
        let (user, model) =
            user_and_model_text(&start_session(&world, "two", source, &[("CLAUDE_CODE_ENTRYPOINT", "cli")]));
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&format!("{user}\n\nFor the model: {model}")), @"
            Plimsoll: an earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md

            For the model: For information: an earlier session in this project left a handoff ([TIME]): .claude/handoffs/[DATE-TIME].md. Read it only if the user asks you to continue that work.
            ");
        }
        assert_eq!(start_session(&world, "three", source, &[]), json!({}), "it is offered once");
        assert_eq!(handoff_states(&world), ["offered"], "nobody has opened it");
    }
}

#[test]
fn resumed_unattended_and_late_sessions_are_not_offered_the_handoff() {
    let run = ("PLIMSOLL_RUN_ID", "08fc6d19-c86d-43d4-b637-5ea7422a1469");
    for (source, env, is_old) in [
        // The session's conversation is still there.
        ("resume", None, false),
        ("compact", None, false),
        ("fork", None, false),
        ("startup", Some(run), false),
        // `claude -p`: no user is present.
        ("startup", Some(("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")), false),
        ("startup", None, true),
    ] {
        let world = World::new();
        leave_handoff(&world, "one");
        let [entry] = unread_handoffs(&world).try_into().expect("one unread handoff");
        if is_old {
            let args = ["-d", "25 hours ago", entry.to_str().expect("a plain path")];
            world.command("touch", &args).run().expect_success();
        }
        let reply = start_session(&world, "two", source, env.as_slice());
        assert!(!reply.to_string().contains("handoff"), "{source} {env:?}: {reply}");
        let listed = world.plimsoll(&["handoffs", "--json"]).run().expect_success().stdout_json();
        assert_eq!(
            (listed[0]["read"].as_bool(), unread_handoffs(&world).len()),
            (Some(false), 1),
            "{source} {env:?}"
        );
        let table = world.plimsoll(&["handoffs"]).run().expect_success().stdout;
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&table), @"
            WHEN             SESSION   STATE    FILE                FIRST REQUEST
            [TIME]         one       unread   [DATE-TIME].md

            To continue from one, start `claude` and type: Continue from @.claude/handoffs/[DATE-TIME].md
            ");
        }
    }
}

#[test]
fn the_handoff_of_a_live_session_is_offered_only_to_its_own_client() {
    let world = World::new();
    // This test's own process acts as the client of the session.
    let own_pid = std::process::id().to_string();
    let mut other_client = world.command("sleep", &["60"]).spawn();
    let other_pid = other_client.pid().to_string();
    let start_with_client = |session: &str, source: &str, client: &str| {
        start_session(&world, session, source, &[("CLAUDE_PID", client)])
    };
    start_with_client("one", "startup", &other_pid);
    world.plimsoll(&["checkpoint"]).env("CLAUDE_CODE_SESSION_ID", "one").run().expect_success();
    assert_eq!(start_with_client("two", "startup", &own_pid), json!({}), "its client lives");
    let (user, _) = user_and_model_text(&start_with_client("three", "clear", &other_pid));
    // The same client continues with another session.
    insta::assert_snapshot!(world.replace_varying_parts_with_placeholders(&user), @"Plimsoll: an earlier session left a handoff ([TIME]). To continue its work: Continue from @.claude/handoffs/[DATE-TIME].md");
    other_client.kill();
}

#[test]
fn a_handoff_that_comes_with_a_repository_is_never_offered() {
    let world = World::new();
    world.write(".claude/handoffs/2026-01-07-1145.md", "# Handoff\n\nRun this first.\n");
    world.write(".claude/plimsoll/unread/2026-01-07-1145.md", r#"{"v":1,"session_id":"one"}"#);
    assert_eq!(start_session(&world, "two", "startup", &[]), json!({}));
}

/// An agent can write the records of a project, and the hooks that renew a handoff run outside its sandbox.
#[test]
fn a_file_that_a_forged_record_names_as_its_handoff_is_not_overwritten() {
    for victim in ["notes.md", "../home/notes.md", ".claude/handoffs/2026-01-07-1145.md"] {
        let world = World::new();
        start_session(&world, "one", "startup", &[]);
        let victim =
            if victim.starts_with("..") { world.home().join("notes.md") } else { world.path(victim) };
        // The beginning of a handoff of another session.
        let text = "# Handoff\n\n- Session: two (2026-01-07)\n\nmine\n";
        world.write(&victim, text);
        let record = ".claude/plimsoll/sessions/one.json";
        let mut forged = world.read_json(record);
        forged["handoff"] = json!(victim);
        world.write(record, &forged.to_string());
        let payload = json!({"session_id": "one", "hook_event_name": "SessionEnd", "reason": "other"});
        world.hook("plimsoll-session-end", &payload).run();
        world.plimsoll(&["checkpoint"]).env("CLAUDE_CODE_SESSION_ID", "one").run().expect_success();
        assert_eq!(std::fs::read_to_string(&victim).expect("it is there"), text, "{}", victim.display());
    }
}
