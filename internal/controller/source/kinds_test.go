// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// names lists the files of a tar.gz.
func names(t *testing.T, archive []byte) []string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			found = append(found, header.Name)
		}
	}
}

func files(content ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := 0; i < len(content); i += 2 {
		tree[content[i]] = &fstest.MapFile{Data: []byte(content[i+1])}
	}
	return tree
}

func image(ref string) []v1alpha1.Source {
	return []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: ref, Insecure: true}}}
}

func TestImage(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	first, err := r.registry.Push(t.Context(), "bundle:v1", files("manifests/a.yaml", "one"), files("metadata/b.yaml", "one"))
	if err != nil {
		t.Fatal(err)
	}
	key := r.create(t, namespace, "image", image(r.registry.Host()+"/bundle:v1"), every(time.Second))
	s := r.ready(t, key)
	if diff := cmp.Diff([]string{"manifests/a.yaml", "metadata/b.yaml"}, names(t, download(t, s.Status.Artifact))); diff != "" {
		t.Errorf("files of the artifact (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(s.Status.Artifact.Revision, "v1@sha256:") || s.Status.Resolved[0].Digest != first {
		t.Errorf("revision %s of %s, want the tag and what it resolved to", s.Status.Artifact.Revision, s.Status.Resolved[0].Digest)
	}
	second, err := r.registry.Push(t.Context(), "bundle:v1", files("manifests/a.yaml", "two"))
	if err != nil {
		t.Fatal(err)
	}
	moved := r.until(t, key, "the moved tag is followed", func(s *v1alpha1.BundleSource) bool { return s.Status.Resolved[0].Digest == second })
	if diff := cmp.Diff([]string{"manifests/a.yaml"}, names(t, download(t, moved.Status.Artifact))); diff != "" {
		t.Errorf("files after the tag moved (-want +got):\n%s", diff)
	}

	pinned := r.create(t, namespace, "pinned", image(r.registry.Host()+"/bundle@"+first), nil)
	if s := r.ready(t, pinned); !strings.HasPrefix(s.Status.Artifact.Revision, "sha256:") || s.Status.Resolved[0].Digest != first {
		t.Errorf("revision %s of %s, want the first image by digest", s.Status.Artifact.Revision, s.Status.Resolved[0].Digest)
	}
}

func TestImmutableKeepsWhatItResolvedFirst(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	first, err := r.registry.Push(t.Context(), "frozen:latest", files("a", "one"))
	if err != nil {
		t.Fatal(err)
	}
	key := r.create(t, namespace, "frozen", image(r.registry.Host()+"/frozen"), func(s *v1alpha1.BundleSource) { s.Spec.Immutable = true })
	before := r.ready(t, key)
	if _, err := r.registry.Push(t.Context(), "frozen:latest", files("a", "two")); err != nil {
		t.Fatal(err)
	}
	after := r.refresh(t, key)
	if after.Status.Resolved[0].Digest != first || after.Status.Artifact.Digest != before.Status.Artifact.Digest {
		t.Errorf("an immutable source moved from %s to %s", first, after.Status.Resolved[0].Digest)
	}
}

func TestGit(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	commit := func(content string) string {
		hash, err := server.Commit(content, files("deploy/a.yaml", content, "README", content))
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	first := commit("one")
	if err := server.Tag("v1.2.0", first); err != nil {
		t.Fatal(err)
	}
	second := commit("two")
	if err := server.Tag("v2.0.0", second); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason, revision, digest string
		ref                      *v1alpha1.GitRef
	}{
		"default": {"the head of the default branch", "main@", second, nil},
		"branch":  {"the head of a branch", "main@", second, &v1alpha1.GitRef{Branch: "main"}},
		"tag":     {"the commit of a tag", "v1.2.0@", first, &v1alpha1.GitRef{Tag: "v1.2.0"}},
		"semver":  {"the newest tag in the range", "v1.2.0@", first, &v1alpha1.GitRef{Version: "1.x"}},
		"commit":  {"a pinned commit that is no head", "sha256:", first, &v1alpha1.GitRef{Commit: first}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key := r.create(t, namespace, name, []v1alpha1.Source{{Git: &v1alpha1.GitSource{
				URL: server.URL(), Ref: tc.ref, Path: "deploy",
			}}}, nil)
			s := r.ready(t, key)
			if !strings.HasPrefix(s.Status.Artifact.Revision, tc.revision) || s.Status.Resolved[0].Digest != "sha1:"+tc.digest {
				t.Errorf("%s: revision %s of %s", tc.reason, s.Status.Artifact.Revision, s.Status.Resolved[0].Digest)
			}
			if got := names(t, download(t, s.Status.Artifact)); !slices.Equal(got, []string{"a.yaml"}) {
				t.Errorf("%s: files %v, want those of the folder", tc.reason, got)
			}
		})
	}
}

// archive is a web server with one archive, which counts requests by method.
type archive struct {
	*httptest.Server
	content     atomic.Pointer[[]byte]
	heads, gets atomic.Int64
}

func newArchive(t *testing.T, content []byte) *archive {
	t.Helper()
	a := &archive{}
	a.content.Store(&content)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body := *a.content.Load()
		if request.Method == http.MethodHead {
			a.heads.Add(1)
		} else {
			a.gets.Add(1)
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
		http.ServeContent(w, request, "bundle.tar", time.Time{}, bytes.NewReader(body))
	}))
	t.Cleanup(a.Close)
	return a
}

func pack(t *testing.T, tree fstest.MapFS) []byte {
	t.Helper()
	content, err := upstream.Tar(tree)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestHTTPIsDownloadedOnlyWhenItMoved(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newArchive(t, pack(t, files("a.yaml", "one")))
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}, nil)
	first := r.ready(t, key)
	r.refresh(t, key)
	if got := server.gets.Load(); got != 1 {
		t.Errorf("%d downloads of an archive that did not move, want 1", got)
	}
	second := pack(t, files("a.yaml", "two"))
	server.content.Store(&second)
	moved := r.refresh(t, key)
	if moved.Status.Artifact.Revision == first.Status.Artifact.Revision || server.gets.Load() != 2 {
		t.Errorf("%d downloads, revision %s: the moved archive was not followed", server.gets.Load(), moved.Status.Artifact.Revision)
	}
}

func TestPinnedArchiveIsNotPolled(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	content := pack(t, files("a.yaml", "one"))
	server := newArchive(t, content)
	source := &v1alpha1.HTTPSource{URL: server.URL + "/b.tar", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(content))}
	key := r.create(t, namespace, "pinned", []v1alpha1.Source{{HTTP: source}}, nil)
	r.ready(t, key)
	r.refresh(t, key)
	if heads, gets := server.heads.Load(), server.gets.Load(); heads != 0 || gets != 1 {
		t.Errorf("%d HEAD and %d GET requests for a pinned archive, want one download", heads, gets)
	}
}

func TestConfigMapsAreComposed(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	for _, name := range []string{"one", "two"} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{name + ".yaml": name}}
		if err := r.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	key := r.create(t, namespace, "composed", []v1alpha1.Source{
		{Destination: "a", ConfigMap: &v1alpha1.LocalReference{Name: "one"}},
		{Destination: "b/c", ConfigMap: &v1alpha1.LocalReference{Name: "two"}},
	}, nil)
	s := r.ready(t, key)
	if diff := cmp.Diff([]string{"a/one.yaml", "b/c/two.yaml"}, names(t, download(t, s.Status.Artifact))); diff != "" {
		t.Errorf("files of the artifact (-want +got):\n%s", diff)
	}
}
