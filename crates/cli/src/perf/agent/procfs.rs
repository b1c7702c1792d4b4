//! What `/proc` says of processes, of a network namespace and of the whole machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::perf::results::Traffic;

/// Linux counts CPU time of processes in hundredths of a second, whatever its timer does (`USER_HZ`).
const TICK_NS: u64 = 10_000_000;

/// What a process has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) threads: u32,
    pub(crate) resident_octets: u64,
    pub(crate) resident_octets_max: u64,
    /// Of what is resident, all but pages of files, which processes share.
    pub(crate) own_octets: u64,
}

/// Switches and CPU time of all threads of a process, and its open descriptors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// CPU time in nanoseconds by name; threads with one name are taken together.
    pub(crate) threads: BTreeMap<String, u64>,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) descriptors: u32,
}

/// CPU time of the whole machine since it started, in nanoseconds over all cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MachineTime {
    /// Anything but idle.
    pub(crate) busy_ns: u64,
    /// Of it, interrupts: the kernel may count them for a process as well.
    pub(crate) interrupts_ns: u64,
}

/// None if there is no such process (any more).
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let mut usage = parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    // A process that ended but was not waited for has no memory left.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    usage.resident_octets = kib_of(&status, "VmRSS:").unwrap_or(0);
    usage.resident_octets_max = kib_of(&status, "VmHWM:").unwrap_or(0);
    usage.own_octets = ["RssAnon:", "RssShmem:"].iter().filter_map(|name| kib_of(&status, name)).sum();
    Some(usage)
}

fn parse_stat(text: &str) -> Option<Usage> {
    // The second field is the name in parentheses, which may hold anything, parentheses included.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // proc(5) counts from 1, and `rest` begins with the third.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Usage {
        minor_faults: field(10)?,
        major_faults: field(12)?,
        user_ns: field(14)? * TICK_NS,
        system_ns: field(15)? * TICK_NS,
        threads: u32::try_from(field(20)?).ok()?,
        ..Usage::default()
    })
}

/// Name and CPU time of a thread.
fn parse_thread(stat: &str) -> Option<(String, u64)> {
    let usage = parse_stat(stat)?;
    let (_, name) = stat.rsplit_once(')')?.0.split_once('(')?;
    Some((name.to_owned(), usage.user_ns + usage.system_ns))
}

fn number_of(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn kib_of(text: &str, label: &str) -> Option<u64> {
    number_of(text, label).map(|kib| kib * 1024)
}

pub(crate) fn details(pid: u32) -> Option<Details> {
    let mut details = Details::default();
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        if let Some((name, cpu_ns)) = parse_thread(&stat) {
            *details.threads.entry(name).or_insert(0) += cpu_ns;
        }
        details.voluntary_switches += number_of(&status, "voluntary_ctxt_switches:").unwrap_or(0);
        details.involuntary_switches += number_of(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
    }
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    details.descriptors = u32::try_from(descriptors).unwrap_or(u32::MAX);
    Some(details)
}

/// Of the network namespace of this process.
pub(crate) fn traffic() -> Traffic {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    parse_traffic(&read("/proc/self/net/snmp"), &read("/proc/self/net/dev"), &read("/proc/self/net/snmp6"))
}

fn parse_traffic(snmp: &str, devices: &str, snmp6: &str) -> Traffic {
    let mut rows = snmp.lines().filter(|line| line.starts_with("Udp: "));
    let names: Vec<&str> = rows.next().unwrap_or_default().split_ascii_whitespace().collect();
    let values: Vec<&str> = rows.next().unwrap_or_default().split_ascii_whitespace().collect();
    let udp = |name: &str| {
        let place = names.iter().position(|it| *it == name);
        let v4: u64 = place.and_then(|it| values.get(it)?.parse().ok()).unwrap_or(0);
        v4 + number_of(snmp6, &format!("Udp6{name}")).unwrap_or(0)
    };
    let mut traffic = Traffic {
        udp_in_datagrams: udp("InDatagrams"),
        udp_out_datagrams: udp("OutDatagrams"),
        udp_in_errors: udp("InErrors"),
        udp_receive_buffer_errors: udp("RcvbufErrors"),
        ..Traffic::default()
    };
    for (_, counters) in devices.lines().filter_map(|line| line.split_once(':')) {
        let counters: Vec<u64> = counters.split_ascii_whitespace().filter_map(|it| it.parse().ok()).collect();
        traffic.interface_octets += counters.get(8).copied().unwrap_or(0);
        traffic.interface_packets += counters.get(9).copied().unwrap_or(0);
    }
    traffic
}

/// The executable of a process, and the shared libraries it has loaded in the order of their paths.
pub(crate) fn program_files(pid: u32) -> Option<(PathBuf, Vec<PathBuf>)> {
    let executable = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let mut libraries = mapped_programs(&fs::read_to_string(format!("/proc/{pid}/maps")).ok()?);
    libraries.retain(|it| *it != executable);
    Some((executable, libraries))
}

fn mapped_programs(maps: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let mut fields = line.splitn(6, ' ');
        let executed = fields.nth(1)?.contains('x');
        let path = fields.nth(3)?.trim_start();
        (executed && path.starts_with('/')).then(|| PathBuf::from(path))
    };
    let mut paths: Vec<PathBuf> = maps.lines().filter_map(path).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// CPU time of a process and of all its children that were waited for, which it thus inherited.
pub(crate) fn family_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = text.rsplit_once(')') else { return 0 };
    // utime, stime, cutime and cstime are fields 14 to 17 of proc(5), and `rest` begins with the third.
    let ticks = rest.split_ascii_whitespace().skip(14 - 3).take(4).filter_map(|it| it.parse::<u64>().ok());
    ticks.sum::<u64>() * TICK_NS
}

pub(crate) fn machine_time() -> MachineTime {
    parse_machine_time(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn parse_machine_time(text: &str) -> MachineTime {
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_ascii_whitespace().skip(1).filter_map(|it| it.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are part of user and nice.
    let sum = |places: &[usize]| places.iter().filter_map(|it| ticks.get(*it)).sum::<u64>() * TICK_NS;
    MachineTime { busy_ns: sum(&[0, 1, 2, 5, 6, 7]), interrupts_ns: sum(&[5, 6]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194304 700 0 3 0 25 7 0 0 20 0 4 0 100 1000 50";
        let usage = parse_stat(text).unwrap();
        assert_eq!((usage.minor_faults, usage.major_faults, usage.threads), (700, 3, 4));
        assert_eq!((usage.user_ns, usage.system_ns), (250_000_000, 70_000_000));
        assert_eq!(parse_thread(text), Some(("a) b (c".to_owned(), 320_000_000)));
        assert_eq!(parse_stat("42 (a"), None);
        assert_eq!(parse_stat("42 (a) S 1"), None);
    }

    #[test]
    fn this_process_uses_memory_threads_and_descriptors() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.resident_octets > 100_000 && usage.threads >= 1);
        assert!(usage.resident_octets_max >= usage.resident_octets);
        // Some of it is the text of this program.
        assert!(usage.own_octets > 100_000 && usage.own_octets < usage.resident_octets);
        let details = details(std::process::id()).unwrap();
        assert!(details.descriptors >= 3 && !details.threads.is_empty());
        assert!(super::usage(0).is_none());
    }

    #[test]
    fn libraries_are_told_from_data_and_from_what_is_no_file() {
        let maps = "1-2 r--p 0 fe:01 7   /lib/a.so\n2-3 r-xp 0 fe:01 7                  /lib/a.so\n\
                    3-4 r-xp 0 fe:01 8 /opt/b c.so.1\n4-5 r--p 0 fe:01 9 /usr/lib/locale\n\
                    5-6 r-xp 0 00:00 0 [vdso]\n6-7 rwxp 0 00:00 0 \n";
        assert_eq!(mapped_programs(maps), [PathBuf::from("/lib/a.so"), PathBuf::from("/opt/b c.so.1")]);
    }

    #[test]
    fn the_time_of_the_machine_is_all_but_idle() {
        let time = parse_machine_time("cpu  10 1 20 1000 50 3 4 2 8 0\ncpu0 1\n");
        assert_eq!((time.busy_ns, time.interrupts_ns), (40 * TICK_NS, 7 * TICK_NS));
    }

    #[test]
    fn counters_of_both_ip_versions_are_added() {
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                    Udp: 10 0 2 20 1\nUdpLite: InDatagrams\nUdpLite: 5\n";
        let devices = "Inter-| Receive | Transmit\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 900 9 0 0\n";
        let snmp6 = "Udp6InDatagrams 3\nUdp6OutDatagrams 4\n";
        let traffic = parse_traffic(snmp, devices, snmp6);
        assert_eq!((traffic.udp_in_datagrams, traffic.udp_out_datagrams), (13, 24));
        assert_eq!((traffic.udp_in_errors, traffic.udp_receive_buffer_errors), (2, 1));
        assert_eq!((traffic.interface_octets, traffic.interface_packets), (900, 9));
    }
}
