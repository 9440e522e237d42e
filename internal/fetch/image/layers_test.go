// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestM10MediaTypes(t *testing.T) {
	content := packed(t, "a", "1")
	cases := map[string]struct {
		reason string
		layer  v1.Layer
		want   fetch.Reason
	}{
		"Docker":       {"what docker build writes", static.NewLayer(gzipped(t, content), types.DockerLayer), ""},
		"DockerTar":    {"uncompressed", static.NewLayer(content, types.DockerUncompressedLayer), ""},
		"OCI":          {"what everybody else writes", static.NewLayer(gzipped(t, content), types.OCILayer), ""},
		"OCITar":       {"uncompressed", static.NewLayer(content, types.OCIUncompressedLayer), ""},
		"Zstd":         {"the newer compression", static.NewLayer(zstandard(t, content), types.OCILayerZStd), ""},
		"Artifact":     {"as flux push artifact writes it", static.NewLayer(gzipped(t, content), "application/vnd.cncf.flux.content.v1.tar+gzip"), ""},
		"Members":      {"lazily loadable images have several gzip members", static.NewLayer(append(gzipped(t, content[:512]), gzipped(t, content[512:])...), types.OCILayer), ""},
		"Foreign":      {"lies elsewhere", static.NewLayer(gzipped(t, content), types.DockerForeignLayer), fetch.InvalidContent},
		"Restricted":   {"lies elsewhere", static.NewLayer(content, types.OCIUncompressedRestrictedLayer), fetch.InvalidContent},
		"JSON":         {"no archive", static.NewLayer([]byte("{}"), "application/json"), fetch.InvalidContent},
		"NoType":       {"unknown type", static.NewLayer(content, "x"), fetch.InvalidContent},
		"LyingGzip":    {"is not what it says", static.NewLayer(content, types.OCILayer), fetch.InvalidContent},
		"LyingTar":     {"is not what it says", static.NewLayer(gzipped(t, content), types.OCIUncompressedLayer), fetch.InvalidContent},
		"LyingZstd":    {"is not what it says", static.NewLayer(content, types.OCILayerZStd), fetch.InvalidContent},
		"CutGzip":      {"the end is missing", static.NewLayer(gzipped(t, content)[:60], types.OCILayer), fetch.InvalidContent},
		"CutZstd":      {"the end is missing", static.NewLayer(zstandard(t, content)[:20], types.OCILayerZStd), fetch.InvalidContent},
		"GarbageAfter": {"something follows", static.NewLayer(append(gzipped(t, content), "garbage"...), types.OCILayer), fetch.InvalidContent},
		"Escaping":     {"tar names are checked", layer(t, "../a", "1"), fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := small(t)
			push(t, u.host+"/b:v1", imageOf(t, tc.layer))
			_, files, err := pull(t, options(u.host+"/b:v1"))
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && files["a"] != "1" {
				t.Errorf("%s: %v", tc.reason, files)
			}
		})
	}
}

// TestChartWithProvenance: helm push stores the signature of a chart as a layer that is no archive.
func TestChartWithProvenance(t *testing.T) {
	u := small(t)
	chart := static.NewLayer(gzipped(t, packed(t, "shop/Chart.yaml", "name: shop")), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
	signature := static.NewLayer([]byte("-----BEGIN PGP SIGNED MESSAGE-----"), helmProvenance)
	push(t, u.host+"/shop:1.0.0", imageOf(t, signature, chart))
	_, files, err := pull(t, options(u.host+"/shop:1.0.0"))
	if err != nil || len(files) != 1 || files["shop/Chart.yaml"] != "name: shop" {
		t.Errorf("%v, %v", files, err)
	}
	push(t, u.host+"/signature:1.0.0", imageOf(t, signature))
	if _, _, err := pull(t, options(u.host+"/signature:1.0.0")); fetch.ReasonOf(err) != fetch.InvalidContent {
		t.Errorf("an image without files: %v", err)
	}
}

func TestM10LiesAboutLayers(t *testing.T) {
	good := gzipped(t, packed(t, "a", strings.Repeat("x", 3000)))
	cases := map[string]struct {
		reason string
		body   []byte
		long   bool // the server states no length
		want   fetch.Reason
	}{
		"OtherBytes":   {"the digest is wrong", gzipped(t, packed(t, "b", strings.Repeat("x", 3000))), false, fetch.DigestMismatch},
		"OneBit":       {"the digest is wrong", flip(good), false, fetch.DigestMismatch},
		"Short":        {"shorter than declared", good[:len(good)-9], false, fetch.DigestMismatch},
		"ShortUnknown": {"shorter than declared", good[:len(good)-9], true, fetch.DigestMismatch},
		"Long":         {"longer than declared", append(bytes.Clone(good), 1, 2, 3), false, fetch.DigestMismatch},
		"LongUnknown":  {"streams past its size", append(bytes.Clone(good), make([]byte, 1<<20)...), true, fetch.DigestMismatch},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := small(t)
			push(t, u.host+"/b:v1", imageOf(t, static.NewLayer(good, types.OCILayer)))
			u.alter(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				if tc.long {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(tc.body)
				return true
			})
			_, files, err := pull(t, options(u.host+"/b:v1"))
			// A damaged stream may be noticed by the decoder before its end is reached.
			if r := fetch.ReasonOf(err); r != tc.want && r != fetch.InvalidContent || len(files) > 0 {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func flip(data []byte) []byte {
	changed := bytes.Clone(data)
	changed[9] ^= 1 // the operating system in the gzip header: only the digest detects it
	return changed
}

func TestM10LiesAboutManifests(t *testing.T) {
	u := small(t)
	img := imageOf(t, layer(t, "a", "1"))
	push(t, u.host+"/b:v1", img)
	other, err := imageOf(t, layer(t, "a", "evil")).RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	u.alter(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		_, _ = w.Write(other)
		return true
	})
	if _, _, err := pull(t, options(u.host+"/b:v1")); fetch.ReasonOf(err) != fetch.DigestMismatch {
		t.Errorf("other manifest than asked for: %v", err)
	}
	u.alter(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			_, _ = io.CopyN(w, zeros{}, maxManifest+1)
		}
		return r.Method == http.MethodGet
	})
	if _, _, err := pull(t, options(u.host+"/b:v1")); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("a manifest without end: %v", err)
	}
}

func TestM10Limits(t *testing.T) {
	u := small(t)
	layers := make([]v1.Layer, 0, 5)
	for i := range 5 {
		layers = append(layers, layer(t, fmt.Sprint(i), "1"))
	}
	img := imageOf(t, layers...)
	push(t, u.host+"/b:v1", img)
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, l := range manifest.Layers {
		size += l.Size
	}
	cases := map[string]struct {
		reason string
		limit  func(l *fetch.Limits)
		want   fetch.Reason
	}{
		"AtLayers":   {"input at the limit is accepted", func(l *fetch.Limits) { l.Layers = 5 }, ""},
		"OverLayers": {"one more is refused", func(l *fetch.Limits) { l.Layers = 4 }, fetch.LimitExceeded},
		"AtBytes":    {"input at the limit is accepted", func(l *fetch.Limits) { l.DownloadBytes = size }, ""},
		"OverBytes":  {"one more is refused", func(l *fetch.Limits) { l.DownloadBytes = size - 1 }, fetch.LimitExceeded},
		"Entries":    {"the tree's limits hold for all layers together", func(l *fetch.Limits) { l.Entries = 4 }, fetch.LimitExceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(u.host + "/b:v1")
			tc.limit(&o.Limits)
			u.alter(nil)
			_, _, err := pull(t, o)
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.want != "" && name != "Entries" && len(u.seen()) > 2 {
				t.Errorf("blobs were downloaded: %v", u.seen())
			}
		})
	}
}

func TestM10ThousandLayers(t *testing.T) {
	layers := make([]v1.Descriptor, 1000)
	for i := range layers {
		layers[i] = v1.Descriptor{MediaType: types.OCILayer, Size: 1}
	}
	if err := checkLayers(layers, fetch.DefaultLimits()); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Error(err)
	}
	huge := []v1.Descriptor{{MediaType: types.OCILayer, Size: 1 << 62}, {MediaType: types.OCILayer, Size: 1 << 62}}
	if err := checkLayers(huge, fetch.DefaultLimits()); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Error(err)
	}
	for _, bad := range [][]v1.Descriptor{nil, {{MediaType: types.OCILayer, Size: 1, URLs: []string{"http://169.254.169.254/"}}}} {
		if err := checkLayers(bad, fetch.DefaultLimits()); fetch.ReasonOf(err) != fetch.InvalidContent {
			t.Error(err)
		}
	}
	negative := []v1.Descriptor{{MediaType: types.OCILayer, Size: -1}}
	if err := checkLayers(negative, fetch.DefaultLimits()); err == nil {
		t.Error("a negative size")
	}
}
