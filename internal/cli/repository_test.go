// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// chartRepository is a Helm repository with one version of the chart "shop".
func chartRepository(t *testing.T) string {
	t.Helper()
	plain, err := upstream.Tar(fstest.MapFS{
		"shop/Chart.yaml":              {Data: []byte("apiVersion: v2\nname: shop\nversion: 1.2.0\n")},
		"shop/templates/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {tag: {{ .Values.tag | quote }}}\n")},
		"shop/values.yaml":             {Data: []byte("tag: v1\n")},
	})
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
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/stable/index.yaml":
			_, _ = fmt.Fprintf(w, "apiVersion: v1\nentries:\n  shop:\n  - name: shop\n    version: 1.2.0\n    digest: %x\n    urls:\n    - shop-1.2.0.tgz\n", sha256.Sum256(packed.Bytes()))
		case "/stable/shop-1.2.0.tgz":
			_, _ = io.Copy(w, bytes.NewReader(packed.Bytes()))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/stable"
}

// The commands that read a bundle read a chart of a Helm repository.
func TestChartsOfRepositories(t *testing.T) {
	repository := chartRepository(t)
	got := satchel(t, "render", "shop", "--helm-repository", repository, "--version", "1.x", "--install-namespace", "shop", "--set", "tag=v2")
	if got.Code != 0 || !strings.Contains(got.Out, "tag: v2") || !strings.Contains(got.Err, "Reading the chart shop 1.2.0 of "+repository+", which is sha256:") {
		t.Error(got)
	}
	if got := satchel(t, "inspect", "shop", "--helm-repository", repository); got.Code != 0 || !strings.Contains(got.Out, "1.2.0") {
		t.Error(got)
	}
	for says, args := range map[string][]string{
		"similar names in it are \"shop\"":                                  {"sho", "--helm-repository", repository},
		"no version \">=2\" of the chart: the newest of its 1 versions are": {"shop", "--helm-repository", repository, "--version", ">=2"},
		"--version has no effect without --helm-repository":                 {"shop", "--version", ">=2"},
		"--platform is for images":                                          {"shop", "--helm-repository", repository, "--platform", "linux/amd64"},
		"use image: {reference: ghcr.io/org/shop} instead of helm":          {"shop", "--helm-repository", "oci://ghcr.io/org"},
		"there is no index.yaml: check the URL of the repository":           {"shop", "--helm-repository", repository + "/other"},
		"connection refused":                                                {"shop", "--helm-repository", "http://127.0.0.1:1"},
		"plain HTTP to \"example.org\" is refused":                          {"shop", "--helm-repository", "http://example.org"},
	} {
		got := satchel(t, append([]string{"inspect"}, args...)...)
		if got.Code != kit.ExitError || got.Out != "" || !strings.Contains(got.Err, says) || strings.Contains(got.Err, "the cluster at") {
			t.Errorf("%q: %s", says, got)
		}
	}
}
