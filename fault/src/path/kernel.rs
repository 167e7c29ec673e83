//! Which kernel is booted: one of those that the lane of machines fetched, or an image by its path.
//!
//! The one idea: a name without `/` is a folder of the lane's cache, into which `cargo xtask vm`
//! unpacks packages; whatever has a `/` is a file. What is booted is said by the kernel itself.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use pagelab_bench::{Need, Values};

/// Names of kernels, as a parameter.
#[derive(Debug)]
pub(super) struct Kernels;

pub(super) const KERNELS: Kernels = Kernels;

/// Those that the lane knows.
const NAMES: [&str; 3] = ["6.1", "6.12", "newest"];

impl Values for Kernels {
    fn canonical(&self, value: &str) -> Result<String, String> {
        if value.contains('/') {
            let path = std::path::absolute(value).map_err(|error| error.to_string())?;
            return Ok(path.display().to_string());
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if value.is_empty() || value.starts_with('.') || !value.chars().all(is_name) {
            let names = NAMES.join(", ");
            return Err(format!("expected {names}, or the path of an image with a / in it"));
        }
        Ok(value.to_owned())
    }

    fn choices(&self) -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }
}

/// Words for the command line of a kernel, as a parameter.
#[derive(Debug)]
pub(super) struct Parameters;

/// No word.
const NONE: &str = "none";

impl Values for Parameters {
    fn canonical(&self, value: &str) -> Result<String, String> {
        let is_fit = |c: char| c.is_ascii_graphic() && c != '"' || c == ' ';
        if !value.chars().all(is_fit) {
            return Err("expected words of ASCII with spaces between".to_owned());
        }
        let words: Vec<&str> = value.split_whitespace().collect();
        if words.contains(&"--") {
            return Err("what follows -- is for the first process, which is ours".to_owned());
        }
        Ok(if words.is_empty() { NONE.to_owned() } else { words.join(" ") })
    }

    fn choices(&self) -> Vec<String> {
        vec![NONE.to_owned()]
    }
}

/// The words of a canonical value.
pub(super) fn words(value: &str) -> &str {
    if value == NONE { "" } else { value }
}

/// A kernel by its name or path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Image(String);

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// What is booted.
    pub(super) image: PathBuf,
    /// `lib/modules/<release>`, where its packages were unpacked.
    pub(super) modules: Option<PathBuf>,
}

impl Image {
    pub(super) fn of(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Looks for it.
    ///
    /// # Errors
    /// A sentence, where there is none.
    pub(super) fn find(&self) -> Result<Found, String> {
        let missing = || format!("no kernel {}: {}", self.0, self.cure());
        if self.0.contains('/') {
            let image = PathBuf::from(&self.0);
            return if image.is_file() {
                Ok(Found { image, modules: None })
            } else {
                Err(missing())
            };
        }
        let root = cache().map(|cache| cache.join("kernels").join(&self.0));
        root.and_then(|root| unpacked(&root)).ok_or_else(missing)
    }
}

/// A kernel whose packages were unpacked below a folder.
fn unpacked(root: &Path) -> Option<Found> {
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| root.join(folder));
    let releases = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut releases = releases.filter_map(Result::ok).map(|entry| entry.path());
    // Headers leave a folder of their own there, without modules.
    let modules = releases.find(|folder| folder.join("modules.builtin").is_file())?;
    let release = modules.file_name()?.to_string_lossy().into_owned();
    let images = [root.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")];
    let image = images.into_iter().find(|image| image.is_file())?;
    Some(Found { image, modules: Some(modules) })
}

/// Where the lane keeps what it fetched: `${XDG_CACHE_HOME:-~/.cache}/pagelab/vm`.
pub(super) fn cache() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("pagelab/vm"))
}

impl Need for Image {
    fn name(&self) -> String {
        format!("the kernel {}", self.0)
    }

    fn check(&self) -> bool {
        self.find().is_ok()
    }

    fn cure(&self) -> String {
        if self.0.contains('/') {
            return "name the image of a kernel, as arch/x86/boot/bzImage of its tree".to_owned();
        }
        if NAMES.contains(&&*self.0) {
            let name = &self.0;
            return format!(
                "cargo xtask vm boot/ --kernel {name} (on Debian), or --kernel ./bzImage"
            );
        }
        format!("choose one of {}, or name an image: --kernel ./bzImage", NAMES.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_and_a_path_becomes_absolute() {
        assert_eq!(KERNELS.canonical("6.12").as_deref(), Ok("6.12"));
        assert!(KERNELS.canonical("./bzImage").unwrap().starts_with('/'));
        for wrong in ["", "..", "a b", "6.12;x"] {
            assert!(KERNELS.canonical(wrong).unwrap_err().contains("newest"), "{wrong}");
        }
    }

    #[test]
    fn words_are_joined_by_one_space_and_none_is_none() {
        assert_eq!(Parameters.canonical(" a=1   b ").as_deref(), Ok("a=1 b"));
        assert_eq!(Parameters.canonical("").as_deref(), Ok(NONE));
        assert_eq!((words(NONE), words("a=1 b")), ("", "a=1 b"));
        assert!(Parameters.canonical("a -- b").is_err() && Parameters.canonical("ä").is_err());
    }

    #[test]
    fn an_image_is_where_its_package_puts_it() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        put("lib/modules/6.1.0-56-common/build");
        put("lib/modules/6.1.0-56/modules.builtin");
        assert_eq!(unpacked(root.path()), None);
        put("boot/vmlinuz-6.1.0-56");
        let found = unpacked(root.path()).unwrap();
        assert!(found.image.ends_with("boot/vmlinuz-6.1.0-56") && found.modules.is_some());
        let none = Image::of("/no/such/image");
        assert!(!none.check() && none.find().unwrap_err().contains("bzImage"));
    }
}
