//! The scripted model of `scripts/phoenix.sh`: one session that starts an item. Prints its address and serves
//! until it is killed.
#![expect(clippy::disallowed_macros, reason = "the script reads the address from standard output")]

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};

fn main() {
    let steps = vec![Step::bash_call("echo begun > work.txt"), Step::from_text("The item is begun.")];
    let model = ScriptedModel::start_with_steps_repeating_last(steps);
    println!("{}", model.url());
    loop {
        std::thread::park();
    }
}
