use plimsoll_domain::turn::Block;

fn change(block: &mut Block) {
    let _: &mut serde_json::value::RawValue = &mut *block;
    block.json().clear();
}

fn main() {}
