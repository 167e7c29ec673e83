//! The page in a real browser: every chart drawn, and nothing to say on the console.
//!
//! Chromium opens the file headless, as a person would from a folder, and its document and its log
//! are what is checked. Without Chromium the test says how to get it and passes.

use std::{fs, path::Path, process::Command};

use pagelab_record::journal;
use pagelab_report::{Publication, Report};

/// Names that Chromium goes by.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What the browser made of the page: its document, and the lines of its log.
struct Visit {
    document: String,
    console: Vec<String>,
}

fn visit(page: &Path, profile: &Path) -> Option<Visit> {
    let found = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let browser = BROWSERS.iter().find(found)?;
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--virtual-time-budget=4000", "--window-size=1280,2400"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("it has just told its version");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(Into::into).collect();
    Some(Visit { document: String::from_utf8_lossy(&output.stdout).into_owned(), console })
}

#[test]
fn every_chart_is_drawn_and_the_console_is_silent() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden.jsonl");
    let contents = journal::read(&golden).unwrap();
    let records = include_str!("../../../published/fast-memory/records.jsonl");
    let claims = include_str!("../../../published/fast-memory/claims.toml");
    let published = [Publication::parse("fast-memory", records, claims).unwrap()];
    let page =
        Report::of(&contents.header, &contents.records, None, &published, |_, _| None).html();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    fs::write(&path, &page).unwrap();

    let Some(Visit { document, console }) = visit(&path, &folder.path().join("profile")) else {
        #[expect(clippy::print_stderr, reason = "a skipped test must say so, and how to run it")]
        {
            eprintln!("skipped: no Chromium; to run it: sudo apt-get install chromium");
        }
        return;
    };
    assert_eq!(console, Vec::<String>::new());
    let charts = page.matches("<figure class=\"chart plane\"").count();
    assert!(charts >= 8, "{charts} charts in the page");
    assert_eq!(document.matches("data-drawn=\"true\"").count(), charts);
    assert!(document.contains(&format!("data-charts=\"{charts}/{charts}\"")));
}
