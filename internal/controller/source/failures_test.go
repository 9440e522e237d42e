// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestBadSourcesAreRefusedByName(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/page":
			_, _ = w.Write([]byte("<html>no archive here</html>"))
		case "/denied":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(hostile.Close)
	good := newArchive(t, pack(t, files("a.yaml", "one")))
	archive := func(url string) []v1alpha1.Source { return []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: url}}} }
	cases := map[string]struct {
		reason  string
		sources []v1alpha1.Source
		want    string
		stalled bool
		says    string
	}{
		"host":        {"a host that does not exist", archive("https://nowhere.invalid/b.tar"), v1alpha1.ReasonUnreachable, false, "nowhere.invalid"},
		"port":        {"no server listens", archive("http://127.0.0.1:1/b.tar"), v1alpha1.ReasonUnreachable, false, "127.0.0.1:1"},
		"missing":     {"the server does not have it", archive(hostile.URL + "/none"), v1alpha1.ReasonNotFound, false, "404"},
		"denied":      {"the server refuses", archive(hostile.URL + "/denied"), v1alpha1.ReasonUnauthorized, false, "403"},
		"page":        {"an HTML page with status 200", archive(hostile.URL + "/page"), v1alpha1.ReasonInvalidContent, true, ""},
		"digest":      {"the bytes are others than the spec says", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: good.URL, Digest: "sha256:" + strings.Repeat("0", 64)}}}, v1alpha1.ReasonDigestMismatch, true, "sha256:"},
		"image":       {"the registry does not have the tag", image(r.registry.Host() + "/none:v1"), v1alpha1.ReasonNotFound, false, "none:v1"},
		"configmap":   {"the ConfigMap does not exist", []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: "none"}}}, v1alpha1.ReasonNotFound, false, "none"},
		"metadata":    {"a cloud's metadata service is never reached (T14)", archive("https://169.254.169.254/b.tar"), v1alpha1.ReasonRefused, true, "169.254.169.254"},
		"itself":      {"nor is the artifact server (T14)", archive("http://" + r.address + "/b.tar"), v1alpha1.ReasonRefused, true, "Satchel's artifact server"},
		"api":         {"nor is the API server (T14)", archive(r.cp.RESTConfig().Host + "/b.tar"), v1alpha1.ReasonRefused, true, "the Kubernetes API server"},
		"api-name":    {"by no name (T14)", archive("https://kubernetes.default.svc/b.tar"), v1alpha1.ReasonRefused, true, "the Kubernetes API server"},
		"api-image":   {"by no kind of source (T14)", []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "kubernetes.default/a:v1"}}}, v1alpha1.ReasonRefused, true, "the Kubernetes API server"},
		"plain":       {"plain HTTP needs the administrator's leave (T15)", archive("http://example.org/b.tar"), v1alpha1.ReasonRefused, true, "--insecure-hosts"},
		"plain-image": {"whatever the source says (T15)", []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "example.org/a:v1", Insecure: true}}}, v1alpha1.ReasonRefused, true, "--insecure-hosts"},
		"plain-git":   {"for no kind of source (T15)", []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: "http://example.org/r.git"}}}, v1alpha1.ReasonRefused, true, "--insecure-hosts"},
		"plain-dot":   {"nor for a listed host in another spelling (T15)", archive("http://127.0.0.1./b.tar"), v1alpha1.ReasonRefused, true, "--insecure-hosts"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := r.unready(t, r.create(t, namespace, name, tc.sources, nil), tc.want)
			if message := conditions.GetMessage(s, meta.ReadyCondition); !strings.Contains(message, tc.says) {
				t.Errorf("%s: the message does not name %q: %s", tc.reason, tc.says, message)
			}
			if stalled := conditions.IsTrue(s, meta.StalledCondition); stalled != tc.stalled {
				t.Errorf("%s: stalled %v, want %v", tc.reason, stalled, tc.stalled)
			}
			if !conditions.IsTrue(s, v1alpha1.FetchFailedCondition) || s.Status.Artifact != nil {
				t.Errorf("%s: conditions or artifact are wrong:\n%s", tc.reason, describe(s))
			}
		})
	}
}

func TestTheLastArtifactStaysWhileTheUpstreamFails(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newArchive(t, pack(t, files("a.yaml", "one")))
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL}}}, every(time.Second))
	good := r.ready(t, key)
	broken := []byte("not a tar at all")
	server.content.Store(&broken)
	failed := r.unready(t, key, v1alpha1.ReasonInvalidContent)
	if failed.Status.Artifact == nil || failed.Status.Artifact.Digest != good.Status.Artifact.Digest {
		t.Fatalf("the last good artifact is not advertised any more:\n%s", describe(failed))
	}
	download(t, failed.Status.Artifact)
	fixed := pack(t, files("a.yaml", "three"))
	server.content.Store(&fixed)
	r.ready(t, key)
}

// F9: a damaged file is detected at the next reconcile and fetched again.
func TestF9DamagedArtifactIsFetchedAgain(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	if _, err := r.registry.Push(t.Context(), "damaged:v1", files("a", "one")); err != nil {
		t.Fatal(err)
	}
	key := r.create(t, namespace, "damaged", image(r.registry.Host()+"/damaged:v1"), nil)
	s := r.ready(t, key)
	stored := filepath.Join(r.storage, s.Status.Artifact.Path)
	for name, damage := range map[string]func() error{
		"deleted":   func() error { return os.Remove(stored) },
		"truncated": func() error { return os.Truncate(stored, 10) },
		"emptied":   func() error { return os.Truncate(stored, 0) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		after := r.refresh(t, key)
		if !conditions.IsTrue(after, meta.ReadyCondition) {
			t.Errorf("%s: not ready again:\n%s", name, describe(after))
		}
		download(t, after.Status.Artifact)
	}
}

// F11: an artifact that is lost while the upstream is down is not advertised.
func TestF11LostArtifactIsNotAdvertised(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	server := newArchive(t, pack(t, files("a.yaml", "one")))
	key := r.create(t, namespace, "lost", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL}}}, nil)
	s := r.ready(t, key)
	server.Close()
	if err := os.Remove(filepath.Join(r.storage, s.Status.Artifact.Path)); err != nil {
		t.Fatal(err)
	}
	after := r.refresh(t, key)
	if after.Status.Artifact != nil || conditions.GetReason(after, v1alpha1.ArtifactInStorageCondition) != v1alpha1.ReasonArtifactLost {
		t.Errorf("a lost artifact is still advertised:\n%s", describe(after))
	}
}

// TestImmutableArchiveIsNotReplaced: a lost artifact is fetched again unchanged, or not
// at all.
func TestImmutableArchiveIsNotReplaced(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	first := pack(t, files("a.yaml", "one"))
	server := newArchive(t, first)
	key := r.create(t, namespace, "archive", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}},
		func(s *v1alpha1.BundleSource) { s.Spec.Immutable = true })
	before := r.ready(t, key)
	second := pack(t, files("a.yaml", "two"))
	server.content.Store(&second)
	if err := os.RemoveAll(filepath.Join(r.storage, "bundlesource", namespace)); err != nil {
		t.Fatal(err)
	}
	r.refresh(t, key)
	refused := r.unready(t, key, v1alpha1.ReasonDigestMismatch)
	if message := conditions.GetMessage(refused, meta.ReadyCondition); refused.Status.Artifact != nil || !conditions.IsTrue(refused, meta.StalledCondition) ||
		!strings.Contains(message, "the source is immutable") {
		t.Errorf("after the archive changed:\n%s", describe(refused))
	}
	server.content.Store(&first)
	if after := r.refresh(t, key); after.Status.Artifact == nil || after.Status.Artifact.Revision != before.Status.Artifact.Revision {
		t.Errorf("after the archive is as it was:\n%s", describe(after))
	}
}

func TestArtifactsGoWithTheirSource(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	if _, err := r.registry.Push(t.Context(), "going:v1", files("a", "one")); err != nil {
		t.Fatal(err)
	}
	key := r.create(t, namespace, "going", image(r.registry.Host()+"/going:v1"), nil)
	s := r.ready(t, key)
	if err := r.admin.Delete(t.Context(), &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 30*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		code, _ := get(t, s.Status.Artifact.URL)
		return r.gone(ctx, key) && code == http.StatusNotFound, nil
	})
	if err != nil {
		t.Errorf("the artifact of a deleted source is still served")
	}
}

// Decision 8: the applied artifact of a deployment is not collected.
func TestCollectionSparesWhatDeploymentsUse(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	push := func(content string) {
		if _, err := r.registry.Push(t.Context(), "used:v1", files("a", content)); err != nil {
			t.Fatal(err)
		}
	}
	push("one")
	key := r.create(t, namespace, "used", image(r.registry.Host()+"/used:v1"), nil)
	used := r.ready(t, key)
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "user"}}
	d.Spec.ServiceAccountName, d.Spec.SourceRef = "none", &v1alpha1.SourceReference{Kind: "BundleSource", Name: "used"}
	if err := r.admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	d.Status.Applied.Revision = used.Status.Artifact.Revision
	if err := r.admin.Status().Patch(t.Context(), d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	push("two")
	unused := r.refresh(t, key)
	push("three")
	r.refresh(t, key)
	if code, _ := get(t, used.Status.Artifact.URL); code != http.StatusOK {
		t.Errorf("the artifact that a deployment runs answers %d", code)
	}
	if code, _ := get(t, unused.Status.Artifact.URL); code != http.StatusNotFound {
		t.Errorf("an unused superseded artifact answers %d, want 404", code)
	}
}

func TestSuspendKeepsWhatIsPublished(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	first, err := r.registry.Push(t.Context(), "paused:v1", files("a", "one"))
	if err != nil {
		t.Fatal(err)
	}
	key := r.create(t, namespace, "paused", image(r.registry.Host()+"/paused:v1"), nil)
	r.ready(t, key)
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true })
	if _, err := r.registry.Push(t.Context(), "paused:v1", files("a", "two")); err != nil {
		t.Fatal(err)
	}
	if s := r.refresh(t, key); s.Status.Resolved[0].Digest != first || !conditions.IsTrue(s, meta.ReadyCondition) {
		t.Errorf("a suspended source moved, or is not ready any more:\n%s", describe(s))
	}
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = false })
	r.until(t, key, "the tag is followed again", func(s *v1alpha1.BundleSource) bool { return s.Status.Resolved[0].Digest != first })
}
