//! What is to be known of a machine before its figures mean anything.

use std::collections::BTreeMap;
use std::fs;

use crate::perf::results::Host;

/// Settings of the kernel that change what is measured.
const SYSCTLS: [&str; 12] = [
    "kernel.randomize_va_space",
    "kernel.sched_rt_runtime_us",
    "kernel.timer_migration",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.udp_mem",
];

/// This machine, but for its clock and load.
pub(crate) fn host(name: &str) -> Host {
    let processors = read("/proc/cpuinfo");
    let field = |label: &str| {
        let line = processors.lines().find(|line| line.starts_with(label))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let hypervised = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let memory = read("/proc/meminfo");
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let memory_kib: u64 =
        memory.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default();
    let mut sysctls = BTreeMap::new();
    for name in SYSCTLS {
        let value = read(&format!("/proc/sys/{}", name.replace('.', "/")));
        if !value.is_empty() {
            sysctls.insert(name.to_owned(), value);
        }
    }
    Host {
        name: name.to_owned(),
        hostname: read("/proc/sys/kernel/hostname"),
        kernel: format!("{} {}", read("/proc/sys/kernel/osrelease"), read("/proc/sys/kernel/version")),
        cpu: field("model name").or_else(|| field("Model")).unwrap_or_else(|| "unknown".to_owned()),
        cpus: std::thread::available_parallelism()
            .map_or(1, |it| u32::try_from(it.get()).unwrap_or(u32::MAX)),
        memory_octets: memory_kib * 1024,
        governor: known(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        smt: known(read("/sys/devices/system/cpu/smt/control")),
        virtualization: virtualization(hypervised),
        sysctls,
        ..Host::default()
    }
}

/// Tells one boot of a machine from all others: processes with the same one share a monotonic clock.
pub(crate) fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id")
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn known(text: String) -> String {
    if text.is_empty() { "unknown".to_owned() } else { text }
}

fn virtualization(hypervised: bool) -> String {
    let product = read("/sys/class/dmi/id/product_name");
    match (hypervised, product.is_empty()) {
        (false, _) => "none".to_owned(),
        (true, true) => "virtual machine".to_owned(),
        (true, false) => format!("virtual machine ({product})"),
    }
}
