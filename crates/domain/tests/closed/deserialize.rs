fn main() {
    let _ = serde_json::from_str::<plimsoll_domain::Turn>("{}");
}
