// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// fluxServer stores artifacts as Flux's controllers do: below <kind>/<namespace>/<name>.
type fluxServer struct {
	*httptest.Server
	files sync.Map
}

func newFluxServer() *fluxServer {
	s := &fluxServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := s.files.Load(r.URL.Path)
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content.([]byte)) //nolint:forcetypeassert // nothing else is stored
	}))
	return s
}

// store puts a tree at a path, and returns the artifact.
func (s *fluxServer) store(t *testing.T, path, revision string, files fs.FS) *meta.Artifact {
	t.Helper()
	archive, err := upstream.Tar(files)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(archive); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.files.Store("/"+path, packed.Bytes())
	return &meta.Artifact{
		URL: s.URL + "/" + path, Path: path, Revision: revision, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(packed.Bytes())), LastUpdateTime: metav1.Now(),
	}
}

func settings(value string) fstest.MapFS {
	return fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {value: " + value + "}\n")}}
}

// fluxObjects are one of each kind, with what sets their artifact.
func fluxObjects(namespace string) map[string]struct {
	object client.Object
	set    func(*meta.Artifact)
} {
	at := metav1.ObjectMeta{Namespace: namespace, Name: "app"}
	interval := metav1.Duration{Duration: time.Hour}
	git := &sourcev1.GitRepository{ObjectMeta: at, Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.org/app", Interval: interval}}
	oci := &sourcev1.OCIRepository{ObjectMeta: at, Spec: sourcev1.OCIRepositorySpec{URL: "oci://registry.example.org/app", Interval: interval}}
	bucket := &sourcev1.Bucket{ObjectMeta: at, Spec: sourcev1.BucketSpec{BucketName: "app", Endpoint: "s3.example.org", Interval: interval}}
	external := &sourcev1.ExternalArtifact{ObjectMeta: at}
	return map[string]struct {
		object client.Object
		set    func(*meta.Artifact)
	}{
		sourcev1.GitRepositoryKind:    {git, func(a *meta.Artifact) { git.Status.Artifact = a }},
		sourcev1.OCIRepositoryKind:    {oci, func(a *meta.Artifact) { oci.Status.Artifact = a }},
		sourcev1.BucketKind:           {bucket, func(a *meta.Artifact) { bucket.Status.Artifact = a }},
		sourcev1.ExternalArtifactKind: {external, func(a *meta.Artifact) { external.Status.Artifact = a }},
	}
}

// TestFluxSources: a deployment waits for a source of Flux, installs what it stores, follows it, and goes on when it is gone.
func TestFluxSources(t *testing.T) {
	r := newRig(t)
	for kind := range fluxObjects("") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			source := fluxObjects(namespace)[kind]
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				d.Spec.SourceRef = &v1alpha1.SourceReference{APIVersion: sourcev1.GroupVersion.String(), Kind: kind, Name: "app"}
				d.Spec.Interval = v1alpha1.Duration{Duration: time.Hour}
			})
			missing := r.unready(t, key, v1alpha1.ReasonSourceNotFound)
			if message := conditions.GetMessage(missing, meta.ReadyCondition); !strings.Contains(message, strings.ToLower(kind)+" "+namespace+"/app does not exist") {
				t.Errorf("the message is %q", message)
			}
			r.create(t, source.object)
			path := strings.ToLower(kind) + "/" + namespace + "/app/"
			publish := func(file, revision, value string) {
				t.Helper()
				source.set(r.flux.store(t, path+file, revision, settings(value)))
				if err := r.admin.Status().Update(t.Context(), source.object); err != nil {
					t.Fatal(err)
				}
			}
			publish("1.tar.gz", "main@sha1:1", "one")
			if d := r.ready(t, key, "main@sha1:1"); d.Status.Applied.OriginRevision != "main@sha1:1" || d.Status.History[0].OriginRevision != "main@sha1:1" {
				t.Errorf("the origin revision is %q", d.Status.Applied.OriginRevision)
			}
			r.holds(t, namespace, "settings", "one")
			publish("2.tar.gz", "main@sha1:2", "two")
			r.ready(t, key, "main@sha1:2")
			r.holds(t, namespace, "settings", "two")

			source.set(&meta.Artifact{URL: "http://attacker.example.org/" + path + "3.tar.gz", Path: "x", Revision: "main@sha1:3",
				Digest: "sha256:" + strings.Repeat("0", 64), LastUpdateTime: metav1.Now()})
			if err := r.admin.Status().Update(t.Context(), source.object); err != nil {
				t.Fatal(err)
			}
			refused := r.unready(t, key, v1alpha1.ReasonArtifactFailed)
			if message := conditions.GetMessage(refused, meta.ReadyCondition); !strings.Contains(message, "--flux-artifact-servers") {
				t.Errorf("an artifact elsewhere: %q", message)
			}
			pushed := r.flux.store(t, path+"4.tar.gz", "main@sha1:4", settings("four"))
			pushed.Metadata = map[string]string{v1alpha1.OriginRevisionMetadata: "v1.2.3@sha1:5\n\u202e" + strings.Repeat("x", 1000)}
			source.set(pushed)
			if err := r.admin.Status().Update(t.Context(), source.object); err != nil {
				t.Fatal(err)
			}
			d := r.ready(t, key, "main@sha1:4")
			if origin := d.Status.Applied.OriginRevision; !strings.HasPrefix(origin, `v1.2.3@sha1:5\n\u202exxx`) || len(origin) > 512 || d.Status.Applied.Version != "v1.2.3" {
				t.Errorf("the origin revision is %q, the version %q", origin, d.Status.Applied.Version)
			}
			r.delete(t, source.object)
			r.unready(t, key, v1alpha1.ReasonSourceNotFound)
			r.holds(t, namespace, "settings", "four")
		})
	}
}

// TestFluxReferences: kind and version belong together.
func TestFluxReferences(t *testing.T) {
	r := newRig(t)
	namespace := r.namespace(t)
	for name, ref := range map[string]v1alpha1.SourceReference{
		"version":  {Kind: sourcev1.GitRepositoryKind, Name: "app"},
		"kind":     {APIVersion: sourcev1.GroupVersion.String(), Kind: v1alpha1.BundleSourceKind, Name: "app"},
		"unknown":  {APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.HelmRepositoryKind, Name: "app"},
		"old":      {APIVersion: "source.toolkit.fluxcd.io/v1beta2", Kind: sourcev1.BucketKind, Name: "app"},
		"no group": {APIVersion: "v1", Kind: "ConfigMap", Name: "app"},
	} {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"}}
		d.Spec.ServiceAccountName, d.Spec.SourceRef = "installer", &ref
		if err := r.admin.Create(t.Context(), d); err == nil {
			t.Errorf("%s: %+v was taken", name, ref)
		}
	}
}
