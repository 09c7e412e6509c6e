package toolspan_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"toolspan.dev/toolspan"
)

// Nothing of the core is missing here: the manifest of the waist against the package, by reflection.

type manifest struct {
	Operations map[string]struct {
		Args    []string
		Options string
	}
	HostCalls  []string
	Events     []string
	ErrorCodes []string
	Records    map[string][]string
	Choices    map[string]json.RawMessage
}

func readManifest(t *testing.T) (m manifest) {
	t.Helper()
	if err := json.Unmarshal(must(os.ReadFile("../api-manifest.json")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// tags are the keys of a record in this package.
func tags(record any) []string {
	keys := []string{}
	for t, i := reflect.TypeOf(record), 0; i < t.NumField(); i++ {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// same names what is on one side only.
func same(t *testing.T, what string, here, there []string) {
	t.Helper()
	for _, name := range there {
		if !slices.Contains(here, name) {
			t.Errorf("%s: %s of the core is missing in Go", what, name)
		}
	}
	for _, name := range here {
		if !slices.Contains(there, name) {
			t.Errorf("%s: %s of Go is unknown to the core", what, name)
		}
	}
}

func TestRecordsHaveTheFieldsOfTheCore(t *testing.T) {
	m := readManifest(t)
	for name, record := range map[string]any{
		"ErrorRecord": toolspan.Error{}, "Cause": toolspan.Cause{}, "ToolResult": toolspan.ToolResult{}, "Hints": toolspan.Hints{},
		"ToolInfo": toolspan.ToolInfo{}, "ServerStatus": toolspan.ServerStatus{}, "InventoryTool": toolspan.ListedTool{},
		"Inventory": toolspan.Inventory{}, "Loss": toolspan.Loss{}, "Compiled": toolspan.Adaptation{}, "Usage": toolspan.Usage{},
		"ToolCallRecord": toolspan.ToolCall{}, "RunResult": toolspan.RunResult{}, "Counters": toolspan.Counters{},
		"BeforeLlm": toolspan.BeforeLLM{}, "AfterLlm": toolspan.AfterLLM{}, "BeforeTool": toolspan.BeforeTool{},
		"AfterTool": toolspan.AfterTool{}, "RequestFailure": toolspan.RequestFailure{}, "LogRecord": toolspan.LogRecord{},
		"ClientOptions": toolspan.ClientOptions{}, "HookOptions": toolspan.Hooks{},
	} {
		same(t, name, tags(record), m.Records[name])
	}
	// The handler of a tool is its function, and the kinds of host calls are told by the package.
	same(t, "ToolSpec", append(tags(toolspan.ToolSpec{}), "handler"), m.Records["ToolSpec"])
	same(t, "EngineOptions", append(tags(toolspan.EngineOptions{}), "hostCalls"), m.Records["EngineOptions"])
}

func TestUnionsHaveTheVariantsOfTheCore(t *testing.T) {
	m := readManifest(t)
	for name, variants := range map[string]map[string]any{
		"Event": {
			"text": toolspan.TextEvent{}, "reasoning": toolspan.ReasoningEvent{}, "tool_call": toolspan.ToolCallEvent{},
			"tool_result": toolspan.ToolResultEvent{}, "usage": toolspan.UsageEvent{}, "done": toolspan.DoneEvent{},
		},
		"MetricEvent": {"llm": toolspan.LLMMetric{}, "tool": toolspan.ToolMetric{}, "run": toolspan.RunMetric{}},
	} {
		var there map[string][]string
		if err := json.Unmarshal(m.Choices[name], &there); err != nil {
			t.Fatal(err)
		}
		kinds, known := []string{}, []string{}
		for kind := range there {
			kinds = append(kinds, kind)
		}
		for kind, record := range variants {
			known = append(known, kind)
			same(t, name+" "+kind, tags(record), there[kind])
			var written struct{ Type string }
			if err := json.Unmarshal(must(json.Marshal(record)), &written); err != nil || written.Type != kind {
				t.Errorf("%s %s is written as %s", name, kind, written.Type)
			}
		}
		same(t, name, known, kinds)
	}
}

// setters are the options that are functions: what each is for, by its key.
func TestOptionsOfCallsAreThoseOfTheCore(t *testing.T) {
	m := readManifest(t)
	toolkit := map[string]toolspan.ToolkitOption{
		"mcpConfig": toolspan.MCPConfig("f"), "mcpConfigText": toolspan.MCPConfigText([]byte("{}")), "tools": toolspan.Tools(),
		"disableTools": toolspan.DisableTools(), "validateArguments": toolspan.ValidateArguments(true), "timeoutMs": toolspan.Timeout(1),
	}
	same(t, "toolkit.create", keysOf(toolkit), m.Records["ToolkitOptions"])
	list := map[string]toolspan.ListOption{
		"mcpConfig": toolspan.MCPConfig("f"), "mcpConfigText": toolspan.MCPConfigText(nil), "timeoutMs": toolspan.Timeout(1),
	}
	same(t, "mcp.list", keysOf(list), m.Operations["mcp.list"].Args)
	run := map[string]toolspan.RunOption{
		"history": toolspan.History(), "systemPrompt": toolspan.SystemPrompt(""), "model": toolspan.Model("m"),
		"maxTurns": toolspan.MaxTurns(1), "timeoutMs": toolspan.Timeout(1),
	}
	for _, op := range []string{"client.run", "client.ask", "client.stream"} {
		same(t, op, append(keysOf(run), "client", "toolkit", "prompt", "id"), m.Operations[op].Args)
	}
	execute := map[string]toolspan.ExecuteOption{"timeoutMs": toolspan.Timeout(1)}
	same(t, "toolkit.execute", append(keysOf(execute), "toolkit", "name", "args"), m.Operations["toolkit.execute"].Args)
	conversation := map[string]toolspan.ConversationOption{"id": toolspan.ConversationID("x")}
	same(t, "conversation.create", append(keysOf(conversation), "client", "toolkit"), m.Operations["conversation.create"].Args)
}

func keysOf[V any](m map[string]V) []string {
	keys := []string{}
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

func TestErrorCodesAreThoseOfTheCore(t *testing.T) {
	here := []string{}
	for _, code := range toolspan.Codes() {
		here = append(here, string(code))
	}
	same(t, "error codes", here, readManifest(t).ErrorCodes)
}

// texts are all string literals of the package.
func texts(t *testing.T) (found []string) {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), ".", func(info os.FileInfo) bool {
		return !strings.HasSuffix(info.Name(), "_test.go")
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(packages["toolspan"], func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			found = append(found, strings.Trim(literal.Value, "`\""))
		}
		return true
	})
	return found
}

func TestEveryOperationKindAndEventOfTheCoreIsUsed(t *testing.T) {
	m := readManifest(t)
	found := texts(t)
	for _, name := range slices.Concat(m.HostCalls, m.Events, keysOf(m.Operations)) {
		noun, verb, _ := strings.Cut(name, ".")
		// Toolkits, clients and conversations are closed by one function.
		if verb == "close" && noun != "http" {
			if !slices.Contains(found, noun) || !slices.Contains(found, ".close") {
				t.Errorf("%s of the core is missing in Go", name)
			}
			continue
		}
		if !slices.Contains(found, name) {
			t.Errorf("%s of the core is missing in Go", name)
		}
	}
}

func TestClosedListsAreThoseOfTheCore(t *testing.T) {
	m := readManifest(t)
	found := texts(t)
	for _, name := range []string{"LogLevel", "Source", "ServerState", "Provider", "Action", "RunStatus", "Limit", "LlmStatus"} {
		var there []string
		if err := json.Unmarshal(m.Choices[name], &there); err != nil {
			t.Fatal(err)
		}
		for _, value := range there {
			if !slices.Contains(found, value) {
				t.Errorf("%s: %s of the core is missing in Go", name, value)
			}
		}
	}
}
