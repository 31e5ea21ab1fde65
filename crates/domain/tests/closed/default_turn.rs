fn main() {
    let _ = plimsoll_domain::Turn::default();
}
