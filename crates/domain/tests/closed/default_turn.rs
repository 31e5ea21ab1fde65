// error[E0599]: no function or associated item named `default` found for struct `Turn` in the current scope

fn main() {
    let _ = plimsoll_domain::Turn::default();
}
