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

// either is an exit code that says yes or no.
const either = -1

// measured is a command line, and the exit code that it has here. POD stands for the name of
// a Pod of the deployment, DIGEST for that of its artifacts, BUNDLE and FOLDER for bundles,
// CATALOG for a catalog of operators, and FILE for one that does not exist.
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
	{line: "events"},
	{line: "history app-0500"},
	{line: "history app-0500 -o wide"},
	{line: "logs app-0500"},
	{line: "tree huge"},
	{line: "tree huge -o json"},
	{line: "events huge"},
	{line: "logs huge"},
	{line: "trace configmap/huge-00007"},
	{line: "render BUNDLE --install-namespace demo"},
	{line: "validate BUNDLE"},
	{line: "inspect BUNDLE"},
	{line: "rbac BUNDLE --install-namespace demo"},
	{line: "resolve shop --catalog shop=CATALOG"},
	{line: "catalog search shop --catalog shop=CATALOG"},
	{line: "catalog show shop --catalog shop=CATALOG"},
	{line: "catalog channels shop --catalog shop=CATALOG"},
	{line: "catalog graph shop --from 1.0.0 --catalog shop=CATALOG"},
	{line: "catalog validate CATALOG", code: 2}, // two heads
	{line: "bundle init app --from BUNDLE --dir FILE --dry-run"},
	{line: "bundle build BUNDLE --print name"},
	{line: "create deployment app --image example.org/app:v1 --export"},
	{line: "plan app-0500 --path FOLDER", code: 2}, // refused, because the ServiceAccount does not exist
	{line: "plan app-0500 --path FOLDER -o diff", code: 2},
	{line: "approve app-0001 --dry-run"},
	{line: "approve app-0001 --deny --dry-run"},
	{line: "wait app-0500"},
	{line: "reconcile app-0500 --retry"}, // which is Ready, and left alone
	{line: "suspend app-0500 --dry-run"},
	{line: "resume app-0500 --dry-run"},
	{line: "rollback app-0500 --to v1.2.0@DIGEST --dry-run --plan=false"},
	{line: "delete app-0500 --dry-run"},
	{line: "export app-0500"},
	{line: "install --version"},
	{line: "install --export"},
	{line: "uninstall --dry-run"},
	{line: "check", code: either}, // no controllers run
	{line: "debug dump -A -o FILE"},
	{line: "version"},
	{line: "completion bash"},
	{line: "__complete get "},
	{line: "__complete trace pod/"},
}

// unmeasured are the commands that the table leaves out, and why.
var unmeasured = map[string]string{
	"help":     "shows what each command says of itself",
	"run":      "uploads to a source controller, and waits",
	"artifact": "reads the artifact, which is not served here",
	"rollout":  "needs a rollout, and its CRD is not a part of the installation measured here",
}

func TestCommands(t *testing.T) {
	deployments, objects, runs := 60, 300, 1
	if os.Getenv("SATCHEL_FULL") != "" {
		deployments, objects, runs = 1000, 20_000, 9
	}
	binary := build(t)
	completeTable(t, binary)
	cp := controlplane.Shared(t)
	if err := installation.Install(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	c := populated(t, cp, deployments)
	c.huge(objects)
	var text strings.Builder
	fmt.Fprintf(&text, "median of %d runs against %d deployments; the one called huge has %d objects\n", runs, deployments, objects)
	for _, m := range table {
		median, size, err := c.measure(binary, m, deployments, runs)
		if err != nil {
			t.Errorf("satchel %s: %v", m.line, err)
			continue
		}
		fmt.Fprintf(&text, "  %-44s %8.0f ms   %8d bytes\n", m.line, float64(median)/float64(time.Millisecond), size)
		if median > limit {
			t.Errorf("satchel %s takes %s", m.line, median)
		}
	}
	t.Log(text.String())
}

// measure runs a command line several times, and returns the median and the size of the output.
func (p population) measure(binary string, m measured, deployments, runs int) (median time.Duration, size int, err error) {
	took := make([]time.Duration, 0, runs)
	for range runs {
		one, out, err := run(p.t, binary, m.code, p.arguments(m.line, deployments))
		if err != nil {
			return 0, 0, err
		}
		took, size = append(took, one), len(out)
	}
	slices.Sort(took)
	return took[len(took)/2], size, nil
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
	got := 0
	if errors.As(err, &exit) {
		got, err = exit.ExitCode(), nil
	}
	switch {
	case err != nil:
		return took, "", err
	case got == code || code == either && got <= 1:
		return took, out.String(), nil
	}
	return took, "", fmt.Errorf("exit %d, want %d: %s%s", got, code, out.String(), failure.String())
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
