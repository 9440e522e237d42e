// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// build builds the program under a name and returns its path.
func build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version=v9.8.7", "-o", program, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return program
}

// TestKubectlPlugin calls the program as kubectl does.
func TestKubectlPlugin(t *testing.T) {
	kubernetes, err := controlplane.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	plugin := build(t, "kubectl-satchel")
	kubectl := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(kubernetes), "kubectl"), "satchel", "version", "--client")
	kubectl.Env = append(os.Environ(), "PATH="+filepath.Dir(plugin)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := kubectl.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "kubectl satchel v9.8.7 (go") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestInterrupt presses Ctrl-C during a download.
func TestInterrupt(t *testing.T) {
	asked := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	temporary := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	satchel := exec.CommandContext(ctx, build(t, "satchel"), "render", strings.TrimPrefix(server.URL, "http://")+"/slow:v1",
		"--insecure", "--install-namespace", "demo")
	satchel.Env = append(os.Environ(), "TMPDIR="+temporary)
	satchel.Stdout, satchel.Stderr = &out, &errOut
	if err := satchel.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-ctx.Done():
		t.Fatalf("nothing was downloaded: %s", errOut.String())
	}
	if err := satchel.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := satchel.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 || errOut.String() != "Interrupted.\n" || out.Len() > 0 {
		t.Errorf("%v: %s%s", err, out.String(), errOut.String())
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%d temporary files are left (%v)", len(left), err)
	}
}
