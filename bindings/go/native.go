//go:build cgo

package toolspan

/*
#cgo noescape toolspan_engine_new
#cgo nocallback toolspan_engine_new
#cgo noescape toolspan_call
#cgo nocallback toolspan_call
#cgo noescape toolspan_submit
#cgo nocallback toolspan_submit
#cgo noescape toolspan_respond
#cgo nocallback toolspan_respond
#cgo nocallback toolspan_poll
#cgo nocallback ts_cancel
#cgo nocallback ts_engine_close
#cgo nocallback ts_engine_free
#cgo nocallback ts_text_free
#cgo nocallback ts_abi_version
#cgo nocallback ts_schema_hash
#include "toolspan.h"

// What comes out of a function, as one value: so that no Go memory has to be lent for C to write to.
typedef struct { int32_t status; char *text; uint64_t length; uint64_t engine; } toolspan_reply;

static toolspan_reply toolspan_engine_new(const char *options, uint64_t length) {
	toolspan_reply reply = {0};
	reply.status = ts_engine_new(options, length, &reply.engine, &reply.text, &reply.length);
	return reply;
}

static toolspan_reply toolspan_call(uint64_t engine, const char *request, uint64_t length) {
	toolspan_reply reply = {0};
	reply.status = ts_call(engine, request, length, &reply.text, &reply.length);
	return reply;
}

static toolspan_reply toolspan_submit(uint64_t engine, uint64_t op, const char *request, uint64_t length) {
	toolspan_reply reply = {0};
	reply.status = ts_submit(engine, op, request, length, &reply.text, &reply.length);
	return reply;
}

static toolspan_reply toolspan_respond(uint64_t engine, uint64_t call, const char *answer, uint64_t length) {
	toolspan_reply reply = {0};
	reply.status = ts_respond(engine, call, answer, length, &reply.text, &reply.length);
	return reply;
}

static toolspan_reply toolspan_poll(uint64_t engine, uint64_t timeout_ms) {
	toolspan_reply reply = {0};
	reply.status = ts_poll(engine, timeout_ms, 0, &reply.text, &reply.length);
	return reply;
}
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// The library's functions over Go's types. Nothing of Go is kept by the library: texts that go in are read before a call
// returns, texts that come out are decoded and freed before anything else happens.

// native is the number of an engine of the library; it owns no memory.
type native uint64

const (
	statusOK     = int(C.TS_OK)
	statusClosed = int(C.TS_CLOSED)
)

// checkLibrary says whether the library that was linked is the one this package was generated for.
func checkLibrary() error {
	version, hash := uint32(C.ts_abi_version()), uint64(C.ts_schema_hash())
	if version == abiVersion && hash == schemaHash {
		return nil
	}
	return &Error{Code: ErrABIMismatch, Message: fmt.Sprintf(
		"the library that was loaded does not belong to this package: its ABI version is %d and its schema hash %016x, "+
			"not %d and %016x; install both from the same version", version, hash, abiVersion, schemaHash)}
}

func newNative(options []byte) (native, error) {
	reply := C.toolspan_engine_new(chars(options), C.uint64_t(len(options)))
	if err := refused(reply); err != nil {
		return 0, err
	}
	return native(reply.engine), nil
}

// call does an operation that takes no time and decodes its result into out.
func (n native) call(request []byte, out any) error {
	reply := C.toolspan_call(C.uint64_t(n), chars(request), C.uint64_t(len(request)))
	if err := refused(reply); err != nil {
		return err
	}
	return take(reply, out)
}

func (n native) submit(op uint64, request []byte) error {
	return refused(C.toolspan_submit(C.uint64_t(n), C.uint64_t(op), chars(request), C.uint64_t(len(request))))
}

func (n native) respond(call uint64, answer []byte) error {
	return refused(C.toolspan_respond(C.uint64_t(n), C.uint64_t(call), chars(answer), C.uint64_t(len(answer))))
}

// poll waits for events and decodes them. It occupies a thread of the operating system meanwhile, as every blocking call
// of C does; only one goroutine per engine is ever in it. closed is the end:
// the engine is closed and everything was collected.
func (n native) poll(events *[]event) (closed bool, err error) {
	reply := C.toolspan_poll(C.uint64_t(n), C.TS_FOREVER)
	if int(reply.status) == statusClosed {
		return true, nil
	}
	if err := refused(reply); err != nil {
		return false, err
	}
	defer C.ts_text_free(reply.text, reply.length)
	return false, readEvents(unsafe.Slice((*byte)(unsafe.Pointer(reply.text)), reply.length), events)
}

func (n native) cancel(op uint64) { C.ts_cancel(C.uint64_t(n), C.uint64_t(op)) }

// close ends everything and says whether the time sufficed.
func (n native) close(timeout time.Duration) bool {
	status := C.ts_engine_close(C.uint64_t(n), C.uint64_t(milliseconds(max(timeout, 0))))
	return int(status) == statusOK || int(status) == statusClosed
}

func (n native) free() { C.ts_engine_free(C.uint64_t(n)) }

func chars(text []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(text))) }

// refused is the error in a reply that is not OK.
func refused(reply C.toolspan_reply) error {
	if int(reply.status) == statusOK {
		return nil
	}
	record := new(Error)
	if reply.text == nil {
		return &Error{Code: ErrInternal, Message: fmt.Sprintf("the library answered with status %d", int(reply.status))}
	}
	if err := take(reply, record); err != nil {
		return err
	}
	return record
}

// take decodes the text of a reply where it lies and frees it: decoding copies all that it keeps.
func take(reply C.toolspan_reply, out any) error {
	defer C.ts_text_free(reply.text, reply.length)
	return decode(unsafe.Slice((*byte)(unsafe.Pointer(reply.text)), reply.length), out)
}
