// error[E0599]: no method named `push` found for reference `&[String]` in the current scope

use plimsoll_domain::Turn;

fn add(turn: &mut Turn) {
    turn.prints().push("more".to_owned());
}

fn main() {}
