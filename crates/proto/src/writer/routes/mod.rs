//! Who is reached and how: reader proxies, their routes, filters and the group of a host.

pub(super) mod filters;
pub(super) mod gap;
pub(super) mod path;
pub(super) mod proxies;
pub(super) mod proxy;
pub(super) mod route;
pub(super) mod target;
