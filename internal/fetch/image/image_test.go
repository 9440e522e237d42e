// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	upstreams "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"github.com/sirupsen/logrus"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// upstream is a registry that records what it is asked.
type upstream struct {
	*httptest.Server
	host string

	mutex    sync.Mutex
	requests []string
	change   func(w http.ResponseWriter, r *http.Request) bool // true when it answered
}

func serve(t *testing.T, handler http.Handler) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mutex.Lock()
		u.requests = append(u.requests, r.Method+" "+r.URL.Path)
		change := u.change
		u.mutex.Unlock()
		if change == nil || !change(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	u.host = strings.TrimPrefix(u.URL, "http://")
	t.Cleanup(u.Close)
	return u
}

// alter begins to change answers, and forgets the requests so far.
func (u *upstream) alter(change func(w http.ResponseWriter, r *http.Request) bool) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.change, u.requests = change, nil
}

func (u *upstream) seen() []string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return append([]string{}, u.requests...)
}

// servers are the registries that everything is tried on.
func servers(t *testing.T) map[string]*upstream {
	t.Helper()
	config := &configuration.Configuration{}
	config.Storage = configuration.Storage{"inmemory": nil, "maintenance": {"uploadpurging": map[any]any{"enabled": false}}}
	config.Log.Level = "fatal"
	config.HTTP.Secret = "test"
	logrus.SetOutput(io.Discard) // Distribution's logger is global
	return map[string]*upstream{
		"Distribution":        serve(t, handlers.NewApp(context.Background(), config)),
		"GoContainerRegistry": small(t),
	}
}

func small(t *testing.T) *upstream {
	t.Helper()
	return serve(t, upstreams.New(upstreams.Logger(log.New(io.Discard, "", 0))))
}

func client() *http.Client {
	return fetch.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		InsecureHosts: []string{"127.0.0.1", "localhost"},
	}.HTTPClient(fetch.DefaultLimits())
}

func options(ref string) Options {
	return Options{Ref: ref, Insecure: true, Client: client(), Limits: fetch.DefaultLimits()}
}

// pull resolves and fetches into a new tree.
func pull(t *testing.T, o Options) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	f, err := New(o)
	if err != nil {
		return fetch.Resolved{}, nil, err
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		return resolved, nil, err
	}
	return fetchInto(t, f, resolved, o.Limits)
}

func fetchInto(t *testing.T, f *Fetcher, r fetch.Resolved, l fetch.Limits) (fetch.Resolved, map[string]string, error) {
	t.Helper()
	t.Cleanup(f.registry.client.CloseIdleConnections)
	tree, err := fetch.NewTree(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	resolved, err := f.Fetch(context.Background(), r, tree)
	if err != nil {
		return resolved, nil, err
	}
	files := map[string]string{}
	err = fs.WalkDir(tree.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree.FS(), path)
		files[path] = string(data)
		return err
	})
	return resolved, files, err
}

// packed is a tar archive of files, given as name and content in turn.
func packed(t testing.TB, files ...string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: files[i], Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func zstandard(t testing.TB, data []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return encoder.EncodeAll(data, nil)
}

func layer(t testing.TB, files ...string) v1.Layer {
	t.Helper()
	return static.NewLayer(gzipped(t, packed(t, files...)), types.OCILayer)
}

func imageOf(t testing.TB, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func push(t *testing.T, ref string, what remote.Taggable) {
	t.Helper()
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(parsed, what)
	case v1.ImageIndex:
		err = remote.WriteIndex(parsed, what)
	default:
		err = remote.Put(parsed, what)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func digestOf(t *testing.T, what interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := what.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestImageOfSeveralLayers(t *testing.T) {
	for name, u := range servers(t) {
		t.Run(name, func(t *testing.T) {
			img := imageOf(t,
				layer(t, "manifests/a", "1", "manifests/b", "1", "metadata/c", "1"),
				layer(t, "manifests/.wh.b", "", "manifests/a", "2"),
				layer(t, "metadata/.wh..wh..opq", "", "metadata/d", "3"),
			)
			ref := u.host + "/org/bundle:v1"
			push(t, ref, img)
			u.alter(nil)
			resolved, files, err := pull(t, options(ref))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fetch.Resolved{Reference: "v1", Digest: digestOf(t, img)}, resolved); diff != "" {
				t.Error(diff)
			}
			want := map[string]string{"manifests/a": "2", "metadata/d": "3"}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Error(diff)
			}
			got := u.seen()
			if len(got) != 5 || got[0] != "HEAD /v2/org/bundle/manifests/v1" ||
				got[1] != "GET /v2/org/bundle/manifests/"+resolved.Digest {
				t.Errorf("not one HEAD, one manifest and three blobs: %q", got)
			}
		})
	}
}

func TestF17PinnedAndMovedTags(t *testing.T) {
	u := small(t)
	first, second := imageOf(t, layer(t, "a", "1")), imageOf(t, layer(t, "a", "2"))
	ref := u.host + "/org/bundle:v1"
	push(t, ref, first)
	moving, err := New(options(ref))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := moving.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	push(t, ref, second)
	if _, files, err := fetchInto(t, moving, resolved, fetch.DefaultLimits()); err != nil || files["a"] != "1" {
		t.Errorf("the resolved image is fetched although the tag moved: %v %v", files, err)
	}
	u.alter(nil)
	for _, form := range []string{"@", ":v1@"} {
		pinned, err := New(options(u.host + "/org/bundle" + form + digestOf(t, first)))
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := pinned.Resolve(context.Background())
		if want := (fetch.Resolved{Digest: digestOf(t, first), Pinned: true}); err != nil || resolved != want {
			t.Errorf("%+v, %v", resolved, err)
		}
		if got := u.seen(); len(got) > 0 {
			t.Errorf("a digest needs no request: %v", got)
		}
	}
}

func TestResolveWithoutHead(t *testing.T) {
	img := imageOf(t, layer(t, "a", "1"))
	cases := map[string]struct {
		reason string
		head   func(w http.ResponseWriter)
	}{
		"NotAllowed":  {"some proxies do not pass HEAD", func(w http.ResponseWriter) { w.WriteHeader(405) }},
		"NotFound":    {"some registries say so", func(w http.ResponseWriter) { w.WriteHeader(404) }},
		"Unsupported": {"some say so", func(w http.ResponseWriter) { w.WriteHeader(501) }},
		"NoDigest":    {"the header is optional", func(http.ResponseWriter) {}},
		"BadDigest":   {"and sometimes nonsense", func(w http.ResponseWriter) { w.Header().Set("Docker-Content-Digest", "md5:1") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := small(t)
			push(t, u.host+"/b:v1", img)
			u.alter(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead {
					tc.head(w)
				}
				return r.Method == http.MethodHead
			})
			if resolved, _, err := pull(t, options(u.host+"/b:v1")); err != nil || resolved.Digest != digestOf(t, img) {
				t.Errorf("%s: %v, %v", tc.reason, resolved, err)
			}
		})
	}
}

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
		"NoType":       {"nobody knows", static.NewLayer(content, "x"), fetch.InvalidContent},
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
	changed[9] ^= 1 // the operating system in the gzip header: nobody but the digest notices
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

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

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

func TestParseDocument(t *testing.T) {
	oci, index := string(types.OCIManifestSchema1), string(types.OCIImageIndex)
	cases := map[string]struct {
		reason, body, contentType string
		index, ok                 bool
	}{
		"Stated":      {"the document's word", `{"mediaType":"` + oci + `"}`, "text/plain", false, true},
		"Header":      {"the server's word where there is none", `{"layers":[]}`, oci + "; charset=utf-8", false, true},
		"Index":       {"an index", `{"mediaType":"` + index + `"}`, "", true, true},
		"Disagree":    {"the digest covers the document only", `{"mediaType":"` + index + `"}`, oci, true, true},
		"Both":        {"read differently by different tools", `{"mediaType":"` + oci + `","layers":[{}],"manifests":[{}]}`, oci, false, false},
		"Confused":    {"an index that a server calls an image", `{"manifests":[{"digest":"sha256:` + strings.Repeat("a", 64) + `"}]}`, oci, false, false},
		"Schema1":     {"too old to be verified", `{"schemaVersion":1}`, string(types.DockerManifestSchema1Signed), false, false},
		"HTML":        {"a login page", `<html>`, "text/html", false, false},
		"Untyped":     {"nobody says what it is", `{}`, "", false, false},
		"BadDigest":   {"no digest", `{"mediaType":"` + oci + `","layers":[{"digest":"x"}]}`, "", false, false},
		"WrongLayers": {"no list", `{"mediaType":"` + oci + `","layers":7}`, "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := parseDocument([]byte(tc.body), tc.contentType)
			if (err == nil) != tc.ok || err == nil && d.isIndex() != tc.index {
				t.Errorf("%s: %+v, %v", tc.reason, d, err)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	child := func(what, platform string) mutate.IndexAddendum {
		add := mutate.IndexAddendum{Add: imageOf(t, layer(t, "a", what))}
		if platform != "" {
			parsed, err := v1.ParsePlatform(platform)
			if err != nil {
				t.Fatal(err)
			}
			add.Platform = parsed
		}
		return add
	}
	attestation := child("attestation", "unknown/unknown")
	attestation.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	cases := map[string]struct {
		reason   string
		children []mutate.IndexAddendum
		platform string
		want     string
		text     string
	}{
		"Default":      {"linux/amd64", []mutate.IndexAddendum{child("arm", "linux/arm64"), child("amd", "linux/amd64")}, "", "amd", ""},
		"Stated":       {"as asked", []mutate.IndexAddendum{child("arm", "linux/arm64/v8"), child("amd", "linux/amd64")}, "linux/arm64", "arm", ""},
		"Variant":      {"as asked", []mutate.IndexAddendum{child("6", "linux/arm/v6"), child("7", "linux/arm/v7")}, "linux/arm/v7", "7", ""},
		"OnlyOne":      {"a bundle built on another machine", []mutate.IndexAddendum{attestation, child("arm", "linux/arm64")}, "", "arm", ""},
		"NoPlatform":   {"the only one, and it does not say", []mutate.IndexAddendum{child("x", "")}, "linux/s390x", "x", ""},
		"StatedOther":  {"asked for another one", []mutate.IndexAddendum{child("arm", "linux/arm64")}, "linux/amd64", "", "no image for linux/amd64: found linux/arm64"},
		"Several":      {"none of them fits", []mutate.IndexAddendum{child("arm", "linux/arm64"), child("z", "linux/s390x"), child("x", "")}, "", "", "found an image without a platform, linux/arm64, linux/s390x"},
		"Attestations": {"nothing but statements", []mutate.IndexAddendum{attestation}, "", "", "found no image at all"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := small(t)
			index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), tc.children...)
			push(t, u.host+"/b:v1", index)
			o := options(u.host + "/b:v1")
			o.Platform = tc.platform
			resolved, files, err := pull(t, o)
			if tc.want == "" {
				if fetch.ReasonOf(err) != fetch.InvalidContent || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err != nil || files["a"] != tc.want || resolved.Digest != digestOf(t, index) {
				t.Errorf("%s: %v %v %v", tc.reason, resolved, files, err)
			}
		})
	}
}

func TestIndexInIndex(t *testing.T) {
	u := small(t)
	inner := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: imageOf(t, layer(t, "a", "1"))})
	outer := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: inner, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	push(t, u.host+"/b:v1", inner)
	raw, err := outer.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	push(t, u.host+"/b:v2", static_(raw))
	_, _, err = pull(t, options(u.host+"/b:v2"))
	if fetch.ReasonOf(err) != fetch.InvalidContent || !strings.Contains(err.Error(), "another index") {
		t.Errorf("got %v", err)
	}
}

// static_ is an index as it stands.
type static_ []byte

func (s static_) RawManifest() ([]byte, error)        { return s, nil }
func (s static_) MediaType() (types.MediaType, error) { return types.OCIImageIndex, nil }

func TestFailuresAreDistinct(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	answer := func(code int, header, value, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	code := func(code string) string {
		data, err := json.Marshal(map[string]any{"errors": []any{map[string]string{"code": code, "message": "CANARY"}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	cases := map[string]struct {
		ref    string
		change func(http.ResponseWriter, *http.Request) bool
		want   fetch.Reason
		text   string
	}{
		"NoTag":        {u.host + "/b:v2", nil, fetch.NotFound, "image " + u.host + "/b:v2: not found (404 MANIFEST_UNKNOWN): check the tag, or that the repository is public"},
		"NoRepository": {u.host + "/c:v1", nil, fetch.NotFound, "not found (404 NAME_UNKNOWN): check the tag"},
		"NoBlob":       {u.host + "/b:v1", onlyBlobs(answer(404, "", "", code("BLOB_UNKNOWN"))), fetch.NotFound, "layer 1 of 1: not found (404 BLOB_UNKNOWN)"},
		"Unauthorized": {u.host + "/b:v1", answer(401, "", "", code("UNAUTHORIZED")), fetch.Unauthorized, "access denied (401 UNAUTHORIZED): check the name, or that the repository is public"},
		"Basic":        {u.host + "/b:v1", answer(401, "WWW-Authenticate", `Basic realm="x"`, code("UNAUTHORIZED")), fetch.Unauthorized, "access denied (401"},
		"Forbidden":    {u.host + "/b:v1", answer(403, "", "", code("DENIED")), fetch.Unauthorized, "access denied (403 DENIED)"},
		"OddCode":      {u.host + "/b:v1", answer(403, "", "", code("<script>\n")), fetch.Unauthorized, "access denied (403 Forbidden)"},
		"RateLimited":  {u.host + "/b:v1", answer(429, "Retry-After", "30", code("TOOMANYREQUESTS")), fetch.RateLimited, "fewer requests (429"},
		"Broken":       {u.host + "/b:v1", answer(500, "", "", "oops"), fetch.Unreachable, "the server failed (500 Internal Server Error)"},
		"Closed":       {"127.0.0.1:1" + "/b:v1", nil, fetch.Unreachable, "connection refused"},
		"LoginPage":    {u.host + "/b:v1", answer(200, "Content-Type", "text/html", "<html>"), fetch.DigestMismatch, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u.alter(tc.change)
			_, _, err := pull(t, options(tc.ref))
			if fetch.ReasonOf(err) != tc.want && !(name == "LoginPage" && fetch.ReasonOf(err) == fetch.InvalidContent) {
				t.Fatalf("got %v: %v", fetch.ReasonOf(err), err)
			}
			if !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func onlyBlobs(change func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/blobs/") && change(w, r)
	}
}

func TestM1References(t *testing.T) {
	cases := map[string]struct {
		reason, ref string
		ok          bool
	}{
		"Tag":       {"the usual form", "quay.io/org/bundle:v1.2.3", true},
		"Digest":    {"the pinned form", "quay.io/org/bundle@sha256:" + strings.Repeat("a", 64), true},
		"Both":      {"as renovate writes it", "quay.io/org/bundle:v1@sha256:" + strings.Repeat("a", 64), true},
		"Port":      {"a registry in the cluster", "registry.svc:5000/bundle:v1", true},
		"Scheme":    {"not part of a reference", "https://quay.io/org/bundle:v1", false},
		"OCIScheme": {"not part of a reference", "oci://quay.io/org/bundle:v1", false},
		"Empty":     {"nothing", "", false},
		"Upper":     {"repositories are lower case", "quay.io/Org/bundle:v1", false},
		"Parent":    {"would leave the API's path", "quay.io/../../x:v1", false},
		"Query":     {"would change the request", "quay.io/org/bundle:v1?x=y", false},
		"Userinfo":  {"would send credentials", "user:pass@quay.io/org/bundle:v1", false},
		"Newline":   {"would forge a request", "quay.io/org/bundle:v1\n", false},
		"SHA1":      {"broken", "quay.io/org/bundle@sha1:" + strings.Repeat("a", 40), false},
		"Long":      {"longer than any", "quay.io/" + strings.Repeat("a/", 500) + "b:v1", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Ref: tc.ref, Client: client()})
			if (err == nil) != tc.ok || err != nil && fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	for _, bad := range []string{"linux", "linux/", "/amd64", "linux/amd64/v1/x", "Linux/amd64", "linux/amd64\n", "a:b"} {
		if _, err := New(Options{Ref: "a/b:c", Platform: bad, Client: client()}); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("platform %q: %v", bad, err)
		}
	}
}

func FuzzImageReference(f *testing.F) {
	f.Add("quay.io/org/bundle:v1", "linux/amd64")
	f.Add("localhost:5000/a@sha256:"+strings.Repeat("0", 64), "")
	f.Add("../..//x?y#z@w:v", "linux/arm/v7")
	shared := client()
	f.Fuzz(func(t *testing.T, ref, platform string) {
		fetcher, err := New(Options{Ref: ref, Platform: platform, Client: shared})
		if err != nil {
			return
		}
		host := fetcher.ref.Context().RegistryStr()
		fetcher.registry.client = &http.Client{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			want := "/v2/" + fetcher.ref.Context().RepositoryStr() + "/manifests/" + fetcher.ref.Identifier()
			if r.URL.Scheme != "https" || r.URL.Host != host || r.URL.Path != want || r.URL.User != nil ||
				r.URL.RawQuery != "" || strings.Contains(r.URL.Path, "..") && strings.Contains(r.URL.Path, "/../") {
				t.Errorf("%q asks %s", ref, r.URL)
			}
			return nil, io.ErrUnexpectedEOF
		})}
		_, _ = fetcher.Resolve(context.Background())
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"platform":{"os":"linux"}}]}`))
	f.Add([]byte(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[{"size":1,"urls":["x"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseDocument(data, "")
		if err != nil {
			return
		}
		if _, err := (platform{}).choose(d.Manifests); err != nil && len(err.Error()) > 16<<10 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
		_ = checkLayers(d.Layers, fetch.DefaultLimits())
	})
}
