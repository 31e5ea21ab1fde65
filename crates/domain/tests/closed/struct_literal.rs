// error[E0451]: fields `number`, `raw_response`, `program`, `result`, `prints`, `tool_calls`, `memory`, `success` and `ext` of struct `Turn` are private

use plimsoll_domain::Turn;

fn main() {
    let _ = Turn {
        number: 1,
        raw_response: Vec::new(),
        program: None,
        result: serde_json::Value::Null,
        prints: Vec::new(),
        tool_calls: Vec::new(),
        memory: serde_json::Map::new(),
        success: true,
        ext: serde_json::Map::new(),
    };
}
