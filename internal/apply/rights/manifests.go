// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Part is the purpose of a manifest.
type Part string

const (
	// Bootstrap are the objects that an administrator creates first: the namespaces and the ServiceAccount.
	Bootstrap Part = "bootstrap"
	// Required are the permissions without which an install, an upgrade or a removal fails.
	Required Part = "required"
	// Recommended are permissions that save requests and help to find the causes of failures.
	Recommended Part = "recommended"
	// Added are permissions that an account lacked later, for a plan: see Additions.
	Added Part = "added"
)

// Parts of Manifests, in the order in which they are applied.
func Parts() []Part { return []Part{Bootstrap, Required, Recommended} }

// Label names the part on each of the manifests.
const Label = "satchel.dev/rbac"

// Manifests are the objects that grant an account its permissions: by part, in an order
// in which they can be applied. Flux and Argo CD do not delete them: see KeptByGitOps.
func Manifests(r Request) (map[Part][]*unstructured.Unstructured, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	rights, err := Of(r)
	if err != nil {
		return nil, err
	}
	return map[Part][]*unstructured.Unstructured{
		Bootstrap:   r.bootstrap(rights),
		Required:    r.grants(Required, rights.Required),
		Recommended: r.grants(Recommended, rights.Recommended),
	}, nil
}

func (r Request) check() error {
	for _, name := range append([]string{r.Deployment.Namespace, cmp.Or(r.InstallNamespace, r.Deployment.Namespace)}, r.Namespaces...) {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("namespace %.100q: %s", name, strings.Join(problems, "; "))
		}
	}
	if problems := validation.IsDNS1123Label(r.Deployment.Name); len(problems) > 0 {
		return fmt.Errorf("name %.100q of the BundleDeployment: %s", r.Deployment.Name, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(r.ServiceAccount); len(problems) > 0 {
		return fmt.Errorf("service account %.100q: %s", r.ServiceAccount, strings.Join(problems, "; "))
	}
	return nil
}

// bootstrap are the namespaces that have to exist before the install, except those that every
// cluster has, and the ServiceAccount. Namespaces of the bundle are left out, as the deployment
// creates them: made here, they would have no owner, and an orphan annotation on them
// would release a namespace that exists already.
func (r Request) bootstrap(rights Rights) []*unstructured.Unstructured {
	names, brought := map[string]bool{r.Deployment.Namespace: true, r.InstallNamespace: true}, r.brought()
	for _, name := range r.Namespaces {
		names[name] = true
	}
	for _, grant := range slices.Concat(rights.Required, rights.Recommended) {
		names[grant.Namespace] = true
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name == "" || brought[name] || everywhere(name) {
			continue
		}
		objects = append(objects, object(Bootstrap, "v1", "Namespace", "", name))
	}
	return append(objects, object(Bootstrap, "v1", "ServiceAccount", r.Deployment.Namespace, r.ServiceAccount))
}

// grants are roles and their bindings, each pair together.
func (r Request) grants(part Part, grants []Grant) []*unstructured.Unstructured {
	name := fmt.Sprintf("satchel:%s:%s:%s", r.Deployment.Namespace, r.Deployment.Name, part)
	var objects []*unstructured.Unstructured
	for _, grant := range grants {
		name := name
		if part == Added {
			name += "-" + grant.digest()
		}
		prefix := ""
		if grant.Namespace == "" {
			prefix = "Cluster"
		}
		role := object(part, rbacv1.SchemeGroupVersion.String(), prefix+"Role", grant.Namespace, name)
		role.Object["rules"] = written(grant.Rules)
		binding := object(part, rbacv1.SchemeGroupVersion.String(), prefix+"RoleBinding", grant.Namespace, name)
		binding.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": prefix + "Role", "name": name}
		binding.Object["subjects"] = []any{map[string]any{
			"kind": rbacv1.ServiceAccountKind, "name": r.ServiceAccount, "namespace": r.Deployment.Namespace,
		}}
		objects = append(objects, role, binding)
	}
	return objects
}

func object(part Part, version, kind, namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion(version)
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	made.SetLabels(map[string]string{Label: string(part)})
	made.SetAnnotations(KeptByGitOps())
	return made
}

// KeptByGitOps are annotations that keep Flux and Argo CD from deleting an object which they applied, when it leaves their
// repository or with everything else they applied. A ServiceAccount and its bindings carry them: a BundleDeployment that is
// deleted at the same time needs them to remove its objects, and would wait for them.
func KeptByGitOps() map[string]string {
	return map[string]string{
		"kustomize.toolkit.fluxcd.io/prune": "disabled",
		"argocd.argoproj.io/sync-options":   "Prune=false,Delete=false",
	}
}

// written converts rules for a manifest.
func written(rules []rbacv1.PolicyRule) []any {
	list := make([]any, 0, len(rules))
	for _, rule := range rules {
		fields := map[string]any{}
		for name, values := range map[string][]string{
			"apiGroups": rule.APIGroups, "resources": rule.Resources, "resourceNames": rule.ResourceNames,
			"nonResourceURLs": rule.NonResourceURLs, "verbs": rule.Verbs,
		} {
			if len(values) > 0 {
				texts := make([]any, 0, len(values))
				for _, value := range values {
					texts = append(texts, value)
				}
				fields[name] = texts
			}
		}
		list = append(list, fields)
	}
	return list
}
