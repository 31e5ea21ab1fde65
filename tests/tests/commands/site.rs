//! The site that `scripts/site.sh` builds: it has every page of the guide, and its links and anchors lead somewhere.

use crate::packaging::script_launch;
use plimsoll_testkit::workspace_root;
use plimsoll_testkit::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn build_site() -> PathBuf {
    let finished = script_launch(&World::without_git(), "site.sh", &[]).run().expect_success();
    PathBuf::from(finished.stdout.trim())
}

/// Returns the names of the pages in a folder of docs/, without the list of the site's pages.
fn markdown_names(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(workspace_root().join("docs").join(folder)).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().display().to_string());
    let pages = names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md");
    pages.map(|name| format!("{folder}{name}")).collect()
}

/// Returns the values of an attribute, of all elements of a page.
fn attribute_values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    html.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn read_html_files(folder: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the site").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_html_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let html = std::fs::read_to_string(&path).expect("a page of the site");
            files.insert(path, html);
        }
    }
}

/// Returns the path without `.` and `..`.
fn normalize_path(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut normalized, component| {
        match component {
            std::path::Component::ParentDir => drop(normalized.pop()),
            std::path::Component::CurDir => {}
            _ => normalized.push(component),
        }
        normalized
    })
}

/// Returns the links of these pages that lead to a file or an anchor that does not exist.
fn broken_links(pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut broken = Vec::new();
    for (page, html) in pages {
        let folder = page.parent().expect("a folder");
        for link in attribute_values(html, "href").into_iter().chain(attribute_values(html, "src")) {
            if ["http://", "https://", "data:"].iter().any(|scheme| link.starts_with(scheme)) {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { normalize_path(&folder.join(file)) };
            let has_anchor =
                || pages.get(&path).is_some_and(|target| attribute_values(target, "id").contains(&anchor));
            if !path.is_file() || (!anchor.is_empty() && !has_anchor()) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    broken
}

#[test]
fn the_site_has_every_page_no_broken_link_and_a_search() {
    let site = build_site();
    let summary =
        std::fs::read_to_string(workspace_root().join("docs/SUMMARY.md")).expect("the list of pages");
    let links = summary
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- [")?.split_once("](")?.1.strip_suffix(')'));
    let listed: Vec<String> = links.map(str::to_owned).collect();
    let expected: BTreeSet<String> =
        markdown_names("").into_iter().chain(markdown_names("decisions/")).collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(listed.len(), expected.len(), "a page is listed twice");
    let mut pages = BTreeMap::new();
    read_html_files(&site, &mut pages);
    // The page for an unknown address refers to the site's root, and the page for printing has all anchors in one file.
    pages.retain(|path, _| !path.ends_with("404.html") && !path.ends_with("print.html"));
    assert!(pages.len() > expected.len(), "{}", pages.len());
    assert_eq!(broken_links(&pages), Vec::<String>::new());
    // What a code block says of its test is not part of its language, which the colors depend on.
    let start_page = &pages[&site.join("start.html")];
    assert!(start_page.contains("<code class=\"language-sh\">"), "{start_page}");
    for (path, html) in &pages {
        assert!(
            !html.contains("class=\"language-sh by") && !html.contains("not run:\""),
            "{}",
            path.display()
        );
    }
    // The search works in the browser, in a list of words that is made with the site.
    let files = std::fs::read_dir(&site).expect("the site").flatten();
    let index_path = files
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("searchindex")));
    let index = std::fs::read_to_string(index_path.expect("an index")).expect("text");
    for name in markdown_names("") {
        let address = name.replace(".md", ".html");
        assert!(index.contains(&format!("{address}#")), "{address} is not in the index");
    }
}

#[test]
fn a_link_to_a_missing_page_or_anchor_is_broken() {
    let world = World::without_git();
    let page = |links: &str| format!("<h2 id=\"here\">x</h2>{links}");
    world.write(
        "site/a.html",
        &page("<a href=\"b.html#there\"></a><a href=\"#here\"></a><a href=\"https://x.y/z\"></a>"),
    );
    world.write(
        "site/b.html",
        &page("<a href=\"a.html#here\"></a><img src=\"no.svg\"><a href=\"c.html\"></a>"),
    );
    let mut pages = BTreeMap::new();
    read_html_files(&world.path("site"), &mut pages);
    let broken: Vec<String> = broken_links(&pages)
        .into_iter()
        .map(|line| line.rsplit('/').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(broken, ["a.html: b.html#there", "b.html: c.html", "b.html: no.svg"]);
}
