//! Which start of the system this is: what was not on the disk before is in doubt after it.

use crate::disk;
use std::path::Path;

/// A name that changes with every start of the system; none where the system has none.
pub(crate) fn id() -> Option<String> {
    let name = disk::read_text(Path::new("/proc/sys/kernel/random/boot_id")).ok()??;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_same_until_the_system_is_started_anew() {
        let id = super::id().unwrap();
        assert_eq!((id.len(), super::id()), (36, Some(id)));
    }
}
