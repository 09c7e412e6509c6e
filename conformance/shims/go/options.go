package main

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"toolspan.dev/toolspan"
)

// What a case says, as the package takes it.

// args are those of any operation that are no options.
type args struct {
	Toolkit, Client, Conversation, Step, StopAfter int
	Name, ID, Provider                             string
	Prompt, Args, Messages, Options, Tool          raw
	MCPConfig, MCPConfigText                       raw
	History                                        []raw
	SystemPrompt, Model                            *string
	MaxTurns, TimeoutMs                            *int
	DisableTools                                   []string
	ValidateArguments                              *bool
	Tools                                          []raw
}

// set adds an option that the case has.
func set[O, V any](options []O, value *V, option func(V) O) []O {
	if value == nil {
		return options
	}
	return append(options, option(*value))
}

func ms(value *int) *time.Duration {
	if value == nil {
		return nil
	}
	return toolspan.Ptr(time.Duration(*value) * time.Millisecond)
}

func timeout[O any](d time.Duration) O { return toolspan.Timeout(d).(O) }

// promptOf is a prompt of a case: text, or parts.
func promptOf(a args) (text string, parts []toolspan.ContentPart) {
	if json.Unmarshal(a.Prompt, &text) != nil {
		check(json.Unmarshal(a.Prompt, &parts))
	}
	return text, parts
}

func runOptions(a args) (prompt string, options []toolspan.RunOption) {
	prompt, parts := promptOf(a)
	if parts != nil {
		options = append(options, toolspan.Parts(parts...))
	}
	if a.History != nil {
		options = append(options, toolspan.History(a.History...))
	}
	options = set(options, a.SystemPrompt, toolspan.SystemPrompt)
	options = set(options, a.Model, toolspan.Model)
	options = set(options, a.MaxTurns, toolspan.MaxTurns)
	return prompt, set(options, ms(a.TimeoutMs), timeout[toolspan.RunOption])
}

func config[O any](a args) (options []O) {
	if a.MCPConfigText != nil {
		var text string
		check(json.Unmarshal(a.MCPConfigText, &text))
		options = append(options, toolspan.MCPConfigText([]byte(text)).(O))
	}
	var path string
	switch {
	case a.MCPConfig == nil:
	case json.Unmarshal(a.MCPConfig, &path) == nil:
		options = append(options, toolspan.MCPConfig(path).(O))
	default:
		options = append(options, toolspan.MCPDocument(a.MCPConfig).(O))
	}
	return set(options, ms(a.TimeoutMs), timeout[O])
}

func (s step) tool(definition raw) toolspan.ToolSpec {
	var d struct {
		Name, Description string
		InputSchema       raw
		Hints             *toolspan.Hints
		Handler           int
	}
	check(json.Unmarshal(definition, &d))
	options := []toolspan.ToolOption{}
	if d.InputSchema != nil {
		options = append(options, toolspan.InputSchema(d.InputSchema))
	}
	if d.Hints != nil {
		options = append(options, toolspan.DeclareHints(*d.Hints))
	}
	return toolspan.Tool(d.Name, d.Description, func(ctx context.Context, in raw) (raw, error) { return s.call(ctx, d.Handler, in) }, options...)
}

func (s step) clientOptions(text raw) (options toolspan.ClientOptions) {
	var given map[string]raw
	var hooks struct{ Hooks map[string]raw }
	check(json.Unmarshal(text, &given))
	check(json.Unmarshal(text, &hooks))
	functions := map[string]int{}
	for _, from := range []map[string]raw{given, hooks.Hooks} {
		for key, value := range from {
			var reference struct{ Handler int }
			if json.Unmarshal(value, &reference) == nil && reference.Handler != 0 {
				functions[key] = reference.Handler
				delete(from, key)
			}
		}
	}
	params, store := given["requestParams"], given["store"]
	for _, key := range []string{"hooks", "requestParams", "store"} {
		delete(given, key)
	}
	rest, err := json.Marshal(given)
	check(err)
	check(json.Unmarshal(rest, &options))
	if params != nil {
		options.RequestParams = params
	}
	if store != nil {
		var name toolspan.NamedStore
		check(json.Unmarshal(store, &name))
		options.Store = name
	}
	for fields, i := reflect.ValueOf(options), 0; i < fields.NumField(); i++ {
		if d, ok := fields.Field(i).Interface().(*time.Duration); ok && d != nil {
			*d *= time.Duration(time.Millisecond)
		}
	}
	for key, number := range functions {
		s.function(&options, key, number)
	}
	return options
}

// streamOptions are those of a run and, where the case names one, a conversation.
func streamOptions(a args) (string, []toolspan.RunOption) {
	prompt, options := runOptions(a)
	if a.ID != "" {
		options = append(options, toolspan.ConversationID(a.ID))
	}
	return prompt, options
}
