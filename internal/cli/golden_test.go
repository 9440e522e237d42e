// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli/kit"
)

var update = flag.Bool("update", false, "regenerate the golden files")

// noon is the time of all tests without a cluster.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
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
		t.Fatalf("%v; write it with: go test ./internal/cli -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is intended, regenerate it with: go test ./internal/cli -update\n-want +got:\n%s", file, diff)
	}
}

// outcome is what a user sees of a command.
type outcome struct {
	code     int
	out, err string
}

// satchel runs a command line.
func satchel(t *testing.T, args ...string) outcome {
	t.Helper()
	return runAs(t, "/usr/local/bin/satchel", time.Now, args...)
}

func runAs(t *testing.T, path string, now func() time.Time, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(t.Context(), kit.Program{
		Path:    path,
		Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut},
		Version: kit.VersionInfo{Version: "v0.0.0-test", Go: "go1.26.0", Platform: "linux/amd64"},
		Now:     now,
	}, args)
	return outcome{code: code, out: out.String(), err: errOut.String()}
}

// String shows all three.
func (o outcome) String() string {
	return "exit " + string(rune('0'+o.code)) + "\n--- stdout\n" + o.out + "--- stderr\n" + o.err
}

func testApp(out *bytes.Buffer) *kit.App {
	return newApp(kit.Program{
		Path: "satchel", Now: func() time.Time { return noon },
		Streams: genericiooptions.IOStreams{Out: out, ErrOut: out},
	})
}
