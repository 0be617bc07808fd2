//! The driver layer over `cust`.
