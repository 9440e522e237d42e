// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// said is what the command line printed, and its exit code.
type said struct {
	out, err string
	code     int
}

// satchel runs the command line in a namespace, as an administrator.
func (r *rig) satchel(t *testing.T, namespace string, args ...string) said {
	t.Helper()
	command := exec.CommandContext(t.Context(), r.File("satchel"), append([]string{"--kubeconfig", r.CP.KubeconfigPath(), "-n", namespace}, args...)...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said{out: out.String(), err: errOut.String(), code: command.ProcessState.ExitCode()}
}

// says checks the exit code and that the output holds the texts.
func (s said) says(t *testing.T, code int, texts ...string) {
	t.Helper()
	if s.code != code {
		t.Errorf("exit %d, want %d", s.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.err, text) {
			t.Errorf("%q is missing", text)
		}
	}
	if t.Failed() {
		t.Fatalf("--- stdout\n%s--- stderr\n%s", s.out, s.err)
	}
}

// holds tells whether a ConfigMap of a bundle exists.
func (r *rig) holds(t *testing.T, namespace, name string) bool {
	t.Helper()
	err := r.Admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// releases publishes contents, one after the other, under one moving name.
type releases struct {
	source  v1alpha1.Source
	publish func(t *testing.T, content fs.FS)
}

func (r *rig) imageReleases() releases {
	return releases{
		source: v1alpha1.Source{Image: &v1alpha1.ImageSource{Reference: r.Registry.Host() + "/rollback:stable", Insecure: true}},
		publish: func(t *testing.T, content fs.FS) {
			t.Helper()
			r.Push(t, "rollback:stable", content)
		},
	}
}

func gitReleases(t *testing.T) releases {
	t.Helper()
	git, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = git.Close() })
	return releases{
		source: v1alpha1.Source{Git: &v1alpha1.GitSource{URL: git.URL()}},
		publish: func(t *testing.T, content fs.FS) {
			t.Helper()
			if _, err := git.Commit("release", content); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// archiveReleases keeps what was published under the digests' own names nowhere: one URL, and its content changes back
// only when the test says so.
func archiveReleases(t *testing.T) (releases, *atomic.Pointer[[]byte]) {
	t.Helper()
	served := new(atomic.Pointer[[]byte])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(*served.Load()) }))
	t.Cleanup(server.Close)
	return releases{
		source: v1alpha1.Source{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/bundle.tar"}},
		publish: func(t *testing.T, content fs.FS) {
			t.Helper()
			packed, err := upstream.Tar(content)
			if err != nil {
				t.Fatal(err)
			}
			served.Store(&packed)
		},
	}, served
}

// bring publishes two releases, and waits until the second one has replaced the first.
func (r *rig) bring(t *testing.T, s releases, namespace, name string) (key client.ObjectKey, former *v1alpha1.BundleDeployment) {
	t.Helper()
	s.publish(t, configMaps(name+"-one", 1))
	key = r.Deploy(t, namespace, name, "", func(d *v1alpha1.BundleDeployment) { d.Spec.Source.Sources = []v1alpha1.Source{s.source} })
	former = r.Ready(t, key)
	s.publish(t, configMaps(name+"-two", 1))
	r.satchel(t, namespace, "reconcile", name, "--with-source").says(t, 0, "Ready")
	r.Until(t, key, "the second release", func(d *v1alpha1.BundleDeployment) bool {
		return isReady(d) && d.Status.Applied.Revision != former.Status.Applied.Revision
	})
	return key, former
}

// TestRollback goes back to the first release and forth again, for each kind of source.
func TestRollback(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	for name, s := range map[string]releases{"image": r.imageReleases(), "git": gitReleases(t), "helm": chartReleases(t)} {
		t.Run(name, func(t *testing.T) {
			key, former := r.bring(t, s, namespace, name)
			before := r.Until(t, key, "history", func(d *v1alpha1.BundleDeployment) bool { return len(d.Status.History) == 2 })
			_, content, _ := strings.Cut(former.Status.Applied.Revision, "@")

			printed := r.satchel(t, namespace, "rollback", name, "--to", "previous", "--dry-run")
			printed.says(t, 0, "kind: BundleDeployment\n", strings.TrimPrefix(before.Status.History[1].Sources[0].Digest, "sha1:"))
			r.satchel(t, namespace, "rollback", name, "--to", "previous").says(t, 0, "pinned to revision ", "To follow the former source again:\n  kubectl patch ", ": Ready, ")
			back := r.Ready(t, key)
			if _, digest, _ := strings.Cut("@"+back.Status.Applied.Revision, "@"); !strings.HasSuffix(digest, content) {
				t.Errorf("the applied revision is %s, not %s", digest, content)
			}
			if !r.holds(t, namespace, name+"-one-00") || r.holds(t, namespace, name+"-two-00") {
				t.Error("the objects are not those of the first release")
			}
			r.satchel(t, namespace, "rollback", name, "--to", "previous").says(t, 0, ": Ready, ")
			if r.holds(t, namespace, name+"-one-00") || !r.holds(t, namespace, name+"-two-00") {
				t.Error("the objects are not those of the second release")
			}
			r.satchel(t, namespace, "rollback", name, "--to", "v77").says(t, 2, `has no revision "v77" in its history`, "Healthy, since ")
		})
	}
}

// TestRollbackOfArchive: the former content of a URL cannot be fetched again, which is said at once; what runs stays.
func TestRollbackOfArchive(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	s, served := archiveReleases(t)
	key, _ := r.bring(t, s, namespace, "archive")
	r.satchel(t, namespace, "rollback", "archive", "--to", "previous").says(t, 1, "the source cannot fetch that revision: DigestMismatch", "the previous one stays applied")
	if !r.holds(t, namespace, "archive-two-00") {
		t.Error("what ran is gone")
	}
	first, err := upstream.Tar(configMaps("archive-one", 1))
	if err != nil {
		t.Fatal(err)
	}
	served.Store(&first)
	r.satchel(t, namespace, "reconcile", "archive", "--retry").says(t, 0)
	r.satchel(t, namespace, "wait", "archive", "--timeout", "60s").says(t, 0)
	r.Until(t, key, "the first release", func(d *v1alpha1.BundleDeployment) bool { return isReady(d) })
	r.Eventually(t, t.Context(), "the objects of the first release", func(context.Context) (bool, string) {
		return r.holds(t, namespace, "archive-one-00"), "not there"
	})
}

// TestRollbackOfSharedSource pins the BundleSource, and says who goes back with it.
func TestRollbackOfSharedSource(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	image := r.Push(t, "shared:stable", configMaps("shared-one", 1))
	source := &v1alpha1.BundleSource{}
	source.Namespace, source.Name = namespace, "shared"
	source.Labels = map[string]string{"argocd.argoproj.io/instance": "apps"}
	source.Spec = v1alpha1.BundleSourceSpec{Interval: v1alpha1.Duration{Duration: time.Second},
		Sources: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: image, Insecure: true}}}}
	if err := r.Admin.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	refers := func(d *v1alpha1.BundleDeployment) {
		d.Spec.Source, d.Spec.SourceRef = nil, &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: "shared"}
	}
	first := r.Ready(t, r.Deploy(t, namespace, "first", "", refers))
	r.Push(t, "shared:stable", configMaps("shared-two", 1))
	r.Until(t, client.ObjectKeyFromObject(first), "the second release", func(d *v1alpha1.BundleDeployment) bool {
		return isReady(d) && d.Status.Applied.Revision != first.Status.Applied.Revision
	})
	other := r.Deploy(t, namespace, "other", "", func(d *v1alpha1.BundleDeployment) { refers(d); d.Spec.Suspend = true })
	r.satchel(t, namespace, "rollback", "first", "--to", "previous").says(t, 0, "BundleSource shared: pinned to revision ", "is also used by others, which are rolled back with it: "+other.Name,
		"comes from Argo CD", "commit what follows", "      reference: "+strings.TrimSuffix(image, ":stable")+":stable@sha256:")
	if !r.holds(t, namespace, "shared-one-00") {
		t.Error("the objects are not those of the first release")
	}
}

// TestSuspendAndResume: what is changed by hand meanwhile stays, and is repaired afterwards.
func TestSuspendAndResume(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	key := r.Deploy(t, namespace, "paused", r.Push(t, "paused:v1", configMaps("paused", 1)), nil)
	r.Ready(t, key)
	r.satchel(t, namespace, "suspend", "paused").says(t, 0, "BundleDeployment paused: suspended\n")
	r.satchel(t, namespace, "wait", "paused").says(t, 0, "Ready, ")
	changed := &corev1.ConfigMap{}
	at := client.ObjectKey{Namespace: namespace, Name: "paused-00"}
	if err := r.Admin.Get(t.Context(), at, changed); err != nil {
		t.Fatal(err)
	}
	changed.Data = map[string]string{"a": "by hand"}
	if err := r.Admin.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	r.satchel(t, namespace, "resume", "paused").says(t, 0, "BundleDeployment paused: resumed\n", "BundleDeployment paused: Ready")
	if err := r.Admin.Get(t.Context(), at, changed); err != nil || changed.Data["a"] != "b" {
		t.Errorf("not repaired when the command ended: %v %v", changed.Data, err)
	}
	r.satchel(t, namespace, "suspend", "source", "paused").says(t, 0, "by spec.source.suspend of BundleDeployment paused")
	r.satchel(t, namespace, "resume", "source", "paused").says(t, 0, "BundleDeployment paused: Ready", "BundleSource paused: Ready")
}

// TestRetryOfRejected gives a revision that was rolled back another chance, which it does not take.
func TestRetryOfRejected(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	state := func(word string) fstest.MapFS {
		return fstest.MapFS{"a.yaml": &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: judged}\ndata: {state: " + word + "}\n")}}
	}
	key := r.Deploy(t, namespace, "judged", r.Push(t, "judged:stable", state("good")), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Remediation = &v1alpha1.RemediationOptions{Strategy: v1alpha1.RemediationRollback}
		d.Spec.Health.Expressions = []v1alpha1.HealthExpression{{APIVersion: "v1", Kind: "ConfigMap", Failed: "data.state == 'bad'", Current: "data.state == 'good'"}}
	})
	r.Ready(t, key)
	r.Push(t, "judged:stable", state("bad"))
	rejected := r.Until(t, key, "rejected", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Rejected.Revision != "" && conditions.IsStalled(d)
	})
	r.satchel(t, namespace, "wait", "judged").says(t, 1, "it is stalled")
	r.satchel(t, namespace, "reconcile", "judged", "--retry").says(t, 1, "was rejected, and is retried", "not Ready, RevisionRejected", "reconcile and --retry")
	again := r.Until(t, key, "rejected again", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Rejected.Revision != "" && conditions.IsStalled(d)
	})
	if len(again.Status.History) != len(rejected.Status.History)+1 {
		t.Errorf("it was not tried again: %+v", again.Status.History)
	}
}

// TestDelete deletes with the controllers: CRDs stay, or are deleted with all of their custom resources.
func TestDelete(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	crd := "widgets." + namespace + ".example.org"
	files := fstest.MapFS{
		"crd.yaml": &fstest.MapFile{Data: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + crd + `}
spec:
  group: ` + namespace + `.example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)},
		"map.yaml": &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: goes}\n")},
		"own.yaml": &fstest.MapFile{Data: []byte("apiVersion: " + namespace + ".example.org/v1\nkind: Widget\nmetadata: {name: own}\n")},
	}
	key := r.Deploy(t, namespace, "operator", r.Push(t, "operator:v1", files), nil)
	r.Ready(t, key)
	free := &unstructured.Unstructured{}
	free.SetAPIVersion(namespace + ".example.org/v1")
	free.SetKind("Widget")
	free.SetNamespace(namespace)
	free.SetName("free")
	if err := r.Admin.Create(t.Context(), free); err != nil {
		t.Fatal(err)
	}
	r.satchel(t, namespace, "delete", "operator", "--dry-run").says(t, 0, "ConfigMap "+namespace+"/goes", "To keep (1 object):\n  CustomResourceDefinition.apiextensions.k8s.io "+crd, "1 resource of "+crd)
	r.satchel(t, namespace, "delete", "operator").says(t, 2, "add --yes")
	r.satchel(t, namespace, "delete", "operator", "--yes").says(t, 0, "BundleDeployment operator: gone\n")
	exists := func(name string) bool {
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
		err := r.Admin.Get(t.Context(), client.ObjectKey{Name: name}, o)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	if !exists(crd) || r.holds(t, namespace, "goes") {
		t.Error("the CRD went, or the ConfigMap stayed")
	}
	r.Ready(t, r.Deploy(t, namespace, "operator", r.Push(t, "operator:v1", files), nil))
	r.satchel(t, namespace, "delete", "operator", "--yes", "--dangerous-delete-crds").says(t, 0, "1 custom resource gone", "BundleDeployment operator: gone\n")
	if exists(crd) {
		t.Error("the CRD stayed")
	}
}
