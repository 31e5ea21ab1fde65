//! Tells the crate for which target it is compiled, and from which commit: `build::Build::own`.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "this is how cargo and a build script talk"
)]

/// What `cargo package` writes into each package, and so into what `cargo install` compiles.
const PACKAGED: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PLIMSOLL_COMMIT");
    println!("cargo:rustc-env=PLIMSOLL_BUILT_FOR={}", std::env::var("TARGET").unwrap_or_default());
    // A checkout asks no git: each commit would compile everything anew. The scripts that build for users set the variable.
    let named = std::env::var("PLIMSOLL_COMMIT").ok();
    let packaged = std::fs::read_to_string(PACKAGED).ok();
    let commit = named.filter(|commit| !commit.is_empty()).or_else(|| packaged.as_deref().and_then(sha1));
    println!("cargo:rustc-env=PLIMSOLL_BUILT_FROM={}", commit.unwrap_or_default());
}

/// The value of `"sha1"`, the one that the file has.
fn sha1(text: &str) -> Option<String> {
    let value = text.split('"').skip_while(|word| *word != "sha1").nth(2)?;
    Some(value.to_owned())
}
