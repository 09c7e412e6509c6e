//! Texts across the boundary: borrowed on the way in, owned by the caller on the way out.

use std::ffi::c_char;
use toolspan_bridge::{Error, ErrorCode, record};

use crate::{TS_OK, TS_REFUSED};

/// The caller's bytes as text. The error is the text of a record.
///
/// # Safety
/// `text` is null or points to `len` readable bytes that nobody changes while the result is in use.
pub(crate) unsafe fn borrow<'a>(text: *const c_char, len: u64) -> Result<&'a str, String> {
    let refuse = |message: &str| record(&Error::new(ErrorCode::InvalidArgument, message));
    let len = usize::try_from(len)
        .ok()
        .filter(|len| isize::try_from(*len).is_ok())
        .ok_or_else(|| refuse("the length of the text is larger than the memory"))?;
    if text.is_null() {
        return if len == 0 {
            Ok("")
        } else {
            Err(refuse("the text is a null pointer"))
        };
    }
    // SAFETY: not null, at most `isize::MAX` long, and the caller promises the readable bytes.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    std::str::from_utf8(bytes).map_err(|e| refuse(&format!("the text is not UTF-8: {e}")))
}

/// Where a function puts the text it hands out.
pub(crate) struct Out {
    text: *mut *mut c_char,
    len: *mut u64,
}

impl Out {
    /// Writes "no text" to both, or gives `None` when there is nowhere to write.
    ///
    /// # Safety
    /// Each pointer is null or points to one value that is writable for as long as the result lives.
    pub(crate) unsafe fn new(text: *mut *mut c_char, len: *mut u64) -> Option<Self> {
        if text.is_null() || len.is_null() {
            return None;
        }
        // SAFETY: neither is null, and the caller promises that both are writable.
        unsafe {
            text.write(std::ptr::null_mut());
            len.write(0);
        }
        Some(Out { text, len })
    }

    /// Hands out a text, with a zero byte behind it.
    pub(crate) fn give(&mut self, text: String) {
        let len = text.len() as u64;
        let mut bytes = text.into_bytes();
        bytes.reserve_exact(1);
        bytes.push(0);
        let bytes = Box::into_raw(bytes.into_boxed_slice());
        // SAFETY: `new` checked both pointers, and its caller promises that they are still writable.
        unsafe {
            self.text.write(bytes.cast());
            self.len.write(len);
        }
    }

    /// Hands out a record and gives the status that says so.
    pub(crate) fn refuse(&mut self, record: String) -> i32 {
        self.give(record);
        TS_REFUSED
    }

    pub(crate) fn unless_ok(&mut self, result: Result<(), String>) -> i32 {
        result.map_or_else(|record| self.refuse(record), |()| TS_OK)
    }
}

/// Takes back what [`Out::give`] handed out.
///
/// # Safety
/// Null, or the pair that one `give` wrote, not freed before.
pub(crate) unsafe fn free(text: *mut c_char, len: u64) -> i32 {
    if !text.is_null()
        && let Ok(len) = usize::try_from(len)
    {
        let bytes = std::ptr::slice_from_raw_parts_mut(text.cast::<u8>(), len + 1);
        // SAFETY: `give` made it of a boxed slice of `len` bytes and the zero, and the caller gives it up.
        drop(unsafe { Box::from_raw(bytes) });
    }
    TS_OK
}
