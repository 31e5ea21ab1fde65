//! Markdown for a review: a heading a turn, prompts and the model's words quoted, calls and results fenced. What
//! is in a session can neither end its fence nor become a heading or HTML.

mod quote;

use super::exported::{Exported, Stream};
use crate::render::visible::{asked, event, pretty, visible};
use plimsoll_domain::log_line::RecordKind;
use plimsoll_domain::text::{counted, one_line, tokens};
use plimsoll_domain::turn::{Block, ToolCall};
use plimsoll_flows::turns::{Body, Recorded};
use quote::{fenced, inline, quoted};

pub(crate) fn render(exported: &Exported) -> String {
    let mut page = MarkdownPage { text: String::new() };
    page.line(&format!("# Session {}", inline(&exported.id)));
    page.facts(exported);
    for (place, stream) in exported.streams().iter().enumerate() {
        if place > 0 {
            page.line(&format!("## Subagent {} (who started it is not in the log)", inline(stream.name)));
        }
        page.stream(stream, if place > 0 { 3 } else { 2 });
    }
    page.text
}

struct MarkdownPage {
    text: String,
}

impl MarkdownPage {
    /// A paragraph.
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push_str("\n\n");
    }

    fn facts(&mut self, exported: &Exported) {
        let turns = exported.records.iter().filter(|record| record.is_turn());
        let failed = turns.clone().filter(|record| record.header.success == Some(false)).count();
        let usages = || exported.records.iter().filter_map(|record| record.header.usage);
        let peak = exported
            .main_turns()
            .filter_map(|record| record.header.usage)
            .map(plimsoll_domain::log_line::Tokens::sent)
            .max();
        let mut facts = vec![
            format!("{}, {failed} failed", counted(turns.count(), "turn")),
            format!(
                "{} input tokens, {} output tokens",
                tokens(usages().map(plimsoll_domain::log_line::Tokens::sent).sum()),
                tokens(usages().map(|usage| usage.output).sum())
            ),
        ];
        facts.extend(exported.model().map(|model| format!("model {}", inline(model))));
        facts.extend(peak.map(|peak| {
            let window = exported.window.as_ref().map(|window| format!(" of {}", tokens(window.tokens)));
            format!("peak {} tokens{}", tokens(peak), window.unwrap_or_default())
        }));
        facts.extend(exported.cost().map(|cost| format!("{cost:.4} USD as reported by Claude Code")));
        for checkpoint in &exported.checkpoints {
            let percent = checkpoint.percent.map(|percent| format!(" at {percent} %")).unwrap_or_default();
            facts.push(format!(
                "checkpoint {}{percent}, {}",
                checkpoint.level,
                inline(checkpoint.at.as_str())
            ));
        }
        let list: Vec<String> = facts.iter().map(|fact| format!("- {fact}")).collect();
        self.line(&list.join("\n"));
    }

    fn stream(&mut self, stream: &Stream<'_>, depth: usize) {
        for record in &stream.records {
            if record.is_turn() {
                self.turn(record, stream, depth);
            } else {
                self.event(record);
            }
        }
    }

    fn event(&mut self, record: &Recorded) {
        let (line, words) = event(record);
        let line = inline(&line);
        match words {
            // What the client adds for the model is mostly long and always the same.
            Some(words) if record.header.kind != RecordKind::Prompt => {
                self.line(&format!("<details><summary>{line}</summary>"));
                self.line(&fenced(&words, ""));
                self.line("</details>");
            }
            Some(words) => {
                self.line(&format!("**{line}**"));
                self.line(&quoted(&words));
            }
            None => self.line(&format!("*{line}*")),
        }
    }

    fn turn(&mut self, record: &Recorded, stream: &Stream<'_>, depth: usize) {
        let header = &record.header;
        let mut title = format!("{} Turn {}", "#".repeat(depth.min(6)), header.number.unwrap_or(0));
        let turn = record.turn();
        let names: Vec<String> = turn
            .into_iter()
            .flat_map(plimsoll_domain::Turn::tool_calls)
            .map(|call| inline(&call.name))
            .collect();
        if !names.is_empty() {
            title.push_str(&format!(" · {}", names.join(", ")));
        }
        if let Some(reason) = header.reason {
            title.push_str(&format!(" · failed: {}", reason.word()));
        }
        self.line(&title);
        let usage = header
            .usage
            .map(|usage| format!(" · {} input, {} output", tokens(usage.sent()), tokens(usage.output)));
        self.line(&format!("*{}{}*", inline(header.at.as_str()), usage.unwrap_or_default()));
        let Some(turn) = turn else {
            return match &record.body {
                Body::DecodeError(why) => self.line(&format!("[cannot be read: {}]", inline(why))),
                _ => self.line("[erased]"),
            };
        };
        for block in turn.raw_response() {
            self.block(block);
        }
        for (place, call) in turn.tool_calls().iter().enumerate() {
            self.call(call);
            if let Some(agent) = stream.agents.get(&(header.seq, place)) {
                let kind = agent.kind.map(|kind| format!(" ({})", inline(kind))).unwrap_or_default();
                self.line(&format!(
                    "{} Subagent {}{kind}",
                    "#".repeat((depth + 1).min(6)),
                    inline(agent.name)
                ));
                self.stream(agent, depth + 2);
                self.line(&format!("*End of subagent {}.*", inline(agent.name)));
            }
        }
        if turn.tool_calls().iter().all(ToolCall::is_ok)
            && let Some(failure) = turn.failure_of()
        {
            self.line(&format!("**{}**: {}", failure.reason.word(), inline(&failure.message)));
        }
    }

    /// The words of a response; its calls come with their results.
    fn block(&mut self, block: &Block) {
        let value = block.value();
        let text = |name: &str| visible(value[name].as_str().unwrap_or_default());
        match value["type"].as_str().unwrap_or_default() {
            "text" => self.line(&quoted(&text("text"))),
            "thinking" if text("thinking").is_empty() => {}
            "thinking" => {
                self.line("<details><summary>reasoning</summary>");
                self.line(&fenced(&text("thinking"), ""));
                self.line("</details>");
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {}
            _ => self.line(&fenced(&pretty(&value), "json")),
        }
    }

    fn call(&mut self, call: &ToolCall) {
        let took = call.ext.get("duration_ms").and_then(serde_json::Value::as_u64);
        let took = took.map(|took| format!(", {took} ms")).unwrap_or_default();
        let how = if call.is_ok() { "ok" } else { "failed" };
        self.line(&format!("**{}** ({how}{took})", inline(&one_line(&call.name))));
        let language = if call.args.get("command").is_some() { "sh" } else { "json" };
        self.line(&fenced(&asked(&call.args), language));
        let result = visible(&call.result_text());
        if call.result.is_null() {
            self.line("*It did not return.*");
        } else if result.is_empty() {
            self.line("*It returned nothing.*");
        } else {
            self.line(&fenced(&result, ""));
        }
    }
}
