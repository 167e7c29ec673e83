//! Requests and answers of the module, byte by byte, and its refusals.

use super::*;

fn request() -> Request {
    Request {
        bytes: 16 << 20,
        memory_type: MemoryType::Wc,
        frames: Frames::Contiguous,
        leaf: 2 << 20,
        node: Some(1),
        eager: true,
        offset: 0,
        segment: false,
    }
}

fn info() -> Info {
    let mut info = PagelabInfo { limit_bytes: 1 << 30, page_size: 4096, ..Default::default() };
    info.leaves[uapi::WC as usize][uapi::CONTIGUOUS as usize] = 1 << 12 | 1 << 21;
    Info(info)
}

fn refused(errno: i32, request: Request) -> DeviceError {
    DeviceError::Refused(Box::new(Refusal { request, info: info(), errno }))
}

#[test]
fn a_request_is_encoded_field_by_field() {
    let alloc = Request { offset: 4096, ..request() }.encode();
    assert_eq!((alloc.bytes, alloc.node, alloc.memtype), (16 << 20, 1, uapi::WC));
    assert_eq!((alloc.layout, alloc.leaf_shift), (uapi::CONTIGUOUS, 21));
    assert_eq!((alloc.flags, alloc.offset), (uapi::EAGER, 4096));
    assert_eq!((alloc.pad0, alloc.pad), (0, [0; 3]), "reserved fields are zero");
    let alloc = Request { node: None, eager: false, ..request() }.encode();
    assert_eq!((alloc.node, alloc.flags), (-1, 0));
}

#[test]
fn leaves_are_read_from_the_table_of_the_module() {
    let info = info();
    assert_eq!(info.leaves(MemoryType::Wc, Frames::Contiguous), [4096, 2 << 20]);
    assert!(info.can(MemoryType::Wc, Frames::Contiguous, 2 << 20));
    assert!(!info.can(MemoryType::Wc, Frames::Contiguous, 1 << 30));
    assert!(!info.can(MemoryType::Wb, Frames::Scattered, 4096));
    assert!(!info.can(MemoryType::Uc, Frames::Contiguous, 4096), "cannot be asked for");
}

#[test]
fn a_leaf_is_decoded_and_what_is_not_mapped_has_no_type() {
    let query =
        PagelabQuery { memtype: uapi::WC, leaf_shift: 21, entry: 0x8f, ..Default::default() };
    let leaf = decode(&query);
    assert_eq!((leaf.memory_type, leaf.bytes), (Some(MemoryType::Wc), 2 << 20));
    assert_eq!((leaf.entry, leaf.phys), (0x8f, None));
    let nothing = decode(&PagelabQuery { leaf_shift: 0, ..query });
    assert_eq!((nothing.memory_type, nothing.bytes), (None, 0));
    assert_eq!(decode(&PagelabQuery { memtype: 77, ..query }).memory_type, None);
    assert_eq!(decode(&PagelabQuery { phys: 4096, ..query }).phys, Some(4096));
}

#[test]
fn every_refusal_says_what_and_has_a_cure_of_its_own() {
    let cases = [
        (libc::EBUSY, "taken by another process", "fuser"),
        (libc::EOPNOTSUPP, "cannot map contiguous WC memory by leaves of 2m", "leaf=4k or 2m"),
        (libc::ENXIO, "no reserved region", "memmap=1G$4G"),
        (libc::ENODEV, "memory node 1 is offline", "has_memory"),
        (libc::E2BIG, "the module gives 1g at most", "smaller"),
        (libc::ENOMEM, "no such frames are free now", "compact_memory"),
        (libc::EINVAL, "out of range", "dmesg"),
        (libc::EFAULT, "Bad address", "dmesg"),
    ];
    for (errno, what, cure) in cases {
        let error = refused(errno, request());
        let sentence = error.to_string();
        assert!(sentence.starts_with("the module refused 16m of contiguous WC memory: "));
        assert!(sentence.contains(what), "{sentence}");
        assert!(error.cure().contains(cure), "{}", error.cure());
    }
    let wt = Request { memory_type: MemoryType::Wt, ..request() };
    assert!(refused(libc::EOPNOTSUPP, wt).cure().contains("other frames"));
}

#[test]
fn opening_fails_for_a_reason_with_a_cure() {
    let open = |errno| why_not_opened(io::Error::from_raw_os_error(errno));
    assert!(matches!(open(libc::EACCES), DeviceError::Permission));
    assert!(matches!(open(libc::ENXIO), DeviceError::Stale));
    assert!(matches!(open(libc::EMFILE), DeviceError::Sys(_)));
    for errno in [libc::EACCES, libc::ENXIO, libc::EMFILE] {
        assert!(!open(errno).cure().is_empty(), "{errno}");
    }
    match Device::open() {
        Ok(device) => assert_eq!(device.info().0.page_size, 4096),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!error.cure().is_empty(), "{error}");
        }
    }
}
