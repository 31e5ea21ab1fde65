//! Messages about the copy of a repository, which is made before the first session. A large one takes
//! minutes.

use plimsoll_domain::text::count_with_noun;
use plimsoll_launcher::own_repository;
use std::path::Path;
use std::time::{Duration, Instant};

/// Copies a repository by `copy`. If that takes long, its size is printed before and its duration after. A copy that exists already
/// (`is_new` is false) is only opened.
pub fn copy_with_announcement<T>(
    repository: &Path,
    is_new: bool,
    print: &mut dyn FnMut(String),
    copy: impl FnOnce() -> T,
) -> T {
    let size_bytes = if is_new { own_repository::clone_objects_bytes(repository) } else { None };
    let Some(announcement) = size_bytes
        .and_then(|size_bytes| copy_announcement(size_bytes, own_repository::LARGE_REPOSITORY_BYTES))
    else {
        return copy();
    };
    print(announcement);
    let started = Instant::now();
    let copied = copy();
    print(duration_message(started.elapsed()));
    copied
}

/// Returns the announcement of a copy of `size_bytes` bytes, or `None` up to the threshold.
fn copy_announcement(size_bytes: u64, threshold_bytes: u64) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let gigabytes = size_bytes as f64 / 1e9;
    (size_bytes > threshold_bytes).then(|| {
        format!("copying the repository ({gigabytes:.1} GB of git objects) to where no session can write")
    })
}

fn duration_message(duration: Duration) -> String {
    let seconds = usize::try_from(duration.as_secs()).unwrap_or(usize::MAX);
    format!("the copy took {}", count_with_noun(seconds, "second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_announced_only_above_the_threshold() {
        assert_eq!((copy_announcement(0, 10), copy_announcement(10, 10)), (None, None));
        let words = "copying the repository (1.5 GB of git objects) to where no session can write";
        assert_eq!(
            copy_announcement(1_500_000_000, own_repository::LARGE_REPOSITORY_BYTES).as_deref(),
            Some(words)
        );
        assert_eq!(duration_message(Duration::from_millis(61_900)), "the copy took 61 seconds");
    }

    #[test]
    fn a_small_repository_is_copied_without_a_message() {
        let folder = tempfile::tempdir().unwrap();
        let mut printed = Vec::new();
        let copied = copy_with_announcement(folder.path(), true, &mut |words| printed.push(words), || 7);
        assert_eq!((copied, printed), (7, Vec::new()));
    }
}
