package toolspan_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Programs that are built from outside the module: what they link, and what they are told when that does not work.

// build compiles a module of one file that requires this one, and gives the path of the program or what the compiler said.
func build(t *testing.T, source string, env []string, flags ...string) (program, said string) {
	t.Helper()
	folder := t.TempDir()
	here := must(filepath.Abs("."))
	must(0, os.WriteFile(filepath.Join(folder, "main.go"), []byte(source), 0o644))
	must(0, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module test\n\ngo 1.24.0\n\nrequire toolspan.dev/toolspan v0.0.0\n\nreplace toolspan.dev/toolspan => "+here+"\n"), 0o644))
	program = filepath.Join(folder, "program")
	command := exec.Command("go", append([]string{"build", "-o", program}, append(flags, ".")...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), env...)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", string(output)
	}
	return program, ""
}

func run(t *testing.T, program string, env ...string) (string, error) {
	t.Helper()
	command := exec.Command(program)
	command.Env = append(os.Environ(), env...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// prefix is a folder with the library installed as `make install` of bindings/c does it.
func prefix(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	arguments := []string{"--no-print-directory", "-s", "-C", "../c", "install", "PREFIX=" + folder, "OUT=" + filepath.Join(folder, "build")}
	if output, err := exec.Command("make", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return folder
}

const versionProgram = `package main

import (
	"fmt"

	"toolspan.dev/toolspan"
)

func main() {
	version, err := toolspan.Version()
	fmt.Println(version != "", err)
}
`

func TestLinkingInEachOfTheWays(t *testing.T) {
	folder := prefix(t)
	lib := filepath.Join(folder, "lib")
	for name, way := range map[string]struct {
		env, flags, run []string
		shared          bool
	}{
		"pkg-config": {
			// The cache of Go knows these flags and not what pkg-config says: without them it gives the folder of an earlier run.
			env:    []string{"CGO_LDFLAGS=-Wl,-rpath," + lib, "PKG_CONFIG_PATH=" + filepath.Join(lib, "pkgconfig")},
			flags:  []string{"-tags", "toolspan_pkgconfig"},
			run:    []string{"LD_LIBRARY_PATH=" + lib},
			shared: true,
		},
		"static": {
			env:   []string{"CGO_LDFLAGS=-L" + lib},
			flags: []string{"-tags", "toolspan_static"},
		},
	} {
		program, said := build(t, versionProgram, way.env, way.flags...)
		if program == "" {
			t.Fatalf("%s: %s", name, said)
		}
		if output, err := run(t, program, way.run...); err != nil || output != "true <nil>\n" {
			t.Fatalf("%s: %v: %s", name, err, output)
		}
		libraries, err := exec.Command("ldd", program).CombinedOutput()
		if err != nil || strings.Contains(string(libraries), "libtoolspan") != way.shared {
			t.Fatalf("%s: %v: %s", name, err, libraries)
		}
	}
}

const rustSource = `use std::collections::HashMap;
#[unsafe(no_mangle)]
pub extern "C" fn other_sum(n: u64) -> u64 {
    let caught = std::panic::catch_unwind(|| { if n == 0 { panic!("zero") } });
    let map: HashMap<u64, u64> = (0..n).map(|i| (i, i)).collect();
    std::thread::spawn(move || map.values().sum::<u64>() + u64::from(caught.is_err())).join().unwrap_or(0)
}
`

const bothProgram = `package main

// #include <stdint.h>
// #cgo LDFLAGS: -lother -lm -ldl -lpthread
// uint64_t other_sum(uint64_t n);
import "C"

import (
	"fmt"

	"toolspan.dev/toolspan"
)

func main() {
	version, err := toolspan.Version()
	fmt.Println(version != "", err, C.other_sum(5))
}
`

func TestLinkingAnotherRustLibraryBeside(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "other.rs")
	must(0, os.WriteFile(source, []byte(rustSource), 0o644))
	rustc := exec.Command("rustc", "--edition", "2024", "--crate-type", "staticlib", "--crate-name", "other", "--out-dir", folder, source)
	if output, err := rustc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	program, said := build(t, bothProgram, []string{"CGO_LDFLAGS=-L" + folder + " " + os.Getenv("CGO_LDFLAGS")})
	if program == "" {
		t.Fatal(said)
	}
	if output, err := run(t, program); err != nil || output != "true <nil> 10\n" {
		t.Fatalf("%v: %s", err, output)
	}
}

func TestLinkingALibraryOfAnotherVersionIsRefused(t *testing.T) {
	folder := t.TempDir()
	source, library := filepath.Join(folder, "old.c"), filepath.Join(folder, "old.so")
	must(0, os.WriteFile(source, []byte("#include <stdint.h>\nuint64_t ts_schema_hash(void) { return 0xabc; }\n"), 0o644))
	if output, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	output, err := run(t, os.Args[0], "PROGRAM=version", "LD_PRELOAD="+library)
	if err != nil || !regexp.MustCompile(`abi_mismatch: .* schema hash 0000000000000abc, not 1 and [0-9a-f]{16}; install both`).MatchString(output) {
		t.Fatalf("%v: %s", err, output)
	}
}

func TestLinkingTheProgramOfTheREADME(t *testing.T) {
	_, source, found := strings.Cut(string(must(os.ReadFile("README.md"))), "```go\n")
	source, _, ended := strings.Cut(source, "```")
	if !found || !ended {
		t.Fatal("the README has no program")
	}
	s := newScenario(t, `{"mcp": {"srv": {"transport": "stdio", "tools": [{"name": "a"}]}}, "llm": {"main": {"style": "openai", "replies": [
		{"calls": [{"id": "c1", "name": "add", "args": {"a": 2, "b": 2}}]}, {"text": "four"}, {"text": "and six"}]}}}`)
	source = strings.Replace(source, "https://api.example.com/v1", s.LLM["main"].BaseURL, 1)
	program, said := build(t, source, nil)
	if program == "" {
		t.Fatal(said)
	}
	configuration := must(json.Marshal(map[string]any{"mcpServers": map[string]any{"srv": map[string]any{"command": s.MCP["srv"].Command}}}))
	must(0, os.WriteFile(filepath.Join(filepath.Dir(program), "mcp.json"), configuration, 0o644))
	command := exec.Command(program)
	command.Dir = filepath.Dir(program)
	if output, err := command.CombinedOutput(); err != nil || string(output) != "four 30\nand six" {
		t.Fatalf("%v: %s", err, output)
	}
	if bodies := s.bodies("main"); !strings.Contains(bodies[1], `"content":"4"`) || !strings.Contains(bodies[0], `"srv_a"`) {
		t.Fatalf("the model was sent %s", bodies)
	}
}

func TestLinkingWithoutCgoSaysWhatIsNeeded(t *testing.T) {
	program, said := build(t, versionProgram, []string{"CGO_ENABLED=0"})
	if program != "" || !strings.Contains(said, "undefined: toolspan_needs_cgo_set_CGO_ENABLED_1_and_CC_to_a_C_compiler_for_the_target") {
		t.Fatalf("the compiler said %q", said)
	}
	// That is all it says.
	if lines := strings.Count(said, "undefined:"); lines != 1 {
		t.Fatalf("%d names are undefined: %s", lines, said)
	}
}
