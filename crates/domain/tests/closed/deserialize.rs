// error[E0277]: the trait bound `Turn: serde::Deserialize<'de>` is not satisfied

fn main() {
    let _ = serde_json::from_str::<plimsoll_domain::Turn>("{}");
}
