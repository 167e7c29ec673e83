//! The huge pages that the kernel offers: transparent ones by size and policy, and hugetlb pools.
//!
//! One idea: the directories are the list. Which sizes exist depends on version, architecture and
//! base page size, so nothing is assumed; a directory without an `enabled` file (8 kB, which only
//! shmem has) is not a size for anonymous memory.

use std::path::PathBuf;

use crate::machine::Tree;

const MM: &str = "sys/kernel/mm";

/// The huge-page directories of a kernel.
#[derive(Debug, Clone)]
pub struct HugePages {
    tree: Tree,
}

/// Which anonymous memory gets pages of a size, with `inherit` already resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// All of it.
    Always,
    /// What was marked with `madvise(MADV_HUGEPAGE)`.
    Madvise,
    /// None.
    Never,
}

/// A hugetlb pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages in the pool.
    pub pages: u64,
    /// Of these, the ones nobody has mapped; some of them may be reserved.
    pub free: u64,
    /// Of the free ones, those promised to a mapping.
    pub reserved: u64,
    /// The knob: its `nr_hugepages`.
    pub path: PathBuf,
}

impl HugePages {
    /// Those of this machine.
    pub fn machine() -> Self {
        Self::of(Tree::machine())
    }

    /// Those of a tree.
    pub fn of(tree: Tree) -> Self {
        Self { tree }
    }

    /// Sizes in bytes for anonymous memory, ascending; the PMD size is the largest.
    ///
    /// Before Linux 6.8 there is only the PMD size, without a directory of its own.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self
            .directories("transparent_hugepage")
            .into_iter()
            .filter(|(_, directory)| self.tree.path(format!("{directory}/enabled")).is_file())
            .map(|(size, _)| size)
            .collect();
        if sizes.is_empty() {
            sizes.extend(self.pmd_size());
        }
        sizes
    }

    /// The size that one entry of the page middle directory maps: 2 MiB on x86-64.
    pub fn pmd_size(&self) -> Option<u64> {
        self.tree.number(format!("{MM}/transparent_hugepage/hpage_pmd_size"))
    }

    /// The knob that governs a size, or `None` when the kernel does not offer it.
    pub fn enabled_path(&self, size: u64) -> Option<PathBuf> {
        let own = self.tree.path(format!("{}/enabled", thp_directory(size)));
        if own.is_file() {
            return Some(own);
        }
        let global = self.global_path();
        let only_pmd = self.pmd_size() == Some(size) && self.sizes() == [size];
        (only_pmd && global.is_file()).then_some(global)
    }

    /// The knob that `inherit` refers to.
    pub fn global_path(&self) -> PathBuf {
        self.tree.path(format!("{MM}/transparent_hugepage/enabled"))
    }

    /// The policy in force for a size, or `None` when the kernel does not offer it.
    pub fn policy(&self, size: u64) -> Option<Policy> {
        let policy = |path: PathBuf| Tree::machine().choice(path);
        let own = policy(self.enabled_path(size)?)?;
        let word = if own == "inherit" { policy(self.global_path())? } else { own };
        match word.as_str() {
            "always" => Some(Policy::Always),
            "madvise" => Some(Policy::Madvise),
            "never" => Some(Policy::Never),
            _ => None,
        }
    }

    /// The hugetlb pools, by page size.
    pub fn pools(&self) -> Vec<Pool> {
        let pool = |(page_size, directory): (u64, String)| {
            let count = |name: &str| self.tree.number(format!("{directory}/{name}"));
            Some(Pool {
                page_size,
                pages: count("nr_hugepages")?,
                free: count("free_hugepages").unwrap_or(0),
                reserved: count("resv_hugepages").unwrap_or(0),
                path: self.tree.path(format!("{directory}/nr_hugepages")),
            })
        };
        self.directories("hugepages").into_iter().filter_map(pool).collect()
    }

    /// Size in bytes and path of every `hugepages-*kB` in a directory, by size.
    fn directories(&self, parent: &str) -> Vec<(u64, String)> {
        let parent = format!("{MM}/{parent}");
        let size = |name: &str| -> Option<u64> {
            name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()
        };
        let names = self.tree.names(&parent).into_iter();
        let mut found: Vec<(u64, String)> = names
            .filter_map(|name| Some((size(&name)?.checked_mul(1024)?, format!("{parent}/{name}"))))
            .collect();
        found.sort_unstable();
        found
    }
}

fn thp_directory(size: u64) -> String {
    format!("{MM}/transparent_hugepage/hugepages-{}kB", size >> 10)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;

    fn machine(files: &[(&str, &str)]) -> (TempDir, HugePages) {
        let root = tempfile::tempdir().unwrap();
        let files = files.iter().map(|(path, text)| (Path::new(MM).join(path), text));
        let pages = HugePages::of(Tree::at(root.path()).with(files));
        (root, pages)
    }

    #[test]
    fn a_size_needs_an_enabled_file_and_inherit_asks_the_global_one() {
        let (_root, pages) = machine(&[
            ("transparent_hugepage/enabled", "always [madvise] never\n"),
            ("transparent_hugepage/hpage_pmd_size", "2097152\n"),
            ("transparent_hugepage/hugepages-8kB/shmem_enabled", "[never]\n"),
            ("transparent_hugepage/hugepages-64kB/enabled", "always inherit madvise [never]\n"),
            ("transparent_hugepage/hugepages-2048kB/enabled", "always [inherit] madvise never\n"),
        ]);
        assert_eq!(pages.sizes(), [64 << 10, 2 << 20]);
        assert_eq!(pages.policy(64 << 10), Some(Policy::Never));
        assert_eq!(pages.policy(2 << 20), Some(Policy::Madvise));
        assert_eq!(pages.policy(8 << 10), None);
        assert_eq!(pages.enabled_path(8 << 10), None);
    }

    #[test]
    fn an_old_kernel_offers_the_pmd_size_by_its_global_file() {
        let (root, pages) = machine(&[
            ("transparent_hugepage/enabled", "[always] madvise never\n"),
            ("transparent_hugepage/hpage_pmd_size", "2097152\n"),
        ]);
        assert_eq!(pages.sizes(), [2 << 20]);
        assert_eq!(pages.policy(2 << 20), Some(Policy::Always));
        let expected = root.path().join(MM).join("transparent_hugepage/enabled");
        assert_eq!(pages.enabled_path(2 << 20), Some(expected));
    }

    #[test]
    fn pools_are_sorted_by_size_and_name_their_knob() {
        let (root, pages) = machine(&[
            ("hugepages/hugepages-1048576kB/nr_hugepages", "1\n"),
            ("hugepages/hugepages-1048576kB/free_hugepages", "0\n"),
            ("hugepages/hugepages-2048kB/nr_hugepages", "8\n"),
            ("hugepages/hugepages-2048kB/free_hugepages", "5\n"),
            ("hugepages/hugepages-2048kB/resv_hugepages", "2\n"),
        ]);
        let path = root.path().join(MM).join("hugepages/hugepages-2048kB/nr_hugepages");
        let pool = Pool { page_size: 2 << 20, pages: 8, free: 5, reserved: 2, path };
        assert_eq!(pages.pools()[0], pool);
        assert_eq!(pages.pools()[1].page_size, 1 << 30);
    }

    #[test]
    fn a_kernel_without_huge_pages_offers_none() {
        let (_root, pages) = machine(&[]);
        assert_eq!(pages.sizes(), [0; 0]);
        assert_eq!(pages.policy(2 << 20), None);
        assert_eq!(pages.pools(), []);
    }
}
