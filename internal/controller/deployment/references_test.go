// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// imagesOf is a BundleSource with an image for each name of a login; each has four references.
func imagesOf(namespace, name string, secrets ...string) *v1alpha1.BundleSource {
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for i, secret := range secrets {
		ref := &v1alpha1.LocalReference{Name: secret}
		source.Spec.Sources = append(source.Spec.Sources, v1alpha1.Source{Destination: fmt.Sprintf("d%d", i), Image: &v1alpha1.ImageSource{
			Reference: "registry.example.org/app:v1", SecretRef: ref, CertSecretRef: ref, ProxySecretRef: ref,
			Verify: &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: ref},
		}})
	}
	return source
}

// policyOf is a BundleImagePolicy with a rule for each name of a login; each has four references.
func policyOf(namespace, name string, secrets ...string) *v1alpha1.BundleImagePolicy {
	policy := &v1alpha1.BundleImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for i, secret := range secrets {
		ref := &v1alpha1.LocalReference{Name: secret}
		policy.Spec.Images = append(policy.Spec.Images, v1alpha1.ImageRule{
			Prefix: fmt.Sprintf("registry.example.org/p%d", i), SecretRef: ref, CertSecretRef: ref, ProxySecretRef: ref,
			Verify: &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: ref},
		})
	}
	return policy
}

// Writers of sources and image policies may reference only Secrets and ConfigMaps that they may get themselves; each spec change is checked.
// The largest source stays within the budget of the policy.
func TestT23WritersNameWhatTheyMayGet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "some"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}},
	}})
	r.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "names-" + namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names16("s"), Verbs: []string{"get"}},
	}})
	r.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all-" + namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get"}},
	}})
	writer := r.someone(t, namespace, "writer", "satchel-edit", "satchel-view")
	r.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "some"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "some"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "writer-" + namespace}},
	})
	named := r.someone(t, namespace, "named", "satchel-edit", "satchel-view", "names-"+namespace)
	everything := r.someone(t, namespace, "everything", "satchel-edit", "satchel-view", "all-"+namespace)
	content := func(name, of string) *v1alpha1.BundleSource {
		source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		source.Spec.Sources = []v1alpha1.Source{{ConfigMap: &v1alpha1.LocalReference{Name: of}}}
		return source
	}
	inline := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "inline"}}
	inline.Spec.ServiceAccountName, inline.Spec.Suspend, inline.Spec.Source = "installer", true, &imagesOf(namespace, "", "theirs").Spec
	catalog := func(name string, source v1alpha1.CatalogSource) *v1alpha1.BundleCatalog {
		return &v1alpha1.BundleCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.BundleCatalogSpec{Source: source}}
	}
	login := func(secret string) v1alpha1.CatalogSource {
		return v1alpha1.CatalogSource{Image: &v1alpha1.ImageSource{
			Reference: "registry.example.org/catalog:v1", SecretRef: &v1alpha1.LocalReference{Name: secret},
		}}
	}
	theirs := imagesOf(namespace, "theirs", "theirs")
	r.create(t, theirs)
	for name, tc := range map[string]struct {
		refused string // part of the message; empty: it passes
		do      func() error
	}{
		"another Secret":    {"the Secret theirs is named", func() error { return writer.Create(t.Context(), imagesOf(namespace, "a", "mine", "theirs")) }},
		"own Secret":        {"", func() error { return writer.Create(t.Context(), imagesOf(namespace, "b", "mine", "mine")) }},
		"another ConfigMap": {"the ConfigMap theirs is named", func() error { return writer.Create(t.Context(), content("c", "theirs")) }},
		"own ConfigMap":     {"", func() error { return writer.Create(t.Context(), content("d", "mine")) }},
		"inline source":     {"the Secret theirs is named", func() error { return writer.Create(t.Context(), inline.DeepCopy()) }},
		"catalog, another Secret": {"the Secret theirs is named", func() error {
			return writer.Create(t.Context(), catalog("c1", login("theirs")))
		}},
		"catalog, own Secret": {"", func() error { return writer.Create(t.Context(), catalog("c2", login("mine"))) }},
		"catalog, another ConfigMap": {"the ConfigMap theirs is named", func() error {
			return writer.Create(t.Context(), catalog("c3", v1alpha1.CatalogSource{ConfigMap: &v1alpha1.LocalReference{Name: "theirs"}}))
		}},
		"16 sources by name": {"", func() error { return named.Create(t.Context(), imagesOf(namespace, "e", names16("s")...)) }},
		"one of 16 not": {"the Secret theirs is named", func() error {
			return named.Create(t.Context(), imagesOf(namespace, "f", append(names16("s")[:15], "theirs")...))
		}},
		"16 sources, all": {"", func() error { return everything.Create(t.Context(), imagesOf(namespace, "g", names16("t")...)) }},
		"a change of the spec": {"the Secret theirs is named", func() error {
			return change(t, writer, theirs, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].Image.Reference = "evil.example.org/app:v1" })
		}},
		"a change of metadata": {"", func() error {
			return change(t, writer, theirs, func(s *v1alpha1.BundleSource) { s.Labels = map[string]string{"a": "b"} })
		}},
		"more than 20 Secrets":  {"at most 20 distinct Secrets", func() error { return everything.Create(t.Context(), manySecrets(namespace, 21)) }},
		"as many as 20 Secrets": {"", func() error { return everything.Create(t.Context(), manySecrets(namespace, 20)) }},
		"policy, another Secret": {"the Secret theirs is named", func() error {
			return writer.Create(t.Context(), policyOf(namespace, "p1", "mine", "theirs"))
		}},
		"policy, own Secret":       {"", func() error { return writer.Create(t.Context(), policyOf(namespace, "p2", "mine")) }},
		"policy, 16 rules by name": {"", func() error { return named.Create(t.Context(), policyOf(namespace, "p3", names16("s")...)) }},
		"policy, 20 Secrets": {"", func() error {
			return everything.Create(t.Context(), policyOf(namespace, "p4", append(names16("a"), names16("b")[:4]...)...))
		}},
		"policy, 21 Secrets": {"at most 20 distinct Secrets", func() error {
			return everything.Create(t.Context(), policyOf(namespace, "p5", append(names16("a"), names16("b")[:5]...)...))
		}},
	} {
		err := tc.do()
		switch {
		case err != nil && (strings.Contains(err.Error(), "resulted in error") || strings.Contains(err.Error(), "budget")):
			t.Errorf("%s: the policy is wrong: %v", name, err)
		case tc.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.refused != "" && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused)):
			t.Errorf("%s: %v, want %q", name, err, tc.refused)
		}
	}
}

// names16 are 16 names.
func names16(prefix string) []string {
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}

// manySecrets is a source with so many distinct references.
func manySecrets(namespace string, count int) *v1alpha1.BundleSource {
	source := imagesOf(namespace, fmt.Sprintf("many-%d", count), names16("m")...)
	for i := 16; i < count; i++ {
		source.Spec.Sources[i-16].Image.ProxySecretRef = &v1alpha1.LocalReference{Name: fmt.Sprintf("m%d", i)}
	}
	return source
}

func change(t *testing.T, as client.Client, source *v1alpha1.BundleSource, edit func(*v1alpha1.BundleSource)) error {
	t.Helper()
	before := source.DeepCopy()
	after := source.DeepCopy()
	edit(after)
	return as.Patch(t.Context(), after, client.MergeFrom(before))
}
