//! What this process uses of its host.

/// Time on processors in nanoseconds, and memory in use in octets; 0 where the system does not tell.
pub(crate) fn usage() -> (u64, u64) {
    #[cfg(target_os = "linux")]
    {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        (cpu_ns(&read("/proc/self/stat")).unwrap_or(0), memory_bytes(&read("/proc/self/status")).unwrap_or(0))
    }
    #[cfg(not(target_os = "linux"))]
    (0, 0)
}

/// `proc(5)`: fields 14 and 15, in ticks of which every Linux shows 100 a second.
#[cfg(any(target_os = "linux", test))]
fn cpu_ns(stat: &str) -> Option<u64> {
    // The name of the program, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')')?.1;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()?.checked_add(fields.next()?.parse().ok()?)?;
    ticks.checked_mul(10_000_000)
}

#[cfg(any(target_os = "linux", test))]
fn memory_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_tells_is_read() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 9 9 9";
        assert_eq!(cpu_ns(stat), Some(3_000_000_000));
        assert_eq!(cpu_ns("42"), None);
        assert_eq!(memory_bytes("Name:\tx\nVmRSS:\t    1200 kB\n"), Some(1_228_800));
        assert_eq!(memory_bytes(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        assert!(usage().1 > 0);
    }
}
