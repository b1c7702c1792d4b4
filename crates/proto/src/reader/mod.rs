//! Placeholder of the reader.
