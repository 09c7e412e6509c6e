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

// objectSchema describes a struct and says which keys it must have.
func objectSchema(t reflect.Type, inside []reflect.Type) ([]setting, []string, error) {
	var required []string
	properties := []setting{}
	if err := fieldsOf(t, inside, &properties, &required); err != nil {
		return nil, nil, err
	}
	encoded, err := object(properties)
	settings := []setting{{"type", "object"}, {"properties", encoded}}
	if len(required) > 0 {
		settings = append(settings, setting{"required", required})
	}
	return settings, required, err
}

func fieldsOf(t reflect.Type, inside []reflect.Type, properties *[]setting, required *[]string) error {
	if slices.Contains(inside, t) {
		return fmt.Errorf("%v contains itself; give an InputSchema", t)
	}
	inside = append(slices.Clone(inside), t)
	for i := range t.NumField() {
		field := t.Field(i)
		name, marks, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-" && marks == "":
			continue
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			if err := fieldsOf(embedded, inside, properties, required); err != nil {
				return err
			}
			continue
		case !field.IsExported():
			continue
		case name == "":
			name = field.Name
		}
		settings, err := valueSchema(field.Type, inside)
		if err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
		if settings, err = keywords(field, settings); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
		text, err := object(settings)
		if err != nil {
			return err
		}
		*properties = with(*properties, setting{name, text})
		list := strings.Split(marks, ",")
		if field.Type.Kind() != reflect.Pointer && !slices.Contains(list, "omitempty") && !slices.Contains(list, "omitzero") {
			*required = append(*required, name)
		}
	}
	return nil
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
