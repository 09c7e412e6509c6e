//! uniffi
