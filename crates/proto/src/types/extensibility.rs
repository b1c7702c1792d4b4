//! How types may evolve.

/// How a type may evolve (XTypes 1.3 §7.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// Not at all.
    Final,
    /// Members may be added at the end.
    Appendable,
    /// Members may be added, removed and reordered.
    Mutable,
}
