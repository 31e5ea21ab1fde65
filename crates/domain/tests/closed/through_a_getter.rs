// error[E0596]: cannot borrow data in a `&` reference as mutable
// error[E0596]: cannot borrow data in a `&` reference as mutable
// error[E0596]: cannot borrow data in a `&` reference as mutable
// error[E0596]: cannot borrow data in a `&` reference as mutable
// error[E0594]: cannot assign to data in a `&` reference

use plimsoll_domain::Turn;

fn add(turn: &mut Turn) {
    turn.prints()[0].push('x');
    turn.tool_calls()[0].name.push('x');
    turn.memory().clear();
    turn.ext().clear();
    *turn.result() = serde_json::Value::Null;
}

fn main() {}
