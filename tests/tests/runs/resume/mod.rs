//! What a session is told when it takes over from another one, with the real client: item, file, line and next step,
//! checked against what the scripted sessions did and against git.

mod changed_files;
mod checkpoint_item;
pub(crate) mod harness;
mod session_claims;
mod ticked_items;
mod work_location;
mod work_range;
