use session::Turn;

fn change(turn: &mut Turn) {
    turn.success = true;
}

fn main() {}
