// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// gitSource turns a source into one that users of the namespace can change only by its spec.
func (r *rig) gitSource(t *testing.T, namespace, name, repository string) {
	t.Helper()
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	source.Spec.Sources = []v1alpha1.Source{{Git: &v1alpha1.GitSource{URL: repository, Ref: &v1alpha1.GitRef{Branch: "main"}}}}
	var found v1alpha1.BundleSource
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(source), &found); err != nil {
		if err := r.admin.Create(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		return
	}
	before := found.DeepCopy()
	found.Spec.Sources = source.Spec.Sources
	if err := r.admin.Patch(t.Context(), &found, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// automatic is a deployment of the mode Automatic with an approved first plan, in a namespace that requires approval.
func (r *rig) automatic(t *testing.T, namespace string, change func(*v1alpha1.BundleDeployment)) client.ObjectKey {
	t.Helper()
	r.gitSource(t, namespace, "app", "https://git.example.org/app")
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", both(quick, change))
	d, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, "no plan of this BundleDeployment was approved yet") {
		t.Errorf("why the first plan waits: %s", message)
	}
	if r.value(t, t.Context(), namespace, "a") != "" {
		t.Error("the first plan was carried out without an approval")
	}
	r.decide(t, key, digest)
	r.ready(t, key, first.Revision)
	return key
}

// In a namespace that requires approval, Automatic applies to the approved spec, source and inputs: a new upstream
// revision of the same source passes, and a change of any of them waits.
func TestT26WhatAnAutomaticDeploymentUsesIsApproved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eachWay(t, func(t *testing.T, namespace string, _ bool) {
		input := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "values"}, Data: map[string][]byte{"color": []byte("red")}}
		r.create(t, input)
		key := r.automatic(t, namespace, variables("values"))
		waits := func(what, revision string) string {
			d, digest := r.awaits(t, key, revision, v1alpha1.ReasonApprovalRequired)
			if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, "the mode Automatic was not approved for the current spec, source and inputs") {
				t.Errorf("%s: %s", what, message)
			}
			return digest
		}
		upstream := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
		r.ready(t, key, upstream.Revision)

		r.setSource(t, namespace, "app", func(s *v1alpha1.BundleSource) {
			s.Status.Resolved = []v1alpha1.ResolvedSource{{Digest: "sha1:a", Transport: "sha256:others"}}
		})
		redirected := r.publish(t, namespace, "app", "v2-redirected", fstest.MapFS{"a.yaml": configMap("a", "redirected")})
		waits("other certificate authorities", redirected.Revision)
		if value := r.value(t, t.Context(), namespace, "a"); value != "two" {
			t.Errorf("other certificate authorities: %s", value)
		}
		r.setSource(t, namespace, "app", func(s *v1alpha1.BundleSource) { s.Status.Resolved = nil })

		r.gitSource(t, namespace, "app", "https://git.example.org/fork")
		forked := r.publish(t, namespace, "app", "v3", fstest.MapFS{"a.yaml": configMap("a", "forked")})
		digest := waits("another repository", forked.Revision)
		if value := r.value(t, t.Context(), namespace, "a"); value != "two" {
			t.Errorf("another repository: %s", value)
		}
		r.decide(t, key, digest)
		r.ready(t, key, forked.Revision)

		r.patch(t, object("v1", "Secret", namespace, "values"), `{"stringData":{"color":"blue"}}`)
		digest = waits("another input", forked.Revision)
		r.decide(t, key, digest)
		r.ready(t, key, forked.Revision)

		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = v1alpha1.CollisionNone })
		waits("another spec", forked.Revision)
	})
}

// What users of the namespace change outside a spec, such as a ConfigMap, is approved by its content.
func TestT26ContentOfTheNamespaceIsApproved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eachWay(t, func(t *testing.T, namespace string, _ bool) {
		first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
		key := r.deploy(t, namespace, "app", quick)
		_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
		r.decide(t, key, digest)
		r.ready(t, key, first.Revision)
		second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
		r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
		if value := r.value(t, t.Context(), namespace, "a"); value != "one" {
			t.Errorf("carried out: %s", value)
		}
	})
}

// The controller itself enforces the label: a switch to Automatic gains nothing, and objects left behind by a deleted
// deployment are not adopted without an approval by the next one of the same name.
func TestT27TheControllerEnforcesTheLabel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eachWay(t, func(t *testing.T, namespace string, _ bool) {
		key := r.automatic(t, namespace, asking(v1alpha1.ApprovalOnEscalation))
		r.edit(t, key, func(d *v1alpha1.BundleDeployment) { // the administrator, or an editor where there is no policy
			d.Spec.Approval, d.Spec.DeletionPolicy = nil, v1alpha1.DeletionOrphan
		})
		upgrade := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
		d, _ := r.awaits(t, key, upgrade.Revision, v1alpha1.ReasonApprovalRequired)
		message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition)
		for _, want := range []string{"the mode Automatic was not approved", "the objects would stay when the BundleDeployment is deleted"} {
			if !strings.Contains(message, want) {
				t.Errorf("%q is not said: %s", want, message)
			}
		}
		r.remove(t, key)
		if !r.get(t, aConfigMap(namespace, "a")) {
			t.Fatal("it is not left behind")
		}
		key = r.deploy(t, namespace, "app", quick)
		d, digest := r.awaits(t, key, upgrade.Revision, v1alpha1.ReasonApprovalRequired)
		if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, "1 object would be adopted") {
			t.Errorf("the adoption is not said: %s", message)
		}
		if value := r.value(t, t.Context(), namespace, "a"); value != "one" {
			t.Errorf("adopted without an approval: %s", value)
		}
		r.decide(t, key, digest)
		r.ready(t, key, upgrade.Revision)
	})
}

// Drift of plans that were executed before the label was set is still corrected; the next plan needs an approval.
func TestT27TheLabelIsSetLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.gitSource(t, namespace, "app", "https://git.example.org/app")
	first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	r.patch(t, object("v1", "Namespace", "", namespace), `{"metadata":{"labels":{"satchel.dev/approval":"required"}}}`)
	r.untilLabelsAreRead(t)
	r.patch(t, aConfigMap(namespace, "a"), `{"data":{"value":"drifted"}}`)
	r.holds(t, namespace, "a", "one")
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "two")})
	r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
}

// T25 on a cluster: escalations wait in the mode OnEscalation, also if the namespace requires nothing.
func TestT25EscalationsWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, tc := range map[string]struct {
		file *fstest.MapFile
		asks string
	}{
		"label":      {file("apiVersion: v1\nkind: Namespace\nmetadata: {name: NS, labels: {satchel.dev/approval: required}}\n"), "gets the label satchel.dev/approval=required"},
		"webhook":    {file("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: NS}\nspec: {policyName: none, validationActions: [Deny]}\n"), "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io NS is new"},
		"deployment": {file("apiVersion: satchel.dev/v1alpha1\nkind: BundleDeployment\nmetadata: {name: other}\nspec: {serviceAccountName: installer, suspend: true, sourceRef: {kind: BundleSource, name: app}}\n"), "BundleDeployment.satchel.dev NS/other is new"},
		"pod":        {file("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {hostNetwork: true, containers: [{name: web, image: x}]}}}\n"), "uses hostNetwork"},
		"adoption":   {configMap("foreign", "ours"), "adopted from other owners: ConfigMap NS/foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			r.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign"}, Data: map[string]string{"value": "theirs"}})
			first := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalOnEscalation), func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.CollisionProtection = v1alpha1.CollisionNone }))
			r.ready(t, key, first.Revision)
			more := file(strings.ReplaceAll(string(tc.file.Data), "NS", namespace))
			second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"a.yaml": configMap("a", "one"), "more.yaml": more})
			d, _ := r.awaits(t, key, second.Revision, v1alpha1.ReasonApprovalRequired)
			if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, strings.ReplaceAll(tc.asks, "NS", namespace)) {
				t.Errorf("%q is not said: %s", tc.asks, message)
			}
			if r.value(t, t.Context(), namespace, "foreign") != "theirs" {
				t.Error("adopted")
			}
		})
	}
}

// T30 on a cluster: a bundle that brings a token of the installing ServiceAccount, or takes a Secret of others, waits, so that
// there is no token. An ordinary workload goes on.
func TestT30TokenOfTheInstaller(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eachWay(t, func(t *testing.T, namespace string, _ bool) { r.bringsToken(t, namespace) })
}

func (r *rig) bringsToken(t *testing.T, namespace string) {
	t.Helper()
	configs := fstest.MapFS{"a.yaml": configMap("a", "one")}
	first := r.publish(t, namespace, "app", "v1", configs)
	key := r.deploy(t, namespace, "app", both(quick, asking(v1alpha1.ApprovalOnEscalation)))
	_, digest := r.awaits(t, key, first.Revision, v1alpha1.ReasonApprovalRequired)
	r.decide(t, key, digest)
	r.ready(t, key, first.Revision)

	workload := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " +
		"spec: {automountServiceAccountToken: false, containers: [{name: c, image: x}], volumes: [{name: t, VOLUME}]}}}\n"
	with := func(volume string, more ...string) fstest.MapFS {
		files := maps.Clone(configs)
		files["w.yaml"] = file(strings.ReplaceAll(workload, "VOLUME", volume))
		for i, text := range more {
			files[fmt.Sprintf("more-%d.yaml", i)] = file(text)
		}
		return files
	}
	harmless := r.publish(t, namespace, "app", "v2", with("configMap: {name: a}"))
	if d := r.ready(t, key, harmless.Revision); d.Status.Internal.Executed.Approval != "" {
		t.Error("an ordinary workload waited for an approval")
	}
	token := "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: t, annotations: {kubernetes.io/service-account.name: installer}}\n"
	for i, tc := range []struct {
		bundle fstest.MapFS
		asks   string
	}{
		{with("secret: {secretName: t}", token), "gets the annotation kubernetes.io/service-account.name; Secret NS/t sets .type"},
		{with("secret: {secretName: fleet-kubeconfig}"), "Deployment.apps NS/w refers to the Secret fleet-kubeconfig, which is not in the bundle"},
	} {
		next := r.publish(t, namespace, "app", fmt.Sprintf("v%d", i+3), tc.bundle)
		d, _ := r.awaits(t, key, next.Revision, v1alpha1.ReasonApprovalRequired)
		if message := conditions.GetMessage(d, v1alpha1.ApprovalPendingCondition); !strings.Contains(message, strings.ReplaceAll(tc.asks, "NS", namespace)) {
			t.Errorf("%q is not said: %s", tc.asks, message)
		}
	}
	err := r.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "t"}, new(corev1.Secret))
	if !apierrors.IsNotFound(err) {
		t.Errorf("the token exists: %v", err)
	}
}

// T28 on a cluster: without an approval mode the spec has to allow it.
func TestT28PodSecurityLabelsOfABundle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	labelled := file(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-more, labels: {pod-security.kubernetes.io/enforce: privileged}}\n", namespace))
	bundle := r.publish(t, namespace, "app", "v1", fstest.MapFS{"a.yaml": labelled})
	key := r.deploy(t, namespace, "app", quick)
	d := r.unready(t, key, v1alpha1.ReasonPlanRefused)
	if message := describe(d); !strings.Contains(message, "set spec.apply.podSecurityLabels") {
		t.Error(message)
	}
	r.edit(t, key, func(d *v1alpha1.BundleDeployment) { d.Spec.Apply.PodSecurityLabels = true })
	r.ready(t, key, bundle.Revision)
}
