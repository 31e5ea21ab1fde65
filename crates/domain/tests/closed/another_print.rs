use plimsoll_domain::Turn;

fn add(turn: &mut Turn) {
    turn.prints().push("more".to_owned());
}

fn main() {}
