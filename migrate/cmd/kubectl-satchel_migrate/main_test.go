// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// TestKubectlPlugin calls the program as kubectl does.
func TestKubectlPlugin(t *testing.T) {
	kubernetes, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(t.TempDir(), "kubectl-satchel_migrate")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version=v9.8.7", "-o", plugin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	for want, args := range map[string][]string{
		"kubectl satchel-migrate v9.8.7 (go":                {"--version"},
		"Usage:\n  kubectl satchel-migrate manifests [FILE": {"manifests", "--help"},
	} {
		kubectl := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(kubernetes), "kubectl"), append([]string{"satchel-migrate"}, args...)...)
		kubectl.Env = append(os.Environ(), "PATH="+filepath.Dir(plugin)+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := kubectl.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %q is missing in %v: %s", args, want, err, out)
		}
	}
}
