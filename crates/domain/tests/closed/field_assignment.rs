// error[E0616]: field `success` of struct `Turn` is private

use plimsoll_domain::Turn;

fn change(turn: &mut Turn) {
    turn.success = true;
}

fn main() {}
