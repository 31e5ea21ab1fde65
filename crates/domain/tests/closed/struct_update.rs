// error[E0451]: fields `number`, `raw_response`, `program`, `result`, `prints`, `tool_calls`, `memory`, `success` and `ext` of struct `Turn` are private

use plimsoll_domain::Turn;

fn renumbered(turn: Turn) -> Turn {
    Turn { number: 2, ..turn }
}

fn main() {}
