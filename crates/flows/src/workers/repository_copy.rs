//! What is printed about the copy of a repository, which is made before the first session. A large one takes minutes.

use plimsoll_domain::text::counted;
use plimsoll_launcher::own_repository;
use std::path::Path;
use std::time::{Duration, Instant};

/// Copies a repository by `copy`. If that takes long, its size is printed before and its duration after. A copy that exists already
/// (`is_new` is false) is only opened.
pub fn announce_copy<T>(
    repository: &Path,
    is_new: bool,
    print: &mut dyn FnMut(String),
    copy: impl FnOnce() -> T,
) -> T {
    let size = if is_new { own_repository::size_of_objects(repository) } else { None };
    let Some(words) = size.and_then(|size| copy_words(size, own_repository::LARGE)) else { return copy() };
    print(words);
    let started = Instant::now();
    let copied = copy();
    print(duration_words(started.elapsed()));
    copied
}

/// The announcement of a copy of so many bytes; `None` up to the threshold.
fn copy_words(size: u64, threshold: u64) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let gigabytes = size as f64 / 1e9;
    (size > threshold).then(|| {
        format!("copying the repository ({gigabytes:.1} GB of git objects) to where no session can write")
    })
}

fn duration_words(duration: Duration) -> String {
    let seconds = usize::try_from(duration.as_secs()).unwrap_or(usize::MAX);
    format!("the copy took {}", counted(seconds, "second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_announced_only_above_the_threshold() {
        assert_eq!((copy_words(0, 10), copy_words(10, 10)), (None, None));
        let words = "copying the repository (1.5 GB of git objects) to where no session can write";
        assert_eq!(copy_words(1_500_000_000, own_repository::LARGE).as_deref(), Some(words));
        assert_eq!(duration_words(Duration::from_millis(61_900)), "the copy took 61 seconds");
    }

    #[test]
    fn a_small_repository_is_copied_without_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let mut printed = Vec::new();
        let copied = announce_copy(folder.path(), true, &mut |words| printed.push(words), || 7);
        assert_eq!((copied, printed), (7, Vec::new()));
    }
}
