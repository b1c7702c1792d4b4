//! What is to be known of a machine before its figures mean anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
        clock_source: known(read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        container: container(),
        cpu_limit: cpu_limit(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup")),
        mitigations: mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")),
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

/// As containers are known from within: by a file that their makers leave.
fn container() -> String {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let mark = marks.iter().find(|(file, _)| Path::new(file).exists());
    mark.map_or_else(|| read("/run/systemd/container"), |(_, name)| (*name).to_owned())
}

/// The tightest `cpu.max` on the way from the control group of this process (version 2) to the root, in
/// cores.
fn cpu_limit(root: &Path, own: &str) -> Option<f64> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let groups = Path::new(path.trim_start_matches('/')).ancestors().map(|group| root.join(group));
    let limits = groups.filter_map(|group| {
        let text = fs::read_to_string(group.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        // `max` is no number.
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    limits.reduce(f64::min)
}

/// By the names that the kernel gives to faults, without those that this processor does not have.
fn mitigations(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let answers = entries.filter_map(|entry| {
        let answer = fs::read_to_string(entry.path()).ok()?.trim().to_owned();
        Some((entry.file_name().to_string_lossy().into_owned(), answer))
    });
    answers.filter(|(_, answer)| answer != "Not affected").collect()
}

fn virtualization(hypervised: bool) -> String {
    let product = read("/sys/class/dmi/id/product_name");
    match (hypervised, product.is_empty()) {
        (false, _) => "none".to_owned(),
        (true, true) => "virtual machine".to_owned(),
        (true, false) => format!("virtual machine ({product})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with these files.
    fn files(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("plainsong-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn the_tightest_limit_of_all_groups_counts() {
        let root = files(
            "groups",
            &[
                ("cpu.max", "max 100000\n"),
                ("outer/cpu.max", "50000 100000\n"),
                ("outer/inner/cpu.max", "200000 100000\n"),
            ],
        );
        assert_eq!(cpu_limit(&root, "0::/outer/inner"), Some(0.5));
        assert_eq!(cpu_limit(&root, "1:cpu:/x\n0::/"), None);
        assert_eq!(cpu_limit(&root, "0::/elsewhere"), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn faults_that_the_processor_does_not_have_are_left_out() {
        let directory =
            files("faults", &[("meltdown", "Not affected\n"), ("spectre_v2", "Mitigation: Retpolines\n")]);
        let found = mitigations(&directory);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())]
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}
