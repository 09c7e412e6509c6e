package toolspan

import "time"

// MCPServer is one entry of the MCP configuration (SPEC 3.1). What is nil is left to the library.
type MCPServer struct {
	// Type is local or remote; from Command or URL when nil.
	Type *string `json:"type,omitzero"`
	// Command is the program with its arguments.
	Command []string `json:"command,omitzero"`
	// Environment adds variables to those of the child.
	Environment map[string]string `json:"environment,omitzero"`
	// InheritEnv names the variables the child inherits; [InheritAll] and [InheritNone] are short for the ends.
	InheritEnv Inheritance `json:"inheritEnv,omitzero"`
	// Cwd is the working directory of the child.
	Cwd *string `json:"cwd,omitzero"`
	// URL is the endpoint of a remote server.
	URL *string `json:"url,omitzero"`
	// Headers are sent to a remote server.
	Headers map[string]string `json:"headers,omitzero"`
	// Enabled tells whether the server is used.
	Enabled *bool `json:"enabled,omitzero"`
	// Timeout is the budget of each phase and of each call.
	Timeout *time.Duration `json:"timeout,omitzero"`
	// Tools filters by original name (SPEC 3.4). An empty map loads none, nil loads all.
	Tools map[string]bool `json:"tools,omitzero"`
	// Expose is "prefixed" or "original".
	Expose *string `json:"expose,omitzero"`
	// DedupKey makes servers with the same key one (SPEC 3.5).
	DedupKey *string `json:"dedupKey,omitzero"`
	// DedupPreferred keeps this one of them.
	DedupPreferred *bool `json:"dedupPreferred,omitzero"`
	// Required makes a failure of this server one of the whole build.
	Required *bool `json:"required,omitzero"`
}

// Inheritance says which variables a child process inherits: [InheritAll], [InheritNone], or the names in an [InheritNames].
type Inheritance interface{ inheritance() }

type inheritWord string

func (inheritWord) inheritance() {}

// What a child process inherits.
const (
	// InheritAll is everything less the API keys the library itself reads.
	InheritAll inheritWord = "all"
	// InheritNone is nothing.
	InheritNone inheritWord = "none"
)

// InheritNames are the variables a child process inherits.
type InheritNames []string

func (InheritNames) inheritance() {}

// MarshalJSON writes the keys of the configuration.
func (s MCPServer) MarshalJSON() ([]byte, error) { return object(settingsOf(s)) }
