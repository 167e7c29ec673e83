//! Stacks that were made up, honestly and not.

use pagelab_sys::machine::proc;
use proptest::prelude::*;

use super::*;

/// A table of one function of 16 bytes at 0x1000 whose caller's stack begins `offset` above, and
/// what else its entry says.
fn tables(offset: u8, more: &[u8]) -> Tables {
    // Length, CIE 0, version 1, "zR", code by 1, data by -8, return address 16, absolute addresses
    // of 8 bytes; the CFA is SP + offset, the return address lies just below.
    let mut frames = vec![0, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 4];
    frames.extend([0x0C, 7, offset, 0x90, 1]);
    frames.resize(frames.len().next_multiple_of(4), 0);
    let cie = u32::try_from(frames.len()).unwrap();
    frames[..4].copy_from_slice(&(cie - 4).to_le_bytes());
    let mut entry = vec![];
    entry.extend((cie + 4).to_le_bytes());
    entry.extend(0x1000_u64.to_le_bytes());
    entry.extend(16_u64.to_le_bytes());
    entry.push(0);
    entry.extend(more);
    entry.resize(entry.len().next_multiple_of(4), 0);
    frames.extend(u32::try_from(entry.len()).unwrap().to_le_bytes());
    frames.extend(entry);
    frames.extend([0; 4]);
    let mut header = vec![1, 0x1B, 3, 0x3B, 0, 0, 0, 0, 1, 0, 0, 0];
    header.extend((0x1000_i32 - 0x8000).to_le_bytes());
    header.extend((0x4000 + i32::try_from(cie).unwrap() - 0x8000).to_le_bytes());
    Tables::of((0x4000, frames.into()), (0x8000, header.into()))
}

fn stack(ip: u64, words: &[u64]) -> Stack {
    let mut registers = [0; 17];
    (registers[IP], registers[SP]) = (ip, 0x7000);
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Stack { chain: Vec::new(), registers, bytes }
}

/// Code is from 0x1000 to 0x3000, in one file.
fn unwound(tables: Tables, stack: &Stack) -> (Vec<u64>, End) {
    let mut unwinder = Unwinder::default();
    unwinder.suppose("/p", tables);
    let code = |at| (0x1000..0x3000).contains(&at).then(|| Frame { file: "/p".into(), at });
    unwinder.unwind(stack, 8, code)
}

#[test]
fn a_caller_is_where_the_table_says() {
    let stack = |words| stack(0x1004, words);
    let whole = (vec![0x1004, 0x1008, 0x1010], End::Whole);
    assert_eq!(unwound(tables(16, &[]), &stack(&[1, 0x1008, 2, 0x1010, 3, 0])), whole);
    let short = (vec![0x1004, 0x1008], End::Short);
    assert_eq!(unwound(tables(16, &[]), &stack(&[1, 0x1008, 2])), short);
    let lost = (vec![0x1004], End::Lost);
    assert_eq!(unwound(tables(16, &[]), &stack(&[1, 0x9999, 2])), lost, "where no code is");
    // The return address is undefined in the outermost function.
    assert_eq!(unwound(tables(16, &[7, 16]), &stack(&[1, 0x1008])), (vec![0x1004], End::Whole));
}

#[test]
fn what_has_no_table_is_followed_by_its_frame_pointer() {
    let mut stack = stack(0x2000, &[0, 0x7010, 0x7020, 0x2004, 0, 0x2008]);
    stack.registers[BP] = 0x7010;
    assert_eq!(unwound(tables(16, &[]), &stack), (vec![0x2000, 0x2004, 0x2008], End::Whole));
    stack.registers[BP] = 0x10;
    assert_eq!(unwound(tables(16, &[]), &stack), (vec![0x2000], End::Lost));
}

#[test]
fn what_leads_nowhere_ends() {
    let stack = stack(0x1004, &[0x1008; 8]);
    // A stack that does not get shorter; an expression that never ends.
    let [still, endless] = [&[0x0E, 0][..], &[0x0F, 3, 0x2F, 0xFD, 0xFF]];
    assert_eq!(unwound(tables(16, still), &stack), (vec![0x1004], End::Lost));
    assert_eq!(unwound(tables(16, endless), &stack), (vec![0x1004], End::Lost));
}

#[test]
fn callers_of_this_test_are_found_by_its_own_table() {
    let path = std::env::current_exe().unwrap();
    let tables = Tables::read(path.to_str().unwrap(), ALL_MAX);
    let tables = tables.expect("this program has unwind tables");
    let function = callers_of_this_test_are_found_by_its_own_table as *const () as usize as u64;
    let maps = proc::text("self", "maps").unwrap();
    let first = proc::mappings(&maps).find(|one| path.to_str() == Some(one.name)).unwrap();
    assert!(tables.entry(function - first.range.start).is_some());
}

proptest! {
    #[test]
    fn no_table_and_no_stack_panics_the_unwinder(
        more in prop::collection::vec(any::<u8>(), 0..40),
        at in 0x1000_u64..0x1010,
        words in prop::collection::vec(prop_oneof![0x0FF0_u64..0x1020, any::<u64>()], 0..40),
        base in any::<u64>(),
    ) {
        let mut stack = stack(at, &words);
        stack.registers[BP] = base;
        let (addresses, _) = unwound(tables(16, &more), &stack);
        prop_assert!(addresses.len() <= 8);
    }

    #[test]
    fn no_section_panics_the_unwinder(
        frames in prop::collection::vec(any::<u8>(), 0..200),
        mut header in prop::collection::vec(any::<u8>(), 12..60),
        starts in any::<(u64, u64)>(),
        registers in any::<[u64; 17]>(),
    ) {
        header[..4].copy_from_slice(&[1, 0x1B, 3, 0x3B]);
        let tables = Tables::of((starts.0, frames.into()), (starts.1, header.into()));
        unwound(tables, &Stack { registers, ..stack(0, &[1; 9]) });
    }
}
