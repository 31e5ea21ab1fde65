//! A plain JSON-RPC client over standard input and output, which knows nothing but lines.

use plimsoll_testkit::find_or_build_bin_dir;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The protocol revision without a handshake.
pub const MODERN_REVISION: &str = "2026-07-28";
/// Longer than the longest time that a command may run.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct JsonRpcClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    last_request_id: u64,
    early_answers: Vec<Value>,
    request_meta: Value,
}

impl JsonRpcClient {
    /// Starts a server to which nothing has been sent yet.
    pub fn start_uninitialized(world: &World, arguments: &[&str]) -> JsonRpcClient {
        JsonRpcClient::start_with_env(world, arguments, &[])
    }

    pub fn start_with_env(world: &World, arguments: &[&str], env: &[(&str, String)]) -> JsonRpcClient {
        let mut child = Command::new(find_or_build_bin_dir().join("plimsoll-mcp"))
            .args(arguments)
            .env_clear()
            .envs(world.env_with_programs_on_path())
            .envs(env.iter().map(|(name, value)| (name, value)))
            .current_dir(world.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A line that is no message of the protocol is a fault.
                let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| json!({"stray": line}));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        JsonRpcClient {
            child,
            stdin,
            lines,
            last_request_id: 0,
            early_answers: Vec::new(),
            request_meta: json!({}),
        }
    }

    /// Starts a server and completes the handshake.
    pub fn start_initialized(world: &World, arguments: &[&str]) -> JsonRpcClient {
        let mut client = JsonRpcClient::start_uninitialized(world, arguments);
        client.initialize("2025-11-25");
        client
    }

    /// Starts a client of the revision without a handshake: each request names its client.
    pub fn start_without_handshake(world: &World, arguments: &[&str]) -> JsonRpcClient {
        let mut client = JsonRpcClient::start_uninitialized(world, arguments);
        client.request_meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        client
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let result = self.call_method("initialize", params)["result"].clone();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the server reads");
    }

    /// Returns the next message, whichever request it answers.
    pub fn receive_message(&mut self) -> Value {
        self.lines.recv_timeout(TIMEOUT).expect("a message")
    }

    /// Sends a request without waiting for its answer, and returns its id.
    pub fn send_request(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_request_id += 1;
        for (key, value) in self.request_meta.as_object().expect("an object") {
            params["_meta"][key] = value.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last_request_id, "method": method, "params": params}));
        self.last_request_id
    }

    /// Returns the answer to a request; answers to other requests are kept until they are read.
    pub fn wait_for_answer(&mut self, request_id: u64) -> Value {
        if let Some(index) = self.early_answers.iter().position(|message| message["id"] == request_id) {
            return self.early_answers.remove(index);
        }
        loop {
            let message = self.receive_message();
            if message["id"] == request_id {
                return message;
            }
            assert!(message["id"].as_u64().is_some_and(|id| id <= self.last_request_id), "{message}");
            self.early_answers.push(message);
        }
    }

    pub fn call_method(&mut self, method: &str, params: Value) -> Value {
        let request_id = self.send_request(method, params);
        self.wait_for_answer(request_id)
    }

    /// Calls a tool that must succeed, and returns its text.
    pub fn call_tool(&mut self, tool: &str, arguments: Value) -> String {
        let (is_error, text) = self.call_tool_result(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    /// Calls a tool that must refuse, and returns its text.
    pub fn call_refused_tool(&mut self, tool: &str, arguments: Value) -> String {
        let (is_error, text) = self.call_tool_result(tool, arguments);
        assert!(is_error, "{tool}: {text}");
        text
    }

    fn call_tool_result(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let answer = self.call_method("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result.get("structuredContent").is_none(), "{answer}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{answer}");
        let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
        (result["isError"].as_bool().expect("a word about it"), text)
    }

    pub fn list_tools(&mut self) -> Vec<Value> {
        self.call_method("tools/list", json!({}))["result"]["tools"].as_array().expect("tools").clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the server's input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Closes the server's input, and waits until the server exits.
    pub fn close_and_wait(mut self) -> ExitStatus {
        self.close_input();
        self.wait_for_exit()
    }

    /// Waits until the server exits.
    pub fn wait_for_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(15), "the server lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for JsonRpcClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
