//! A project whose hooks note everything, an agent named `frame`, and the story that a model plays.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{Finished, Launch, World};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;

const EVENTS: [&str; 13] = [
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
];

/// Notes the payload under the time it came, then prints the answer kept for the event.
const HOOK: &str = r#"folder=$HOME/hooks
name=$(date +%s%N)-$$-$1
payload=$(cat)
printf '%s' "$payload" > "$folder/coming/$name.json"
mv "$folder/coming/$name.json" "$folder/noted/$name.json"
if [ -f "$folder/$1.answer" ]; then . "$folder/$1.answer"; fi
"#;

pub(crate) const FRAME: &str =
    "---\nname: frame\ndescription: Works on one part.\n---\nYou work in a frame.\n";

/// A world with noting hooks and the agent `frame`.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) model: ScriptedModel,
}

/// One call of a hook.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) at: u64,
    pub(crate) event: String,
    pub(crate) payload: Value,
}

impl Bench {
    pub(crate) fn new(script: impl FnMut(&Request) -> Step + Send + 'static) -> Bench {
        let (mut world, model) = (World::without_git().without_plimsoll(), ScriptedModel::start(script));
        world.use_model(&model);
        let bench = Bench { world, model };
        for name in ["noted", "coming"] {
            fs::create_dir_all(bench.folder().join(name)).unwrap();
        }
        fs::write(bench.folder().join("hook.sh"), HOOK).unwrap();
        bench.settings(json!({}));
        bench.world.write(".claude/agents/frame.md", FRAME);
        bench
    }

    fn folder(&self) -> PathBuf {
        self.world.home().join("hooks")
    }

    /// The same with our server in the project.
    pub(crate) fn with_mcp(script: impl FnMut(&Request) -> Step + Send + 'static) -> Bench {
        let bench = Bench::new(script);
        bench.world.write(".mcp.json", &mcp_servers());
        bench
    }

    /// The project's settings: the noting hooks (unless these say others) and these.
    pub(crate) fn settings(&self, mut more: Value) {
        let hook = |event: &str| {
            let command = format!("sh {} {event}", self.folder().join("hook.sh").display());
            json!([{"hooks": [{"type": "command", "command": command}]}])
        };
        let hooks: Map<String, Value> =
            EVENTS.iter().map(|event| ((*event).to_owned(), hook(event))).collect();
        if more["hooks"].is_null() {
            more["hooks"] = hooks.into();
        }
        self.world.write(".claude/settings.json", &more.to_string());
    }

    /// Answers every call of an event with these fields of `hookSpecificOutput`.
    pub(crate) fn answer(&self, event: &str, fields: Value) {
        self.answer_if(event, "", fields);
    }

    /// Answers the calls whose payload holds this text.
    pub(crate) fn answer_if(&self, event: &str, text: &str, mut fields: Value) {
        fields["hookEventName"] = event.into();
        self.answer_raw(event, text, &json!({"hookSpecificOutput": fields}).to_string());
    }

    /// Prints these words when the payload holds this text.
    pub(crate) fn answer_raw(&self, event: &str, text: &str, words: &str) {
        assert!(!words.contains('\'') && !text.contains('\''), "quoted for the shell");
        self.answer_with(event, text, &format!("printf '%s' '{words}'"));
    }

    /// Runs this shell text, which has the payload in `$payload`, to answer the calls that hold this text.
    pub(crate) fn answer_with(&self, event: &str, text: &str, script: &str) {
        let script = format!("case \"$payload\" in *'{text}'*) {script};; esac\n");
        let path = self.folder().join(format!("{event}.answer"));
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, before + &script).unwrap();
    }

    /// A headless session in which nothing is allowed beforehand.
    pub(crate) fn strict_session(&self) -> Launch {
        self.world.claude(&["-p", "Work.", "--model", "opus", "--output-format", "json"])
    }

    /// A headless session, ready to start.
    pub(crate) fn session(&self) -> Launch {
        self.strict_session().arg("--allowedTools").arg("Bash,Agent,SendMessage,mcp__plimsoll")
    }

    /// Runs a session to its end, which is that the model says "Done.".
    pub(crate) fn run(&self) -> Finished {
        let finished = self.session().run();
        assert_eq!(finished.result()["result"], "Done.", "{}\n{:#?}", finished.stderr, self.story());
        finished
    }

    /// The calls of the hooks in the order in which they began.
    pub(crate) fn noted(&self) -> Vec<Noted> {
        let files = fs::read_dir(self.folder().join("noted")).unwrap().map(|entry| entry.unwrap().path());
        let mut noted: Vec<Noted> = files
            .map(|path| {
                let name = path.file_stem().unwrap().to_str().unwrap();
                let parts: Vec<&str> = name.splitn(3, '-').collect();
                let text = fs::read_to_string(&path).unwrap();
                let payload = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                Noted { at: parts[0].parse().unwrap(), event: parts[2].to_owned(), payload }
            })
            .collect();
        noted.sort_by_key(|noted| noted.at);
        noted
    }

    /// The calls for one event.
    pub(crate) fn noted_of(&self, event: &str) -> Vec<Value> {
        self.noted().into_iter().filter(|noted| noted.event == event).map(|noted| noted.payload).collect()
    }

    /// The story in short: event, its tool or source or trigger, and the agent (`a1` is the first one seen).
    pub(crate) fn story(&self) -> Vec<String> {
        let mut agents: Vec<String> = Vec::new();
        let mut name = |payload: &Value| {
            let Some(id) = payload["agent_id"].as_str() else { return String::new() };
            let known = agents.iter().position(|agent| agent == id).unwrap_or_else(|| {
                agents.push(id.to_owned());
                agents.len() - 1
            });
            format!(" a{}={}", known + 1, payload["agent_type"].as_str().unwrap_or("nothing"))
        };
        let mut tell = |noted: Noted| {
            let field = |name: &str| noted.payload[name].as_str();
            let what = field("tool_name").or(field("source")).or(field("trigger")).unwrap_or_default();
            let line = format!("{} {what}", noted.event);
            line.trim_end().to_owned() + &name(&noted.payload)
        };
        self.noted().into_iter().map(&mut tell).collect()
    }

    /// The story of these agents and events only.
    pub(crate) fn story_of(&self, words: &[&str]) -> Vec<String> {
        self.story().into_iter().filter(|line| words.iter().any(|word| line.contains(word))).collect()
    }

    /// The first request of any subagent.
    pub(crate) fn first_of_frame(&self) -> Request {
        self.frame_requests().remove(0)
    }

    /// The requests of all subagents, in order.
    pub(crate) fn frame_requests(&self) -> Vec<Request> {
        self.model.requests_of(RequestKind::Subagent)
    }

    /// What the session was told of its first call of the Agent tool: the text, and whether it is an error.
    pub(crate) fn handed_back(&self) -> (String, bool) {
        self.handed_back_by(0)
    }

    /// The same of its call of this number.
    pub(crate) fn handed_back_by(&self, number: usize) -> (String, bool) {
        let last = self.model.main_requests().pop().expect("the session goes on");
        let messages = last.body["messages"].as_array().expect("messages");
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let block = blocks.filter(|block| block["type"] == "tool_result").nth(number).expect("a result");
        (last.tool_results().remove(number).1, block["is_error"] == true)
    }

    /// The same of the call in the session's message of this number, where each message makes one.
    pub(crate) fn handed_back_in(&self, message: usize) -> (String, bool) {
        let after = &self.model.main_requests()[message + 1];
        let messages = after.body["messages"].as_array().expect("messages");
        let mut blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let block = blocks.rfind(|block| block["type"] == "tool_result").expect("a result");
        (after.tool_results().pop().expect("a result").1, block["is_error"] == true)
    }
}

/// The names of the tools that a request offers.
pub(crate) fn tools(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array().expect("tools");
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

/// Our own server, as a `.mcp.json` would name it.
pub(crate) fn mcp_servers() -> String {
    json!({"mcpServers": {"plimsoll": {"command": bin_dir().join("plimsoll-mcp")}}}).to_string()
}

/// A call of a memory tool that writes.
pub(crate) fn note(words: &str) -> Step {
    Step::default().tool(NOTE, json!({"R2_NEXT": words}))
}

/// The tool that [`note`] calls.
pub(crate) const NOTE: &str = "mcp__plimsoll__update_registers";

/// A call of the Agent tool that waits for the frame's end.
pub(crate) fn frame(prompt: &str) -> Value {
    json!({"description": "a frame", "prompt": prompt, "subagent_type": "frame", "run_in_background": false})
}

/// An answer that calls the Agent tool.
pub(crate) fn push(prompt: &str) -> Step {
    Step::default().tool("Agent", frame(prompt))
}
