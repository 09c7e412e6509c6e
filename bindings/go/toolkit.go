package toolspan

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
)

// ToolkitOption is an option of [NewToolkit] (SPEC 4.1): [MCPConfig], [MCPServers], [MCPConfigText], [Tools], [DisableTools], [ValidateArguments],
// [Timeout].
type ToolkitOption interface{ toolkitOption() setting }

// ListOption is an option of [ListMCPTools] (SPEC 3.6): [MCPConfig], [MCPServers], [MCPConfigText], [Timeout].
type ListOption interface{ listOption() setting }

// ConfigOption says which MCP servers there are.
type ConfigOption interface {
	ToolkitOption
	ListOption
}

// ExecuteOption is an option of [Toolkit.Execute]: [Timeout].
type ExecuteOption interface{ executeOption() setting }

// TimeoutOption limits the time of whatever it is given to. The caller's context does so as well.
type TimeoutOption interface {
	ToolkitOption
	ListOption
	ExecuteOption
	RunOption
}

func (s setting) toolkitOption() setting      { return s }
func (s setting) listOption() setting         { return s }
func (s setting) executeOption() setting      { return s }
func (s setting) runOption() setting          { return s }
func (s setting) conversationOption() setting { return s }

// MCPServers sets the MCP servers by id. See [MCPDocument] for a whole configuration.
func MCPServers(servers map[string]MCPServer) ConfigOption {
	if servers == nil {
		servers = map[string]MCPServer{}
	}
	return setting{"mcpConfig", map[string]any{"mcpServers": servers}}
}

// MCPDocument sets the MCP servers: whatever encodes as a JSON document of SPEC 3.1, such as a json.RawMessage.
func MCPDocument(document any) ConfigOption { return setting{"mcpConfig", document} }

// list is never nil, which JSON writes as null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// functions collects what the program's functions are numbered as while options are encoded.
type functions struct {
	core     *core
	handlers []*handler
}

// reference stands for a function of the program.
type reference struct {
	Handler uint64 `json:"handler"`
}

func (f *functions) put(function any) reference {
	number, h := f.core.register(function)
	f.handlers = append(f.handlers, h)
	return reference{number}
}

// encode replaces functions by their numbers.
func (f *functions) encode(settings []setting) (json.RawMessage, error) {
	for i, s := range settings {
		switch value := s.value.(type) {
		case []ToolSpec:
			encoded := make([]any, len(value))
			for j, tool := range value {
				var err error
				if encoded[j], err = f.tool(tool); err != nil {
					return nil, err
				}
			}
			settings[i].value = encoded
		case NamedStore:
		case ConversationStore:
			settings[i].value = f.put(value)
		case Hooks:
			hooks, err := f.encode(settingsOf(value))
			if err != nil {
				return nil, err
			}
			settings[i].value = hooks
		case httpClient:
			settings[i].value = f.put(withoutRedirects(value))
		default:
			if reflect.TypeOf(value) != nil && reflect.TypeOf(value).Kind() == reflect.Func {
				settings[i].value = f.put(value)
			}
		}
	}
	return object(settings)
}

func (f *functions) tool(tool ToolSpec) (json.RawMessage, error) {
	if tool.err != nil {
		return nil, tool.err
	}
	return object(append(settingsOf(tool), setting{"handler", f.put(tool.run).Handler}))
}

// Toolkit is an ordered set of tools and the connections behind them. Close it. All methods may be called from any goroutine.
type Toolkit struct{ owned }

// NewToolkit connects the servers and collects the tools, in the shared engine. A server that fails is left out, see
// [Toolkit.Status]. When ctx ends, the whole build fails at once with [ErrCancelled] and nothing stays open.
func NewToolkit(ctx context.Context, options ...ToolkitOption) (*Toolkit, error) {
	engine, err := shared()
	if err != nil {
		return nil, err
	}
	return engine.NewToolkit(ctx, options...)
}

// NewToolkit is [NewToolkit] in this engine.
func (e *Engine) NewToolkit(ctx context.Context, options ...ToolkitOption) (*Toolkit, error) {
	defer runtime.KeepAlive(e)
	settings, tools := []setting{}, []ToolSpec{}
	for _, option := range options {
		s := option.toolkitOption()
		if more, ok := s.value.([]ToolSpec); ok {
			tools = append(tools, more...)
			continue
		}
		settings = with(settings, s)
	}
	f := &functions{core: e.core}
	encoded, err := f.encode(append(settings, setting{"tools", tools}))
	if err != nil {
		return nil, err
	}
	var made struct{ Toolkit uint64 }
	if err := e.core.run(ctx, "toolkit.create", []setting{{"options", encoded}}, &made); err != nil {
		return nil, err
	}
	toolkit := new(Toolkit)
	adopt(toolkit, &toolkit.owned, e, "toolkit", made.Toolkit, f.handlers)
	return toolkit, nil
}

// with adds a setting, or replaces the one of that key: the last word counts.
func with(settings []setting, s setting) []setting {
	for i := range settings {
		if settings[i].key == s.key {
			settings[i] = s
			return settings
		}
	}
	return append(settings, s)
}

// Tools are the tools in order.
func (t *Toolkit) Tools() ([]ToolInfo, error) {
	defer runtime.KeepAlive(t)
	var out struct{ Tools []ToolInfo }
	err := t.call("toolkit.tools", &out)
	return out.Tools, err
}

// Get gives the tool of that name; nil when there is none.
func (t *Toolkit) Get(name string) (*ToolInfo, error) {
	defer runtime.KeepAlive(t)
	var out struct{ Tool *ToolInfo }
	err := t.call("toolkit.get", &out, setting{"name", name})
	return out.Tool, err
}

// Status tells what became of every server of the configuration, by id.
func (t *Toolkit) Status() (map[string]ServerStatus, error) {
	defer runtime.KeepAlive(t)
	var out struct{ Servers map[string]ServerStatus }
	err := t.call("toolkit.status", &out)
	return out.Servers, err
}

// Adapt gives the tools as a provider declares them, and what had to be changed for that (SPEC 5).
func (t *Toolkit) Adapt(provider Provider) (Adaptation, error) {
	defer runtime.KeepAlive(t)
	var out Adaptation
	err := t.call("toolkit.adapt", &out, setting{"provider", provider})
	return out, err
}

// Register adds a tool of the program; false when the name was taken.
func (t *Toolkit) Register(tool ToolSpec) (bool, error) {
	defer runtime.KeepAlive(t)
	f := &functions{core: t.engine.core}
	encoded, err := f.tool(tool)
	if err != nil {
		return false, err
	}
	// Held before it can be called.
	t.mu.Lock()
	t.handlers = append(t.handlers, f.handlers...)
	t.mu.Unlock()
	var out struct{ Registered bool }
	if err := t.call("toolkit.register", &out, setting{"tool", encoded}); err == nil && out.Registered {
		return true, nil
	} else {
		t.mu.Lock()
		t.handlers = slices.DeleteFunc(t.handlers, func(h *handler) bool { return slices.Contains(f.handlers, h) })
		t.mu.Unlock()
		return false, err
	}
}

// Execute does one call outside a run. args may have any shape of SPEC 4.4: what encodes as an object, JSON text, or nil for
// none. What a tool says about its own failure is no error: the result has IsError, and Err where the tool is the program's.
func (t *Toolkit) Execute(ctx context.Context, name string, args any, options ...ExecuteOption) (*ToolResult, error) {
	defer runtime.KeepAlive(t)
	settings := []setting{t.self(), {"name", name}}
	if args != nil {
		settings = append(settings, setting{"args", args})
	}
	for _, option := range options {
		settings = with(settings, option.executeOption())
	}
	o, err := t.engine.core.start(ctx, "toolkit.execute", settings)
	if err != nil {
		return nil, err
	}
	text, err := t.engine.core.wait(o)
	if err != nil {
		return nil, err
	}
	result, err := decoded[ToolResult](text)
	if result.IsError {
		result.Err = o.onlyFailure()
	}
	return &result, err
}

// Close ends sessions, sockets and processes, and what still uses the toolkit. It may be called again.
func (t *Toolkit) Close() error { return t.closing() }

// ListMCPTools connects, lists and disconnects, in the shared engine.
func ListMCPTools(ctx context.Context, options ...ListOption) (*Inventory, error) {
	engine, err := shared()
	if err != nil {
		return nil, err
	}
	return engine.ListMCPTools(ctx, options...)
}

// ListMCPTools is [ListMCPTools] in this engine.
func (e *Engine) ListMCPTools(ctx context.Context, options ...ListOption) (*Inventory, error) {
	defer runtime.KeepAlive(e)
	settings := []setting{}
	for _, option := range options {
		settings = with(settings, option.listOption())
	}
	inventory := new(Inventory)
	if err := e.core.run(ctx, "mcp.list", settings, inventory); err != nil {
		return nil, err
	}
	return inventory, nil
}
