// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }

// limit is several times what any command needs.
const limit = 15 * time.Second

// measured is a command line, and the exit code that it has here. POD stands for the name of
// a Pod of the deployment, DIGEST for that of its artifacts, BUNDLE for a folder with a bundle,
// and MANIFESTS for those of another tool.
type measured struct {
	line string
	code int
}

// table are the command lines, each a line.
var table = []measured{
	{line: "get"},
	{line: "get all -A"},
	{line: "get all -A -o json"},
	{line: "get app-0500"},
	{line: "status app-0500"},
	{line: "status app-0500 -o json"},
	{line: "tree app-0500"},
	{line: "tree app-0500 -o json"},
	{line: "trace pod/POD"},
	{line: "trace configmap/foreign", code: 1}, // looks through all inventories
	{line: "events app-0500"},
	{line: "history app-0500"},
	{line: "history app-0500 -o wide"},
	{line: "logs app-0500"},
	{line: "render BUNDLE --install-namespace demo"},
	{line: "validate BUNDLE"},
	{line: "inspect BUNDLE"},
	{line: "rbac BUNDLE --install-namespace demo"},
	{line: "wait app-0500"},
	{line: "retry app-0500"}, // which is Ready, and left alone
	{line: "suspend app-0500 --dry-run"},
	{line: "resume app-0500 --dry-run"},
	{line: "rollback app-0500 --to v1.2.0@DIGEST --dry-run"},
	{line: "delete app-0500 --dry-run"},
	{line: "export app-0500"},
	{line: "migrate MANIFESTS"},
	{line: "version"},
	{line: "completion bash"},
	{line: "__complete get "},
	{line: "__complete trace pod/"},
}

// unmeasured are the commands that the table leaves out, and why.
var unmeasured = map[string]string{
	"help":      "shows what each command says of itself",
	"reconcile": "waits for the controller",
}

func TestCommands(t *testing.T) {
	deployments, runs := 60, 1
	if os.Getenv("SATCHEL_FULL") != "" {
		deployments, runs = 1000, 9
	}
	binary := build(t)
	completeTable(t, binary)
	cp := controlplane.Shared(t)
	if err := installation.Install(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	c := populated(t, cp, deployments)
	var text strings.Builder
	fmt.Fprintf(&text, "median of %d runs against %d deployments\n", runs, deployments)
	for _, m := range table {
		args := c.arguments(m.line, deployments)
		took := make([]time.Duration, 0, runs)
		size := 0
		for range runs {
			one, out, err := run(t, binary, m.code, args)
			if err != nil {
				t.Fatalf("satchel %s: %v", m.line, err)
			}
			took, size = append(took, one), len(out)
		}
		slices.Sort(took)
		median := took[len(took)/2]
		fmt.Fprintf(&text, "  %-44s %8.0f ms   %8d bytes\n", m.line, float64(median)/float64(time.Millisecond), size)
		if median > limit {
			t.Errorf("satchel %s takes %s", m.line, median)
		}
	}
	t.Log(text.String())
}

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "satchel")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/satchel")
	cmd.Dir = installation.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building satchel: %v\n%s", err, out)
	}
	return binary
}

// run runs a command line and returns how long it took and what it printed.
func run(t *testing.T, binary string, code int, args []string) (time.Duration, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == code || err == nil && code == 0 {
		return took, out.String(), nil
	}
	return took, "", fmt.Errorf("want exit %d: %w: %s%s", code, err, out.String(), failure.String())
}

// completeTable wants each command of the program in the table, or said why not.
func completeTable(t *testing.T, binary string) {
	t.Helper()
	_, out, err := run(t, binary, 0, []string{"__complete", ""})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range table {
		name, _, _ := strings.Cut(m.line, " ")
		known[name] = true
	}
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		name, _, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(name, ":") && !known[name] && unmeasured[name] == "" {
			t.Errorf("the command %s has no line in the table: add one, or say in unmeasured why not", name)
		}
	}
}
