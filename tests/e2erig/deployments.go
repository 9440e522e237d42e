// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2erig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// Patience bounds waiting for a deployment; it is many times what one needs.
const Patience = 2 * time.Minute

// Namespace is a fresh namespace with a ServiceAccount that has all permissions.
func (r *Rig) Namespace(t *testing.T) string {
	t.Helper()
	namespace := controlplane.NewNamespace(t, r.CP)
	if err := installation.Admin(t.Context(), r.Admin, namespace, "installer"); err != nil {
		t.Fatal(err)
	}
	return namespace
}

// Push stores an image of the given layers and returns its reference.
func (r *Rig) Push(t *testing.T, repositoryAndTag string, layers ...fs.FS) string {
	t.Helper()
	if _, err := r.Registry.Push(t.Context(), repositoryAndTag, layers...); err != nil {
		t.Fatal(err)
	}
	return r.Registry.Host() + "/" + repositoryAndTag
}

// Deploy creates a deployment of an image, and removes it when the test is over.
func (r *Rig) Deploy(t *testing.T, namespace, name, image string, change func(*v1alpha1.BundleDeployment)) client.ObjectKey {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.Source = &v1alpha1.BundleSourceSpec{
		Interval: v1alpha1.Duration{Duration: time.Second},
		Sources:  []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: image, Insecure: true}}},
	}
	if change != nil {
		change(d)
	}
	return r.create(t, d)
}

func (r *Rig) create(t *testing.T, d *v1alpha1.BundleDeployment) client.ObjectKey {
	t.Helper()
	if err := r.Admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(d)
	t.Cleanup(func() { r.Remove(t, key) })
	return key
}

// Apply creates the deployments of a stream of manifests, and returns the name of the last one. The registry of the rig speaks
// plain HTTP.
func (r *Rig) Apply(t *testing.T, stream string) (key client.ObjectKey) {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return key
		}
		var d v1alpha1.BundleDeployment
		if err == nil {
			err = yaml.UnmarshalStrict(document, &d)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, stream)
		}
		if d.Kind == "" {
			continue
		}
		switch {
		case d.Spec.Catalog != nil:
			d.Spec.Catalog.Image = &v1alpha1.CatalogImage{Insecure: true}
		case d.Spec.Source.Sources[0].Image != nil:
			d.Spec.Source.Sources[0].Image.Insecure = true
		}
		key = r.create(t, &d)
	}
}

// Remove deletes a deployment and waits until it is gone.
func (r *Rig) Remove(t *testing.T, key client.ObjectKey) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := client.IgnoreNotFound(r.Admin.Delete(ctx, d)); err != nil {
		t.Fatal(err)
	}
	r.Eventually(t, ctx, "the deployment is gone", func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		err := r.Admin.Get(ctx, key, &d)
		return apierrors.IsNotFound(err), Describe(&d)
	})
}

// Until waits until something holds of a deployment with an observed generation.
func (r *Rig) Until(t *testing.T, key client.ObjectKey, what string, holds func(*v1alpha1.BundleDeployment) bool) *v1alpha1.BundleDeployment {
	t.Helper()
	var d v1alpha1.BundleDeployment
	r.Eventually(t, t.Context(), what, func(ctx context.Context) (bool, string) {
		d = v1alpha1.BundleDeployment{}
		if err := r.Admin.Get(ctx, key, &d); err != nil {
			return false, err.Error()
		}
		return d.Status.ObservedGeneration == d.Generation && holds(&d), Describe(&d)
	})
	return &d
}

// Ready waits until a deployment is Ready.
func (r *Rig) Ready(t *testing.T, key client.ObjectKey) *v1alpha1.BundleDeployment {
	t.Helper()
	return r.Until(t, key, "Ready", func(d *v1alpha1.BundleDeployment) bool { return conditions.IsTrue(d, meta.ReadyCondition) })
}

// Eventually waits until a check succeeds; otherwise the test ends with what the check saw last.
func (r *Rig) Eventually(t *testing.T, ctx context.Context, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		done, now := check(ctx)
		if ctx.Err() == nil {
			seen = now
		}
		return done, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, seen)
	}
}

// Describe is the state of a deployment, for messages.
func Describe(d *v1alpha1.BundleDeployment) string {
	var text strings.Builder
	fmt.Fprintf(&text, "generation %d, observed %d, attempted %q, applied %q, healthy %q\n", d.Generation, d.Status.ObservedGeneration,
		d.Status.Attempted.Revision, d.Status.Applied.Revision, d.Status.Healthy.Revision)
	for _, c := range d.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}
