//! Numbers on the command line, with units where they have any.

use plainsong::survey::ports::DOMAIN_MAX;

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

/// The id of a domain.
pub(crate) fn domain(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(domain) if domain <= DOMAIN_MAX => Ok(domain),
        Ok(_) | Err(_) if is_number(text) => Err(format!("{text} is not between 0 and {DOMAIN_MAX}")),
        _ => Err(format!("{text:?} is no number of a domain")),
    }
}

/// How many, which cannot be none.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        Ok(_) | Err(_) if is_number(text) => Err(format!("{text} is not between 1 and {}", u64::MAX)),
        _ => Err(format!("{text:?} is no number")),
    }
}

/// Whether it is a number, however large.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
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
        assert_eq!([domain("0"), domain("232")], [Ok(0), Ok(232)]);
        for bad in ["233", "300", "70000", "-1"] {
            assert_eq!(domain(bad), Err(format!("{bad} is not between 0 and 232")));
        }
        assert!(domain("").is_err() && domain("x").unwrap_err().contains("\"x\" is no number"));
        assert_eq!(count("3"), Ok(3));
        assert!(["0", "-2", "1.5", "", "99999999999999999999"].iter().all(|bad| count(bad).is_err()));
        assert_eq!(rate("2.5"), Ok(2.5));
        assert!(["0", "-1", "nan", "1e9"].iter().all(|bad| rate(bad).is_err()));
    }
}
