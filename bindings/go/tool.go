package toolspan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// ToolSpec is a tool of the program (SPEC 6). [Tool] makes one of a function.
type ToolSpec struct {
	// Name is what the model calls: [A-Za-z0-9_-]{1,64}.
	Name string `json:"name"`
	// Description is for the model.
	Description string `json:"description,omitzero"`
	// InputSchema is the JSON Schema of the arguments.
	InputSchema json.RawMessage `json:"inputSchema,omitzero"`
	// Hints are advisory.
	Hints *Hints `json:"hints,omitzero"`

	run toolFunction
	// Why the tool cannot be used; told by whoever is given it.
	err error
}

// toolFunction is a tool without its types.
type toolFunction func(ctx context.Context, args json.RawMessage) (any, error)

// ToolOption is an option of [Tool]: [InputSchema], [DeclareHints].
type ToolOption func(*ToolSpec)

// InputSchema describes the arguments where their type does not say enough: whatever encodes as a JSON Schema.
func InputSchema(schema any) ToolOption {
	return func(t *ToolSpec) {
		text, err := encode(schema)
		if err != nil {
			text, t.err = nil, invalid("tools."+t.Name+".inputSchema", "cannot be written as JSON: %v", err)
		}
		t.InputSchema = text
	}
}

// DeclareHints says something about the tool to whoever asks.
func DeclareHints(hints Hints) ToolOption {
	return func(t *ToolSpec) { t.Hints = &hints }
}

// Tool makes a tool of a function. The schema of its arguments comes from In: a struct whose exported fields are named as
// encoding/json names them, required unless they are pointers or marked omitempty or omitzero, and described by a jsonschema
// tag. That is either the description, or keywords: `jsonschema:"description=The unit,enum=m,enum=ft"`. In may also be a map or
// json.RawMessage, which any object fits; see [InputSchema].
//
// What the function returns is what the model gets: a string as it is, a [ToolResult], nil as an empty text, anything else as its
// JSON. An error, or a panic, is an error result with its text; the program finds it in [ToolResult].Err or [ToolCall].Err. ctx
// carries the values and the deadline of the caller's context, ends when nobody waits for the result any more, and tells the
// call by [InvocationFrom]. Calls of one turn run at the same time.
//
// A type that JSON Schema cannot describe is an error of whoever is given the tool.
func Tool[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error), options ...ToolOption) ToolSpec {
	spec := ToolSpec{Name: name, Description: description}
	for _, option := range options {
		option(&spec)
	}
	var required []string
	if spec.InputSchema == nil && spec.err == nil {
		var err error
		if spec.InputSchema, required, err = schemaOf(reflect.TypeFor[In]()); err != nil {
			spec.err = invalid("tools."+name+".inputSchema", "%v", err)
		}
	}
	spec.run = func(ctx context.Context, args json.RawMessage) (any, error) {
		value, err := arguments[In](args, required)
		if err != nil {
			return nil, err
		}
		return run(ctx, value)
	}
	return spec
}

// arguments are those of a tool; what is wrong with them is said to the model.
func arguments[In any](args json.RawMessage, required []string) (In, error) {
	var value In
	if raw, ok := any(&value).(*json.RawMessage); ok {
		*raw = args
		return value, nil
	}
	if err := json.Unmarshal(args, &value); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Field != "" {
			return value, fmt.Errorf("Invalid arguments. %s: %s does not fit %s", mismatch.Field, mismatch.Value, mismatch.Type)
		}
		return value, fmt.Errorf("Invalid arguments. %w", err)
	}
	if len(required) > 0 {
		var given map[string]json.RawMessage
		_ = json.Unmarshal(args, &given)
		for _, key := range required {
			// encoding/json does not look at the case either.
			fits := func(name string) bool { return strings.EqualFold(name, key) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(given)), fits) {
				return value, fmt.Errorf("Invalid arguments. %s: is missing", key)
			}
		}
	}
	return value, nil
}
