fn main() {
    let _ = serde_json::from_str::<session::Turn>("{}");
}
