//! Permissions, servers, matchers, agent definitions.

use crate::bench::{Bench, frame, push};
use serde_json::{json, Value};
use testkit::bin_dir;
use testkit::scripted_model::{RequestKind, ScriptedModel, Step, Request};
use testkit::world::World;

fn call(n: &str) -> Step { Step::default().tool("mcp__plimsoll__update_registers", json!({"R2_NEXT": n})) }

fn story(request: &Request) -> Step {
    match (request.kind, request.tool_results().len()) {
        (RequestKind::Subagent, 0) => call("by the frame"),
        (RequestKind::Subagent, _) => Step::text("Ended."),
        (_, 0) => call("by the session"),
        (_, 1) => push("Go."),
        _ => Step::text("Done."),
    }
}

fn world() -> World { World::without_git() }

fn server(extra: Value) -> Value {
    let mut entry = json!({"command": bin_dir().join("plimsoll-mcp")});
    entry.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"mcpServers": {"plimsoll": entry}})
}

fn tools(request: &Request) -> String {
    let t: Vec<&str> = request.body["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    t.join(" ")
}

fn report(name: &str, bench: &Bench, finished: &testkit::world::Finished) {
    eprintln!("##### {name}: {:?} {:?} {}", finished.code, finished.result()["result"], finished.stderr);
    for r in bench.model.requests() {
        let res: Vec<String> = r.tool_results().into_iter().map(|(_, t)| t.chars().take(200).collect()).collect();
        eprintln!("{:?} bytes {} system {} tools {} results {res:?}", r.kind, r.bytes(), r.system_text().len(), tools(&r));
    }
    for n in bench.noted_of("SubagentStart") { eprintln!("SubagentStart {}", n["agent_type"]); }
    for e in ["PermissionRequest", "PermissionDenied"] { for n in bench.noted_of(e) { eprintln!("{e} {n}"); } }
}

fn quiet(bench: &Bench) -> testkit::world::Launch {
    bench.world.claude(&["-p", "Work.", "--model", "opus", "--output-format", "json"])
}

#[test]
fn a1_permissions() {
    // .mcp.json in the project, nothing allowed.
    let bench = Bench::of(world(), ScriptedModel::start(story));
    bench.world.write(".mcp.json", &server(json!({})).to_string());
    let f = quiet(&bench).run();
    report("mcp.json, nothing allowed", &bench, &f);
    let bench = Bench::of(world(), ScriptedModel::start(story));
    bench.world.write(".mcp.json", &server(json!({"alwaysLoad": true})).to_string());
    bench.answer_if("PreToolUse", "mcp__plimsoll", json!({"permissionDecision": "allow", "permissionDecisionReason": "ours"}));
    let f = quiet(&bench).run();
    report("mcp.json alwaysLoad, hook allows", &bench, &f);
    let bench = Bench::of(world(), ScriptedModel::start(story));
    bench.world.write(".mcp.json", &server(json!({"alwaysLoad": true})).to_string());
    bench.settings(json!({"permissions": {"allow": ["mcp__plimsoll"]}}));
    let f = quiet(&bench).run();
    report("settings allow", &bench, &f);
}

#[test]
fn a2_matcher() {
    let bench = Bench::of(world(), ScriptedModel::start(story));
    bench.world.write(".mcp.json", &server(json!({})).to_string());
    let log = |name: &str, matcher: &str| json!({"matcher": matcher, "hooks": [{"type": "command", "command": format!("echo {name} >> $HOME/matched")}]});
    bench.settings(json!({"hooks": {"PreToolUse": [
        log("regex", "^(mcp__plimsoll__(update_registers|push_frame)|Agent)$"),
        log("plain", "mcp__plimsoll__update_registers|Agent"),
        log("server", "mcp__plimsoll"),
        log("server-regex", "mcp__plimsoll__.*"),
        log("other", "^(mcp__plimsoll__(pop_frame|push_frame))$"),
    ]}}));
    let f = bench.ask("Work.");
    report("matcher", &bench, &f);
    eprintln!("{}", std::fs::read_to_string(bench.world.home().join("matched")).unwrap());
}

#[test]
fn a3_agents_flag() {
    let bench = Bench::of(world(), ScriptedModel::start(story));
    bench.world.write(".mcp.json", &server(json!({})).to_string());
    std::fs::remove_file(bench.world.path(".claude/agents/frame.md")).unwrap();
    let agents = json!({"frame": {"description": "Works on one part.", "prompt": "You work in a frame. FROM-FLAG"}}).to_string();
    let f = bench.session("Work.").arg("--agents").arg(agents).run();
    report("--agents", &bench, &f);
    let r = bench.model.requests_of(RequestKind::Subagent);
    eprintln!("SYSTEM {}", r[0].system_text());
    // none at all
    let bench = Bench::of(world(), ScriptedModel::start(story));
    std::fs::remove_file(bench.world.path(".claude/agents/frame.md")).unwrap();
    let f = bench.session("Work.").run();
    report("no agent", &bench, &f);
}

fn weigh(name: &str, front: &str) {
    let bench = Bench::of(world(), ScriptedModel::start(story));
    bench.world.write(".mcp.json", &server(json!({"alwaysLoad": true})).to_string());
    bench.world.write("CLAUDE.md", "PROJECT-WORDS\n");
    bench.world.write(".claude/agents/frame.md", &format!("---\nname: frame\ndescription: Works on one part.\n{front}---\nYou work in a frame.\n"));
    let f = bench.ask("Work.");
    let r = bench.model.requests_of(RequestKind::Subagent);
    let Some(r0) = r.first() else { report(name, &bench, &f); return };
    let b = &r0.body;
    eprintln!("##### {name}: bytes {} tools {} system {} messages {} model {} claudemd {} skills {} | {} | {:?}", r0.bytes(), b["tools"].to_string().len(), r0.system_text().len(), b["messages"].to_string().len(), r0.model, r0.text().contains("PROJECT-WORDS"), r0.text().contains("dataviz"), tools(r0), r.last().unwrap().tool_results());
}

#[test]
fn a4_weigh() {
    weigh("bare", "");
    weigh("inherit", "model: inherit\n");
    weigh("haiku", "model: haiku\n");
    weigh("tools", "tools: Bash, Read, mcp__plimsoll__update_registers, Agent\n");
    weigh("tools server", "tools: Bash, Read, Edit, Write, Agent, mcp__plimsoll\n");
    weigh("tools server star", "tools: Bash, Read, mcp__plimsoll__*\n");
    weigh("disallowed", "disallowedTools: Skill, ToolSearch, ListAgents, ReportFindings\n");
    weigh("omit", "omitClaudeMd: true\n");
    weigh("skills", "disallowedTools: Skill\nomitClaudeMd: true\n");
    weigh("no Agent", "tools: Bash, mcp__plimsoll__update_registers\nomitClaudeMd: true\n");
}

#[test]
fn a5_types() {
    let bench = Bench::new(|request| match (request.kind, request.tool_results().len()) {
        (RequestKind::Subagent, 0) => Step::bash("echo x"),
        (RequestKind::Subagent, _) => Step::text("Ended."),
        (_, 0) => {
            let mut step = Step::default();
            for t in ["Explore", "general-purpose", "Plan", "claude"] { let mut f = frame("Go."); f["subagent_type"] = t.into(); step = step.tool("Agent", f); }
            let mut f = frame("Go."); f.as_object_mut().unwrap().remove("subagent_type"); step = step.tool("Agent", f);
            let mut f = frame("Go."); f["subagent_type"] = "nobody".into(); step = step.tool("Agent", f);
            step
        }
        _ => Step::text("Done."),
    });
    let f = bench.ask("Work.");
    eprintln!("{}", bench.story().join("\n"));
    report("types", &bench, &f);
}

#[test]
fn a6_entries() {
    let bench = Bench::new(|_| Step::text("Done."));
    let prog = bench.world.home().join("prog.sh");
    std::fs::write(&prog, "#!/bin/sh\ncase $1 in a) sleep 0.3;; esac\nprintf '{\"hookSpecificOutput\":{\"hookEventName\":\"SessionStart\",\"additionalContext\":\"FROM-%s-%s\"}}' \"$1\" \"$2\"\n").unwrap();
    let _ = std::process::Command::new("chmod").arg("+x").arg(&prog).status();
    let e = |args: &[&str]| json!({"type": "command", "command": prog, "args": args});
    bench.settings(json!({"hooks": {"SessionStart": [
        {"hooks": [e(&["a"]), e(&["b"]), e(&["b"]), e(&["c", "1"])]},
        {"hooks": [e(&["c", "2"]), e(&["a"])]},
        {"matcher": "startup", "hooks": [e(&["d"])]},
    ]}}));
    bench.ask("Work.");
    let t = bench.model.requests()[0].text();
    eprintln!("{}", t.lines().filter(|l| l.contains("FROM-")).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a7_readonly() {
    let bench = Bench::of(world(), ScriptedModel::start(|request| match (request.kind, request.tool_results().len()) {
        (RequestKind::Subagent, 0) => Step::bash("sleep 0.5; echo x"),
        (RequestKind::Subagent, _) => Step::text("Ended."),
        (_, 0) => push("Go.").tool("mcp__plimsoll__memory_show", json!({})),
        _ => Step::text("Done."),
    }));
    bench.world.write(".mcp.json", &server(json!({"alwaysLoad": true})).to_string());
    let f = bench.ask("Work.");
    eprintln!("{}", bench.story().join("\n"));
    report("readonly", &bench, &f);
    let r = &bench.model.requests()[0];
    let t = r.body["tools"].as_array().unwrap().iter().find(|t| t["name"] == "Agent").unwrap();
    eprintln!("AGENT TOOL {}", t["input_schema"]);
}

#[test]
fn a8_silent_dead() {
    let bench = Bench::new(|request| match request.kind {
        RequestKind::Subagent => Step::error(500, "broken"),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    });
    let f = bench.ask("Work.");
    eprintln!("{}", bench.story().join("\n"));
    report("silent", &bench, &f);
}
