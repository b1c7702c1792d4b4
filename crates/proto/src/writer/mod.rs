//! Placeholder of the writer.
