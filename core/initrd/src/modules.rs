//! Which module files a boot loads, in which order.
//!
//! The one idea: a module says in its own `.modinfo` what it depends on, so neither `depmod` nor
//! an index is needed. A name without a file that `modules.builtin` lists is in the kernel already.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// The modules of an unpacked kernel.
#[derive(Debug)]
pub struct Modules {
    files: BTreeMap<String, PathBuf>,
    builtin: String,
}

impl Modules {
    /// Looks for them below `lib/modules/<release>`.
    ///
    /// # Errors
    /// When the folder has none.
    pub fn of(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        collect(&folder.join("kernel"), &mut files)?;
        let builtin = folder.join("modules.builtin");
        let builtin =
            fs::read_to_string(&builtin).with_context(|| builtin.display().to_string())?;
        Ok(Self { files, builtin })
    }

    /// The named modules after what they depend on: file name for the guest, and contents.
    ///
    /// # Errors
    /// When the kernel has no such module, or its file cannot be read.
    pub fn ordered(&self, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>> {
        let mut ordered = Vec::new();
        for name in names {
            self.add(&normal(name), &mut ordered)?;
        }
        Ok(ordered)
    }

    fn add(&self, name: &str, ordered: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
        let file_name = format!("{name}.ko");
        if ordered.iter().any(|(known, _)| *known == file_name) {
            return Ok(());
        }
        let Some(file) = self.files.get(name) else {
            if self.builtin.lines().any(|line| module_name(line) == name) {
                return Ok(());
            }
            bail!("this kernel has no module {name}, and it is not built in");
        };
        let contents = decompressed(file)?;
        for dependency in depends(&contents) {
            self.add(&normal(&dependency), ordered)?;
        }
        ordered.push((file_name, contents));
        Ok(())
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.context("reading a folder of modules")?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.to_string_lossy().contains(".ko") {
            files.insert(module_name(&path.to_string_lossy()), path);
        }
    }
    Ok(())
}

/// The kernel takes `-` and `_` in a module's name for the same.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    normal(file.split(".ko").next().unwrap_or(file))
}

fn decompressed(file: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => Ok(bytes),
        Some("xz") => {
            let mut contents = Vec::new();
            lzma_rust2::XzReader::new(bytes.as_slice(), true)
                .read_to_end(&mut contents)
                .with_context(|| file.display().to_string())?;
            Ok(contents)
        }
        _ => bail!("{}: compressed in a way that is not known here", file.display()),
    }
}

/// `depends=a,b` of `.modinfo`: strings that end with a zero byte.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let found = module.windows(key.len()).position(|window| window == key);
    let Some(start) = found.map(|at| at + key.len()) else { return Vec::new() };
    let end = module[start..].iter().position(|&byte| byte == 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&module[start..start + end]);
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_module() {
        assert_eq!(depends(b"\x7fELF\0license=GPL\0depends=lzo,zs-m\0x=\0"), ["lzo", "zs-m"]);
        assert!(depends(b"\0depends=\0").is_empty());
        assert!(depends(b"nothing").is_empty());
    }

    #[test]
    fn a_name_is_that_of_its_file() {
        assert_eq!(module_name("kernel/drivers/dax/dax-hmem.ko.xz"), "dax_hmem");
    }

    #[test]
    fn what_a_module_depends_on_comes_before_it_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("kernel/mm")).unwrap();
        for (name, depends) in [("a", "b-x,c"), ("b-x", "c"), ("c", "")] {
            let text = format!("\0depends={depends}\0");
            fs::write(folder.join(format!("kernel/mm/{name}.ko")), text).unwrap();
        }
        fs::write(folder.join("modules.builtin"), "kernel/mm/built-in.ko\n").unwrap();
        let modules = Modules::of(folder).unwrap();
        let ordered = modules.ordered(&["built_in", "a", "c"]).unwrap();
        let names: Vec<_> = ordered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c.ko", "b_x.ko", "a.ko"]);
        assert!(modules.ordered(&["none"]).is_err());
    }
}
