//! When the memory of a segment is zeroed: a table of names, in which both sides say it.

/// When memory is zeroed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zero {
    /// By the fault that needs it.
    #[default]
    Fault,
    /// When it is given back, by a helper.
    Release,
    /// All of it, before the program begins.
    Ahead,
}

impl Zero {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fault, Self::Release, Self::Ahead];

    /// The one of a name.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|zero| zero.name().as_bytes() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Release => "release",
            Self::Ahead => "ahead",
        }
    }
}
