//! Agent definitions, and the first requests of the agents they define.

use crate::subagent_behavior::harness::{
    SubagentTestBench, UPDATE_REGISTERS_TOOL, agent_call_input, agent_call_step, offered_tool_names,
};
use plimsoll_testkit::scripted_model::{Request, RequestKind, Step};
use serde_json::json;

fn call_agent_once(request: &Request) -> Step {
    match request.kind {
        RequestKind::Subagent => Step::from_text("Ended."),
        _ if request.all_tool_results().is_empty() => agent_call_step("Go."),
        _ => Step::from_text("Done."),
    }
}

/// Returns the first request of each agent that one of these front matters defines. One session starts all of them at
/// once.
fn first_requests_of_agents<const N: usize>(front_matters: [&str; N]) -> [Request; N] {
    let bench = SubagentTestBench::with_mcp_server(|request| match request.kind {
        RequestKind::Subagent => Step::from_text("Ended."),
        _ if request.all_tool_results().is_empty() => (0..N).fold(Step::default(), |step, number| {
            let mut input = agent_call_input(&format!("Go, {number}."));
            input["subagent_type"] = format!("frame-{number}").into();
            step.with_tool_call("Agent", input)
        }),
        _ => Step::from_text("Done."),
    });
    bench.world.write("CLAUDE.md", "WORDS-OF-THE-PROJECT\n");
    for (number, front) in front_matters.iter().enumerate() {
        let text = format!(
            "---\nname: frame-{number}\ndescription: Works on one part.\n{front}---\nYou work in a frame.\n"
        );
        bench.world.write(format!(".claude/agents/frame-{number}.md"), &text);
    }
    bench.run_session();
    let requests = bench.subagent_requests();
    std::array::from_fn(|number| {
        let prompt = format!("Go, {number}.");
        let first_request = requests.iter().find(|request| request.first_message_text().contains(&prompt));
        first_request.unwrap_or_else(|| panic!("no request of agent {number}")).clone()
    })
}

#[test]
fn an_agent_can_be_defined_on_the_command_line() {
    let bench = SubagentTestBench::new(call_agent_once);
    let file = bench.world.path(".claude/agents/frame.md");
    std::fs::remove_file(file).expect("our own file");
    let agents = json!({"frame": {"description": "Works on one part.", "prompt": "FROM-THE-COMMAND-LINE"}});
    bench.session_with_allowed_tools().arg("--agents").arg(agents.to_string()).run().expect_success();
    assert_eq!(bench.payloads_of_event("SubagentStart")[0]["agent_type"], "frame");
    let first = bench.first_subagent_request();
    assert!(first.system_text().contains("FROM-THE-COMMAND-LINE"));
    assert!(offered_tool_names(&first).contains(&"Agent"));
}

#[test]
fn calling_an_undefined_agent_type_fails() {
    let bench = SubagentTestBench::new(call_agent_once);
    std::fs::remove_file(bench.world.path(".claude/agents/frame.md")).expect("our own file");
    bench.run_session();
    let (text, error) = bench.first_tool_result();
    assert!(error && text.starts_with("Agent type 'frame' not found. Available agents: "), "{text}");
    assert_eq!(bench.hook_call_lines_containing(&["Failure", "Subagent"]), ["PostToolUseFailure Agent"]);
}

/// Makes all checks in one session, because starting a client for each is slow.
#[test]
fn an_agent_file_sets_its_tools_model_and_prompt() {
    let by_name = format!("tools: Bash, Read, Agent, {UPDATE_REGISTERS_TOOL}\n");
    let by_server = ["mcp__plimsoll", "mcp__plimsoll__*"]
        .map(|list| format!("tools: Bash, Read, Edit, Write, Agent, {list}\n"));
    let [bare, inherits, other_model, by_name, plain, starred, no_search, no_claude_md] =
        first_requests_of_agents([
            "",
            "model: inherit\n",
            "model: haiku\n",
            &by_name,
            &by_server[0],
            &by_server[1],
            "disallowedTools: ToolSearch\n",
            "omitClaudeMd: true\n",
        ]);

    // Without a list of tools, an agent has its parent's tools and its own system prompt.
    let tool_names = offered_tool_names(&bare);
    for tool in ["Agent", "Bash", "Edit", "Read", "Write", "Skill", "ToolSearch", UPDATE_REGISTERS_TOOL] {
        assert!(tool_names.contains(&tool), "{tool} in {tool_names:?}");
    }
    let system = bare.system_text();
    assert!(system.contains("You work in a frame.") && system.len() < 2_500, "{system}");
    assert!(bare.full_text().contains("WORDS-OF-THE-PROJECT"));

    // An agent uses its parent's model unless its file names another.
    assert_eq!(bare.model, inherits.model);
    assert!(other_model.model.contains("haiku") && !bare.model.contains("haiku"), "{}", other_model.model);

    // A list of tools makes the first request smaller.
    let bytes = bare.body_bytes();
    let listed_tools: Vec<&str> = offered_tool_names(&by_name);
    assert!(
        listed_tools.contains(&UPDATE_REGISTERS_TOOL) && listed_tools.contains(&"Agent"),
        "{listed_tools:?}"
    );
    assert!(
        !listed_tools.contains(&"mcp__plimsoll__memory_show") && !listed_tools.contains(&"Skill"),
        "{listed_tools:?}"
    );
    assert!(by_name.body_bytes() * 10 < bytes * 6, "{} of {bytes} bytes", by_name.body_bytes());
    for (list, by_server) in by_server.iter().zip([plain, starred]) {
        let server_tool_count =
            offered_tool_names(&by_server).iter().filter(|name| name.starts_with("mcp__plimsoll__")).count();
        assert!(
            server_tool_count >= 9,
            "{list} stands for all of them: {:?}",
            offered_tool_names(&by_server)
        );
        assert!(by_server.body_bytes() * 10 < bytes * 7, "{} of {bytes} bytes", by_server.body_bytes());
    }

    // Without ToolSearch the request also contains tools such as WebFetch and is larger.
    assert!(
        offered_tool_names(&no_search).contains(&"WebFetch")
            && !offered_tool_names(&bare).contains(&"WebFetch")
    );
    assert!(no_search.body_bytes() > bytes, "{} and {bytes} bytes", no_search.body_bytes());

    // `omitClaudeMd` leaves out the project's CLAUDE.md.
    assert!(!no_claude_md.full_text().contains("WORDS-OF-THE-PROJECT"));
    assert!(no_claude_md.full_text().contains("Go, 7."));
}
