// SPDX-License-Identifier: Apache-2.0

package clirig

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/visible"
)

var update = flag.Bool("update", false, "regenerate the golden files")

// Golden compares a text with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with: go test -update, in this package", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is intended, regenerate it with: go test -update, in this package\n-want +got:\n%s", file, diff)
	}
}

// Steering are control, bidirectional and invisible characters.
const Steering = "\x1b[2J\u009b31m\u0085\u2028\u202e\u2066\u200b\u3164\U000e0041\x7f"

// HiddenIn returns the first control or invisible character of an output.
func HiddenIn(text string) string {
	for i, r := range text {
		if r != '\n' && visible.Hidden(r) {
			return fmt.Sprintf("%U in %q", r, text[max(0, i-40):min(len(text), i+20)])
		}
	}
	return ""
}

// Quoted is a string as a JSON and YAML literal.
func Quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(printer.EscapeHidden(data, visible.JSON)), `\udb40\udc41`, `\U000e0041`)
}

// WriteFiles writes files into a folder, which it returns.
func WriteFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
