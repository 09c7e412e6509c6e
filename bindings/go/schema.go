package toolspan

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// JSON Schemas of Go types, as encoding/json writes their values.

var (
	timeType  = reflect.TypeFor[time.Time]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	textType  = reflect.TypeFor[encoding.TextUnmarshaler]()
	ownReader = reflect.TypeFor[json.Unmarshaler]()
)

// schemaOf describes the arguments of a tool, which are an object, and says which keys it must have.
func schemaOf(t reflect.Type) (text json.RawMessage, required []string, err error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var settings []setting
	switch {
	case t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(ownReader):
		settings, required, err = objectSchema(t, nil)
	case t == rawType || t.Kind() == reflect.Map || t.Kind() == reflect.Interface:
		settings, err = valueSchema(t, nil)
		settings = with(settings, setting{"type", "object"})
	default:
		err = fmt.Errorf("arguments are an object, which %v is not; use a struct, a map, or give an InputSchema", t)
	}
	if err != nil {
		return nil, nil, err
	}
	text, err = object(settings)
	return text, required, err
}

// property is a field as encoding/json sees it.
type property struct {
	name string
	// The structs it is embedded in.
	depth            int
	tagged, required bool
	schema           json.RawMessage
}

// objectSchema describes a struct and says which keys it must have.
func objectSchema(t reflect.Type, inside []reflect.Type) ([]setting, []string, error) {
	fields, err := fieldsOf(t, inside, 0)
	if err != nil {
		return nil, nil, err
	}
	var required []string
	properties := []setting{}
	for i, field := range fields {
		if hidden(fields, i) {
			continue
		}
		properties = append(properties, setting{field.name, field.schema})
		if field.required {
			required = append(required, field.name)
		}
	}
	encoded, err := object(properties)
	settings := []setting{{"type", "object"}, {"properties", encoded}}
	if len(required) > 0 {
		settings = append(settings, setting{"required", required})
	}
	return settings, required, err
}

// hidden says whether encoding/json passes over a field for others of its name: of the least deep, one with a tag wins, else the
// only one; where there is no such one, none of them counts.
func hidden(fields []property, i int) bool {
	for j, other := range fields {
		if i == j || other.name != fields[i].name || other.depth > fields[i].depth {
			continue
		}
		if other.depth < fields[i].depth || other.tagged || !fields[i].tagged {
			return true
		}
	}
	return false
}

// fieldsOf are the fields of a struct and of those embedded in it.
func fieldsOf(t reflect.Type, inside []reflect.Type, depth int) ([]property, error) {
	if slices.Contains(inside, t) {
		return nil, fmt.Errorf("%v contains itself; give an InputSchema", t)
	}
	inside = append(slices.Clone(inside), t)
	var fields []property
	for i := range t.NumField() {
		field := t.Field(i)
		name, marks, _ := strings.Cut(field.Tag.Get("json"), ",")
		tagged, list := name != "", strings.Split(marks, ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-" && marks == "":
			continue
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			promoted, err := fieldsOf(embedded, inside, depth+1)
			if err != nil {
				return nil, err
			}
			fields = append(fields, promoted...)
			continue
		case !field.IsExported():
			continue
		case name == "":
			name = field.Name
		}
		optional := field.Type.Kind() == reflect.Pointer || slices.Contains(list, "omitempty") || slices.Contains(list, "omitzero")
		if slices.Contains(list, "string") {
			if embedded.Kind() == reflect.String {
				return nil, fmt.Errorf("%s: text marked string is a string inside a string, which no model writes; drop the mark", field.Name)
			}
			if quoted(embedded) {
				field.Type = reflect.TypeFor[string]()
			}
		}
		settings, err := valueSchema(field.Type, inside)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		if settings, err = keywords(field, settings); err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		text, err := object(settings)
		if err != nil {
			return nil, err
		}
		fields = append(fields, property{name, depth, tagged, !optional, text})
	}
	return fields, nil
}

// quoted says whether encoding/json heeds the mark string on a type: the value then stands in a string.
func quoted(t reflect.Type) bool {
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64
}

func valueSchema(t reflect.Type, inside []reflect.Type) ([]setting, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == timeType:
		return []setting{{"type", "string"}, {"format", "date-time"}}, nil
	case t == rawType, reflect.PointerTo(t).Implements(ownReader):
		return nil, nil
	case reflect.PointerTo(t).Implements(textType):
		return []setting{{"type", "string"}}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return []setting{{"type", "string"}}, nil
	case reflect.Bool:
		return []setting{{"type", "boolean"}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return []setting{{"type", "integer"}}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return []setting{{"type", "integer"}, {"minimum", 0}}, nil
	case reflect.Float32, reflect.Float64:
		return []setting{{"type", "number"}}, nil
	case reflect.Interface:
		return nil, nil
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return []setting{{"type", "string"}, {"contentEncoding", "base64"}}, nil
		}
		return nested("array", "items", t.Elem(), inside)
	case reflect.Map:
		return nested("object", "additionalProperties", t.Elem(), inside)
	case reflect.Struct:
		settings, _, err := objectSchema(t, inside)
		return settings, err
	}
	return nil, fmt.Errorf("JSON cannot hold a %v", t)
}

func nested(kind, keyword string, element reflect.Type, inside []reflect.Type) ([]setting, error) {
	settings, err := valueSchema(element, inside)
	if err != nil {
		return nil, err
	}
	text, err := object(settings)
	return []setting{{"type", kind}, {keyword, text}}, err
}

// Keywords of a jsonschema tag whose value is text, and those whose value is JSON.
var (
	textKeywords = []string{"description", "title", "format", "pattern"}
	jsonKeywords = []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)

// keywords adds those of the jsonschema tag of a field: a description, or KEYWORD=VALUE with commas between.
func keywords(field reflect.StructField, settings []setting) ([]setting, error) {
	tag := field.Tag.Get("jsonschema")
	if tag == "" {
		return settings, nil
	}
	if word, _, found := strings.Cut(tag, "="); !found || strings.ContainsAny(word, " ,") {
		return append(settings, setting{"description", tag}), nil
	}
	var choices []json.RawMessage
	// A comma that is part of a value has a backslash before it.
	for _, part := range strings.Split(strings.ReplaceAll(tag, `\,`, "\x00"), ",") {
		keyword, value, _ := strings.Cut(strings.ReplaceAll(part, "\x00", ","), "=")
		switch {
		case slices.Contains(textKeywords, keyword):
			settings = with(settings, setting{keyword, value})
		case slices.Contains(jsonKeywords, keyword):
			settings = with(settings, setting{keyword, json.RawMessage(value)})
		case keyword == "default", keyword == "enum":
			text, err := literal(field.Type, value)
			if err != nil {
				return nil, err
			}
			if keyword == "enum" {
				choices = append(choices, text)
				continue
			}
			settings = with(settings, setting{keyword, text})
		default:
			return nil, fmt.Errorf("the jsonschema tag has no keyword %q; see InputSchema for whole schemas", keyword)
		}
	}
	if choices != nil {
		settings = append(settings, setting{"enum", choices})
	}
	return settings, nil
}

// literal is a value of a tag as JSON: text for a field that holds text.
func literal(t reflect.Type, value string) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.String {
		return encode(value)
	}
	if !json.Valid([]byte(value)) {
		return nil, fmt.Errorf("%q is no JSON value", value)
	}
	return json.RawMessage(value), nil
}
