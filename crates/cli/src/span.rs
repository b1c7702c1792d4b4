//! Numbers with units on the command line.

/// Octets, perhaps in multiples of 1,024.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is no number of octets"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too much"))
}

/// A factor of speed.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.001..=1_000.0).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{text} is not between 0.001 and 1000"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_limits() {
        assert_eq!(
            [bytes("7"), bytes("2k"), bytes("3M"), bytes("1G")],
            [Ok(7), Ok(2048), Ok(3 << 20), Ok(1 << 30)]
        );
        assert!(["", "k", "-1", "ä", "99999999999999999G"].iter().all(|bad| bytes(bad).is_err()));
        assert_eq!(rate("2.5"), Ok(2.5));
        assert!(["0", "-1", "nan", "1e9"].iter().all(|bad| rate(bad).is_err()));
    }
}
