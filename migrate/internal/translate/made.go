// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// deployment begins the BundleDeployment that an object is translated to. The install namespace has to be given: the content
// of the bundle, from which other installers infer it, is not available here.
func (r *reading) deployment(installNamespace, account string) *v1alpha1.BundleDeployment {
	install := installNamespace
	if install == "" {
		install = r.in.options.InstallNamespace
	}
	namespace := r.Object.GetNamespace()
	if namespace == "" {
		namespace = r.in.options.Namespace
	}
	if namespace == "" {
		namespace = install
	}
	if install == "" {
		r.refuse(ruleMissing, "it does not say into which namespace the bundle is installed",
			"add --install-namespace with the namespace in which the operator runs, or that of objects that name none")
	}
	if account == "" {
		account = r.in.options.ServiceAccount
	}
	d := &v1alpha1.BundleDeployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleDeploymentKind},
		ObjectMeta: r.metadata(namespace),
		Spec:       v1alpha1.BundleDeploymentSpec{ServiceAccountName: account},
	}
	if install != namespace {
		d.Spec.Target.Namespace = install
	}
	return d
}

// source begins the BundleSource that an object is translated to.
func (r *reading) source() *v1alpha1.BundleSource {
	namespace := r.in.options.Namespace
	if namespace == "" {
		namespace = r.in.options.InstallNamespace
	}
	if namespace == "" {
		r.refuse(ruleMissing, "a BundleSource is of a namespace, which a Bundle of RukPak does not have", "add --namespace")
	}
	return &v1alpha1.BundleSource{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleSourceKind},
		ObjectMeta: r.metadata(namespace),
	}
}

// metadata keeps the labels and annotations of users, and drops those with which tools record ownership.
func (r *reading) metadata(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: r.Object.GetName(), Namespace: namespace,
		Labels: own(r.Object.GetLabels()), Annotations: own(r.Object.GetAnnotations()),
	}
}

// toolPrefixes are the prefixes of labels and annotations that tools set.
var toolPrefixes = []string{
	"kubectl.kubernetes.io/", "core.rukpak.io/", "olm.", "operators.coreos.com/", "operatorframework.io/", "argocd.argoproj.io/",
	"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "meta.helm.sh/", "app.kubernetes.io/managed-by",
}

func own(marks map[string]string) map[string]string {
	kept := maps.Clone(marks)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		for _, prefix := range toolPrefixes {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return false
	})
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// registry returns the options of registry+v1, made where there are none.
func registry(d *v1alpha1.BundleDeployment) *v1alpha1.RegistryV1Options {
	if d.Spec.RegistryV1 == nil {
		d.Spec.RegistryV1 = &v1alpha1.RegistryV1Options{}
	}
	return d.Spec.RegistryV1
}

// finish adds the BundleDeployment to the result.
func (r *reading) finish(d *v1alpha1.BundleDeployment) {
	r.made, r.adopts = append(r.made, d), true
	r.rights = &RBAC{
		InstallNamespace: d.Spec.Target.Namespace, Namespace: d.Namespace, Name: d.Name, Account: d.Spec.ServiceAccountName,
		Format: string(d.Spec.Format), Path: d.Spec.Path,
	}
	if r.rights.InstallNamespace == "" {
		r.rights.InstallNamespace = d.Namespace
	}
	if options := d.Spec.RegistryV1; options != nil {
		r.rights.WatchNamespaces, r.rights.CertificateProvider = options.WatchNamespaces, options.CertificateProvider
	}
	if d.Spec.Source != nil && len(d.Spec.Source.Sources) == 1 && d.Spec.Source.Sources[0].Image != nil {
		r.rights.Bundle = d.Spec.Source.Sources[0].Image.Reference
	}
	if d.Spec.Catalog != nil && d.Spec.Catalog.Lock != nil {
		r.rights.Bundle = d.Spec.Catalog.Lock.Image
	}
}

// identity names an object that was made.
func identity(made any) string {
	switch o := made.(type) {
	case *v1alpha1.BundleDeployment:
		return o.Kind + " " + o.Namespace + "/" + o.Name
	case *v1alpha1.BundleCatalog:
		return o.Kind + " " + o.Namespace + "/" + o.Name
	case *v1alpha1.BundleImagePolicy:
		return o.Kind + " " + o.Namespace + "/" + o.Name
	case *v1alpha1.BundleSource:
		return o.Kind + " " + o.Namespace + "/" + o.Name
	}
	return ""
}

// pinned is a source of one image.
func pinned(image string) *v1alpha1.BundleSourceSpec {
	return &v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: image}}}}
}
