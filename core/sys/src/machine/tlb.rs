//! What the processor says of its TLBs: a claim of the processor, or of a hypervisor in its name.
//!
//! AMD counts them in CPUID leaves `8000_0005h` (first level), `8000_0006h` (second) and
//! `8000_0019h` (1 GiB pages); Intel in leaf `18h`, where it has that. What says nothing is left
//! out.

/// A translation look-aside buffer for data, as far as it concerns pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tlb {
    /// Bytes of the page.
    pub page: u64,
    /// 1 is nearest to the processor.
    pub level: u8,
    /// Translations that it holds.
    pub entries: u64,
}

/// What the processor says of its TLBs, by page size and level.
pub fn tlbs() -> Vec<Tlb> {
    let mut all = found();
    all.retain(|tlb| tlb.entries > 0);
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(not(target_arch = "x86_64"))]
fn found() -> Vec<Tlb> {
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
fn found() -> Vec<Tlb> {
    let cpuid = raw_cpuid::CpuId::new();
    let mut all = Vec::new();
    let mut add = |page: u64, level: u8, entries: u64| all.push(Tlb { page, level, entries });
    if let Some(l1) = cpuid.get_l1_cache_and_tlb_info() {
        add(BASE, 1, l1.dtlb_4k_size().into());
        add(PMD, 1, l1.dtlb_2m_4m_size().into());
    }
    if let Some(l2) = cpuid.get_l2_l3_cache_and_tlb_info() {
        add(BASE, 2, l2.dtlb_4k_size().into());
        add(PMD, 2, l2.dtlb_2m_4m_size().into());
    }
    if let Some(large) = cpuid.get_tlb_1gb_page_info() {
        add(PUD, 1, large.dtlb_l1_1gb_size().into());
        add(PUD, 2, large.dtlb_l2_1gb_size().into());
    }
    for tlb in cpuid.get_deterministic_address_translation_info().into_iter().flatten() {
        use raw_cpuid::DatType::{DataTLB, LoadOnly, UnifiedTLB};
        if !matches!(tlb.cache_type(), DataTLB | LoadOnly | UnifiedTLB) {
            continue;
        }
        let entries = u64::from(tlb.ways()) * u64::from(tlb.sets());
        let pages = [
            (tlb.has_4k_entries(), BASE),
            (tlb.has_2mb_entries(), PMD),
            (tlb.has_1gb_entries(), PUD),
        ];
        for (_, page) in pages.into_iter().filter(|(has, _)| *has) {
            add(page, tlb.cache_level(), entries);
        }
    }
    all
}

#[cfg(target_arch = "x86_64")]
const BASE: u64 = 4 << 10;
#[cfg(target_arch = "x86_64")]
const PMD: u64 = 2 << 20;
#[cfg(target_arch = "x86_64")]
const PUD: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_has_a_level_and_entries() {
        for Tlb { page, level, entries } in tlbs() {
            assert!(page.is_power_of_two() && (1..=4).contains(&level) && entries > 0);
        }
    }
}
