//! Types as data, against hostile ones.
