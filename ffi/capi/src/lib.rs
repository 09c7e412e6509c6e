//! The C ABI: the engine of `toolspan-bridge` behind numbers and texts. The only crate with `unsafe`.
//!
//! Every function may be called from any thread. None calls back, none throws or unwinds into the caller, and none keeps a
//! pointer it was given. Only pointers, `uint32_t`, `uint64_t` and `int32_t` cross, so the header reads the same on
//! every platform. `bindings/c/include/toolspan.h` is generated from this file, its comments included.

mod registry;
#[cfg(unix)]
mod signals;
mod text;

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use toolspan_bridge::Engine;

use text::{Out, borrow};

/// It worked.
pub const TS_OK: i32 = 0;
/// It was refused; the text that was handed out is an error record.
pub const TS_REFUSED: i32 = 1;
/// The engine is closed and everything was collected.
pub const TS_CLOSED: i32 = 2;
/// The time was up before everything had ended.
pub const TS_TIMEOUT: i32 = 3;
/// A pointer to write to is null. Nothing was done.
pub const TS_NULL: i32 = -1;
/// A defect of the library was caught. The engine can still be used.
pub const TS_PANIC: i32 = -2;

/// Waits without a limit.
pub const TS_FOREVER: u64 = u64::MAX;

/// Version of functions, operations and events. A program compares it with the one it was written for.
#[unsafe(no_mangle)]
pub extern "C" fn ts_abi_version() -> u32 {
    toolspan_bridge::ABI_VERSION
}

/// Hash of all operations, options and results. A binding with generated types compares it with the one they were generated
/// from; a program in C that writes its own JSON need not.
#[unsafe(no_mangle)]
pub extern "C" fn ts_schema_hash() -> u64 {
    catch_unwind(toolspan_bridge::schema_hash).unwrap_or(0)
}

/// Creates an engine and writes its number, which is never 0. `options` is `options_len` bytes of JSON:
/// `{"hostCalls": [KIND...], "log": LEVEL?, "workers": N?}`. No thread starts before there is something to do.
///
/// Returns `TS_OK`, or `TS_REFUSED` and the record in `error`.
///
/// # Safety
/// `options` points to `options_len` readable bytes; `engine`, `error` and `error_len` each to one writable value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_engine_new(
    options: *const c_char,
    options_len: u64,
    engine: *mut u64,
    error: *mut *mut c_char,
    error_len: *mut u64,
) -> i32 {
    // SAFETY: the caller promises what `Out::new` asks for.
    let Some(mut error) = (unsafe { Out::new(error, error_len) }) else {
        return TS_NULL;
    };
    if engine.is_null() {
        return TS_NULL;
    }
    // SAFETY: not null, and the caller promises that it is writable.
    unsafe { engine.write(0) };
    guard(|| {
        #[cfg(unix)]
        signals::keep_signal_stack();
        // SAFETY: the caller promises the readable bytes, and they are not used after this call.
        let made = unsafe { borrow(options, options_len) }
            .and_then(Engine::new)
            .and_then(registry::insert);
        match made {
            Ok(number) => {
                // SAFETY: as above.
                unsafe { engine.write(number) };
                TS_OK
            }
            Err(record) => error.refuse(record),
        }
    })
}

/// Does an operation that takes no time, such as `{"op":"version","args":{}}`, and hands out its result.
///
/// Returns `TS_OK` and the result in `text`, or `TS_REFUSED` and the record there.
///
/// # Safety
/// `request` points to `request_len` readable bytes; `text` and `text_len` each to one writable value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_call(
    engine: u64,
    request: *const c_char,
    request_len: u64,
    text: *mut *mut c_char,
    text_len: *mut u64,
) -> i32 {
    // SAFETY: the caller promises what `Out::new` asks for.
    let Some(mut text) = (unsafe { Out::new(text, text_len) }) else {
        return TS_NULL;
    };
    guard(|| {
        // SAFETY: the caller promises the readable bytes, and they are not used after this call.
        let result = unsafe { borrow(request, request_len) }
            .and_then(|request| registry::get(engine)?.call(request));
        match result {
            Ok(result) => {
                text.give(result);
                TS_OK
            }
            Err(record) => text.refuse(record),
        }
    })
}

/// Starts an operation under an id of the caller's choice: not 0 and not that of a running operation. Its terminal event comes
/// out of `ts_poll`, possibly before this returns.
///
/// Returns `TS_OK`, or `TS_REFUSED` and the record in `error`; then no event will come.
///
/// # Safety
/// `request` points to `request_len` readable bytes; `error` and `error_len` each to one writable value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_submit(
    engine: u64,
    op: u64,
    request: *const c_char,
    request_len: u64,
    error: *mut *mut c_char,
    error_len: *mut u64,
) -> i32 {
    // SAFETY: the caller promises what `Out::new` asks for.
    let Some(mut error) = (unsafe { Out::new(error, error_len) }) else {
        return TS_NULL;
    };
    guard(|| {
        // SAFETY: the caller promises the readable bytes, and they are not used after this call.
        let accepted = unsafe { borrow(request, request_len) }
            .and_then(|request| registry::get(engine)?.submit(op, request));
        error.unless_ok(accepted)
    })
}

/// Collects at most `max` events (0: no limit) as a JSON array, waiting up to `timeout_ms` for the first. The array is empty when
/// there was none in time.
///
/// Returns `TS_OK` and the array in `events`; `TS_CLOSED` and no text once the engine is closed and everything was
/// collected; `TS_REFUSED` and a record for a number that is no engine's, or in a forked child.
///
/// # Safety
/// `events` and `events_len` each point to one writable value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_poll(
    engine: u64,
    timeout_ms: u64,
    max: u32,
    events: *mut *mut c_char,
    events_len: *mut u64,
) -> i32 {
    // SAFETY: the caller promises what `Out::new` asks for.
    let Some(mut events) = (unsafe { Out::new(events, events_len) }) else {
        return TS_NULL;
    };
    guard(|| match registry::get(engine) {
        Err(record) => events.refuse(record),
        Ok(engine) => {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            match engine.poll(Duration::from_millis(timeout_ms), max) {
                None => TS_CLOSED,
                Some(batch) => {
                    events.give(batch);
                    TS_OK
                }
            }
        }
    })
}

/// Answers the host call of that number with `{"ok": JSON}` or `{"error": {"message": TEXT, "type": TEXT?}}`.
///
/// Returns `TS_OK`, or `TS_REFUSED` and the record in `error`: nobody waits for this answer any more, or the text is no answer.
///
/// # Safety
/// `reply` points to `reply_len` readable bytes; `error` and `error_len` each to one writable value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_respond(
    engine: u64,
    call: u64,
    reply: *const c_char,
    reply_len: u64,
    error: *mut *mut c_char,
    error_len: *mut u64,
) -> i32 {
    // SAFETY: the caller promises what `Out::new` asks for.
    let Some(mut error) = (unsafe { Out::new(error, error_len) }) else {
        return TS_NULL;
    };
    guard(|| {
        // SAFETY: the caller promises the readable bytes, and they are not used after this call.
        let taken = unsafe { borrow(reply, reply_len) }
            .and_then(|reply| registry::get(engine)?.respond(call, reply));
        error.unless_ok(taken)
    })
}

/// Asks a running operation to stop. It ends with a `cancelled` event, unless it ended otherwise first. An operation that is not
/// running, and an engine that is gone, are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ts_cancel(engine: u64, op: u64) {
    guard(|| {
        if let Ok(engine) = registry::get(engine) {
            engine.cancel(op);
        }
        TS_OK
    });
}

/// Ends everything: running operations end with `closed`, toolkits and clients are closed. Waits up to `timeout_ms`. When it
/// returns, every operation has its terminal event in the queue and nothing is added to it any more. Idempotent.
///
/// Returns `TS_OK`; `TS_TIMEOUT` when something had to be abandoned; `TS_CLOSED` for a number that is no engine's.
#[unsafe(no_mangle)]
pub extern "C" fn ts_engine_close(engine: u64, timeout_ms: u64) -> i32 {
    guard(|| match registry::get(engine) {
        Err(_) => TS_CLOSED,
        Ok(engine) if engine.close(Duration::from_millis(timeout_ms)) => TS_OK,
        Ok(_) => TS_TIMEOUT,
    })
}

/// Gives the number up. An engine that was not closed is closed in the background. Functions that run in other threads
/// finish; later ones are refused. A number that is no engine's is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ts_engine_free(engine: u64) {
    guard(|| {
        if let Ok(engine) = registry::remove(engine) {
            engine.abandon();
        }
        TS_OK
    });
}

/// Frees a text that another function handed out; `text_len` is the length it came with. Null is ignored. Texts end with a zero
/// byte that the length does not count.
///
/// # Safety
/// `text` and `text_len` are null, or come together from one function of this library and were not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_text_free(text: *mut c_char, text_len: u64) {
    // SAFETY: the caller promises exactly what `text::free` asks for.
    guard(|| unsafe { text::free(text, text_len) });
}

/// Runs the body of a function; a panic ends here.
fn guard(body: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(TS_PANIC)
}
