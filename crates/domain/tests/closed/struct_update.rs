use plimsoll_domain::Turn;

fn renumbered(turn: Turn) -> Turn {
    Turn { number: 2, ..turn }
}

fn main() {}
