// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// advertised changes the artifact in the status of the source.
func (c playedCluster) advertised(change func(*v1alpha1.BundleSource)) {
	c.T.Helper()
	var source v1alpha1.BundleSource
	if err := c.Client.Get(c.T.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "podinfo"}, &source); err != nil {
		c.T.Fatal(err)
	}
	change(&source)
	if err := c.Client.Status().Update(c.T.Context(), &source); err != nil {
		c.T.Fatal(err)
	}
}

// TestArtifact lists, prints and writes the files of an artifact.
func TestArtifact(t *testing.T) {
	c := newPlayedCluster(t)
	const manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: \"\\e[31m\"}}\n"
	c.Want(c.Satchel("artifact", "podinfo"), kit.ExitError, "has no artifact yet: see satchel status podinfo")
	c.Want(c.Satchel("artifact", "source", "podinfo"), kit.ExitError, "has no artifact yet: see satchel status source podinfo")
	c.Want(c.Satchel("artifact", "nothing"), kit.ExitError, `there is no BundleDeployment "nothing"`)
	c.publish(manifest)

	for _, args := range [][]string{{"podinfo"}, {"deployment", "podinfo"}, {"source", "podinfo"}, {"source/podinfo"}} {
		c.Want(c.Satchel(append([]string{"artifact"}, args...)...), kit.ExitOK,
			"Artifact of bundlesource/"+c.Namespace+"/podinfo: 1 file, 76 B\n", ", verified\n", "SIZE   PATH\n76 B   manifests/all.yaml\n")
		if got := c.Satchel(append(append([]string{"artifact"}, args...), "manifests/all.yaml")...); got.Code != kit.ExitOK || got.Out != manifest {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := c.Satchel("artifact", "podinfo", "-o", "name"); got.Out != "manifests/all.yaml\n" {
		t.Errorf("got %s", got)
	}
	var held struct {
		Source, Revision, Digest string
		Files                    []map[string]any
	}
	got := c.Satchel("artifact", "podinfo", "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &held); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if diff := cmp.Diff([]map[string]any{{"path": "manifests/all.yaml", "size": 76.0}}, held.Files); diff != "" || held.Source != "bundlesource/"+c.Namespace+"/podinfo" {
		t.Errorf("got %+v: %s", held, diff)
	}
	c.Want(c.Satchel("artifact", "podinfo", "manifests/al.yaml"), kit.ExitError, "there is no file manifests/al.yaml", "there is: manifests/all.yaml")
	c.Want(c.Satchel("artifact", "podinfo", "manifests"), kit.ExitError, "is a folder in the artifact")

	dir := filepath.Join(t.TempDir(), "out")
	c.Want(c.Satchel("artifact", "podinfo", "--dir", dir), kit.ExitOK, "Written to "+dir)
	if text, err := os.ReadFile(filepath.Join(dir, "manifests", "all.yaml")); err != nil || string(text) != manifest {
		t.Errorf("%v: %q", err, text)
	}
	c.Want(c.Satchel("artifact", "podinfo", "--dir", dir), kit.ExitError, "is not empty: name another one")
}

// TestArtifactIsVerified: bytes with another digest are not shown.
func TestArtifactIsVerified(t *testing.T) {
	c := newPlayedCluster(t)
	c.publish("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n")
	c.advertised(func(s *v1alpha1.BundleSource) { s.Status.Artifact.Digest = digestA })
	dir := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"artifact", "podinfo"}, {"artifact", "podinfo", "manifests/all.yaml"}, {"artifact", "podinfo", "--dir", dir}} {
		got := c.Satchel(args...)
		c.Want(got, kit.ExitError, "sent bytes with digest")
		if got.Out != "" {
			t.Errorf("%v shows %q", args, got.Out)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder was written: %v", err)
	}
}

// TestArtifactUnavailable: what failed, and what to do.
func TestArtifactUnavailable(t *testing.T) {
	c := newPlayedCluster(t)
	c.publish("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n")
	status := http.StatusUnauthorized
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	c.advertised(func(s *v1alpha1.BundleSource) {
		s.Status.Artifact.URL = strings.Replace(s.Status.Artifact.URL, c.url, server.URL, 1)
	})
	c.Want(c.Satchel("artifact", "podinfo"), kit.ExitError, "accepts only tokens of ServiceAccounts")
	status = http.StatusNotFound
	c.Want(c.Satchel("artifact", "podinfo"), kit.ExitError, "no longer has it")
	server.Close()
	c.Want(c.Satchel("artifact", "podinfo"), kit.ExitError, "cannot be reached", "the command check says whether")
	c.Want(c.Satchel("artifact", "podinfo", "--as", "jane"), kit.ExitError, "you may not get bundledeployments.satchel.dev")
}

func TestArtifactUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, want string
		args         []string
	}{
		"nothing":    {"of what?", "artifact needs the name of one object", nil},
		"too much":   {"which file?", "at most one path of a file; got 3: a b c", []string{"a", "b", "c"}},
		"a way out":  {"not in an artifact", `"../x" is no path of a file in an artifact`, []string{"a", "../x"}},
		"one in all": {"two outputs", "leave --dir and -o out", []string{"a", "b", "--dir", "x"}},
		"history":    {"sources have none", "name one in place of the source", []string{"source", "a", "--revision", "previous"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := satchel(t, append([]string{"artifact"}, tc.args...)...); got.Code != kit.ExitError || !strings.Contains(got.Err, tc.want) {
				t.Errorf("%s: %s", tc.reason, got)
			}
		})
	}
}
