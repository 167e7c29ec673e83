//! The page as text: what must hold of it without a browser.

use pagelab_record::Outcome;
use pagelab_report::{Forms, Report};

use crate::golden;

fn page() -> String {
    let contents = golden::journal();
    Report::of(&contents.header, &contents.records, contents.damage.as_ref(), &[], &crate::views())
        .html()
}

#[test]
fn the_page_asks_nothing_of_any_network() {
    // What uPlot says about its origin, in a comment, is the only address.
    let page = page().replace("https://github.com/leeoniya/uPlot", "");
    for address in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn the_page_is_small() {
    assert!(page().len() < 1_000_000, "{} bytes", page().len());
}

#[test]
fn no_text_of_a_record_becomes_markup() {
    let mut journal = golden::journal();
    let hostile = "</script><img onerror=alert(1)>";
    hostile.clone_into(&mut journal.header.run);
    for record in &mut journal.records {
        record.case = record.case.clone().with("order", hostile);
        record.host.identity.insert("cpu_model".into(), hostile.into());
        if let Outcome::Measured(measured) = &mut record.outcome {
            measured.warnings.push(hostile.into());
        }
    }
    let page = Report::of(&journal.header, &journal.records, None, &[], &crate::views()).html();
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 3);
}
