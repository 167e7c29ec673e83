//! The machines that the lane builds: what QEMU is told and what the kernel is told.
//!
//! The one idea: a machine is a row; sizes that a kernel parameter repeats stand beside it. Every
//! machine is emulated (TCG), also where /dev/kvm opens: tests ask for states, not for times.
//! What has to be done inside the guest is in `vm/src/machine.rs`.

use anyhow::{Context, Result};

/// A row of the table.
#[derive(Debug)]
pub(super) struct Machine {
    /// What cases call it.
    pub(super) name: &'static str,
    /// For a person.
    pub(super) about: &'static str,
    /// The processor.
    pub(super) cpu: &'static str,
    /// Memory, unless the case says.
    memory_mib: u32,
    /// Words for QEMU.
    qemu: &'static str,
    /// Words for the kernel.
    pub(super) parameters: &'static str,
    /// Modules of the distribution that it needs.
    pub(super) modules: &'static [&'static str],
}

/// A disk with a file system, and a second node without CPUs, so that no kind of fault lacks
/// anything; [`IMAGE`] stands for the path of the disk's image.
const DISK: &str = "-machine q35,max-ram-below-4g=2G \
    -object memory-backend-ram,id=m0,size=3G -object memory-backend-ram,id=m1,size=1G \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,memdev=m1 \
    -numa dist,src=0,dst=1,val=50 -numa dist,src=1,dst=0,val=50 \
    -drive file=@image@,if=none,id=disk,format=raw,snapshot=on \
    -device virtio-blk-pci,drive=disk";

/// Stands in a row for the path of the disk's image.
pub(super) const IMAGE: &str = "@image@";

/// Two nodes, the second without CPUs, described by the HMAT.
const HMAT2: &str = "-machine q35,hmat=on,max-ram-below-4g=2G \
    -object memory-backend-ram,id=m0,size=2G -object memory-backend-ram,id=m1,size=1G \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,memdev=m1,initiator=0 \
    -numa dist,src=0,dst=1,val=50 -numa dist,src=1,dst=0,val=50 \
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=10 \
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=100G \
    -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=50 \
    -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=20G";

/// The same, with a first node that is small enough to be filled.
const HMAT2_1G: &str = "-machine q35,hmat=on,max-ram-below-4g=1G \
    -object memory-backend-ram,id=m0,size=1G -object memory-backend-ram,id=m1,size=1G \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,memdev=m1,initiator=0 \
    -numa dist,src=0,dst=1,val=50 -numa dist,src=1,dst=0,val=50 \
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=10 \
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=100G \
    -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=50 \
    -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=20G";

/// A CXL type-3 device with volatile memory behind a root port of its own.
const CXL: &str = "-machine q35,cxl=on,hmat=on \
    -object memory-backend-ram,id=m0,size=2G -numa node,nodeid=0,cpus=0-1,memdev=m0 \
    -object memory-backend-ram,id=vm0,share=on,size=512M \
    -device pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.1 \
    -device cxl-rp,port=0,bus=cxl.1,id=rp13,chassis=0,slot=2 \
    -device cxl-type3,bus=rp13,volatile-memdev=vm0,id=cxlv0 \
    -M cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G \
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=10 \
    -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=100G";

const PLAIN: Machine = Machine {
    name: "",
    about: "",
    cpu: "max",
    memory_mib: 4096,
    qemu: "-machine q35",
    parameters: "",
    modules: &[],
};

/// Every machine.
pub(super) const MACHINES: &[Machine] = &[
    Machine { name: "base", about: "two CPUs, one node, 4 GiB", ..PLAIN },
    Machine {
        name: "disk",
        about: "3 GiB, 1 GiB on a node without CPUs, and 1 GiB of ext4 on /var/tmp that forgets",
        qemu: DISK,
        modules: &["virtio_pci", "virtio_blk", "ext4"],
        ..PLAIN
    },
    Machine {
        name: "hmat2",
        about: "2 GiB, and 1 GiB on a node without CPUs; two tiers from 6.12 on",
        memory_mib: 3072,
        qemu: HMAT2,
        ..PLAIN
    },
    Machine {
        name: "hmat2-1g",
        about: "hmat2 with 1 GiB on the first node, for demotion",
        memory_mib: 2048,
        qemu: HMAT2_1G,
        ..PLAIN
    },
    Machine {
        name: "daxkmem",
        about: "hmat2 whose second node is soft reserved and added by dax/kmem",
        memory_mib: 3072,
        qemu: HMAT2,
        // The attribute keeps the firmware's bits and turns the range into Soft Reserved.
        parameters: "memmap=1G%4G+0xefffffff",
        modules: &["dax_hmem", "kmem", "device_dax"],
        ..PLAIN
    },
    Machine {
        name: "cxl",
        about: "2 GiB, and 512 MiB behind a CXL type-3 device",
        // With the hypervisor's leaf the kernel cannot flush caches, and the commit is ENXIO.
        cpu: "max,-hypervisor",
        memory_mib: 2048,
        qemu: CXL,
        // Without that leaf the kernel trusts the TSC until its watchdog refutes it. On a busy host
        // that check, which since 7.x waits for the other CPU, once never ended.
        parameters: "tsc=unstable",
        modules: &["cxl_acpi", "cxl_pci", "cxl_mem", "cxl_port", "dax_cxl", "kmem", "device_dax"],
    },
    Machine {
        name: "reserved",
        about: "3 GiB, of which 1 GiB at 4 GiB is hidden from the kernel",
        memory_mib: 3072,
        // 2 GiB to 4 GiB is a hole, so that what is hidden is real and begins at 4 GiB.
        qemu: "-machine q35,max-ram-below-4g=2G",
        parameters: "memmap=1G$4G",
        ..PLAIN
    },
    Machine {
        name: "reserved-6g",
        about: "6 GiB, of which 3 GiB at 4 GiB are hidden from the kernel",
        memory_mib: 6144,
        qemu: "-machine q35,max-ram-below-4g=2G",
        parameters: "memmap=3G$4G",
        ..PLAIN
    },
];

/// The machine of a name.
pub(super) fn find(name: &str) -> Result<&'static Machine> {
    let machine = MACHINES.iter().find(|machine| machine.name == name);
    machine.with_context(|| format!("no machine is called {name}: see xtask/src/vm/machines.rs"))
}

impl Machine {
    /// Everything that QEMU is told about the machine itself.
    pub(super) fn arguments(&self, memory_mib: u32) -> Vec<String> {
        let memory = if memory_mib == 0 { self.memory_mib } else { memory_mib };
        let own = self.qemu.split_whitespace().map(str::to_owned);
        let more = ["-accel", "tcg,thread=multi", "-cpu", self.cpu, "-smp", "2", "-m"];
        own.chain(more.map(str::to_owned)).chain([format!("{memory}M")]).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = MACHINES.iter().map(|machine| machine.name).collect();
        assert_eq!(names.len(), MACHINES.len());
        assert!(find("cxl").is_ok() && find("pc").is_err());
    }

    #[test]
    fn every_machine_is_emulated_and_has_the_memory_that_was_asked_for() {
        for machine in MACHINES {
            let line = machine.arguments(0).join(" ");
            assert!(line.contains("-accel tcg,thread=multi"), "{line}");
            assert!(line.ends_with(&format!("-m {}M", machine.memory_mib)), "{line}");
            assert!(machine.arguments(640).ends_with(&["-m".into(), "640M".into()]));
        }
    }
}
