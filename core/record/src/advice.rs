//! Advice as data: what to set, and what undoes it.
//!
//! Sentences are built from it, so a program that follows an advice parses none.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A file of the kernel, by its path.
    File(String),
    /// A variable of the program's environment.
    Environment(String),
    /// A call that the program makes.
    Call(String),
    /// A command that starts the program.
    Command(String),
}

/// One thing to set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Setting {
    /// What is set.
    #[serde(flatten)]
    pub target: Target,
    /// To what. Where there is none: the argument of a call that has none; of an undo, the
    /// variable, call or command is removed again, and the value of a file was not recorded.
    pub value: Option<String>,
}

impl Setting {
    /// A file of the kernel with a value.
    pub fn file(path: impl Into<String>, value: &str) -> Self {
        Self { target: Target::File(path.into()), value: Some(value.to_owned()) }
    }

    /// A variable with a value.
    pub fn environment(name: &str, value: &str) -> Self {
        Self { target: Target::Environment(name.to_owned()), value: Some(value.to_owned()) }
    }

    /// A call with the argument that matters, where one does.
    pub fn call<'a>(name: &str, value: impl Into<Option<&'a str>>) -> Self {
        let value = value.into().map(ToOwned::to_owned);
        Self { target: Target::Call(name.to_owned()), value }
    }

    /// Whether the whole machine has it.
    pub fn is_of_machine(&self) -> bool {
        matches!(self.target, Target::File(_))
    }

    /// What undoes it, where it was this before.
    #[must_use]
    pub fn undo(&self, before: Option<String>) -> Self {
        Self { target: self.target.clone(), value: before }
    }
}

/// `enabled=always`, `GLIBC_TUNABLES=…`, `MADV_HUGEPAGE`: of a file its name without the folder,
/// of a call the argument where it has one.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_deref().unwrap_or_default();
        match &self.target {
            Target::File(path) => {
                write!(f, "{}={value}", path.rsplit('/').next().unwrap_or_default())
            }
            Target::Environment(name) => write!(f, "{name}={value}"),
            Target::Call(name) if value.is_empty() => f.write_str(name),
            Target::Call(_) => f.write_str(value),
            Target::Command(command) => f.write_str(command),
        }
    }
}

/// The folder of the files of transparent huge pages.
pub const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// khugepaged at work soon: files below `khugepaged` of [`THP`], and values. Whatever it is set to
/// when it wakes counts, and the last of them wakes it. Without any rest it would never leave its
/// processor.
pub const KHUGEPAGED: [(&str, &str); 4] = [
    ("max_ptes_none", "511"),
    ("pages_to_scan", "32768"),
    ("alloc_sleep_millisecs", "100"),
    ("scan_sleep_millisecs", "10"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_data_and_its_text_follows() {
        let enabled = Setting::file(format!("{THP}/enabled"), "always");
        let json = serde_json::to_string(&enabled).unwrap();
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        assert_eq!(json, format!(r#"{{"file":"{path}","value":"always"}}"#));
        assert_eq!(serde_json::from_str::<Setting>(&json).unwrap(), enabled);
        assert_eq!(enabled.to_string(), "enabled=always");
        let back = enabled.undo(Some("madvise".to_owned()));
        assert_eq!((back.to_string().as_str(), back.is_of_machine()), ("enabled=madvise", true));
        let advice = Setting::call("madvise", "MADV_HUGEPAGE");
        assert_eq!(advice.to_string(), "MADV_HUGEPAGE");
        let json = serde_json::to_value(advice.undo(None)).unwrap();
        assert_eq!(json, serde_json::json!({"call": "madvise", "value": null}));
        assert_eq!(Setting::environment("A", "b").to_string(), "A=b");
    }
}
