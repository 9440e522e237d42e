// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// action is a request that RBAC permits or denies.
type action struct{ verb, group, resource, namespace string }

func (a action) String() string {
	text := a.verb + " " + schema.GroupResource{Group: a.group, Resource: a.resource}.String()
	if a.namespace != "" {
		text += " in " + a.namespace
	}
	return text
}

func (a action) attributes() map[string]any {
	return map[string]any{"verb": a.verb, "group": a.group, "resource": a.resource, "namespace": a.namespace}
}

// installing are the resources that an installation writes; the namespaced ones in the controllers' namespace.
var installing = []struct {
	group, resource string
	namespaced      bool
}{
	{"", "namespaces", false},
	{"apiextensions.k8s.io", "customresourcedefinitions", false},
	{"rbac.authorization.k8s.io", "clusterroles", false},
	{"rbac.authorization.k8s.io", "clusterrolebindings", false},
	{"admissionregistration.k8s.io", "validatingadmissionpolicies", false},
	{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", false},
	{"", "serviceaccounts", true},
	{"", "secrets", true},
	{"", "services", true},
	{"", "persistentvolumeclaims", true},
	{"apps", "deployments", true},
	{"networking.k8s.io", "networkpolicies", true},
	{"rbac.authorization.k8s.io", "roles", true},
	{"rbac.authorization.k8s.io", "rolebindings", true},
}

// permissions checks that the user may install. The API server only lets users grant permissions that they have, so the
// permissions of the controllers are checked as well.
func (e *Examiner) permissions(ctx context.Context) {
	const check = "Your permissions"
	var wanted []action
	for _, r := range installing {
		for _, verb := range []string{"create", "patch"} {
			a := action{verb: verb, group: r.group, resource: r.resource}
			if r.namespaced {
				a.namespace = e.Namespace
			}
			wanted = append(wanted, a)
		}
	}
	grants := action{verb: "escalate", group: "rbac.authorization.k8s.io", resource: "clusterroles"}
	if escalates, err := e.mayI(ctx, grants); err == nil && !escalates {
		wanted = append(wanted, action{verb: "impersonate", resource: "serviceaccounts"}, action{verb: "get", resource: "secrets"},
			action{verb: "update", resource: "secrets", namespace: e.Namespace})
	}
	var missing []string
	for _, a := range wanted {
		allowed, err := e.mayI(ctx, a)
		if err != nil {
			e.add(check, CheckUnknown, "", "they cannot be asked for: %s", e.WhyNot(err))
			return
		}
		if !allowed {
			missing = append(missing, a.String())
		}
	}
	if len(missing) > 0 {
		e.add(check, CheckFailed, "Have a cluster administrator install Satchel, or grant you these permissions.", "to install Satchel you also need to: %s", strings.Join(missing, ", "))
		return
	}
	e.add(check, CheckOK, "", "you may install Satchel")
}

// mayI asks whether the user may do something.
func (e *Examiner) mayI(ctx context.Context, a action) (bool, error) {
	return e.review(ctx, "SelfSubjectAccessReview", "selfsubjectaccessreviews", map[string]any{"resourceAttributes": a.attributes()})
}

// may asks whether a ServiceAccount may do something.
func (e *Examiner) may(ctx context.Context, namespace, account string, a action) (bool, error) {
	return e.review(ctx, "SubjectAccessReview", "subjectaccessreviews", map[string]any{
		"resourceAttributes": a.attributes(), "user": "system:serviceaccount:" + namespace + ":" + account,
		"groups": []any{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	})
}

func (e *Examiner) review(ctx context.Context, kind, resource string, spec map[string]any) (bool, error) {
	question := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}}
	answer, err := e.Bodies.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: resource}).Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}

// DeploymentAccount is the ServiceAccount of the deployment controller.
const DeploymentAccount = "bundle-deployment-controller"

// impersonation checks that the deployment controller may impersonate the ServiceAccounts of the tenants: everywhere, or in
// each namespace that has deployments.
func (e *Examiner) impersonation(ctx context.Context) {
	const check = "Impersonation"
	impersonate := action{verb: "impersonate", resource: "serviceaccounts"}
	everywhere, err := e.may(ctx, e.Namespace, DeploymentAccount, impersonate)
	switch {
	case err != nil:
		e.add(check, CheckUnknown, "", "the permissions of %s/%s cannot be checked: %s", e.Namespace, DeploymentAccount, e.WhyNot(err))
		return
	case everywhere:
		e.add(check, CheckOK, "", "the deployment controller may impersonate the ServiceAccounts of all namespaces")
		return
	}
	listed, err := e.List(ctx, kit.Deployments, true, "")
	if err != nil {
		e.add(check, CheckUnknown, "", "the deployment controller may not impersonate ServiceAccounts everywhere, and deployments cannot be listed: %s", e.WhyNot(err))
		return
	}
	namespaces := map[string]bool{}
	for _, d := range listed {
		namespaces[d.GetNamespace()] = true
	}
	var missing []string
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		impersonate.namespace = namespace
		if allowed, err := e.may(ctx, e.Namespace, DeploymentAccount, impersonate); err != nil || !allowed {
			missing = append(missing, namespace)
		}
	}
	if len(missing) > 0 {
		e.add(check, CheckFailed, "Bind satchel-impersonator to the controller in these namespaces, or in the cluster (config/overlays/namespaced-impersonation).",
			"the deployment controller may not impersonate the ServiceAccounts of: %s", strings.Join(missing, ", "))
		return
	}
	if len(namespaces) == 0 {
		e.add(check, CheckWarning, "Bind satchel-impersonator to the controller where there will be deployments (config/overlays/namespaced-impersonation).",
			"the deployment controller may not impersonate ServiceAccounts everywhere, and there are no deployments yet that show where it must")
		return
	}
	e.add(check, CheckOK, "", "the deployment controller may impersonate the ServiceAccounts of the %s that have deployments", view.Plural(len(namespaces), "namespace"))
}
