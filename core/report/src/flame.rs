//! A flame graph: stacks as bars that lie on each other, of one path or of the difference of two.
//!
//! The one idea: a bar is as wide as the larger of what both sides take, added up from the leaves,
//! so that what vanished can still be seen; its colour says which side takes more. The page draws
//! it without a script.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::quantity::group_thousands;

/// Bars that are narrower are left out, in per cent of the whole.
const NARROWEST: f64 = 0.15;
/// Frames that lie on each other, at most.
const DEPTH_MAX: usize = 64;

/// What the page draws.
#[derive(Debug, Clone, Serialize)]
pub struct Flame {
    title: String,
    caption: String,
    /// How many bars lie on each other.
    depth: usize,
    bars: Vec<Bar>,
}

/// A function within its stack.
#[derive(Debug, Clone, Serialize)]
struct Bar {
    depth: usize,
    /// In per cent of the whole.
    left: f64,
    width: f64,
    name: String,
    /// Which side takes more.
    look: &'static str,
    /// What is shown of it when it is pointed at.
    told: String,
}

#[derive(Debug, Default)]
struct Node<'s> {
    own: [i64; 2],
    below: BTreeMap<&'s str, Node<'s>>,
}

impl Node<'_> {
    fn sides(&self) -> [i64; 2] {
        self.below.values().map(Self::sides).fold(self.own, |[a, b], [x, y]| [a + x, b + y])
    }

    fn width(&self) -> i64 {
        let [a, b] = self.own;
        a.max(b) + self.below.values().map(Self::width).sum::<i64>()
    }
}

impl Flame {
    /// Draws stacks, each with what both sides take; `None` where none takes anything.
    pub fn of<'s>(
        title: String,
        caption: &str,
        stacks: impl Iterator<Item = (&'s str, [i64; 2])>,
    ) -> Option<Self> {
        let mut root = Node::default();
        for (stack, [a, b]) in stacks {
            let functions = stack.split(';').take(DEPTH_MAX);
            let node = functions.fold(&mut root, |node, name| node.below.entry(name).or_default());
            node.own = [node.own[0] + a, node.own[1] + b];
        }
        let whole = root.width();
        let mut flame = Self { title, caption: caption.to_owned(), depth: 0, bars: Vec::new() };
        flame.add(&root, 0, 0, whole);
        (whole > 0).then_some(flame)
    }

    fn add(&mut self, node: &Node<'_>, depth: usize, left: i64, whole: i64) {
        let share = |count: i64| count as f64 * 100.0 / whole.max(1) as f64;
        let mut left = left;
        for (name, below) in &node.below {
            let width = below.width();
            if share(width) >= NARROWEST {
                let [a, b] = below.sides();
                let look = match b - a {
                    0 => "same",
                    1.. => "more",
                    _ => "less",
                };
                let counts = [a, b].map(|count| group_thousands(count as f64));
                let told = match counts {
                    [a, b] if a == b => format!("{name}: {a}"),
                    [before, after] => format!("{name}: {before} → {after} ({:+})", b - a),
                };
                let (left_share, width) = (share(left), share(width));
                let name = (*name).to_owned();
                self.depth = self.depth.max(depth + 1);
                self.bars.push(Bar { depth, left: left_share, width, name, look, told });
                self.add(below, depth + 1, left, whole);
            }
            left += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_wide_as_the_larger_side_and_none_is_outside_of_what_it_lies_on() {
        let stacks =
            [("e", [10, 10]), ("e;gone", [20, 0]), ("e;new", [0, 50]), ("e;new;x", [0, 20])];
        let flame = Flame::of("t".to_owned(), "", stacks.into_iter()).unwrap();
        let bar = |name: &str| flame.bars.iter().find(|bar| bar.name == name).unwrap();
        assert_eq!((bar("e").width, bar("gone").width, bar("new").width), (100.0, 20.0, 70.0));
        assert_eq!((bar("gone").look, bar("new").look, flame.depth), ("less", "more", 3));
        assert_eq!((bar("new").left, bar("x").left), (20.0, 20.0));
        assert!(bar("e").told.contains("30 → 80 (+50)"), "{}", bar("e").told);
        assert!(Flame::of(String::new(), "", std::iter::empty()).is_none());
    }
}
