//! A plain JSON-RPC client over standard input and output, that knows nothing but lines.

use plimsoll_testkit::bin_dir;
use plimsoll_testkit::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The revision without a handshake.
pub const MODERN: &str = "2026-07-28";
/// Longer than the longest command may run.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    number: u64,
    early: Vec<Value>,
    meta: Value,
}

impl Client {
    /// A server that has been told nothing yet.
    pub fn bare(world: &World, arguments: &[&str]) -> Client {
        Client::with_env(world, arguments, &[])
    }

    pub fn with_env(world: &World, arguments: &[&str], env: &[(&str, String)]) -> Client {
        let mut child = Command::new(bin_dir().join("plimsoll-mcp"))
            .args(arguments)
            .env_clear()
            .envs(world.env())
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
                // Whatever is no message of the protocol is a fault.
                let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| json!({"stray": line}));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Client { child, stdin, lines, number: 0, early: Vec::new(), meta: json!({}) }
    }

    /// A server after the handshake.
    pub fn start(world: &World, arguments: &[&str]) -> Client {
        let mut client = Client::bare(world, arguments);
        client.initialize("2025-11-25");
        client
    }

    /// A client of the revision without a handshake: each request says who asks.
    pub fn modern(world: &World, arguments: &[&str]) -> Client {
        let mut client = Client::bare(world, arguments);
        client.meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        client
    }

    pub fn initialize(&mut self, version: &str) -> Value {
        let info = json!({"name": "test", "version": "1"});
        let asked = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let answer = self.ask("initialize", asked)["result"].clone();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the server reads");
    }

    /// The next message, whatever it answers.
    pub fn next(&mut self) -> Value {
        self.lines.recv_timeout(TIMEOUT).expect("a message")
    }

    /// Sends a request and does not wait.
    pub fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.number += 1;
        for (key, value) in self.meta.as_object().expect("an object") {
            params["_meta"][key] = value.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}));
        self.number
    }

    /// The answer to a request; answers to others are kept until they are asked for.
    pub fn answer(&mut self, number: u64) -> Value {
        if let Some(place) = self.early.iter().position(|message| message["id"] == number) {
            return self.early.remove(place);
        }
        loop {
            let message = self.next();
            if message["id"] == number {
                return message;
            }
            assert!(message["id"].as_u64().is_some_and(|id| id <= self.number), "{message}");
            self.early.push(message);
        }
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let number = self.request(method, params);
        self.answer(number)
    }

    /// Calls a tool; what it says if it is content.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let (is_error, text) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    /// Calls a tool; what it says if it refuses.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let (is_error, text) = self.call(tool, arguments);
        assert!(is_error, "{tool}: {text}");
        text
    }

    fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result.get("structuredContent").is_none(), "{answer}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{answer}");
        let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
        (result["isError"].as_bool().expect("a word about it"), text)
    }

    pub fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", json!({}))["result"]["tools"].as_array().expect("tools").clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its input.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Closes its input, and waits for its end.
    pub fn end(mut self) -> ExitStatus {
        self.close();
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
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

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
