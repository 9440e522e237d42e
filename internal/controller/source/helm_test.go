// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// charts is a Helm repository behind a login.
type charts struct {
	*httptest.Server

	mutex    sync.Mutex
	index    string
	archives map[string][]byte
	requests []string
}

func newCharts(t *testing.T) *charts {
	t.Helper()
	c := &charts{archives: map[string][]byte{}, index: "apiVersion: v1\nentries:\n  app:\n"}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// publish adds a version of the chart to the index.
func (c *charts) publish(t *testing.T, version string) (digest string) {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(pack(t, files("app/Chart.yaml", "apiVersion: v2\nname: app\nversion: "+version+"\n"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	name := "app-" + version + ".tgz"
	c.archives["/"+name] = packed.Bytes()
	digest = fmt.Sprintf("%x", sha256.Sum256(packed.Bytes()))
	c.index += "  - name: app\n    version: " + version + "\n    digest: " + digest + "\n    urls:\n    - " + name + "\n"
	return "sha256:" + digest
}

// ServeHTTP implements http.Handler.
func (c *charts) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, password, _ := request.BasicAuth(); password != "CANARY-charts" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(c.index)))
	status := http.StatusOK
	switch archive := c.archives[request.URL.Path]; {
	case request.URL.Path == "/index.yaml" && request.Header.Get("If-None-Match") == tag:
		status = http.StatusNotModified
		w.WriteHeader(status)
	case request.URL.Path == "/index.yaml":
		w.Header().Set("ETag", tag)
		_, _ = io.WriteString(w, c.index)
	case archive != nil:
		_, _ = w.Write(archive)
	default:
		status = http.StatusNotFound
		w.WriteHeader(status)
	}
	c.requests = append(c.requests, fmt.Sprint(request.URL.Path, " ", status))
}

// taken are the requests since the last call.
func (c *charts) taken() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// A chart of a Helm repository is resolved by its index. While that does not change, each look costs one conditional request,
// also after a change that does not concern the chart.
func TestHelmRepository(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newCharts(t)
	first := server.publish(t, "1.2.0")
	server.publish(t, "2.0.0")
	source := &v1alpha1.HelmSource{URL: server.URL, Chart: "app", Version: "1.x", SecretRef: &v1alpha1.LocalReference{Name: "login"}}
	key := r.create(t, namespace, "chart", []v1alpha1.Source{{Helm: source}}, nil)
	missing := r.unready(t, key, v1alpha1.ReasonNotFound)
	if text := describe(missing); !strings.Contains(text, "secret "+namespace+"/login does not exist") {
		t.Errorf("without the Secret:\n%s", text)
	}
	r.secret(t, namespace, "login", map[string]string{"username": "jane", "password": "CANARY-charts"})
	s := r.ready(t, key)
	if diff := cmp.Diff([]string{"app/Chart.yaml"}, names(t, download(t, s.Status.Artifact))); diff != "" {
		t.Errorf("files of the artifact (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(s.Status.Artifact.Revision, "1.2.0@sha256:") || s.Status.Resolved[0].Digest != first || s.Status.Resolved[0].Reference != "1.2.0" {
		t.Errorf("revision %s of %+v", s.Status.Artifact.Revision, s.Status.Resolved[0])
	}
	server.taken()
	r.refresh(t, key)
	if diff := cmp.Diff([]string{"/index.yaml 304"}, server.taken()); diff != "" {
		t.Errorf("an index that did not change: %s", diff)
	}

	server.publish(t, "2.1.0")
	r.refresh(t, key)
	r.refresh(t, key)
	if diff := cmp.Diff([]string{"/index.yaml 200", "/index.yaml 304"}, server.taken()); diff != "" {
		t.Errorf("an index with a new version that is out of range: %s", diff)
	}

	second := server.publish(t, "1.10.0")
	moved := r.refresh(t, key)
	if moved.Status.Resolved[0].Digest != second || !strings.HasPrefix(moved.Status.Artifact.Revision, "1.10.0@sha256:") {
		t.Errorf("after a new version:\n%s", describe(moved))
	}
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].Helm.Version = ">=3" })
	failed := r.unready(t, key, v1alpha1.ReasonNotFound)
	if text := describe(failed); failed.Status.Artifact == nil || !strings.Contains(text, "the newest of its 4 versions are 2.1.0, 2.0.0, 1.10.0") || strings.Contains(text, "CANARY") {
		t.Errorf("a range without a version:\n%s", text)
	}
}

// The archive has to have the digest of the index. What is published stays.
func TestHelmArchiveIsReplaced(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newCharts(t)
	server.publish(t, "1.0.0")
	r.secret(t, namespace, "login", map[string]string{"username": "jane", "password": "CANARY-charts"})
	source := &v1alpha1.HelmSource{URL: server.URL, Chart: "app", SecretRef: &v1alpha1.LocalReference{Name: "login"}}
	key := r.create(t, namespace, "chart", []v1alpha1.Source{{Helm: source}}, nil)
	before := r.ready(t, key)
	server.publish(t, "1.1.0")
	server.mutex.Lock()
	server.archives["/app-1.1.0.tgz"] = server.archives["/app-1.0.0.tgz"]
	server.mutex.Unlock()
	failed := r.refresh(t, key)
	if conditions.GetReason(failed, meta.ReadyCondition) != v1alpha1.ReasonDigestMismatch || !conditions.IsStalled(failed) ||
		failed.Status.Artifact.Revision != before.Status.Artifact.Revision {
		t.Errorf("an archive that is not that of the index:\n%s", describe(failed))
	}
	t.Log(conditions.GetMessage(failed, meta.ReadyCondition))
}
