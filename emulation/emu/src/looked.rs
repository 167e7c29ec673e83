//! What is counted of look-ups of pages.

/// How often what stands in front of a map knew a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Looked {
    /// It had the page.
    pub hits: u64,
    /// It knew that the page is absent.
    pub absent_hits: u64,
    /// It had to ask the map.
    pub misses: u64,
}
