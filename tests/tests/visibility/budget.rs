//! What the hooks add to a session.
