// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// chartRepository serves the versions of one chart, and their index.
type chartRepository struct {
	mu     sync.Mutex
	charts map[string][]byte // by the name of the archive
	index  string
}

func newChartRepository(t *testing.T) (repository *chartRepository, url string) {
	t.Helper()
	repository = &chartRepository{charts: map[string][]byte{}, index: "apiVersion: v1\nentries:\n  shop:\n"}
	server := httptest.NewServer(repository)
	t.Cleanup(server.Close)
	return repository, server.URL
}

// ServeHTTP implements http.Handler.
func (c *chartRepository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if request.URL.Path == "/index.yaml" {
		_, _ = w.Write([]byte(c.index))
		return
	}
	chart, found := c.charts[request.URL.Path]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(chart)
}

// publish adds a version of the chart with the files as templates.
func (c *chartRepository) publish(t *testing.T, version string, templates fs.FS) {
	t.Helper()
	files := fstest.MapFS{"shop/Chart.yaml": {Data: []byte("apiVersion: v2\nname: shop\nversion: " + version + "\n")}}
	names, err := fs.Glob(templates, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := fs.ReadFile(templates, name)
		if err != nil {
			t.Fatal(err)
		}
		files["shop/templates/"+name] = &fstest.MapFile{Data: content}
	}
	plain, err := upstream.Tar(files)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	archive := "shop-" + version + ".tgz"
	c.mu.Lock()
	defer c.mu.Unlock()
	c.charts["/"+archive] = packed.Bytes()
	c.index += fmt.Sprintf("  - name: shop\n    version: %s\n    digest: %x\n    urls:\n    - %s\n", version, sha256.Sum256(packed.Bytes()), archive)
}

// chartReleases publishes contents as versions of a chart.
func chartReleases(t *testing.T) releases {
	t.Helper()
	repository, url := newChartRepository(t)
	published := 0
	return releases{
		source: v1alpha1.Source{Helm: &v1alpha1.HelmSource{URL: url, Chart: "shop", Version: ">=1.0.0"}},
		publish: func(t *testing.T, content fs.FS) {
			t.Helper()
			published++
			repository.publish(t, fmt.Sprintf("1.%d.0", published), content)
		},
	}
}

// TestRunChart runs a chart of a Helm repository, and says what the repository lacks.
func TestRunChart(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	repository, url := newChartRepository(t)
	repository.publish(t, "1.0.0", configMaps("charted", 1))
	r.satchel(t, namespace, "run", "shop", "shop", "--helm-repository", url, "--version", "1.x").says(t, 0, "BundleDeployment shop: Ready")
	if !r.holds(t, namespace, "charted-00") {
		t.Error("the chart is not installed")
	}
	r.satchel(t, namespace, "get", "shop").says(t, 0, "1.0.0")
	r.satchel(t, namespace, "run", "shop", "shop", "--helm-repository", url, "--version", "2.x", "--timeout", "60s").says(t, 1, "2.x", "1.0.0", "What to do: ")
	if !r.holds(t, namespace, "charted-00") {
		t.Error("what ran is gone")
	}
	r.satchel(t, namespace, "delete", "shop", "--yes").says(t, 0, "BundleDeployment shop: gone\n")
}
