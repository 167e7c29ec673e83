//! The report as a page: one file that opens offline.
//!
//! The one idea: the page is the same document as the terminal shows, rendered by a template, and
//! its charts draw what the tables say; without scripts the tables remain. Style, drawing code and
//! data are written into the file, so it asks nothing of any network.

use minijinja::{Environment, value::Serde};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Block, Document, Plane, visible::visible};

const TEMPLATE: &str = include_str!("../assets/report.html");
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
const UPLOT: &str = include_str!("../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../assets/uPlot.min.css");

/// Everything that the template is filled with.
#[derive(Serialize)]
struct Page<'a> {
    document: &'a Document,
    data: String,
    about: &'static str,
    style: &'static str,
    script: &'static str,
    uplot: &'static str,
    uplot_style: &'static str,
}

/// What the data of a report's page is.
pub(crate) const REPORTED: &str = "Made by pagelab from the records of one run. This file holds \
                                   all of its numbers: they are in the report part of the JSON at \
                                   its end, schema pagelab.report/1.";
/// What the data of a comparison's page is.
pub(crate) const COMPARED: &str = "Made by pagelab from the records of the runs that are compared. \
                                   This file holds every cell: they are in the report part of the \
                                   JSON at its end.";

/// A document as a page, with the data that it was made from.
pub(crate) fn page(document: &Document, data: &Value, about: &'static str) -> String {
    // The script draws them in the places that the template leaves, one after the other.
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let planes: Vec<&Plane> = blocks
        .filter_map(|block| match block {
            Block::Plane(plane) => Some(plane),
            _ => None,
        })
        .collect();
    let page = Page {
        document,
        data: script_safe(&json!({"planes": planes, "report": data})),
        about,
        style: STYLE,
        script: SCRIPT,
        uplot: UPLOT,
        uplot_style: UPLOT_STYLE,
    };
    let mut environment = Environment::new();
    let page = environment
        .add_template("report.html", TEMPLATE)
        .and_then(|()| environment.get_template("report.html"))
        .and_then(|template| template.render(Serde(&page)))
        .expect("the template is part of the program and takes every document");
    visible(&page)
}

/// JSON that no text inside can end: `<` is the only character that could.
fn script_safe(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_the_script_that_holds_it() {
        let safe = script_safe(&json!({"case": "</script><!--"}));
        assert!(!safe.contains('<'));
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap()["case"], "</script><!--");
    }
}
