// error[E0308]: mismatched types
// error[E0599]: no method named `clear` found for reference `&str` in the current scope

use plimsoll_domain::turn::Block;

fn change(block: &mut Block) {
    let _: &mut serde_json::value::RawValue = &mut *block;
    block.json().clear();
}

fn main() {}
