fn main() {
    let _ = session::Turn::default();
}
