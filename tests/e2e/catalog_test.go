// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// entry is a bundle of the package shop in a catalog: its version, image, and the edge that leads to it.
type entry struct{ version, image, edge string }

// catalogRig is a namespace with a catalog and bundles in a real registry.
type catalogRig struct {
	*rig
	namespace, repository string
	key                   client.ObjectKey
}

func (r *rig) shopping(t *testing.T) *catalogRig {
	t.Helper()
	namespace := r.Namespace(t)
	return &catalogRig{rig: r, namespace: namespace, repository: "shop-" + namespace, key: client.ObjectKey{Namespace: namespace, Name: "shop"}}
}

// bundle pushes a bundle with one ConfigMap, and returns its image with tag and digest.
func (c *catalogRig) bundle(t *testing.T, version string) (tagged, pinned string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {value: %q}\n", version)
	return c.pushBundle(t, version, manifest)
}

func (c *catalogRig) pushBundle(t *testing.T, version, manifest string) (tagged, pinned string) {
	t.Helper()
	digest, err := c.Registry.Push(t.Context(), c.repository+":v"+version, fstest.MapFS{"manifests/shop.yaml": {Data: []byte(manifest)}})
	if err != nil {
		t.Fatal(err)
	}
	base := c.Registry.Host() + "/" + c.repository
	return base + ":v" + version, base + "@" + digest
}

// catalog publishes a catalog image with these bundles of the package, all in the channel stable, and asks for it.
func (c *catalogRig) catalog(t *testing.T, extra string, entries ...entry) {
	t.Helper()
	c.catalogNamed(t, "community", 0, extra, entries...)
}

func (c *catalogRig) catalogNamed(t *testing.T, name string, priority int32, extra string, entries ...entry) {
	t.Helper()
	image := c.repository + "-" + name + ":latest"
	var fbc, channel strings.Builder
	fbc.WriteString(`{"schema":"olm.package","name":"shop","defaultChannel":"stable"}` + "\n")
	for i, e := range entries {
		if i > 0 {
			channel.WriteString(",")
		}
		fmt.Fprintf(&channel, `{"name":"shop.v%s"%s}`, e.version, e.edge)
		fmt.Fprintf(&fbc, `{"schema":"olm.bundle","package":"shop","name":"shop.v%s","image":%q,"properties":[{"type":"olm.package","value":{"packageName":"shop","version":%q}}]}`+"\n", e.version, e.image, e.version)
	}
	fmt.Fprintf(&fbc, `{"schema":"olm.channel","package":"shop","name":"stable","entries":[%s]}`+"\n%s", channel.String(), extra)
	if _, err := c.Registry.Push(t.Context(), image, fstest.MapFS{"configs/catalog.json": {Data: []byte(fbc.String())}}); err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		object.Spec.Source.Image = &v1alpha1.ImageSource{Reference: c.Registry.Host() + "/" + image, Insecure: true}
		object.Spec.Priority = priority
		err = c.Admin.Create(t.Context(), object)
	case err == nil:
		before := object.DeepCopy()
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, meta.ReconcileRequestAnnotation, fmt.Sprint(object.ResourceVersion))
		err = c.Admin.Patch(t.Context(), object, client.MergeFrom(before))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// install creates the deployment.
func (c *catalogRig) install(t *testing.T, change func(*v1alpha1.BundleDeployment)) {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "shop"}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.Catalog = &v1alpha1.CatalogPackage{Package: "shop", Channels: []string{"stable"}, Image: &v1alpha1.CatalogImage{Insecure: true}}
	if change != nil {
		change(d)
	}
	if err := c.Admin.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func (c *catalogRig) change(t *testing.T, change func(*v1alpha1.BundleDeployment)) {
	t.Helper()
	var d v1alpha1.BundleDeployment
	if err := c.Admin.Get(t.Context(), c.key, &d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	change(&d)
	if err := c.Admin.Patch(t.Context(), &d, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// until waits for a state of the deployment.
func (c *catalogRig) until(t *testing.T, what string, holds func(*v1alpha1.BundleDeployment) bool) *v1alpha1.BundleDeployment {
	t.Helper()
	var d v1alpha1.BundleDeployment
	c.Eventually(t, t.Context(), what, func(ctx context.Context) (bool, string) {
		d = v1alpha1.BundleDeployment{}
		if err := c.Admin.Get(ctx, c.key, &d); err != nil {
			return false, err.Error()
		}
		text := fmt.Sprintf("catalog %+v\n", d.Status.Catalog)
		for _, one := range d.Status.Conditions {
			text += fmt.Sprintf("%s=%s %s: %s\n", one.Type, one.Status, one.Reason, one.Message)
		}
		return d.Status.ObservedGeneration == d.Generation && holds(&d), text
	})
	return &d
}

// runs waits until a version is installed and healthy, and nothing else is under way.
func (c *catalogRig) runs(t *testing.T, version string) *v1alpha1.BundleDeployment {
	t.Helper()
	d := c.until(t, version+" runs", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, meta.ReadyCondition) && d.Status.Catalog != nil && d.Status.Catalog.Installed != nil && d.Status.Catalog.Installed.Version == version
	})
	if value := c.value(t); value != version {
		t.Errorf("version %s runs, and the object is of %q", version, value)
	}
	return d
}

func (c *catalogRig) value(t *testing.T) string {
	t.Helper()
	var object corev1.ConfigMap
	if err := client.IgnoreNotFound(c.Admin.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "shop"}, &object)); err != nil {
		t.Fatal(err)
	}
	return object.Data["value"]
}

// loseStatus empties status.catalog and the conditions, and requests a reconcile.
func (c *catalogRig) loseStatus(t *testing.T, d *v1alpha1.BundleDeployment) {
	t.Helper()
	lost := d.DeepCopy()
	lost.Status.Catalog, lost.Status.Conditions = nil, nil
	if err := c.Admin.Status().Patch(t.Context(), lost, client.MergeFrom(d)); err != nil {
		t.Fatal(err)
	}
	c.change(t, func(d *v1alpha1.BundleDeployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, meta.ReconcileRequestAnnotation, "lost "+d.ResourceVersion)
	})
}

// corrects changes the object, and waits until the drift is corrected.
func (c *catalogRig) corrects(t *testing.T, version string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "shop"}}
	if err := c.Admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, t.Context(), "drift is corrected", func(context.Context) (bool, string) { return c.value(t) == version, c.value(t) })
}

// TestInstallByName installs by name and range, upgrades through an approval, hops over a required version, and keeps what runs
// when the catalog is gone: C34, C35, C37, C38, C39, C42, C43.
func TestInstallByName(t *testing.T) {
	c := newRig(t).shopping(t)
	v1tag, v1 := c.bundle(t, "1.0.0")
	_, v11 := c.bundle(t, "1.1.0")
	_, v12 := c.bundle(t, "1.2.0")
	c.catalog(t, "", entry{"1.0.0", v1tag, ""}, entry{"2.0.0", v12, `,"replaces":"shop.v1.9.0"`})
	c.install(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "<2" })
	d := c.runs(t, "1.0.0")
	resolved := d.Status.Catalog.Resolved
	if resolved.Reference != v1tag || resolved.Image != v1 || resolved.Catalog != "community" || d.Status.Catalog.Newest == nil || d.Status.Catalog.Newest.Bundle != "shop.v2.0.0" {
		t.Errorf("it resolved to %+v, newest %+v", resolved, d.Status.Catalog.Newest)
	}
	var source v1alpha1.BundleSource
	if err := c.Admin.Get(t.Context(), c.key, &source); err != nil {
		t.Fatal(err)
	}
	if ref := source.Spec.Sources[0].Image.Reference; ref != v1 {
		t.Errorf("the source has %s, want the digest %s", ref, v1)
	}

	c.change(t, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalManual}
	})
	c.runs(t, "1.0.0")
	c.catalog(t, "", entry{"1.0.0", v1tag, ""}, entry{"1.1.0", v11, `,"replaces":"shop.v1.0.0"`})
	pending := c.until(t, "the plan waits", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) && strings.Contains(d.Status.Plan.Summary, "shop 1.0.0 -> 1.1.0, channel stable, catalog "+c.namespace+"/community@sha256:")
	})
	if c.value(t) != "1.0.0" || !conditions.IsTrue(pending, meta.ReadyCondition) || pending.Status.Catalog.Installed.Version != "1.0.0" {
		t.Errorf("1.0.0 does not run while the plan waits: %+v", pending.Status.Catalog.Installed)
	}
	// 1.2.0 is no successor of what runs, so that the pending plan stays.
	c.catalog(t, "", entry{"1.0.0", v1tag, ""}, entry{"1.1.0", v11, `,"replaces":"shop.v1.0.0"`}, entry{"1.2.0", v12, `,"replaces":"shop.v1.1.0"`})
	c.until(t, "1.2.0 is known", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Catalog.Newest != nil && d.Status.Catalog.Newest.Bundle == "shop.v1.2.0" && d.Status.Catalog.Resolved.Bundle == "shop.v1.1.0" && d.Status.Plan.Digest == pending.Status.Plan.Digest
	})
	approval := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "first"}}
	approval.Spec = v1alpha1.BundleApprovalSpec{Deployment: "shop", Plan: pending.Status.Plan.Digest, Decision: v1alpha1.DecisionApprove}
	if err := c.Admin.Create(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
	c.until(t, "1.1.0 is installed, and the plan to 1.2.0 waits", func(d *v1alpha1.BundleDeployment) bool {
		return d.Status.Catalog.Installed.Version == "1.1.0" && strings.Contains(d.Status.Plan.Summary, "shop 1.1.0 -> 1.2.0") && conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition)
	})
	c.change(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Approval = nil })
	d = c.runs(t, "1.2.0")
	if head := d.Status.History[0]; head.Bundle != "shop.v1.2.0" || head.Catalog != c.namespace+"/community" {
		t.Errorf("the history has %+v", head)
	}

	c.change(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "9.9.9" })
	failed := c.until(t, "9.9.9 is refused", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, meta.ReadyCondition) == v1alpha1.ReasonResolutionFailed && conditions.IsFalse(d, v1alpha1.ResolvedCondition)
	})
	if text := conditions.GetMessage(failed, v1alpha1.ResolvedCondition); !strings.Contains(text, `no bundles found for package "shop" matching version "9.9.9"`) {
		t.Errorf("the refusal is %s", text)
	}
	c.corrects(t, "1.2.0")
	c.change(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Version = "" })
	c.runs(t, "1.2.0")

	if err := c.Admin.Delete(t.Context(), &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "community"}}); err != nil {
		t.Fatal(err)
	}
	c.until(t, "the catalog is missed", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, v1alpha1.ResolvedCondition) == v1alpha1.ReasonCatalogNotFound && conditions.IsTrue(d, meta.ReadyCondition)
	})
	c.corrects(t, "1.2.0")
}

// TestCatalogRollbackAndLock rolls back a bundle that fails, goes on with one that skips it, and installs exactly what a lock
// says, and asks before it goes to another catalog: C41, C44, C45, C48, C56.
func TestCatalogRollbackAndLock(t *testing.T) {
	c := newRig(t).shopping(t)
	_, v1 := c.bundle(t, "1.0.0")
	_, v11 := c.bundle(t, "1.1.0")
	_, v12 := c.bundle(t, "1.2.0")
	c.catalog(t, "", entry{"1.0.0", v1, ""})
	c.install(t, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Health.Expressions = []v1alpha1.HealthExpression{{
			APIVersion: "v1", Kind: "ConfigMap", Current: "data.value != '1.1.0'", Failed: "data.value == '1.1.0'",
		}}
		d.Spec.Remediation = &v1alpha1.RemediationOptions{Strategy: v1alpha1.RemediationRollback}
	})
	c.runs(t, "1.0.0")
	needing := []entry{{"1.0.0", v1, ""}, {"1.1.0", v11, `,"replaces":"shop.v1.0.0"`}, {"1.2.0", v12, `,"replaces":"shop.v1.1.0"`}}
	c.catalog(t, "", needing...)
	c.until(t, "1.1.0 is rolled back", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, meta.ReadyCondition) == v1alpha1.ReasonRevisionRejected && d.Status.Catalog.Installed.Version == "1.0.0" &&
			d.Status.Catalog.Newest != nil && d.Status.Catalog.Newest.Bundle == "shop.v1.2.0"
	})
	if value := c.value(t); value != "1.0.0" {
		t.Errorf("rolled back to %s", value)
	}
	skipping := append(needing[:2:2], entry{"1.2.0", v12, `,"replaces":"shop.v1.1.0","skips":["shop.v1.0.0"]`})
	c.catalog(t, `{"schema":"olm.deprecations","package":"shop","entries":[{"reference":{"schema":"olm.package"},"message":"use bakery"}]}`+"\n", skipping...)
	d := c.runs(t, "1.2.0")
	if !strings.Contains(conditions.GetMessage(d, v1alpha1.DeprecatedCondition), "use bakery") {
		t.Errorf("the deprecation is not reported: %s", conditions.GetMessage(d, v1alpha1.DeprecatedCondition))
	}

	locked := v1alpha1.CatalogLock{Bundle: "shop.v1.2.0", Image: v12}
	wrong := v1alpha1.CatalogLock{Bundle: "shop.v1.2.0", Image: v1}
	c.change(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Lock = &wrong })
	c.until(t, "another digest is refused", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, meta.StalledCondition) == v1alpha1.ReasonLockMismatch
	})
	c.corrects(t, "1.2.0")
	c.change(t, func(d *v1alpha1.BundleDeployment) { d.Spec.Catalog.Lock = &locked })
	c.runs(t, "1.2.0")
	_, v13 := c.bundle(t, "1.3.0")
	c.catalog(t, "", append(skipping, entry{"1.3.0", v13, `,"replaces":"shop.v1.2.0"`})...)
	c.change(t, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Catalog.Lock = &v1alpha1.CatalogLock{Bundle: "shop.v1.0.0", Image: v1}
	})
	c.until(t, "a lock without an edge is refused", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.GetReason(d, v1alpha1.ResolvedCondition) == v1alpha1.ReasonResolutionFailed
	})
	c.change(t, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Catalog.Lock = &v1alpha1.CatalogLock{Bundle: "shop.v1.3.0", Image: v13}
	})
	c.runs(t, "1.3.0")

	// An upgrade that another catalog provides needs an approval.
	c.change(t, func(d *v1alpha1.BundleDeployment) {
		d.Spec.Catalog.Lock = nil
		d.Spec.Approval = &v1alpha1.ApprovalOptions{Mode: v1alpha1.ApprovalOnEscalation}
	})
	c.runs(t, "1.3.0")
	_, v14 := c.bundle(t, "1.4.0")
	c.catalogNamed(t, "other", 10, "", entry{"1.4.0", v14, `,"replaces":"shop.v1.3.0"`})
	c.until(t, "another catalog waits for an approval", func(d *v1alpha1.BundleDeployment) bool {
		text := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition)
		return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) && strings.Contains(text, "the catalog changes from "+c.namespace+"/community to "+c.namespace+"/other")
	})
	if value := c.value(t); value != "1.3.0" {
		t.Errorf("%s is installed without an approval", value)
	}
	if err := c.Admin.Delete(t.Context(), &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "other"}}); err != nil {
		t.Fatal(err)
	}

	// Without the status, the annotations of the source say from where upgrades start.
	d = c.until(t, "the annotations", func(*v1alpha1.BundleDeployment) bool {
		var source v1alpha1.BundleSource
		return c.Admin.Get(t.Context(), c.key, &source) == nil && source.Annotations[v1alpha1.InstalledBundleAnnotation] == "shop.v1.3.0"
	})
	c.loseStatus(t, d)
	c.runs(t, "1.3.0")

	// They also say from which catalog it was installed, so that another one still needs an approval.
	c.catalogNamed(t, "other", 10, "", entry{"1.4.0", v14, `,"replaces":"shop.v1.3.0"`})
	c.loseStatus(t, c.until(t, "another catalog waits for an approval again", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition)
	}))
	c.until(t, "another catalog waits for an approval without the status", func(d *v1alpha1.BundleDeployment) bool {
		text := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition)
		return conditions.IsTrue(d, v1alpha1.ApprovalPendingCondition) && strings.Contains(text, "the catalog changes from "+c.namespace+"/community to "+c.namespace+"/other")
	})
	if value := c.value(t); value != "1.3.0" {
		t.Errorf("%s is installed without an approval", value)
	}
}
