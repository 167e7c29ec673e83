//! What fast-mem's own test asks of a memory, and the edge that its loop gets wrong.

use pagelab_emu::{
    Absent, Edge, Fault, Kind, Memory, Policy,
    memory::PAGE_BYTES,
    paged::{self, PagedLast},
    replay::Decoder,
    table,
};
use pagelab_trace::{Op, Width, raw::encode};

use crate::list::{Job, every};

/// fast-mem's addresses: the start, both sides of boundaries, the last page.
const ADDRESSES: [u64; 12] =
    [0, 1, 2, 3, 7, 8, 15, 16, 0x1000, 0x1003, 0x1fff, 0xffff_ffff_ffff_ff00];

/// A function as a job: `check!(policy, |memory, name| ..)` for every memory.
macro_rules! check {
    ($policy:expr, |$memory:ident, $name:ident| $body:block) => {{
        struct Check(Policy);
        impl Job for Check {
            fn run<M: Memory>(&mut self, $name: &'static str, make: impl Fn(&Policy) -> Option<M>) {
                let Some(mut $memory) = make(&self.0) else { return };
                $body
            }
        }
        every(&mut Check($policy));
    }};
}

#[test]
fn what_is_stored_is_loaded_at_every_width() {
    check!(Policy::default(), |memory, name| {
        for addr in ADDRESSES {
            assert_eq!(memory.load_u64(addr), Ok(0), "{name}: {addr:#x} before");
            memory.store_u8(addr, 0xab).unwrap();
            assert_eq!(memory.load_u8(addr), Ok(0xab), "{name}: {addr:#x}");
            memory.store_u16(addr, 0xabcd).unwrap();
            assert_eq!(memory.load_u16(addr), Ok(0xabcd), "{name}: {addr:#x}");
            memory.store_u32(addr, 0x89ab_cdef).unwrap();
            assert_eq!(memory.load_u32(addr), Ok(0x89ab_cdef), "{name}: {addr:#x}");
            memory.store_u64(addr, 0x0123_4567_89ab_cdef).unwrap();
            assert_eq!(memory.load_u64(addr), Ok(0x0123_4567_89ab_cdef), "{name}: {addr:#x}");
            memory.store_u128(addr, u128::MAX - 5).unwrap();
            assert_eq!(memory.load_u128(addr), Ok(u128::MAX - 5), "{name}: {addr:#x}");
            memory.store_u128(addr, 0).unwrap();
        }
    });
}

#[test]
fn narrow_stores_change_only_their_bytes() {
    check!(Policy::default(), |memory, name| {
        for addr in ADDRESSES {
            memory.store_u32(addr, 0xaabb_ccdd).unwrap();
            memory.store_u16(addr + 1, 0x1122).unwrap();
            assert_eq!(memory.load_u32(addr), Ok(0xaa11_22dd), "{name}: {addr:#x}");
            for (at, byte) in (0..).zip([0x78, 0x56, 0x34, 0x12]) {
                memory.store_u8(addr + at, byte).unwrap();
            }
            assert_eq!(memory.load_u32(addr), Ok(0x1234_5678), "{name}: {addr:#x}");
        }
    });
}

#[test]
fn an_access_may_end_at_the_last_byte() {
    for edge in [Edge::Trap, Edge::Wrap] {
        check!(Policy { edge, ..Policy::default() }, |memory, name| {
            memory.store_u8(u64::MAX, 0x11).unwrap();
            assert_eq!(memory.load_u8(u64::MAX), Ok(0x11), "{name}");
            memory.store_u16(u64::MAX - 1, 0x2233).unwrap();
            assert_eq!(memory.load_u16(u64::MAX - 1), Ok(0x2233), "{name}");
            memory.store_u32(u64::MAX - 3, 0x4455_6677).unwrap();
            assert_eq!(memory.load_u32(u64::MAX - 3), Ok(0x4455_6677), "{name}");
            memory.store_u64(u64::MAX - 7, 0x8899_aabb_ccdd_eeff).unwrap();
            assert_eq!(memory.load_u64(u64::MAX - 7), Ok(0x8899_aabb_ccdd_eeff), "{name}");
            memory.store_u128(u64::MAX - 15, 1 << 127 | 3).unwrap();
            assert_eq!(memory.load_u128(u64::MAX - 15), Ok(1 << 127 | 3), "{name}");
            let mut two_pages = [0; 2 * PAGE_BYTES];
            memory.write(u64::MAX - 8191, &[7; 2 * PAGE_BYTES]).unwrap();
            memory.read(u64::MAX - 8191, &mut two_pages).unwrap();
            assert_eq!(two_pages, [7; 2 * PAGE_BYTES], "{name}");
            memory.fill(u64::MAX - 8191, 8192, 9).unwrap();
            assert_eq!(memory.load_u64(u64::MAX - 7), Ok(0x0909_0909_0909_0909), "{name}");
            assert_eq!(memory.load_u8(0), Ok(0), "{name}: nothing went round");
        });
    }
}

#[test]
fn over_the_edge_traps_and_writes_nothing() {
    check!(Policy::default(), |memory, name| {
        let over = |addr, bytes, kind| Fault::OutOfRange { addr, bytes, kind };
        let addr = u64::MAX - 2;
        memory.store_u16(addr, 0x1111).unwrap();
        assert_eq!(memory.store_u32(addr, 5), Err(over(addr, 4, Kind::Store)), "{name}");
        assert_eq!(memory.load_u64(addr), Err(over(addr, 8, Kind::Load)), "{name}");
        assert!(matches!(memory.fetch::<4>(addr), Err(Fault::OutOfRange { .. })), "{name}");
        assert_eq!(memory.read(addr, &mut [0; 9]), Err(over(addr, 9, Kind::Load)), "{name}");
        assert_eq!(memory.write(addr, &[1; 9]), Err(over(addr, 9, Kind::Store)), "{name}");
        assert_eq!(memory.fill(addr, 9, 1), Err(over(addr, 9, Kind::Store)), "{name}");
        assert_eq!(memory.load_u16(addr), Ok(0x1111), "{name}");
        assert_eq!(memory.load_u8(u64::MAX), Ok(0), "{name}");
        assert_eq!(memory.load_u64(0), Ok(0), "{name}");
    });
}

#[test]
fn over_the_edge_wraps_to_address_zero() {
    check!(Policy { edge: Edge::Wrap, ..Policy::default() }, |memory, name| {
        memory.store_u64(u64::MAX - 2, 0x8877_6655_4433_2211).unwrap();
        assert_eq!(memory.load_u64(u64::MAX - 2), Ok(0x8877_6655_4433_2211), "{name}");
        assert_eq!(memory.load_u32(0), Ok(0x7766_5544), "{name}");
        assert_eq!(memory.load_u8(u64::MAX), Ok(0x33), "{name}");
    });
}

#[test]
fn loads_make_no_page_and_a_straddling_store_makes_both_or_none() {
    let two = 2 * PAGE_BYTES as u64;
    check!(
        Policy { absent: Absent::Zero, page_limit: two, ..Policy::default() },
        |memory, name| {
            for page in 0..100 {
                assert_eq!(memory.load_u64(page * 0x1000), Ok(0), "{name}");
            }
            memory.store_u8(0x5000, 1).unwrap();
            // One page is left: the first of these needs one, the second of them one more.
            let full = Err(Fault::PageLimit { addr: 0x8000, limit: 0x2000 });
            assert_eq!(memory.store_u32(0x7ffe, u32::MAX), full, "{name}");
            assert_eq!(memory.load_u16(0x7ffe), Ok(0), "{name}: half of it was written");
            memory.store_u8(0x9000, 2).unwrap();
            let full = Err(Fault::PageLimit { addr: 0x7000, limit: 0x2000 });
            assert_eq!(memory.store_u8(0x7000, 3), full, "{name}");
            assert_eq!(memory.load_u8(0x5000), Ok(1), "{name}");
        }
    );
}

#[test]
fn an_absent_page_faults_until_it_is_stored_to() {
    check!(Policy { absent: Absent::Fault, ..Policy::default() }, |memory, name| {
        let absent = |addr, kind| Fault::Absent { addr, kind };
        assert_eq!(memory.load_u8(0x1234), Err(absent(0x1234, Kind::Load)), "{name}");
        assert_eq!(memory.load_u8(0x1234), Err(absent(0x1234, Kind::Load)), "{name}: again");
        assert_eq!(memory.fetch::<2>(0x1234), Err(absent(0x1234, Kind::Fetch)), "{name}");
        memory.store_u8(0x1000, 0).unwrap();
        assert_eq!(memory.load_u8(0x1234), Ok(0), "{name}");
        assert_eq!(memory.load_u64(0x1ffd), Err(absent(0x2000, Kind::Load)), "{name}");
    });
}

#[test]
fn a_load_makes_its_page_where_that_is_the_policy() {
    let page_limit = 2 * PAGE_BYTES as u64;
    let policy = Policy { absent: Absent::Make, page_limit, ..Policy::default() };
    let mut memory = PagedLast::new(&policy);
    assert_eq!(memory.load_u64(0x1ffc), Ok(0));
    assert_eq!(memory.load_u64(0x1000), Ok(0));
    let full = |addr| Fault::PageLimit { addr, limit: page_limit };
    assert_eq!(memory.load_u8(0x3000), Err(full(0x3000)));
    let mut sum = 0;
    let read = memory.load_seq::<8>(0x1ff0, 4, |values| sum += values.len());
    assert_eq!((read, sum), (Ok(()), 4));
    let mut bytes = [7; 2];
    assert_eq!(memory.read(0x2fff, &mut bytes), Err(full(0x3000)));
}

#[test]
fn a_cache_of_pages_says_how_often_it_knew_one() {
    let counted = |name: &str| {
        let row = table::backend(name).unwrap();
        let mut memory = row.counting.expect("it has a cache")(&Policy::default());
        let mut bytes = Vec::new();
        for addr in [0x5000, 0x5008, 0x6000, 0x5000] {
            encode(Op::load(addr, Width::W8), &mut bytes);
        }
        encode(Op::store(0x5000, Width::W8, 1), &mut bytes);
        encode(Op::load(0x5000, Width::W8), &mut bytes);
        memory.replay(&bytes, 0, Decoder::Fast).unwrap();
        let mut plain = (row.make)(&Policy::default()).unwrap();
        plain.replay(&bytes, 0, Decoder::Safe).unwrap();
        assert_eq!((memory.digest(), plain.looked()), (plain.digest(), None), "{name}");
        let paged::Looked { hits, absent_hits, misses } = memory.looked().unwrap();
        (hits, absent_hits, misses)
    };
    // Pages that are not there are asked of the map each time, unless they are made or remembered.
    assert_eq!(counted("paged-last"), (1, 0, 5));
    assert_eq!(counted("paged-last:any-width"), (1, 0, 5));
    assert_eq!(counted("paged-last:any-width-creating"), (3, 0, 3));
    assert_eq!(counted("paged-cache-4-neg"), (1, 2, 3));
}

#[test]
fn an_image_is_where_its_segments_say() {
    use pagelab_trace::image::{Image, Segment};

    let segment = |addr, bytes: &[u8]| Segment { addr, bytes: bytes.to_vec() };
    let image = Image { segments: vec![segment(0x1ffe, b"code"), segment(u64::MAX, b"!")] };
    let mut memory = pagelab_emu::Builder::new().tlb();
    assert_eq!(memory.load_image(&image), Ok(()));
    assert_eq!(memory.load_u32(0x1ffe), Ok(u32::from_le_bytes(*b"code")));
    assert_eq!(memory.load_u8(u64::MAX), Ok(b'!'));
    let over = Image { segments: vec![segment(u64::MAX, b"!!")] };
    assert!(memory.load_image(&over).is_err());
}
