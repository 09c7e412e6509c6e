package toolspan

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
)

type httpClient = *http.Client

// RunOption is an option of one run (SPEC 7): [History], [SystemPrompt], [Model], [MaxTurns], [Timeout], [Parts].
type RunOption interface{ runOption() setting }

// ConversationOption is an option of [Client.Conversation]: [ConversationID].
type ConversationOption interface{ conversationOption() setting }

// IDOption names a conversation: that of [Client.Conversation], or the one that a [Client.Stream] goes on with and saves, as
// [Client.Ask] does.
type IDOption interface {
	ConversationOption
	RunOption
}

// Parts adds content to the prompt of a run, behind its text where it has one.
func Parts(parts ...ContentPart) RunOption { return setting{"prompt", parts} }

// TextPart is a piece of text.
func TextPart(text string) ContentPart { return ContentPart{Type: "text", Text: &text} }

// LLMChange is what [Hooks].BeforeLLM changes; what is nil stays.
type LLMChange struct {
	// Messages replace the transcript for good.
	Messages []json.RawMessage `json:"messages,omitzero"`
	// Tools replace the declarations for this turn.
	Tools []json.RawMessage `json:"tools,omitzero"`
	// Model is asked in this turn.
	Model *string `json:"model,omitzero"`
}

// CallChange is what [Hooks].BeforeTool changes: either the result, and the tool is not called, or the arguments.
type CallChange struct {
	// Result stands for that of the tool.
	Result *ToolResult `json:"result,omitzero"`
	// Args are a JSON object.
	Args json.RawMessage `json:"args,omitzero"`
}

// Decision is what ClientOptions.OnError makes of a failed request.
type Decision string

// Every Decision there is.
const (
	// NoDecision leaves it to the library.
	NoDecision Decision = ""
	// Retry tries again, within the retries of the client.
	Retry Decision = "retry"
	// Fail ends the run.
	Fail Decision = "fail"
)

// ConversationStore keeps conversations (SPEC 7.7). Implement it for a store of the program. A transcript is
// {"version": 1, "style", "messages"}; a bare list of messages is accepted too.
type ConversationStore interface {
	// Get gives the transcript of an id; nil when there is none.
	Get(ctx context.Context, id string) (json.RawMessage, error)
	// Save keeps a transcript under an id.
	Save(ctx context.Context, id string, transcript json.RawMessage) error
}

// NamedStore is a store of the library: "memory" or "file:DIR". It has to be given to a client, and is used through
// [Client.ConversationStore].
type NamedStore string

// Get is refused.
func (s NamedStore) Get(context.Context, string) (json.RawMessage, error) { return nil, s.refuse() }

// Save is refused.
func (s NamedStore) Save(context.Context, string, json.RawMessage) error { return s.refuse() }

func (s NamedStore) refuse() error {
	return &Error{Code: ErrUnsupported, Message: "the store " + string(s) + " is a client's; use Client.ConversationStore"}
}

// Client is one endpoint and one model. All methods may be called from any goroutine. A client costs little: all clients of an
// engine share their connections.
type Client struct{ owned }

// NewClient checks the options and makes a client, in the shared engine. Nothing is sent before the first run.
func NewClient(options ClientOptions) (*Client, error) {
	engine, err := shared()
	if err != nil {
		return nil, err
	}
	return engine.NewClient(options)
}

// NewClient is [NewClient] in this engine.
func (e *Engine) NewClient(options ClientOptions) (*Client, error) {
	defer runtime.KeepAlive(e)
	f := &functions{core: e.core}
	encoded, err := f.encode(settingsOf(options))
	if err != nil {
		return nil, err
	}
	var made struct{ Client uint64 }
	if err := e.core.call("client.create", []setting{{"options", encoded}}, &made); err != nil {
		return nil, err
	}
	client := new(Client)
	adopt(client, &client.owned, e, "client", made.Client, f.handlers)
	return client, nil
}

// Run sends the prompt, executes the calls the model asks for, and repeats until it answers or a limit is reached. The tools are
// those of toolkit, which may be nil.
//
// Errors are [*Error]. When ctx ends, the run ends with [ErrCancelled], and errors.Is finds [context.Canceled] or
// [context.DeadlineExceeded] in it. When Run returns, requests and MCP calls of the run have ended and nothing of the program is
// called for it any more; a tool or hook that was called goes on until it looks at its context.
func (c *Client) Run(ctx context.Context, prompt string, toolkit *Toolkit, options ...RunOption) (*RunResult, error) {
	return c.result(ctx, "client.run", toolkit, prompt, options)
}

// Ask is Run with a memory: it loads the conversation of that id, runs, and saves it.
func (c *Client) Ask(ctx context.Context, id, prompt string, toolkit *Toolkit, options ...RunOption) (*RunResult, error) {
	return c.result(ctx, "client.ask", toolkit, prompt, options, setting{"id", id})
}

func (c *Client) result(ctx context.Context, op string, toolkit *Toolkit, prompt string, options []RunOption, more ...setting) (*RunResult, error) {
	defer runtime.KeepAlive(toolkit)
	defer runtime.KeepAlive(c)
	args, err := c.args(toolkit, prompt, options)
	if err != nil {
		return nil, err
	}
	return c.perform(ctx, op, append(args, more...))
}

// args are those of a run.
func (c *Client) args(toolkit *Toolkit, prompt string, options []RunOption) ([]setting, error) {
	args, err := c.toolkit(toolkit)
	if err != nil {
		return nil, err
	}
	args = append(args, setting{"prompt", prompt})
	for _, option := range options {
		s := option.runOption()
		if parts, ok := s.value.([]ContentPart); ok {
			s.value = content(prompt, parts)
		}
		args = with(args, s)
	}
	return args, nil
}

// content is a prompt of text and other parts.
func content(prompt string, parts []ContentPart) any {
	if prompt == "" {
		return list(parts)
	}
	return append([]ContentPart{TextPart(prompt)}, parts...)
}

// toolkit checks that a toolkit is one of the client's engine.
func (c *Client) toolkit(toolkit *Toolkit) ([]setting, error) {
	if toolkit == nil {
		return []setting{c.self()}, nil
	}
	if toolkit.engine == nil || toolkit.engine.core != c.engine.core {
		return nil, invalid("toolkit", "is not one of the engine that the client belongs to")
	}
	return []setting{c.self(), toolkit.self()}, nil
}

// perform does a run and puts what the program's own tools failed with beside their results.
func (o *owned) perform(ctx context.Context, op string, args []setting) (*RunResult, error) {
	operation, err := o.engine.core.start(ctx, op, args)
	if err != nil {
		return nil, err
	}
	text, err := o.engine.core.wait(operation)
	if err != nil {
		return nil, err
	}
	result := new(RunResult)
	if err := decode(text, result); err != nil {
		return nil, err
	}
	operation.explain(result)
	return result, nil
}

func (o *operation) explain(result *RunResult) {
	for i := range result.ToolCalls {
		if call := &result.ToolCalls[i]; call.IsError {
			call.Err = o.toolFailure(call.ID)
		}
	}
}

// ConversationStore is the very store that Ask uses.
func (c *Client) ConversationStore() ConversationStore { return clientStore{c} }

type clientStore struct{ client *Client }

func (s clientStore) Get(ctx context.Context, id string) (json.RawMessage, error) {
	defer runtime.KeepAlive(s.client)
	var out struct{ Transcript json.RawMessage }
	err := s.client.run(ctx, "store.get", &out, setting{"id", id})
	if string(out.Transcript) == "null" {
		out.Transcript = nil
	}
	return out.Transcript, err
}

func (s clientStore) Save(ctx context.Context, id string, transcript json.RawMessage) error {
	defer runtime.KeepAlive(s.client)
	return s.client.run(ctx, "store.save", nil, setting{"id", id}, setting{"messages", transcript})
}

// Metrics are what the client has counted, in the text format of Prometheus (SPEC 10).
func (c *Client) Metrics() (string, error) {
	defer runtime.KeepAlive(c)
	var out struct{ Text string }
	err := c.call("client.metrics", &out)
	return out.Text, err
}

// Close ends the runs of the client. It may be called again.
func (c *Client) Close() error { return c.closing() }

// Conversation is a sequence of prompts that the model remembers. All methods may be called from any goroutine; prompts of one
// conversation wait for each other.
type Conversation struct {
	owned
	client  *Client
	toolkit *Toolkit
}

// Conversation makes one, or goes on with that of a [ConversationID]. The tools are those of toolkit, which may be nil.
func (c *Client) Conversation(toolkit *Toolkit, options ...ConversationOption) (*Conversation, error) {
	defer runtime.KeepAlive(toolkit)
	defer runtime.KeepAlive(c)
	args, err := c.toolkit(toolkit)
	if err != nil {
		return nil, err
	}
	for _, option := range options {
		args = with(args, option.conversationOption())
	}
	var made struct{ Conversation uint64 }
	if err := c.engine.core.call("conversation.create", args, &made); err != nil {
		return nil, err
	}
	conversation := &Conversation{client: c, toolkit: toolkit}
	adopt(conversation, &conversation.owned, c.engine, "conversation", made.Conversation, nil)
	return conversation, nil
}

// Send is the next prompt: text, and other content behind it.
func (c *Conversation) Send(ctx context.Context, prompt string, parts ...ContentPart) (*RunResult, error) {
	defer runtime.KeepAlive(c)
	var value any = prompt
	if len(parts) > 0 {
		value = content(prompt, parts)
	}
	return c.perform(ctx, "conversation.send", []setting{c.self(), {"prompt", value}})
}

// Messages are what was said so far, in the dialect of the client.
func (c *Conversation) Messages(ctx context.Context) ([]json.RawMessage, error) {
	defer runtime.KeepAlive(c)
	var out struct{ Messages []json.RawMessage }
	err := c.run(ctx, "conversation.messages", &out)
	return out.Messages, err
}

// Reset forgets what was said.
func (c *Conversation) Reset(ctx context.Context) error {
	defer runtime.KeepAlive(c)
	return c.run(ctx, "conversation.reset", nil)
}

// Close forgets the conversation; what is stored stays. It may be called again.
func (c *Conversation) Close() error { return c.closing() }
