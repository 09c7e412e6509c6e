package toolspan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Texts of the waist. Values of the program are encoded once; what only passes through is json.RawMessage, whose number
// text and order of keys stay as they are.

func decode(text []byte, out any) error {
	if err := json.Unmarshal(text, out); err != nil {
		return unreadable(err)
	}
	return nil
}

func unreadable(err error) error {
	return &Error{Code: ErrInternal, Message: fmt.Sprintf("the library's text cannot be read: %v", err)}
}

// written is text of this package's own making, which needs no look any more.
type written []byte

// encode is json.Marshal without the escapes that are meant for HTML, which would change what a model is sent.
func encode(value any) (json.RawMessage, error) {
	switch value := value.(type) {
	case nil:
		return json.RawMessage("null"), nil
	case written:
		return json.RawMessage(value), nil
	case uint64:
		return strconv.AppendUint(nil, value, 10), nil
	case time.Duration:
		return json.Marshal(milliseconds(value))
	case *time.Duration:
		return json.Marshal(milliseconds(*value))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// milliseconds rounds up, so that the shortest duration is not none.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// setting is a key with a value: an option, or another argument of an operation.
type setting struct {
	key   string
	value any
}

// object writes settings as a JSON object, in their order.
func object(settings []setting) (json.RawMessage, error) {
	var out bytes.Buffer
	separator := byte('{')
	for _, s := range settings {
		value, err := encode(s.value)
		if err != nil {
			var own *Error
			if errors.As(err, &own) {
				return nil, own
			}
			refused := invalid(s.key, "cannot be written as JSON: %v", err)
			refused.cause = err
			return nil, refused
		}
		out.WriteByte(separator)
		out.WriteString(strconv.Quote(s.key))
		out.WriteByte(':')
		out.Write(value)
		separator = ','
	}
	if separator == '{' {
		return json.RawMessage("{}"), nil
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// settingsOf are the fields of a struct under the names of their tags, without those that are nil and marked omitzero.
func settingsOf(options any) []setting {
	value := reflect.ValueOf(options)
	settings := make([]setting, 0, value.NumField())
	for i := range value.NumField() {
		name, mark, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" || mark == "omitzero" && value.Field(i).IsZero() {
			continue
		}
		settings = append(settings, setting{name, value.Field(i).Interface()})
	}
	return settings
}

// decoded reads a record of that type.
func decoded[T any](text []byte) (T, error) {
	var record T
	err := decode(text, &record)
	return record, err
}

// tag is the type of a record that says it.
func tag(text []byte) string {
	var record struct{ Type string }
	if json.Unmarshal(text, &record) != nil {
		return ""
	}
	return record.Type
}

// tagged writes a record with its type in front.
func tagged(tag string, record any) ([]byte, error) {
	text, err := encode(record)
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, `{"type":%q`, tag)
	if len(text) > 2 {
		head = append(head, ',')
	}
	return append(head, text[1:]...), nil
}

// readEvents takes apart the array that poll hands out. It is on the way of every operation and the text is the library's own, so
// this looks at each byte once; encoding/json, which checks before it reads, would twice, and results are read a third time later.
func readEvents(text []byte, events *[]event) error {
	scan := scanner{text: text}
	for scan.open('[', ']'); scan.more(); {
		var e event
		for scan.open('{', '}'); scan.more(); {
			key := string(scan.value())
			scan.colon()
			value := scan.value()
			var err error
			switch key {
			case `"type"`:
				err = json.Unmarshal(value, &e.Type)
			case `"kind"`:
				err = json.Unmarshal(value, &e.Kind)
			case `"op"`:
				e.Op, err = strconv.ParseUint(string(value), 10, 64)
			case `"call"`:
				e.Call, err = strconv.ParseUint(string(value), 10, 64)
			case `"handler"`:
				e.Handler, err = strconv.ParseUint(string(value), 10, 64)
			case `"payload"`:
				e.Payload = bytes.Clone(value)
			case `"result"`:
				e.Result = bytes.Clone(value)
			case `"error"`:
				err = json.Unmarshal(value, &e.Error)
			}
			if err != nil {
				return unreadable(err)
			}
		}
		*events = append(*events, e)
	}
	scan.space()
	if scan.failed || scan.at != len(text) {
		return unreadable(errors.New("it is no list of events"))
	}
	return nil
}
