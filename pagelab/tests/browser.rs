//! The pages in a real browser: every chart drawn, nothing to say on the console, nothing wider
//! than a phone, in light and in dark.
//!
//! Chromium opens the file headless, as a person would from a folder, and its document and its log
//! are what is checked. A script that the test adds leaves in the document what only the browser
//! knows: how wide the page came out and on which paper. Without Chromium the test says how to get
//! it and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on is a test that failed")]

use std::{fs, path::Path, process::Command};

use pagelab_parts::views;
use pagelab_record::journal::{self, Contents};
use pagelab_report::{Asked, Comparison, Forms, Publication, Report, Side};

/// Names that Chromium goes by.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What is asked of the page once it has settled; the answers are left in the page around it.
///
/// The page draws when a frame comes, which takes the processor's time. Its timers are told that
/// the time of an idle page has passed at once, so they ask until all is drawn.
const ASKED: &str = "<script>addEventListener('load', () => {
  const root = document.documentElement, said = parent.document.documentElement.dataset;
  const charts = document.querySelectorAll('figure.chart.plane').length;
  const tell = () => {
    said.wide = innerWidth;
    said.over = root.scrollWidth - root.clientWidth;
    said.paper = getComputedStyle(document.body).backgroundColor;
    said.drawn = document.querySelectorAll('[data-drawn=true]').length;
    said.charts = root.dataset.charts;
    return said.drawn === String(charts);
  };
  const settle = () => tell() ? setTimeout(tell, 1000) : setTimeout(settle, 10);
  settle();
});</script></body>";

/// Milliseconds of the page's own time: a page that is not drawn asks so often, a hundredth of it,
/// and one that is drawn jumps to the end.
const BUDGET: &str = "--virtual-time-budget=6000000";

/// A page in a window of so many pixels: a browser's own window is never as narrow as a phone's.
fn framed(page: &str, width: u32) -> String {
    let page = page.replace("</body>", ASKED).replace('&', "&amp;").replace('"', "&quot;");
    format!("<!doctype html><iframe width=\"{width}\" height=\"2000\" srcdoc=\"{page}\"></iframe>")
}

/// A window's width, and whether the person likes it dark.
type Window = (u32, bool);

/// The windows that a page is looked at in.
const WINDOWS: [Window; 4] = [(1280, false), (1280, true), (480, false), (480, true)];

/// What the browser made of the page: its document, and the lines of its log.
struct Visit {
    document: String,
    console: Vec<String>,
}

impl Visit {
    /// What stands in an attribute of the root.
    fn said(&self, name: &str) -> &str {
        let (_, rest) = self.document.split_once(&format!("data-{name}=\"")).unwrap_or_default();
        rest.split('"').next().unwrap_or_default()
    }
}

fn visit(page: &Path, profile: &Path, dark: bool) -> Option<Visit> {
    let found = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    let browser = BROWSERS.iter().find(found)?;
    let scheme = u8::from(!dark);
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([BUDGET, "--enable-logging=stderr", "--dump-dom"])
        .arg("--window-size=1400,2400")
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("it has just told its version");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(Into::into).collect();
    Some(Visit { document: String::from_utf8_lossy(&output.stdout).into_owned(), console })
}

/// Looks at a page in every window: at least so many charts, all drawn, and nothing else to see.
fn look_at(page: &str, charts_min: usize) {
    let folder = tempfile::tempdir().unwrap();
    let charts = page.matches("<figure class=\"chart plane\"").count();
    assert!(charts >= charts_min, "{charts} charts in the page");
    for (nth, window) in WINDOWS.into_iter().enumerate() {
        let (width, dark) = window;
        let at = |end: &str| folder.path().join(format!("{nth}{end}"));
        fs::write(at(".html"), framed(page, width)).unwrap();
        let Some(visit) = visit(&at(".html"), &at(""), dark) else {
            #[expect(clippy::print_stderr, reason = "a skipped test must say how to run it")]
            {
                eprintln!("skipped: no Chromium; to run it: sudo apt-get install chromium");
            }
            return;
        };
        assert_eq!(visit.console, Vec::<String>::new(), "{window:?}");
        assert_eq!(visit.said("drawn"), charts.to_string(), "{window:?}");
        assert_eq!(visit.said("charts"), format!("{charts}/{charts}"));
        assert_eq!(visit.said("wide"), width.to_string());
        assert_eq!(visit.said("over"), "0", "the page is wider than {width} pixels");
        let paper = if dark { "rgb(20, 24, 27)" } else { "rgb(251, 251, 249)" };
        assert_eq!(visit.said("paper"), paper);
    }
}

fn golden() -> Contents {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/golden.jsonl");
    journal::read(&golden).unwrap()
}

#[test]
fn a_report_is_drawn_in_every_window_and_the_console_is_silent() {
    let Contents { header, records, .. } = golden();
    let published = include_str!("../../published/fast-memory/records.jsonl");
    let claims = include_str!("../../published/fast-memory/claims.toml");
    let published = [Publication::parse("fast-memory", published, claims).unwrap()];
    look_at(&Report::of(&header, &records, None, &published, &views()).html(), 8);
}

#[test]
fn a_comparison_is_drawn_in_every_window_and_the_console_is_silent() {
    let Contents { header, records, .. } = golden();
    let mut others = records.clone();
    for (nth, record) in others.iter_mut().enumerate() {
        // Something of everything: what one side lacks, and what forbids a comparison.
        match nth % 9 {
            7 => record.case = record.case.clone().with("size", "3g"),
            8 => drop(record.host.settings.insert("thp_enabled".to_owned(), "always".into())),
            _ => {}
        }
    }
    let side = |name, records| Side { name, header: &header, records, damage: None };
    let sides = [side("before-the-patch", &records[..]), side("after-the-patch", &others[..])];
    look_at(&Comparison::of(&sides, &Asked::of(&views())).unwrap().html(), 4);
}
