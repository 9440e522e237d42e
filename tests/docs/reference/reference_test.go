// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/reference instead of comparing it")

const root = "../../.."

// pages are all pages of docs/reference, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	definitions, err := filepath.Glob(root + "/config/crd/bases/*.yaml")
	if err != nil || len(definitions) != 3 {
		t.Fatalf("there are %d definitions, want 3: %v", len(definitions), err)
	}
	for _, file := range definitions {
		name, page, err := Fields(read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = page
	}
	reasons, err := Reasons(read(t, root+"/api/v1alpha1/conditions.go"), map[string]string{
		"SucceededReason": meta.SucceededReason, "ProgressingReason": meta.ProgressingReason, "ReadyCondition": meta.ReadyCondition,
		"ProgressingWithRetryReason": meta.ProgressingWithRetryReason, "SuspendedReason": meta.SuspendedReason,
	})
	if err != nil {
		t.Fatal(err)
	}
	found["reasons.md"] = reasons
	return found
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestReferenceIsCurrent compares docs/reference with the code.
func TestReferenceIsCurrent(t *testing.T) {
	dir := root + "/docs/reference"
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range pages(t) {
		file := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, string(read(t, file))); diff != "" {
			t.Errorf("docs/reference/%s is not current; update it with make generate\n-want +got:\n%s", name, diff)
		}
		if strings.Contains(want, "|  |\n") || strings.Contains(want, "`` |") {
			t.Errorf("docs/reference/%s has a field or reason without a name or a meaning", name)
		}
	}
}
