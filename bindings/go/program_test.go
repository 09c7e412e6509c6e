package toolspan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"toolspan.dev/toolspan"
)

// What only shows from outside: programs of their own. The test's binary is each of them, by the variable PROGRAM.

var programs = map[string]func(){
	"idle":     idle,
	"exit":     exit,
	"waits":    waits,
	"cancels":  cancels,
	"sigpipe":  sigpipe,
	"profile":  profile,
	"children": children,
	"version":  func() { fmt.Println(toolspan.Version()) },
}

func TestMain(m *testing.M) {
	if program := programs[os.Getenv("PROGRAM")]; program != nil {
		program()
		return
	}
	os.Exit(m.Run())
}

// program is one that runs.
type program struct {
	t              *testing.T
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
	lines          chan string
	started        time.Time
}

func start(t *testing.T, name string, env ...string) *program {
	t.Helper()
	p := &program{t: t, command: exec.Command(os.Args[0]), lines: make(chan string, 100), started: time.Now()}
	p.command.Env = append(append(os.Environ(), "PROGRAM="+name), env...)
	p.command.Stderr = &p.stderr
	reader, writer := io.Pipe()
	p.command.Stdout = io.MultiWriter(&p.stdout, writer)
	go func() {
		var line [1]byte
		var text strings.Builder
		for {
			if _, err := reader.Read(line[:]); err != nil {
				return
			}
			if line[0] == '\n' {
				p.lines <- text.String()
				text.Reset()
				continue
			}
			text.WriteByte(line[0])
		}
	}()
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// end waits for the program and checks how it ended: its code (or signal) and what it said, and nothing on stderr.
func (p *program) end(how, said string) {
	p.t.Helper()
	ended := make(chan error)
	go func() { ended <- p.command.Wait() }()
	within(p.t, ended)
	if got := p.command.ProcessState.String(); got != how || p.stdout.String() != said || p.stderr.String() != "" {
		p.t.Fatalf("ended with %s, said %q, complained %q", got, p.stdout.String(), p.stderr.String())
	}
}

// stdio is a toolkit of a server whose command the test gave in SERVER.
func stdio() *toolspan.Toolkit {
	return must(toolspan.NewToolkit(context.Background(), toolspan.MCPServers(map[string]toolspan.MCPServer{"srv": {Command: strings.Split(os.Getenv("SERVER"), "\n")}})))
}

func server(s *scenario) string { return "SERVER=" + strings.Join(s.MCP["srv"].Command, "\n") }

// idle ends with everything open.
func idle() {
	toolkit := stdio()
	must(toolspan.NewClient(toolspan.ClientOptions{BaseURL: "http://127.0.0.1:9", Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")}))
	fmt.Println(len(must(toolkit.Tools())))
}

func TestAProgramWithAnOpenEngineEndsByItselfAndSoDoItsServers(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "stdio", "tools": [{"name": "a"}]}}, "llm": {}}`)
	start(t, "idle", server(s)).end("exit status 0", "1\n")
	s.wait(`{"mcp": "srv", "processes": 0}`)
}

// exit leaves in the middle of calls, a stream and logs.
func exit() {
	entered := make(chan bool, 100)
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{Log: func(toolspan.LogRecord) {}}))
	toolkit := must(engine.NewToolkit(context.Background(), toolspan.Tools(never(entered), tool("echo", echo))))
	client := must(engine.NewClient(toolspan.ClientOptions{BaseURL: os.Getenv("MODEL"), Style: toolspan.OpenAI, Model: "m", APIKey: toolspan.Ptr("k")}))
	for range 10 {
		go toolkit.Execute(context.Background(), "never", nil)
		<-entered
		go func() {
			for {
				_, _ = toolkit.Execute(context.Background(), "echo", nil)
			}
		}()
	}
	streaming := make(chan bool)
	go func() {
		for range client.Stream(context.Background(), "go", nil) {
			streaming <- true
		}
	}()
	<-streaming
	os.Exit(3)
}

func TestAProgramMayExitInTheMiddleOfEverything(t *testing.T) {
	s := newScenario(t, `{"llm": {"main": {"style": "openai", "then": "repeat", "replies": [{"sse": [`+chunk("a")+`, {"hang": true}]}]}}}`)
	for range 10 {
		start(t, "exit", "MODEL="+s.LLM["main"].BaseURL).end("exit status 3", "")
	}
}

// waits is for a signal that ends it.
func waits() {
	entered := make(chan bool)
	toolkit := must(toolspan.NewToolkit(context.Background(), toolspan.Tools(never(entered))))
	go func() { <-entered; fmt.Println("entered") }()
	_, err := toolkit.Execute(context.Background(), "never", nil)
	fmt.Println(err)
}

func TestASignalEndsAProgramThatWaits(t *testing.T) {
	p := start(t, "waits")
	equal(t, within(t, p.lines), "entered")
	must(0, p.command.Process.Signal(syscall.SIGTERM))
	p.end("signal: terminated", "entered\n")
}

// cancels what it does when it is interrupted.
func cancels() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	entered := make(chan bool)
	toolkit := must(toolspan.NewToolkit(context.Background(), toolspan.Tools(never(entered))))
	go func() { <-entered; fmt.Println("entered") }()
	_, err := toolkit.Execute(ctx, "never", nil)
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(err, toolspan.ErrCancelled))
	must(0, toolkit.Close())
}

func TestAHandledSignalCanCancelTheCall(t *testing.T) {
	p := start(t, "cancels")
	equal(t, within(t, p.lines), "entered")
	must(0, p.command.Process.Signal(os.Interrupt))
	p.end("exit status 0", "entered\ntrue true\n")
}

// sigpipe writes to peers that have gone: the library's own threads do, where Go's runtime must not take the signal for fatal.
func sigpipe() {
	toolkit := stdio()
	for range 3 {
		result, err := toolkit.Execute(context.Background(), "srv_leaves", nil)
		fmt.Println(err == nil && result.IsError)
	}
	must(0, toolkit.Close())
}

func TestAPeerThatClosedItsPipeDoesNotEndTheProgram(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "stdio", "tools": [{"name": "leaves", "does": {"exit": true}}], "exitOn": "tools/call"}}, "llm": {}}`)
	start(t, "sigpipe", server(s)).end("exit status 0", "true\ntrue\ntrue\n")
}

// profile runs under the profiler, whose signal reaches the library's threads as well, with handlers of Go's for the others.
func profile() {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGPIPE, syscall.SIGHUP)
	var out bytes.Buffer
	must(0, pprof.StartCPUProfile(&out))
	toolkit := must(toolspan.NewToolkit(context.Background(), toolspan.Tools(tool("echo", echo))))
	done := make(chan bool)
	for range 4 {
		go func() {
			for range 2000 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
				must(toolkit.Execute(context.Background(), "echo", raw(`{"a":1}`)))
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	pprof.StopCPUProfile()
	must(0, toolkit.Close())
	fmt.Println(out.Len() > 0, len(signals) > 0)
}

func TestSignalsOfGoAndTheThreadsOfTheLibraryGetAlong(t *testing.T) {
	start(t, "profile").end("exit status 0", "true true\n")
}

// children has some of its own after the library had to abandon one. Then the library waits for SIGCHLD, which without a pidfd it
// does for every child.
func children() {
	engine := must(toolspan.NewEngine(toolspan.EngineOptions{}))
	command := strings.Split(os.Getenv("SERVER"), "\n")
	must(engine.NewToolkit(context.Background(), toolspan.MCPServers(map[string]toolspan.MCPServer{"srv": {Command: command}})))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	fmt.Println(engine.Shutdown(ctx) != nil)
	// The signal finds threads on the stack of a goroutine, where Go's handler must not be called.
	var stop atomic.Bool
	for range 4 {
		go func() {
			for !stop.Load() {
			}
		}()
	}
	done := make(chan bool)
	for range 4 {
		go func() {
			for range 50 {
				must(0, exec.Command("true").Run())
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	stop.Store(true)
	fmt.Println("done")
}

func TestTheChildrenOfTheProgramAndOfTheLibraryGetAlong(t *testing.T) {
	s := newScenario(t, `{"mcp": {"srv": {"transport": "stdio", "tools": [{"name": "a"}], "ignoreEof": true, "ignoreTerm": true}}, "llm": {}}`)
	for range 3 {
		start(t, "children", server(s)).end("exit status 0", "true\ndone\n")
	}
	s.wait(`{"mcp": "srv", "processes": 0}`)
}
