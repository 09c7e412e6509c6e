package toolspan_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"toolspan.dev/toolspan"
)

// The servers every test talks to. See fixtures/README.md for what a script may say.

type raw = json.RawMessage

// limit ends a test that would hang, with a stack of what hangs.
const limit = 30 * time.Second

// control keeps the fixtures alive: they end when their stdin is closed, be it by the garbage collector.
var control io.WriteCloser

var fixtures = sync.OnceValue(func() string {
	program := os.Getenv("TOOLSPAN_FIXTURES")
	if program == "" {
		target := os.Getenv("CARGO_TARGET_DIR")
		if target == "" {
			target = "../../target"
		}
		program = filepath.Join(target, "debug", "toolspan-fixtures")
	}
	child := exec.Command(program, "serve")
	child.Stderr = os.Stderr
	var err error
	if control, err = child.StdinPipe(); err != nil {
		panic(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := child.Start(); err != nil {
		panic(fmt.Sprintf("%v; build it with `cargo build -p toolspan-fixtures`", err))
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		panic(err)
	}
	var address struct{ Control string }
	if err := json.Unmarshal(line, &address); err != nil {
		panic(err)
	}
	return address.Control
})

// scenario is a set of scripted servers that lives as long as its test.
type scenario struct {
	t   *testing.T
	ID  string
	MCP map[string]struct {
		URL     string
		Command []string
	}
	LLM map[string]struct{ BaseURL string }
}

func newScenario(t *testing.T, script string) *scenario {
	t.Helper()
	s := &scenario{t: t}
	s.ask("POST", "/scenarios", raw(script), s)
	t.Cleanup(func() { s.ask("DELETE", "/scenarios/"+s.ID, nil, nil) })
	return s
}

func (s *scenario) ask(method, path string, body raw, out any) {
	s.t.Helper()
	request, err := http.NewRequest(method, fixtures()+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.StatusCode >= 300 {
		s.t.Fatalf("fixtures: %s %s: %d %s", method, path, answer.StatusCode, text)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			s.t.Fatalf("fixtures: %s: %v", text, err)
		}
	}
}

// wait returns once a condition of the fixtures holds.
func (s *scenario) wait(condition string) {
	s.t.Helper()
	s.ask("POST", "/scenarios/"+s.ID+"/wait", raw(`{"until": `+condition+`}`), nil)
}

func (s *scenario) open(gate string) { s.ask("POST", "/scenarios/"+s.ID+"/gates/"+gate, nil, nil) }

// bodies are those of the requests that an endpoint got.
func (s *scenario) bodies(llm string) []string {
	s.t.Helper()
	var seen struct {
		LLM map[string]struct{ Requests []struct{ Body string } }
	}
	s.ask("GET", "/scenarios/"+s.ID+"/seen", nil, &seen)
	bodies := []string{}
	for _, request := range seen.LLM[llm].Requests {
		bodies = append(bodies, request.Body)
	}
	return bodies
}

// upstream are options for the endpoint main of a scenario.
func (s *scenario) upstream() toolspan.ClientOptions {
	return toolspan.ClientOptions{BaseURL: s.LLM["main"].BaseURL, Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")}
}

// replies is a script of one endpoint.
func replies(list string) string {
	return `{"llm": {"main": {"style": "openai", "replies": [` + list + `]}}}`
}

// oneCall asks for one call of a tool and then says done.
func oneCall(name, args string) string {
	return replies(`{"calls": [{"id": "c1", "name": "` + name + `", "args": ` + args + `}]}, {"text": "done"}`)
}

// must is for what cannot fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func newEngine(t *testing.T, options toolspan.EngineOptions) *toolspan.Engine {
	t.Helper()
	engine := must(toolspan.NewEngine(options))
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

func newClient(t *testing.T, engine *toolspan.Engine, options toolspan.ClientOptions) *toolspan.Client {
	t.Helper()
	client, err := engine.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newToolkit(t *testing.T, engine *toolspan.Engine, tools ...toolspan.ToolSpec) *toolspan.Toolkit {
	t.Helper()
	toolkit, err := engine.NewToolkit(context.Background(), toolspan.Tools(tools...))
	if err != nil {
		t.Fatal(err)
	}
	return toolkit
}

// tool is one that any arguments fit.
func tool(name string, run func(ctx context.Context, args raw) (any, error)) toolspan.ToolSpec {
	return toolspan.Tool(name, name, run)
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if g, w := must(json.Marshal(got)), must(json.Marshal(want)); !bytes.Equal(g, w) {
		t.Fatalf("got %s, want %s", g, w)
	}
}

// refused checks that an error is one of the package with that code, and gives it.
func refused(t *testing.T, err error, code toolspan.Code) *toolspan.Error {
	t.Helper()
	var record *toolspan.Error
	if !errors.As(err, &record) || record.Code != code || !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
	return record
}

// within fails the test when a channel stays silent.
func within[T any](t *testing.T, channel <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-channel:
	case <-time.After(limit):
		t.Fatal("nothing came in time")
	}
	return value
}
