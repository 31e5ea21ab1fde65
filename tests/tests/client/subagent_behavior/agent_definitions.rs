//! How an agent is defined, and what its first request holds.

use crate::subagent_behavior::harness::{Bench, NOTE, frame, push, tools};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

fn one_push(request: &Request) -> Step {
    match request.kind {
        RequestKind::Subagent => Step::text("Ended."),
        _ if request.tool_results().is_empty() => push("Go."),
        _ => Step::text("Done."),
    }
}

/// The first requests of agents with these front matters, of which one session pushes each, all at once.
fn defined<const N: usize>(fronts: [&str; N]) -> [Request; N] {
    let bench = Bench::with_mcp(|request| match request.kind {
        RequestKind::Subagent => Step::text("Ended."),
        _ if request.tool_results().is_empty() => (0..N).fold(Step::default(), |step, number| {
            let mut call = frame(&format!("Go, {number}."));
            call["subagent_type"] = format!("frame-{number}").into();
            step.tool("Agent", call)
        }),
        _ => Step::text("Done."),
    });
    bench.world.write("CLAUDE.md", "WORDS-OF-THE-PROJECT\n");
    for (number, front) in fronts.iter().enumerate() {
        let text = format!(
            "---\nname: frame-{number}\ndescription: Works on one part.\n{front}---\nYou work in a frame.\n"
        );
        bench.world.write(format!(".claude/agents/frame-{number}.md"), &text);
    }
    bench.run();
    let requests = bench.frame_requests();
    std::array::from_fn(|number| {
        let prompt = format!("Go, {number}.");
        let of_it = requests.iter().find(|request| request.first_text().contains(&prompt));
        of_it.unwrap_or_else(|| panic!("no request of agent {number}")).clone()
    })
}

#[test]
fn an_agent_of_the_command_line_is_as_good_as_one_of_a_file() {
    let bench = Bench::new(one_push);
    let file = bench.world.path(".claude/agents/frame.md");
    std::fs::remove_file(file).expect("our own file");
    let agents = json!({"frame": {"description": "Works on one part.", "prompt": "FROM-THE-COMMAND-LINE"}});
    bench.session().arg("--agents").arg(agents.to_string()).run().expect_success();
    assert_eq!(bench.noted_of("SubagentStart")[0]["agent_type"], "frame");
    let first = bench.first_of_frame();
    assert!(first.system_text().contains("FROM-THE-COMMAND-LINE"));
    assert!(tools(&first).contains(&"Agent"));
}

#[test]
fn an_agent_that_is_not_defined_is_a_failed_call() {
    let bench = Bench::new(one_push);
    std::fs::remove_file(bench.world.path(".claude/agents/frame.md")).expect("our own file");
    bench.run();
    let (text, error) = bench.handed_back();
    assert!(error && text.starts_with("Agent type 'frame' not found. Available agents: "), "{text}");
    assert_eq!(bench.story_of(&["Failure", "Subagent"]), ["PostToolUseFailure Agent"]);
}

/// All in one session: starting a client for each fact costs far more than what it shows.
#[test]
fn the_file_of_an_agent_chooses_its_tools_its_model_and_what_it_is_told() {
    let by_name = format!("tools: Bash, Read, Agent, {NOTE}\n");
    let by_server = ["mcp__plimsoll", "mcp__plimsoll__*"]
        .map(|list| format!("tools: Bash, Read, Edit, Write, Agent, {list}\n"));
    let [bare, inherits, other_model, by_name, plain, starred, no_search, no_words] = defined([
        "",
        "model: inherit\n",
        "model: haiku\n",
        &by_name,
        &by_server[0],
        &by_server[1],
        "disallowedTools: ToolSearch\n",
        "omitClaudeMd: true\n",
    ]);

    // Without a list it has the tools of its parent, and a prompt of its own.
    let has = tools(&bare);
    for tool in ["Agent", "Bash", "Edit", "Read", "Write", "Skill", "ToolSearch", NOTE] {
        assert!(has.contains(&tool), "{tool} in {has:?}");
    }
    let system = bare.system_text();
    assert!(system.contains("You work in a frame.") && system.len() < 2_500, "{system}");
    assert!(bare.text().contains("WORDS-OF-THE-PROJECT"));

    // The model is the parent's unless the file says another.
    assert_eq!(bare.model, inherits.model);
    assert!(other_model.model.contains("haiku") && !bare.model.contains("haiku"), "{}", other_model.model);

    // A list of tools makes the first request small.
    let bytes = bare.bytes();
    let of_frame: Vec<&str> = tools(&by_name);
    assert!(of_frame.contains(&NOTE) && of_frame.contains(&"Agent"), "{of_frame:?}");
    assert!(
        !of_frame.contains(&"mcp__plimsoll__memory_show") && !of_frame.contains(&"Skill"),
        "{of_frame:?}"
    );
    assert!(by_name.bytes() * 10 < bytes * 6, "{} of {bytes} bytes", by_name.bytes());
    for (list, by_server) in by_server.iter().zip([plain, starred]) {
        let of_server = tools(&by_server).iter().filter(|name| name.starts_with("mcp__plimsoll__")).count();
        assert!(of_server >= 9, "{list} stands for all of them: {:?}", tools(&by_server));
        assert!(by_server.bytes() * 10 < bytes * 7, "{} of {bytes} bytes", by_server.bytes());
    }

    // Without the search for tools it grows.
    assert!(tools(&no_search).contains(&"WebFetch") && !tools(&bare).contains(&"WebFetch"));
    assert!(no_search.bytes() > bytes, "{} and {bytes} bytes", no_search.bytes());

    // It can do without the project's words.
    assert!(!no_words.text().contains("WORDS-OF-THE-PROJECT"));
    assert!(no_words.text().contains("Go, 7."));
}
