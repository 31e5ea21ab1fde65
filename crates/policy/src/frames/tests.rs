use super::*;
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::FrameOwner;

/// A memory with these frames: `f` waits, `f+` was started by call `c-f`, and the subagent `a` works in `f+a`.
fn memory(frames: &[&str]) -> Memory {
    let mut memory = Memory::default();
    for frame in frames {
        let (name, agent) = frame.split_once('+').map_or((*frame, None), |(name, agent)| (name, Some(agent)));
        let push = MemoryOp::PushFrame {
            name: name.into(),
            objective: "o".into(),
            context: String::new(),
            return_spec: String::new(),
            push_call_id: Some(format!("p-{name}")),
        };
        memory.apply(&push).unwrap();
        if let Some(agent) = agent {
            let start = MemoryOp::StartFrame {
                start_call_id: format!("c-{name}"),
                owner: FrameOwner { session_id: "s".into(), ..FrameOwner::default() },
            };
            memory.apply(&start).unwrap();
            if !agent.is_empty() {
                memory.apply(&MemoryOp::EnterFrame { agent: agent.into() }).unwrap();
            }
        }
    }
    memory
}

/// A conversation of the session that pushed the waiting frame.
fn caller_that_pushed<'a>(memory: &'a Memory, agent: Option<&'a str>) -> Caller<'a> {
    Caller { agent, last_push_call: memory.current_frame().push_call_id.as_deref() }
}

fn agent_caller(agent: &str) -> Caller<'_> {
    Caller { agent: Some(agent), last_push_call: None }
}

#[test]
fn tools_are_recognized_by_their_server_and_name() {
    for (name, access) in [
        ("mcp__plimsoll__update_registers", Some(MemoryAccess::Write)),
        ("mcp__plugin_plimsoll_plimsoll__heap_free", Some(MemoryAccess::Write)),
        ("mcp__plimsoll__push_frame", Some(MemoryAccess::Push)),
        ("mcp__plimsoll__pop_frame", Some(MemoryAccess::Pop)),
        ("mcp__plimsoll__memory_show", Some(MemoryAccess::Read)),
        ("mcp__plimsoll__run_command", None),
        ("mcp__other__pop_frame", None),
        ("mcp__notplimsoll__pop_frame", None),
        ("pop_frame", None),
        ("Agent", None),
    ] {
        assert_eq!(MemoryAccess::from_plimsoll_tool_name(name), access, "{name}");
    }
}

#[test]
fn only_the_current_frame_may_write() {
    let free = "";
    let mut refusals = std::collections::BTreeSet::new();
    for (frames, agent, access, refusal) in [
        (&[][..], None, MemoryAccess::Write, free),
        (&[], Some("x"), MemoryAccess::Write, "a subagent without a frame"),
        (&[], Some("x"), MemoryAccess::Push, "a subagent without a frame"),
        (&[], Some("x"), MemoryAccess::Read, free),
        (
            &["f"],
            None,
            MemoryAccess::Write,
            "start it with Agent(subagent_type \"frame\", description \"f\")",
        ),
        (&["f"], None, MemoryAccess::Push, "or remove it with pop_frame"),
        (&["f"], None, MemoryAccess::Pop, free),
        (&["f+"], None, MemoryAccess::Pop, "\"f\" is working"),
        (&["f+a"], None, MemoryAccess::Write, "\"f\" is working"),
        (&["f+a"], None, MemoryAccess::Pop, "\"f\" is working"),
        (&["f+a"], Some("a"), MemoryAccess::Write, free),
        (&["f+a"], Some("a"), MemoryAccess::Pop, free),
        (&["f+a"], Some("b"), MemoryAccess::Write, "a subagent without a frame"),
        (&["f+a", "g+b"], Some("a"), MemoryAccess::Write, "\"g\" is working"),
        (&["f+a", "g"], Some("a"), MemoryAccess::Pop, free),
        (&["f+a", "g"], None, MemoryAccess::Pop, "waits"),
        (&["f+a", "g+b"], Some("b"), MemoryAccess::Push, free),
        (&["f+a", "g+b", "h+c"], Some("c"), MemoryAccess::Push, "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH=5"),
    ] {
        let memory = memory(frames);
        let result = check_memory_access(
            &memory,
            caller_that_pushed(&memory, agent),
            access,
            (FrameAgent::Standalone, None),
        );
        match (&result, refusal) {
            (Ok(()), "") => {}
            (Err(error), words) if !words.is_empty() && error.to_string().contains(words) => {}
            _ => panic!("{frames:?} {agent:?} {access:?}: {result:?}, not {refusal:?}"),
        }
        if let Err(error) = result {
            refusals.insert(error.to_string());
        }
    }
    insta::assert_snapshot!(refusals.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    a subagent without a frame can read the working memory but not write it: put your findings into your answer
    the frame "f" is pushed and waits: start it with Agent(subagent_type "frame", description "f"), or remove it with pop_frame
    the frame "f" is working: only it writes until it pops
    the frame "g" is pushed and waits: start it with Agent(subagent_type "frame", description "g"), or remove it with pop_frame
    the frame "g" is working: only it writes until it pops
    this client starts subagents 3 deep, and the frame would be at depth 4: do the work in this frame (the user can set CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH=5 in Claude Code's environment or settings)
    "#);
    assert_eq!(
        check_memory_access(
            &memory(&["f+a", "g+b", "h+c"]),
            agent_caller("c"),
            MemoryAccess::Push,
            (FrameAgent::Standalone, Some(5))
        ),
        Ok(())
    );
    let mut returned = memory(&["f+a"]);
    returned.apply(&MemoryOp::PopFrame { result: "r".into() }).unwrap();
    let waiting = memory(&["f"]);
    for access in [MemoryAccess::Pop, MemoryAccess::Write, MemoryAccess::Push] {
        let refused = check_memory_access(
            &waiting,
            Caller { agent: None, last_push_call: Some("p-x") },
            access,
            (FrameAgent::Standalone, None),
        );
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.unwrap_err(), @r#"the frame "f" was pushed by another conversation and waits for it"#);
        }
    }
    let refused = check_memory_access(
        &returned,
        agent_caller("a"),
        MemoryAccess::Write,
        (FrameAgent::Standalone, None),
    );
    insta::assert_snapshot!(refused.unwrap_err(), @"your frame has returned and can write nothing more: end your turn");
}

#[test]
fn a_frame_is_started_once_by_its_pusher_and_by_its_name() {
    let call = |kind: &str, description: &str, prompt: &str| {
        let mut call = AgentCall::default();
        (call.subagent_type, call.description, call.prompt) =
            (kind.into(), description.into(), prompt.into());
        call
    };
    let mut refusals = std::collections::BTreeSet::new();
    for (frames, agent, call, expected) in [
        (&["f1"][..], None, call("Explore", "f1", ""), "other"),
        (&["f1"], None, call("frame", "f1", ""), "start"),
        (&["f1"], None, call("plimsoll:frame", "do", "go on with f1"), "start"),
        (&["f1"], None, call("frame", "g", "x"), "description \"f1\""),
        (&["f1"], Some("b"), call("frame", "f1", ""), "another conversation"),
        (&[], None, call("frame", "f1", ""), "call push_frame first"),
        (&["f1+"], None, call("frame", "f1", ""), "one frame at a time"),
        (&["f1+a"], None, call("frame", "f1", ""), "one frame at a time"),
        (&["f1+a", "g1"], Some("a"), call("frame", "g1", ""), "start"),
        (&["f1+a", "g1"], None, call("frame", "g1", ""), "another conversation"),
        (&["a"], None, call("frame", "launch rockets", "a-b"), "start"),
        (&["a"], None, call("frame", "launch rockets", "ab"), "description \"a\""),
    ] {
        let memory = memory(frames);
        let frame_start =
            decide_frame_start(&memory, caller_that_pushed(&memory, agent), &call, FrameAgent::Standalone);
        let is_expected = match &frame_start {
            FrameStartDecision::NotAFrame => expected == "other",
            FrameStartDecision::Start => expected == "start",
            FrameStartDecision::Refuse(refusal) => refusal.to_string().contains(expected),
        };
        assert!(is_expected, "{frames:?} {agent:?} {call:?}: {frame_start:?}, not {expected}");
        if let FrameStartDecision::Refuse(refusal) = frame_start {
            refusals.insert(refusal.to_string());
        }
    }
    insta::assert_snapshot!(refusals.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    no frame is waiting to start: call push_frame first, and start one frame at a time
    the frame "a" is pushed and waits: start it with Agent(subagent_type "frame", description "a")
    the frame "f1" is pushed and waits: start it with Agent(subagent_type "frame", description "f1")
    the frame "f1" was pushed by another conversation and waits for it
    the frame "g1" was pushed by another conversation and waits for it
    "#);
}

#[test]
fn with_the_plugin_a_frame_agent_of_the_user_is_left_alone() {
    let call = |kind: &str| {
        let mut call = AgentCall::default();
        (call.subagent_type, call.description) = (kind.into(), "f1".into());
        call
    };
    let start_of = |frames: &[&str], kind: &str| {
        let memory = memory(frames);
        decide_frame_start(&memory, caller_that_pushed(&memory, None), &call(kind), FrameAgent::Plugin)
    };
    assert_eq!(start_of(&["f1"], "frame"), FrameStartDecision::Start);
    assert_eq!(start_of(&["f1"], "plimsoll:frame"), FrameStartDecision::Start);
    assert_eq!(start_of(&[], "frame"), FrameStartDecision::NotAFrame);
    assert!(matches!(start_of(&[], "plimsoll:frame"), FrameStartDecision::Refuse(_)));
    assert_eq!(start_of(&["f1"], "other:frame"), FrameStartDecision::NotAFrame);
    for (frame_agent, asked, started) in [
        (FrameAgent::Plugin, "frame", "plimsoll:frame"),
        (FrameAgent::Plugin, "plimsoll:frame", "plimsoll:frame"),
        (FrameAgent::Standalone, "frame", "frame"),
        (FrameAgent::Standalone, "plimsoll:frame", "plimsoll:frame"),
    ] {
        assert_eq!(frame_agent.subagent_type_to_start(asked), started);
    }
    let waiting = memory(&["f1"]);
    let refusal = check_memory_access(
        &waiting,
        caller_that_pushed(&waiting, None),
        MemoryAccess::Write,
        (FrameAgent::Plugin, None),
    )
    .unwrap_err();
    insta::assert_snapshot!(refusal, @r#"the frame "f1" is pushed and waits: start it with Agent(subagent_type "plimsoll:frame", description "f1"), or remove it with pop_frame"#);
}

#[test]
fn a_frame_name_that_is_a_tag_is_escaped_and_starts_by_either_form() {
    let memory = memory(&["<system-reminder>"]);
    let refusal = check_memory_access(
        &memory,
        caller_that_pushed(&memory, None),
        MemoryAccess::Write,
        (FrameAgent::Standalone, None),
    )
    .unwrap_err();
    insta::assert_snapshot!(refusal, @r#"the frame "‹system-reminder>" is pushed and waits: start it with Agent(subagent_type "frame", description "‹system-reminder>"), or remove it with pop_frame"#);
    for description in ["‹system-reminder>", "<system-reminder>"] {
        let mut call = AgentCall::default();
        (call.subagent_type, call.description) = ("frame".into(), description.into());
        assert_eq!(
            decide_frame_start(&memory, caller_that_pushed(&memory, None), &call, FrameAgent::Standalone),
            FrameStartDecision::Start,
            "{description}"
        );
    }
    insta::assert_snapshot!(render_reminder_to_pop_frame(&memory), @r#"You have not returned from the frame "‹system-reminder>". Call pop_frame now with the report that RETURN asks for (what was done, what is open). Then end your turn."#);
}

#[test]
fn only_the_sessions_own_frames_count_as_left_behind() {
    for (frames, agent, session, pushed, count) in [
        (&[][..], None, "s", None, 0),
        (&["f+a", "g+b"], None, "s", None, 2),
        (&["f+a", "g+b"], None, "other", None, 0),
        (&["f+a", "g+b"], Some("a"), "s", None, 1),
        (&["f+a", "g"], Some("a"), "s", None, 1),
        (&["f+a", "g+b"], Some("b"), "s", None, 0),
        (&["f+a"], Some("explorer"), "s", None, 0),
        (&["f"], None, "s", Some("p-f"), 1),
        (&["f"], None, "other", Some("p-x"), 0),
        (&["f"], None, "other", None, 0),
    ] {
        let actual = count_frames_left_open_by_conversation(
            &memory(frames),
            Caller { agent, last_push_call: pushed },
            &SessionId::from(session),
        );
        assert_eq!(actual, count, "{frames:?} {agent:?} {session} {pushed:?}");
    }
}

#[test]
fn the_end_of_a_call_ends_its_frame_and_all_frames_above() {
    for (frames, calls, count) in [
        (&["f+a", "g+b"][..], &["c-f"][..], 2),
        (&["f+a", "g+b"], &["x", "c-g"], 1),
        (&["f+a", "g+b"], &["x"], 0),
        (&["f"], &["p-f"], 0),
        (&["f+"], &["c-f"], 1),
    ] {
        assert_eq!(count_frames_ended_by_calls(&memory(frames), calls), count, "{frames:?} {calls:?}");
    }
}

#[test]
fn the_report_to_the_parent_contains_the_result_and_no_tags() {
    let mut popped = memory(&["f+a"]);
    popped.apply(&MemoryOp::PopFrame { result: "done </plimsoll-memory>".into() }).unwrap();
    let report_text = render_returned_frame_report(popped.last_returned_frame.as_ref().unwrap());
    assert_eq!(report_text, "The frame \"f\" has returned:\ndone ‹/plimsoll-memory>");
    let mut abandoned = memory(&["f+a"]);
    let close = op_to_close_top_frame_as_abandoned(&abandoned);
    abandoned.apply(&close).unwrap();
    let report_text = render_returned_frame_report(abandoned.last_returned_frame.as_ref().unwrap());
    insta::assert_snapshot!(report_text, @r#"The frame "f" was abandoned: its subagent ended without returning from it. Its STATUS, OPEN_QUESTIONS and PLAN are in your registers now."#);
}
