//! Messages about copying a repository before the first session. Copying a large one takes minutes.

use plimsoll_domain::text::count_with_noun;
use plimsoll_launcher::plimsoll_repository;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs `copy`, which copies a repository. If the copy is new and large, prints its size before and its
/// duration after. If `is_new_copy` is false, `copy` only opens an existing copy.
pub fn copy_and_print_messages_if_large<T>(
    repository: &Path,
    is_new_copy: bool,
    print: &mut dyn FnMut(String),
    copy: impl FnOnce() -> T,
) -> T {
    let size_bytes =
        if is_new_copy { plimsoll_repository::size_of_clone_objects_in_bytes(repository) } else { None };
    let Some(announcement) = size_bytes.and_then(|size_bytes| {
        copy_announcement_if_above_threshold(size_bytes, plimsoll_repository::LARGE_REPOSITORY_BYTES)
    }) else {
        return copy();
    };
    print(announcement);
    let started_at = Instant::now();
    let result = copy();
    print(copy_duration_message(started_at.elapsed()));
    result
}

/// Returns the announcement of a copy of `size_bytes` bytes, or `None` if that is not above the threshold.
fn copy_announcement_if_above_threshold(size_bytes: u64, threshold_bytes: u64) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let gigabytes = size_bytes as f64 / 1e9;
    (size_bytes > threshold_bytes).then(|| {
        format!(
            "copying the repository ({gigabytes:.1} GB of git objects) to a folder that sessions cannot write"
        )
    })
}

fn copy_duration_message(duration: Duration) -> String {
    let seconds = usize::try_from(duration.as_secs()).unwrap_or(usize::MAX);
    format!("the copy took {}", count_with_noun(seconds, "second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_announced_only_above_the_threshold() {
        assert_eq!(
            (copy_announcement_if_above_threshold(0, 10), copy_announcement_if_above_threshold(10, 10)),
            (None, None)
        );
        let words = "copying the repository (1.5 GB of git objects) to a folder that sessions cannot write";
        assert_eq!(
            copy_announcement_if_above_threshold(1_500_000_000, plimsoll_repository::LARGE_REPOSITORY_BYTES)
                .as_deref(),
            Some(words)
        );
        assert_eq!(copy_duration_message(Duration::from_millis(61_900)), "the copy took 61 seconds");
    }

    #[test]
    fn a_small_repository_is_copied_without_a_message() {
        let folder = tempfile::tempdir().unwrap();
        let mut printed = Vec::new();
        let copied =
            copy_and_print_messages_if_large(folder.path(), true, &mut |words| printed.push(words), || 7);
        assert_eq!((copied, printed), (7, Vec::new()));
    }
}
