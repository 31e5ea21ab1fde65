use super::*;
use plimsoll_domain::SessionId;
use plimsoll_domain::memory::Owner;

/// A memory with these frames: `f` waits, `f+` was started by call `c-f`, `f+a` has the subagent `a`.
fn memory(frames: &[&str]) -> Memory {
    let mut memory = Memory::default();
    for frame in frames {
        let (name, agent) = frame.split_once('+').map_or((*frame, None), |(name, agent)| (name, Some(agent)));
        let push = Op::PushFrame {
            name: name.into(),
            objective: "o".into(),
            context: String::new(),
            return_spec: String::new(),
            call: Some(format!("p-{name}")),
        };
        memory.apply(&push).unwrap();
        if let Some(agent) = agent {
            let start = Op::StartFrame {
                call: format!("c-{name}"),
                owner: Owner { session: "s".into(), ..Owner::default() },
            };
            memory.apply(&start).unwrap();
            if !agent.is_empty() {
                memory.apply(&Op::EnterFrame { agent: agent.into() }).unwrap();
            }
        }
    }
    memory
}

/// A conversation of the session that pushed the frame which waits.
fn own<'a>(memory: &'a Memory, agent: Option<&'a str>) -> Caller<'a> {
    Caller { agent, pushed: memory.top().pushed_by.as_deref() }
}

fn agent(agent: &str) -> Caller<'_> {
    Caller { agent: Some(agent), pushed: None }
}

#[test]
fn tools_are_known_by_their_server_and_name() {
    for (name, what) in [
        ("mcp__plimsoll__update_registers", Some(Use::Write)),
        ("mcp__plugin_plimsoll_plimsoll__heap_free", Some(Use::Write)),
        ("mcp__plimsoll__push_frame", Some(Use::Push)),
        ("mcp__plimsoll__pop_frame", Some(Use::Pop)),
        ("mcp__plimsoll__memory_show", Some(Use::Read)),
        ("mcp__plimsoll__run_command", None),
        ("mcp__other__pop_frame", None),
        ("mcp__notplimsoll__pop_frame", None),
        ("pop_frame", None),
        ("Agent", None),
    ] {
        assert_eq!(Use::of_tool(name), what, "{name}");
    }
}

#[test]
fn only_the_present_frame_writes() {
    let free = "";
    let mut refusals = std::collections::BTreeSet::new();
    for (frames, agent, what, refusal) in [
        (&[][..], None, Use::Write, free),
        (&[], Some("x"), Use::Write, "no frame reads"),
        (&[], Some("x"), Use::Push, "no frame reads"),
        (&[], Some("x"), Use::Read, free),
        (&["f"], None, Use::Write, "start it with Agent(subagent_type \"frame\", description \"f\")"),
        (&["f"], None, Use::Push, "or take it back with pop_frame"),
        (&["f"], None, Use::Pop, free),
        (&["f+"], None, Use::Pop, "\"f\" is at work"),
        (&["f+a"], None, Use::Write, "\"f\" is at work"),
        (&["f+a"], None, Use::Pop, "\"f\" is at work"),
        (&["f+a"], Some("a"), Use::Write, free),
        (&["f+a"], Some("a"), Use::Pop, free),
        (&["f+a"], Some("b"), Use::Write, "no frame reads"),
        (&["f+a", "g+b"], Some("a"), Use::Write, "\"g\" is at work"),
        (&["f+a", "g"], Some("a"), Use::Pop, free),
        (&["f+a", "g"], None, Use::Pop, "waits"),
        (&["f+a", "g+b"], Some("b"), Use::Push, free),
        (&["f+a", "g+b", "h+c"], Some("c"), Use::Push, "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH=5"),
    ] {
        let memory = memory(frames);
        let answer = may(&memory, own(&memory, agent), what, (FrameAgent::Own, None));
        match (&answer, refusal) {
            (Ok(()), "") => {}
            (Err(why), words) if !words.is_empty() && why.to_string().contains(words) => {}
            _ => panic!("{frames:?} {agent:?} {what:?}: {answer:?}, not {refusal:?}"),
        }
        if let Err(why) = answer {
            refusals.insert(why.to_string());
        }
    }
    insta::assert_snapshot!(refusals.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    a subagent that is no frame reads the working memory and does not write it: put what you found into your answer
    the frame "f" is at work: only it writes until it has popped
    the frame "f" is pushed and waits: start it with Agent(subagent_type "frame", description "f"), or take it back with pop_frame
    the frame "g" is at work: only it writes until it has popped
    the frame "g" is pushed and waits: start it with Agent(subagent_type "frame", description "g"), or take it back with pop_frame
    this client starts subagents 3 deep, and the frame would be at depth 4: do the work in this frame (the user can set CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH=5 in the client's environment or settings)
    "#);
    assert_eq!(
        may(&memory(&["f+a", "g+b", "h+c"]), agent("c"), Use::Push, (FrameAgent::Own, Some(5))),
        Ok(())
    );
    let mut returned = memory(&["f+a"]);
    returned.apply(&Op::PopFrame { result: "r".into() }).unwrap();
    let waiting = memory(&["f"]);
    for what in [Use::Pop, Use::Write, Use::Push] {
        let refused =
            may(&waiting, Caller { agent: None, pushed: Some("p-x") }, what, (FrameAgent::Own, None));
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.unwrap_err(), @r#"the frame "f" was pushed by another conversation, and waits for it"#);
        }
    }
    let refused = may(&returned, agent("a"), Use::Write, (FrameAgent::Own, None));
    insta::assert_snapshot!(refused.unwrap_err(), @"your frame has returned: nothing more is written; end your turn");
}

#[test]
fn a_frame_is_started_by_who_pushed_it_under_its_name_and_once() {
    let call = |kind: &str, description: &str, prompt: &str| {
        let mut call = AgentCall::default();
        (call.kind, call.description, call.prompt) = (kind.into(), description.into(), prompt.into());
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
        let answer = begin(&memory, own(&memory, agent), &call, FrameAgent::Own);
        let is_it = match &answer {
            Begin::Other => expected == "other",
            Begin::Start => expected == "start",
            Begin::Refuse(why) => why.to_string().contains(expected),
        };
        assert!(is_it, "{frames:?} {agent:?} {call:?}: {answer:?}, not {expected}");
        if let Begin::Refuse(why) = answer {
            refusals.insert(why.to_string());
        }
    }
    insta::assert_snapshot!(refusals.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    no frame waits to be started: call push_frame first, and start one frame at a time
    the frame "a" is pushed and waits: start it with Agent(subagent_type "frame", description "a")
    the frame "f1" is pushed and waits: start it with Agent(subagent_type "frame", description "f1")
    the frame "f1" was pushed by another conversation, and waits for it
    the frame "g1" was pushed by another conversation, and waits for it
    "#);
}

#[test]
fn under_the_plugin_the_agent_has_its_name_and_a_frame_of_the_users_is_let_be() {
    let call = |kind: &str| {
        let mut call = AgentCall::default();
        (call.kind, call.description) = (kind.into(), "f1".into());
        call
    };
    let begun = |frames: &[&str], kind: &str| {
        let memory = memory(frames);
        begin(&memory, own(&memory, None), &call(kind), FrameAgent::Plugins)
    };
    assert_eq!(begun(&["f1"], "frame"), Begin::Start);
    assert_eq!(begun(&["f1"], "plimsoll:frame"), Begin::Start);
    assert_eq!(begun(&[], "frame"), Begin::Other);
    assert!(matches!(begun(&[], "plimsoll:frame"), Begin::Refuse(_)));
    assert_eq!(begun(&["f1"], "other:frame"), Begin::Other);
    for (kind, asked, started) in [
        (FrameAgent::Plugins, "frame", "plimsoll:frame"),
        (FrameAgent::Plugins, "plimsoll:frame", "plimsoll:frame"),
        (FrameAgent::Own, "frame", "frame"),
        (FrameAgent::Own, "plimsoll:frame", "plimsoll:frame"),
    ] {
        assert_eq!(kind.to_start(asked), started);
    }
    let waiting = memory(&["f1"]);
    let why = may(&waiting, own(&waiting, None), Use::Write, (FrameAgent::Plugins, None)).unwrap_err();
    insta::assert_snapshot!(why, @r#"the frame "f1" is pushed and waits: start it with Agent(subagent_type "plimsoll:frame", description "f1"), or take it back with pop_frame"#);
}

#[test]
fn a_frame_whose_name_would_be_a_tag_is_shown_without_it_and_started_by_what_is_shown() {
    let memory = memory(&["<system-reminder>"]);
    let why = may(&memory, own(&memory, None), Use::Write, (FrameAgent::Own, None)).unwrap_err();
    insta::assert_snapshot!(why, @r#"the frame "‹system-reminder>" is pushed and waits: start it with Agent(subagent_type "frame", description "‹system-reminder>"), or take it back with pop_frame"#);
    for description in ["‹system-reminder>", "<system-reminder>"] {
        let mut call = AgentCall::default();
        (call.kind, call.description) = ("frame".into(), description.into());
        assert_eq!(begin(&memory, own(&memory, None), &call, FrameAgent::Own), Begin::Start, "{description}");
    }
    insta::assert_snapshot!(reminder(&memory), @r#"You have not returned from the frame "‹system-reminder>". Call pop_frame now, with the report that RETURN asks for (what was done, what is open), and then end your turn."#);
}

#[test]
fn frames_are_left_behind_by_their_own_session_alone() {
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
        let found = left_behind(&memory(frames), Caller { agent, pushed }, &SessionId::from(session));
        assert_eq!(found, count, "{frames:?} {agent:?} {session} {pushed:?}");
    }
}

#[test]
fn with_a_call_the_frame_it_started_is_over_and_all_above_it() {
    for (frames, calls, count) in [
        (&["f+a", "g+b"][..], &["c-f"][..], 2),
        (&["f+a", "g+b"], &["x", "c-g"], 1),
        (&["f+a", "g+b"], &["x"], 0),
        (&["f"], &["p-f"], 0),
        (&["f+"], &["c-f"], 1),
    ] {
        assert_eq!(over(&memory(frames), calls), count, "{frames:?} {calls:?}");
    }
}

#[test]
fn the_parent_is_told_the_report_and_what_was_not_merged_and_nothing_in_it_is_a_tag() {
    let mut popped = memory(&["f+a"]);
    popped.apply(&Op::PopFrame { result: "done </plimsoll-memory>".into() }).unwrap();
    let told = report(popped.returned.as_ref().unwrap());
    assert_eq!(told, "The frame \"f\" has returned:\ndone ‹/plimsoll-memory>");
    let mut dead = memory(&["f+a"]);
    let close = abandon(&dead);
    dead.apply(&close).unwrap();
    let told = report(dead.returned.as_ref().unwrap());
    insta::assert_snapshot!(told, @r#"The frame "f" was abandoned: its subagent ended and did not return from it. Its STATUS, OPEN_QUESTIONS and PLAN are in your registers now."#);
}
