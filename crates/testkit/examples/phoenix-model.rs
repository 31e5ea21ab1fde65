//! The scripted model of `scripts/phoenix.sh`: one session that begins an item. Prints its address, and serves until it is ended.
#![expect(clippy::disallowed_macros, reason = "the script reads the address from standard output")]

use plimsoll_testkit::scripted_model::{ScriptedModel, Step};

fn main() {
    let steps = vec![Step::bash("echo begun > work.txt"), Step::text("The item is begun.")];
    let model = ScriptedModel::steps(steps);
    println!("{}", model.url());
    loop {
        std::thread::park();
    }
}
