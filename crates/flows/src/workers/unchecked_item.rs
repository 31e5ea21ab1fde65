//! The stage, in a member's record, of an item that the fleet's board lists as merged and that this machine has not found in the
//! target branch yet.

use plimsoll_domain::board::{BoardMillis, ItemStage, Lease};

/// The holder of the lease that stands for an unchecked item. It is the name of no worker, because a worker's name
/// contains a slash.
const UNCHECKED_ITEM_HOLDER: &str = "(merged, and not checked yet)";

/// Returns a lease that never expires: the item can be neither claimed nor merged, the items that depend on it wait, and the run does
/// not end. Items in the same area wait on this machine as well, which is harmless.
pub(super) fn unchecked_item_stage() -> ItemStage {
    ItemStage::Leased {
        lease: Lease { holder: UNCHECKED_ITEM_HOLDER.to_owned(), expires_at: BoardMillis::MAX },
    }
}

/// Returns true if this is the stage of an item that is not checked yet.
pub(super) fn is_stage_of_unchecked_item(stage: &ItemStage) -> bool {
    matches!(stage, ItemStage::Leased { lease } if lease.holder == UNCHECKED_ITEM_HOLDER)
}
