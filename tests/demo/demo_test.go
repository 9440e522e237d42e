// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const repo = "../.."

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   options
		err    string
	}{
		"nothing": {reason: "a control plane of its own, until Ctrl-C"},
		"once by environment": {
			reason: "make demo DEMO_ONCE=1", env: map[string]string{"DEMO_ONCE": "1"}, want: options{once: true},
		},
		"zero is off": {reason: "DEMO_ONCE=0 says no", env: map[string]string{"DEMO_ONCE": "0"}},
		"KUBECONFIG alone": {
			reason: "an existing cluster is touched only on request", env: map[string]string{"KUBECONFIG": "/a"},
		},
		"existing": {
			reason: "asked for", env: map[string]string{"KUBECONFIG": "/a", "DEMO_CLUSTER": "existing"}, want: options{kubeconfig: "/a"},
		},
		"existing without one": {
			reason: "any default would surprise a user",
			env:    map[string]string{"DEMO_CLUSTER": "existing"}, err: "needs KUBECONFIG",
		},
		"flag": {reason: "flags win", args: []string{"-once", "-kubeconfig", "/b"}, want: options{once: true, kubeconfig: "/b"}},
		"typing error": {
			reason: "an unknown choice must not fall back to a default", env: map[string]string{"DEMO_CLUSTER": "exists"}, err: "use own or existing",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.args, func(key string) string { return tc.env[key] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: got the error %v, want one with %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); err != nil || diff != "" {
				t.Errorf("%s: error %v, difference (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestTreeHoldsTheSamples wants all objects of config/samples/templates, on the demo's own servers.
func TestTreeHoldsTheSamples(t *testing.T) {
	servers := upstreams{registry: "127.0.0.1:5000", git: "http://127.0.0.1:3000/fleet.git"}
	tree, err := servers.tree(os.DirFS(repo), "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeFolder(tree, fleet)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := decodeFolder(os.DirFS(repo), samplesFolder)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != len(committed)-1 { // the kustomization
		t.Errorf("got %d objects, want all but one of %d", len(objects), len(committed))
	}
	if objects[0].GetKind() != "Namespace" {
		t.Errorf("the first object is %s: it needs its Namespace before it", describe(objects[0]))
	}
	image := field(t, objects, "sample-operator", "spec", "source", "sources")
	wantImage := []any{map[string]any{"image": map[string]any{"reference": "127.0.0.1:5000/bundles/sample-operator:v0.2.0", "insecure": true}}}
	if diff := cmp.Diff(wantImage, image); diff != "" {
		t.Errorf("sources of the operator (-want +got):\n%s", diff)
	}
	for _, o := range objects {
		if content, _ := o.MarshalJSON(); bytes.Contains(content, []byte("example.org")) {
			t.Errorf("%s still names an example host: %s", describe(o), content)
		}
	}
	for _, name := range []string{"deployment.yaml", "service.yaml", "configmap.yaml"} {
		if _, err := fs.Stat(tree, "greeter/"+name); err != nil {
			t.Errorf("the plain bundle misses a file: %v", err)
		}
	}
}

func field(t *testing.T, objects []*unstructured.Unstructured, name string, path ...string) any {
	t.Helper()
	for _, o := range objects {
		value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
		if o.GetName() == name && found && err == nil {
			return value
		}
	}
	t.Fatalf("no object %s has the field %s", name, strings.Join(path, "."))
	return nil
}

// TestInstallationNeedsNoPods leaves out what runs in the cluster otherwise.
func TestInstallationNeedsNoPods(t *testing.T) {
	objects, err := installation(filepath.Join(repo, "config", "default"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
	}
	if kinds["CustomResourceDefinition"] != 5 || kinds["ServiceAccount"] != 2 || kinds["Deployment"] != 0 {
		t.Errorf("got %v, want five CRDs, two ServiceAccounts and no Deployment", kinds)
	}
	if objects[0].GetKind() != "Namespace" {
		t.Errorf("the first object is %s, want the Namespace", describe(objects[0]))
	}
}

// script writes an executable that a guard can run.
func script(t *testing.T, dir, body string) string {
	t.Helper()
	file := filepath.Join(dir, "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestGuardEndsProgramsWithItsParent covers a demo that is killed: its end of the pipe closes, nothing else.
func TestGuardEndsProgramsWithItsParent(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	spec := writeSpec(t, dir, work, script(t, dir, "echo $$ >"+dir+"/pid.new && mv "+dir+"/pid.new "+dir+"/pid\nexec sleep 600\n"))
	stdin, parent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	code := make(chan int, 1)
	go func() { code <- guard(spec, stdin) }()
	pid := waitForPID(t, filepath.Join(dir, "pid"))
	_ = parent.Close()
	if got := <-code; got != 0 {
		t.Errorf("the guard returned %d, want 0", got)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("process %d outlived its parent", pid)
	}
	if _, err := os.Stat(work); !os.IsNotExist(err) {
		t.Errorf("the folder was left behind: %v", err)
	}
}

// TestGuardReportsAProgramThatEnds keeps the folder, because the logs are in it.
func TestGuardReportsAProgramThatEnds(t *testing.T) {
	dir := t.TempDir()
	spec := writeSpec(t, dir, dir, script(t, dir, "echo broken\nexit 3\n"))
	stdin, parent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = parent.Close() }()
	if got := guard(spec, stdin); got != 1 {
		t.Errorf("the guard returned %d, want 1", got)
	}
	if got := tail(filepath.Join(dir, "log")); got != "broken" {
		t.Errorf("the log ends in %q, want what the program said", got)
	}
}

func writeSpec(t *testing.T, dir, remove, path string) string {
	t.Helper()
	file := filepath.Join(dir, "spec.json")
	content := `{"remove":` + strconv.Quote(remove) + `,"programs":[{"name":"program","path":` + strconv.Quote(path) +
		`,"log":` + strconv.Quote(filepath.Join(dir, "log")) + `}]}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func waitForPID(t *testing.T, file string) int {
	t.Helper()
	for started := time.Now(); time.Since(started) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Fatal("the program did not start")
	return 0
}

// TestTellLeavesRepetitionsOut wants the sum last, and each message once.
func TestTellLeavesRepetitionsOut(t *testing.T) {
	var out bytes.Buffer
	d := &demo{narrator: newNarrator(&out), seen: map[string]string{}}
	long := "sha256:" + strings.Repeat("a", 64)
	conditions := []metav1.Condition{
		{Type: "Ready", Status: "Unknown", Reason: "HealthProgressing", Message: "one is missing"},
		{Type: "Healthy", Status: "Unknown", Reason: "HealthProgressing", Message: "one is missing"},
		{Type: "SourceReady", Status: "True", Reason: "Succeeded", Message: "revision v1@" + long},
	}
	d.tell("deployment a", conditions)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "revision v1@sha256:aaaaaaaaaaaa") ||
		strings.Contains(lines[0], long) || !strings.Contains(lines[1], "Ready") {
		t.Errorf("got:\n%s\nwant SourceReady with a short digest, then Ready", &out)
	}
	out.Reset()
	d.tell("deployment a", conditions)
	if out.Len() != 0 {
		t.Errorf("nothing changed, and yet it was told:\n%s", &out)
	}
}
