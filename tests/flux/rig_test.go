// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/kustomizer"
)

// cluster is a control plane with Satchel's deployment controller and Flux's kustomize-controller.
type cluster struct {
	t         *testing.T
	admin     client.Client
	published *installation.Deployments
	namespace string
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	if os.Getenv("SATCHEL_FULL") == "" {
		t.Skip("building Flux's controller takes minutes and is for the release suite: SATCHEL_FULL=1")
	}
	ctrl.SetLogger(logr.Discard())
	flux, err := kustomizer.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	if err := installation.Install(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if err := flux.InstallKinds(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	c := cluster{t: t, namespace: "platform"}
	if c.admin, err = installation.Client(cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	if c.published, err = installation.StartDeployments(t.Context(), cp.RESTConfig(), t.TempDir(), 4); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{c.namespace, kustomizer.Namespace} {
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	startFlux(t, cp, flux)
	return c
}

// startFlux runs kustomize-controller until the test ends. Its log is printed where the test failed.
func startFlux(t *testing.T, cp *controlplane.ControlPlane, flux kustomizer.Controller) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "kustomize-controller.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := flux.Start(t.Context(), cp.KubeconfigPath(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // its context has ended
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", text[max(0, len(text)-20_000):])
		}
	})
}

func (c cluster) create(object client.Object) {
	c.t.Helper()
	if err := c.admin.Create(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// publish makes files the artifact of a BundleSource.
func (c cluster) publish(name string, files map[string]string) meta.Artifact {
	c.t.Helper()
	tree := fstest.MapFS{}
	for file, content := range files {
		tree[file] = &fstest.MapFile{Data: []byte(content)}
	}
	artifact, err := c.published.Publish(c.t.Context(), c.namespace, name, "v1", tree)
	if err != nil {
		c.t.Fatal(err)
	}
	return artifact
}

// external shows an artifact to Flux, as the source controller does.
func (c cluster) external(name string, artifact meta.Artifact) {
	c.t.Helper()
	shown := &sourcev1.ExternalArtifact{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	shown.Spec.SourceRef = &meta.NamespacedObjectKindReference{APIVersion: "satchel.dev/v1alpha1", Kind: "BundleSource", Name: name}
	c.create(shown)
	shown.Status.Artifact = &artifact
	shown.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, LastTransitionTime: metav1.Now()}}
	if err := c.admin.Status().Update(c.t.Context(), shown); err != nil {
		c.t.Fatal(err)
	}
}

// get reads an object; false if it does not exist.
func (c cluster) get(apiVersion, kind, name string) (*unstructured.Unstructured, bool) {
	c.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	err := c.admin.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	return object, err == nil
}

// eventually waits until a condition is met.
func (c cluster) eventually(what string, met func() bool) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(c.t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

// ready is the status and the reason of the condition Ready.
func (c cluster) ready(apiVersion, kind, name string) string {
	object, _ := c.get(apiVersion, kind, name)
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, _ := condition.(map[string]any); fields["type"] == meta.ReadyCondition {
			return fmt.Sprintf("%v %v: %v", fields["status"], fields["reason"], fields["message"])
		}
	}
	return ""
}
