//! A turn on the page: one line with its outcome, and everything else folded behind it.

use super::HtmlPage;
use crate::commands::export::exported::{Stream, model_of};
use crate::render::visible::{asked, pretty, time, visible};
use plimsoll_domain::Turn;
use plimsoll_domain::log_line::MAIN;
use plimsoll_domain::text::{clip, one_line, tokens};
use plimsoll_domain::turn::{Block, ToolCall};
use plimsoll_flows::turns::{Body, Recorded};
use serde_json::Value;

impl HtmlPage {
    pub(super) fn turn(&mut self, record: &Recorded, stream: &Stream<'_>) {
        let header = &record.header;
        let class = if header.success == Some(false) { "turn failed" } else { "turn" };
        let number = header.number.unwrap_or(0);
        let id = if stream.name == MAIN { format!("t{number}") } else { format!("s{}", header.seq) };
        self.add(&format!("<details class=\"{class}\" id=\"{id}\" data-turn=\"{number}\"><summary>"));
        self.add(&format!(
            "<time>{}</time> <b class=\"number\">{number}</b> ",
            super::escaped(&time(header.at.as_str()))
        ));
        self.headline(record);
        self.add("</summary>\n");
        match &record.body {
            Body::Turn(turn) => self.whole(record, turn, stream),
            Body::DecodeError(why) => {
                self.add("<p class=\"gone\">[cannot be read: ");
                self.say(&visible(why));
                self.add("]</p>");
            }
            _ => self.add("<p class=\"gone\">[erased]</p>"),
        }
        self.add("</details>\n");
    }

    fn headline(&mut self, record: &Recorded) {
        let turn = record.turn();
        let calls = turn.map(Turn::tool_calls).unwrap_or_default();
        for call in calls {
            let class = if call.is_ok() { "tool" } else { "tool bad" };
            self.add(&format!("<span class=\"{class}\">"));
            self.say(&visible(&one_line(&call.name)));
            self.add("</span> ");
        }
        if let Some(reason) = record.header.reason {
            self.add(&format!("<span class=\"reason\">{}</span> ", reason.word()));
        }
        let first = turn.map(|turn| clip(&one_line(&turn.text()), 120));
        let words = match (&record.body, first) {
            (_, Some(text)) if !text.is_empty() => text,
            (Body::Turn(_), _) => {
                calls.first().map(|call| clip(&one_line(&asked(&call.args)), 120)).unwrap_or_default()
            }
            (Body::DecodeError(_), _) => "[cannot be read]".to_owned(),
            _ => "[erased]".to_owned(),
        };
        self.add("<span class=\"what\">");
        self.say(&visible(&words));
        self.add("</span>");
        if let Some(usage) = record.header.usage {
            self.add(&format!(" <span class=\"tokens\">{}</span>", tokens(usage.sent())));
        }
    }

    fn whole(&mut self, record: &Recorded, turn: &Turn, stream: &Stream<'_>) {
        for block in turn.raw_response() {
            self.block(block);
        }
        for (place, call) in turn.tool_calls().iter().enumerate() {
            self.call(call);
            if let Some(agent) = stream.agents.get(&(record.header.seq, place)) {
                self.agent(agent, "");
            }
        }
        if turn.tool_calls().iter().all(ToolCall::is_ok)
            && let Some(failure) = turn.failure_of()
        {
            self.add("<p class=\"gone\">");
            self.say(&visible(&failure.message));
            self.add("</p>");
        }
        let usage = record.header.usage.map(|usage| {
            format!(
                "input {}, {} from the cache, {} into the cache, output {}",
                usage.input, usage.cache_read, usage.cache_creation, usage.output
            )
        });
        let stop =
            turn.ext().get("stop_reason").and_then(Value::as_str).map(|stop| format!("stopped: {stop}"));
        let notes =
            [model_of(record).map(str::to_owned), usage, stop, Some(record.header.at.clone().to_string())];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        self.add("<p class=\"note\">");
        self.say(&visible(&notes.join(" · ")));
        self.add("</p>");
    }

    fn block(&mut self, block: &Block) {
        let value = block.value();
        let text = |name: &str| visible(value[name].as_str().unwrap_or_default());
        match value["type"].as_str().unwrap_or_default() {
            "text" => self.pre("words", &text("text")),
            "thinking" if text("thinking").is_empty() => {}
            "thinking" => {
                self.add("<details class=\"reasoning\"><summary>reasoning</summary>");
                self.pre("words", &text("thinking"));
                self.add("</details>");
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {}
            _ => self.pre("code", &pretty(&value)),
        }
    }

    fn call(&mut self, call: &ToolCall) {
        let class = if call.is_ok() { "call" } else { "call bad" };
        self.add(&format!("<div class=\"{class}\"><h3>"));
        self.say(&visible(&one_line(&call.name)));
        let took = call.ext.get("duration_ms").and_then(Value::as_u64);
        let took = took.map(|took| format!(" · {took} ms")).unwrap_or_default();
        let how = if call.is_ok() { "ok" } else { "failed" };
        self.add(&format!(" <small>{how}{took}</small></h3>"));
        self.pre("code", &asked(&call.args));
        let result = visible(&call.result_text());
        if call.result.is_null() {
            self.add("<p class=\"gone\">It did not return.</p>");
        } else if result.is_empty() {
            self.add("<p class=\"gone\">It returned nothing.</p>");
        } else {
            self.pre("result", &result);
        }
        self.pictures(&call.result);
        self.add("</div>\n");
    }

    /// Pictures that the model was shown.
    fn pictures(&mut self, result: &Value) {
        for block in result.as_array().into_iter().flatten() {
            let source = &block["source"];
            let kind = source["media_type"].as_str().unwrap_or_default();
            let data = source["data"].as_str().unwrap_or_default();
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
            let is_known = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
            if is_known && !data.is_empty() && data.bytes().all(is_base64) {
                self.add(&format!("<img alt=\"what the tool returned\" src=\"data:{kind};base64,{data}\">"));
            }
        }
    }

    fn pre(&mut self, class: &str, text: &str) {
        self.add(&format!("<pre class=\"{class}\">"));
        // The parser takes a first line break for its own.
        self.add(if text.starts_with('\n') { "\n" } else { "" });
        self.say(text);
        self.add("</pre>");
    }
}
