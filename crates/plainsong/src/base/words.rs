//! Words of numbers in texts for people.

/// So many things: `1 datagram`, `2 datagrams`. The word is one whose plural has an `s` more.
pub(crate) fn counted(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "reader")), ["0 readers", "1 reader", "2 readers"]);
    }
}
