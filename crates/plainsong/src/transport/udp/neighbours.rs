//! Which UDP ports of this host are in use, as far as it tells.

use std::collections::BTreeSet;

/// What lists the UDP sockets of this network namespace on Linux, one a line.
const LISTS: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// The local ports of all UDP sockets; `None` where the host does not list them.
pub(super) fn ports_in_use() -> Option<BTreeSet<u16>> {
    let lists: Vec<String> = LISTS.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    // Without IPv6 there is one.
    (!lists.is_empty()).then(|| lists.iter().flat_map(|list| ports(list)).collect())
}

/// The ports of one list: the second column is address and port, hexadecimal.
fn ports(list: &str) -> impl Iterator<Item = u16> + '_ {
    let local = |line: &str| {
        let (_, port) = line.split_ascii_whitespace().nth(1)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    list.lines().skip(1).filter_map(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_of_lines_that_have_one() {
        let list = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n  \
                    512: 00000000:1CF2 00000000:0000 07 00000000:00000000 00:00000000 00000000     0\n\
                    513: nonsense\n 514: 00000000000000000000000001000000:0035 0:0 07\n";
        assert_eq!(ports(list).collect::<Vec<_>>(), [7_410, 53]);
        assert_eq!(ports("").count(), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_port_is_in_use_while_a_socket_has_it() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(ports_in_use().unwrap().contains(&port));
    }
}
