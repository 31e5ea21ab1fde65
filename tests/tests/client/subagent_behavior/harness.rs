//! A project whose hooks record every call, an agent named `frame`, and a scripted model.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::scripted_model::{Request, RequestKind, ScriptedModel, Step};
use plimsoll_testkit::world::{FinishedProgram, Launch, World};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::PathBuf;

const RECORDED_EVENTS: [&str; 13] = [
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

/// A shell hook that saves its payload in a file named after the time, then runs the response script of the event, if
/// there is one. The file is moved into place when it is complete.
const HOOK_SCRIPT: &str = r#"folder=$HOME/hooks
name=$(date +%s%N)-$$-$1
payload=$(cat)
printf '%s' "$payload" > "$folder/coming/$name.json"
mv "$folder/coming/$name.json" "$folder/noted/$name.json"
if [ -f "$folder/$1.answer" ]; then . "$folder/$1.answer"; fi
"#;

pub(crate) const FRAME_AGENT_DEFINITION: &str =
    "---\nname: frame\ndescription: Works on one part.\n---\nYou work in a frame.\n";

/// A world with recording hooks, the agent `frame` and a scripted model.
pub(crate) struct SubagentTestBench {
    pub(crate) world: World,
    pub(crate) model: ScriptedModel,
}

/// One recorded call of a hook.
#[derive(Clone, Debug)]
pub(crate) struct HookCall {
    pub(crate) started_at_nanos: u64,
    pub(crate) event: String,
    pub(crate) payload: Value,
}

impl SubagentTestBench {
    pub(crate) fn new(script: impl FnMut(&Request) -> Step + Send + 'static) -> SubagentTestBench {
        let (mut world, model) =
            (World::without_git().without_plimsoll_programs(), ScriptedModel::start(script));
        world.put_client_on_path_with_model_and_settings(&model);
        let bench = SubagentTestBench { world, model };
        for name in ["noted", "coming"] {
            fs::create_dir_all(bench.hooks_folder().join(name)).unwrap();
        }
        fs::write(bench.hooks_folder().join("hook.sh"), HOOK_SCRIPT).unwrap();
        bench.write_settings(json!({}));
        bench.world.write(".claude/agents/frame.md", FRAME_AGENT_DEFINITION);
        bench
    }

    fn hooks_folder(&self) -> PathBuf {
        self.world.home().join("hooks")
    }

    /// Creates a bench whose project also has the Plimsoll MCP server.
    pub(crate) fn with_mcp_server(
        script: impl FnMut(&Request) -> Step + Send + 'static,
    ) -> SubagentTestBench {
        let bench = SubagentTestBench::new(script);
        bench.world.write(".mcp.json", &render_mcp_config());
        bench
    }

    /// Writes the project's settings. Adds the recording hooks unless these settings have hooks.
    pub(crate) fn write_settings(&self, mut settings: Value) {
        let hook_groups = |event: &str| {
            let command = format!("sh {} {event}", self.hooks_folder().join("hook.sh").display());
            json!([{"hooks": [{"type": "command", "command": command}]}])
        };
        let hooks: Map<String, Value> =
            RECORDED_EVENTS.iter().map(|event| ((*event).to_owned(), hook_groups(event))).collect();
        if settings["hooks"].is_null() {
            settings["hooks"] = hooks.into();
        }
        self.world.write(".claude/settings.json", &settings.to_string());
    }

    /// Makes the hook of an event return these fields of `hookSpecificOutput` for every call.
    pub(crate) fn respond_to_every_call(&self, event: &str, fields: Value) {
        self.respond_if_payload_contains(event, "", fields);
    }

    /// Makes the hook return these fields for calls whose payload contains this text.
    pub(crate) fn respond_if_payload_contains(&self, event: &str, payload_text: &str, mut fields: Value) {
        fields["hookEventName"] = event.into();
        self.print_if_payload_contains(
            event,
            payload_text,
            &json!({"hookSpecificOutput": fields}).to_string(),
        );
    }

    /// Makes the hook print this output for calls whose payload contains this text.
    pub(crate) fn print_if_payload_contains(&self, event: &str, payload_text: &str, output: &str) {
        assert!(!output.contains('\'') && !payload_text.contains('\''), "quoted for the shell");
        self.run_script_if_payload_contains(event, payload_text, &format!("printf '%s' '{output}'"));
    }

    /// Makes the hook run this shell script, with the payload in `$payload`, for calls whose payload contains this
    /// text.
    pub(crate) fn run_script_if_payload_contains(&self, event: &str, payload_text: &str, script: &str) {
        let script = format!("case \"$payload\" in *'{payload_text}'*) {script};; esac\n");
        let path = self.hooks_folder().join(format!("{event}.answer"));
        let existing_script = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, existing_script + &script).unwrap();
    }

    /// Returns a headless session in which no tool is allowed in advance.
    pub(crate) fn session_without_allowed_tools(&self) -> Launch {
        self.world.claude(&["-p", "Work.", "--model", "opus", "--output-format", "json"])
    }

    /// Returns a headless session, not yet started, in which the tools of these tests are allowed.
    pub(crate) fn session_with_allowed_tools(&self) -> Launch {
        self.session_without_allowed_tools().arg("--allowedTools").arg("Bash,Agent,SendMessage,mcp__plimsoll")
    }

    /// Runs a session and asserts that it ends with the model's text `Done.`
    pub(crate) fn run_session(&self) -> FinishedProgram {
        let finished = self.session_with_allowed_tools().run();
        assert_eq!(
            finished.last_result()["result"],
            "Done.",
            "{}\n{:#?}",
            finished.stderr,
            self.render_hook_calls()
        );
        finished
    }

    /// Returns the recorded hook calls in the order in which they started.
    pub(crate) fn hook_calls(&self) -> Vec<HookCall> {
        let files =
            fs::read_dir(self.hooks_folder().join("noted")).unwrap().map(|entry| entry.unwrap().path());
        let mut calls: Vec<HookCall> = files
            .map(|path| {
                let name = path.file_stem().unwrap().to_str().unwrap();
                let parts: Vec<&str> = name.splitn(3, '-').collect();
                let text = fs::read_to_string(&path).unwrap();
                let payload = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                HookCall { started_at_nanos: parts[0].parse().unwrap(), event: parts[2].to_owned(), payload }
            })
            .collect();
        calls.sort_by_key(|call| call.started_at_nanos);
        calls
    }

    /// Returns the payloads of the calls for one event.
    pub(crate) fn payloads_of_event(&self, event: &str) -> Vec<Value> {
        self.hook_calls()
            .into_iter()
            .filter(|noted| noted.event == event)
            .map(|noted| noted.payload)
            .collect()
    }

    /// Returns one line per hook call: the event, its tool, source or trigger, and the agent (`a1` is the first one
    /// seen).
    pub(crate) fn render_hook_calls(&self) -> Vec<String> {
        let mut agents: Vec<String> = Vec::new();
        let mut agent_suffix = |payload: &Value| {
            let Some(id) = payload["agent_id"].as_str() else { return String::new() };
            let agent_index = agents.iter().position(|agent| agent == id).unwrap_or_else(|| {
                agents.push(id.to_owned());
                agents.len() - 1
            });
            format!(" a{}={}", agent_index + 1, payload["agent_type"].as_str().unwrap_or("nothing"))
        };
        let mut render_call = |call: HookCall| {
            let field = |name: &str| call.payload[name].as_str();
            let detail = field("tool_name").or(field("source")).or(field("trigger")).unwrap_or_default();
            let line = format!("{} {detail}", call.event);
            line.trim_end().to_owned() + &agent_suffix(&call.payload)
        };
        self.hook_calls().into_iter().map(&mut render_call).collect()
    }

    /// Returns the lines that contain one of these texts.
    pub(crate) fn hook_call_lines_containing(&self, texts: &[&str]) -> Vec<String> {
        self.render_hook_calls()
            .into_iter()
            .filter(|line| texts.iter().any(|word| line.contains(word)))
            .collect()
    }

    /// Returns the first request of any subagent.
    pub(crate) fn first_subagent_request(&self) -> Request {
        self.subagent_requests().remove(0)
    }

    /// Returns the requests of all subagents, in order.
    pub(crate) fn subagent_requests(&self) -> Vec<Request> {
        self.model.requests_of_kind(RequestKind::Subagent)
    }

    /// Returns the result of the session's first tool call as its model reads it: the text, and whether it is an error.
    pub(crate) fn first_tool_result(&self) -> (String, bool) {
        self.tool_result_of_call(0)
    }

    /// Returns the result of the session's tool call with this index: the text, and whether it is an error.
    pub(crate) fn tool_result_of_call(&self, call_index: usize) -> (String, bool) {
        let last_request = self.model.main_requests().pop().expect("the session goes on");
        let messages = last_request.body["messages"].as_array().expect("messages");
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let block = blocks.filter(|block| block["type"] == "tool_result").nth(call_index).expect("a result");
        (last_request.all_tool_results().remove(call_index).1, block["is_error"] == true)
    }

    /// Returns the result of the call in the session's message with this index, where each message makes one call.
    pub(crate) fn tool_result_of_message(&self, message_index: usize) -> (String, bool) {
        let next_request = &self.model.main_requests()[message_index + 1];
        let messages = next_request.body["messages"].as_array().expect("messages");
        let mut blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        let block = blocks.rfind(|block| block["type"] == "tool_result").expect("a result");
        (next_request.all_tool_results().pop().expect("a result").1, block["is_error"] == true)
    }
}

/// Returns the names of the tools that a request offers.
pub(crate) fn offered_tool_names(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array().expect("tools");
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

/// Returns a `.mcp.json` that names the Plimsoll MCP server.
pub(crate) fn render_mcp_config() -> String {
    json!({"mcpServers": {"plimsoll": {"command": find_or_build_bin_dir().join("plimsoll-mcp")}}}).to_string()
}

/// Returns a model step that calls a memory tool that writes.
pub(crate) fn update_registers_step(value: &str) -> Step {
    Step::default().with_tool_call(UPDATE_REGISTERS_TOOL, json!({"R2_NEXT": value}))
}

/// The tool that [`note`] calls.
pub(crate) const UPDATE_REGISTERS_TOOL: &str = "mcp__plimsoll__update_registers";

/// Returns the input of an Agent call that waits for the subagent to end.
pub(crate) fn agent_call_input(prompt: &str) -> Value {
    json!({"description": "a frame", "prompt": prompt, "subagent_type": "frame", "run_in_background": false})
}

/// Returns a model step that calls the Agent tool.
pub(crate) fn agent_call_step(prompt: &str) -> Step {
    Step::default().with_tool_call("Agent", agent_call_input(prompt))
}
