//! What DKMS runs when it installs and removes the module, against a root of a test's own.

use std::{env, fs, path::Path, process::Command};

#[test]
fn settings_stay_until_no_kernel_has_the_module() {
    let root = env::temp_dir().join(format!("pagelab-dkms-{}", std::process::id()));
    let module = |release: &str| {
        let folder = root.join("lib/modules").join(release).join("updates/dkms");
        fs::create_dir_all(&folder).unwrap();
        folder.join("pagelab.ko.xz")
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../memtype/kmod/dkms/without-nodes");
    let run = |words: &[&str]| {
        let status = Command::new("sh").arg(&script).args(words).env("DESTDIR", &root).status();
        assert!(status.unwrap().success(), "{words:?}");
        fs::read_to_string(root.join("etc/modprobe.d/pagelab.conf")).ok()
    };
    let [old, new] = ["6.1.0-1-amd64", "6.12.1-amd64"].map(module);
    for file in [&old, &new] {
        fs::write(file, "").unwrap();
        assert!(run(&[]).unwrap().contains("options pagelab legacy=0\n"));
    }
    fs::remove_file(old).unwrap();
    assert!(run(&["remove"]).is_some(), "the other kernel has lost them");
    fs::remove_file(new).unwrap();
    assert_eq!(run(&["remove"]), None);
    fs::remove_dir_all(root).unwrap();
}
