//! Repeats an operation that Windows refuses while another program has the file open, such as a virus scanner or an
//! indexer that reads each new file.

use std::io;
use std::time::Duration;

/// How often an operation is repeated. The pauses of 1, 2, 4 … 64 ms take a quarter of a second together.
const MAX_RETRIES: u32 = 8;
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Runs an operation until another result than an error that says that the file is in use. Returns that error if the file
/// is still in use after about a quarter of a second.
pub(super) fn retry_while_in_use<T>(
    mut operation: impl FnMut() -> io::Result<T>,
    is_in_use: impl Fn(&io::Error) -> bool,
    pause: impl Fn(Duration),
) -> io::Result<T> {
    for retry in 0..MAX_RETRIES {
        match operation() {
            Err(error) if is_in_use(&error) => {
                pause(Duration::from_millis(1 << retry).min(LONGEST_PAUSE));
            }
            result => return result,
        }
    }
    operation()
}

/// Returns true if another program has the file open or mapped.
pub(super) fn is_in_use(error: &io::Error) -> bool {
    const SHARING_VIOLATION: i32 = 32;
    const USER_MAPPED_FILE: i32 = 1224;
    matches!(error.raw_os_error(), Some(SHARING_VIOLATION | USER_MAPPED_FILE))
}

/// Also returns true for a denied access. Where a name changes, Windows reports a file that is in use like this; a folder
/// that may not be changed costs a quarter of a second.
pub(super) fn is_in_use_or_denied(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    is_in_use(error) || error.raw_os_error() == Some(ACCESS_DENIED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn an_operation_is_repeated_only_while_the_file_is_in_use() {
        const NOT_FOUND: i32 = 2;
        for (errors, expected_error, expected_calls) in [
            (vec![], None, 1),
            (vec![32], None, 2),
            (vec![5, 32, 1224], None, 4),
            (vec![NOT_FOUND], Some(NOT_FOUND), 1),
            (vec![32, NOT_FOUND], Some(NOT_FOUND), 2),
            (vec![32; 20], Some(32), 9),
        ] {
            let (calls, paused) = (Cell::new(0), Cell::new(Duration::ZERO));
            let result = retry_while_in_use(
                || {
                    calls.set(calls.get() + 1);
                    errors
                        .get(calls.get() - 1)
                        .map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(*code)))
                },
                is_in_use_or_denied,
                |pause| paused.set(paused.get() + pause),
            );
            assert_eq!(result.err().and_then(|error| error.raw_os_error()), expected_error, "{errors:?}");
            assert_eq!(calls.get(), expected_calls, "{errors:?}");
            assert!(paused.get() < Duration::from_millis(300), "{errors:?}");
        }
    }

    #[test]
    fn a_denied_access_is_repeated_only_where_a_name_changes() {
        for (code, in_use, in_use_or_denied) in
            [(5, false, true), (32, true, true), (1224, true, true), (2, false, false), (80, false, false)]
        {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(
                (is_in_use(&error), is_in_use_or_denied(&error)),
                (in_use, in_use_or_denied),
                "{code}"
            );
        }
    }
}
