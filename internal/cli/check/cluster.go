// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// oldestKubernetes is the first version with the APIs that Satchel needs: ValidatingAdmissionPolicy.
const oldestKubernetes = "1.30.0"

// kubernetes looks at the version of the cluster.
func (e *Examiner) kubernetes() error {
	const check = "Kubernetes"
	found, err := e.Discovery.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the cluster for its version: %w", err)
	}
	parsed, err := version.ParseGeneric(found.GitVersion)
	switch {
	case err != nil:
		e.add(check, CheckUnknown, "", "the cluster calls its version %q", found.GitVersion)
	case parsed.LessThan(version.MustParseGeneric(oldestKubernetes)):
		e.add(check, CheckFailed, "Upgrade the cluster.", "%s is older than %s, and Satchel needs its ValidatingAdmissionPolicy", found.GitVersion, oldestKubernetes)
	default:
		e.add(check, CheckOK, "", "%s", found.GitVersion)
	}
	return nil
}

// admission checks that the cluster serves ValidatingAdmissionPolicy, which prevents tenants from switching approvals off.
func (e *Examiner) admission(context.Context) {
	const check = "Admission policies"
	served, err := e.Discovery.ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	switch {
	case err != nil:
		e.add(check, CheckUnknown, "", "admissionregistration.k8s.io/v1 cannot be read: %v", err)
	case !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == "validatingadmissionpolicies" }):
		e.add(check, CheckFailed, "Upgrade the cluster, or enable that API.", "ValidatingAdmissionPolicy is not served; without it tenants can switch approvals off")
	default:
		e.add(check, CheckOK, "", "ValidatingAdmissionPolicy is served")
	}
}

// kindNames are Satchel's kinds, and their plurals and short names.
var kindNames = []string{
	"bundledeployment", "bundledeployments", "bdep", "bundlesource", "bundlesources", "bsrc", "bundleapproval", "bundleapprovals",
	"bundlecatalog", "bundlecatalogs", "bcat", "bundleimagepolicy", "bundleimagepolicies", "bimg",
}

// names looks for kinds of other projects that kubectl could confuse with Satchel's.
func (e *Examiner) names(context.Context) {
	const check = "Names"
	_, lists, err := e.Discovery.ServerGroupsAndResources()
	if err != nil && len(lists) == 0 {
		e.add(check, CheckUnknown, "", "the kinds of the cluster cannot be listed: %v", err)
		return
	}
	var taken []string
	for _, list := range lists {
		if strings.HasPrefix(list.GroupVersion, v1alpha1.GroupVersion.Group+"/") {
			continue
		}
		for _, r := range list.APIResources {
			if own := SharedName(r); own != "" {
				taken = append(taken, fmt.Sprintf("%s of %s", own, list.GroupVersion))
			}
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		e.add(check, CheckWarning, "Write bundledeployments.satchel.dev in full with kubectl; this program always does.", "other API groups have kinds of the same names: %s", strings.Join(slices.Compact(taken), ", "))
		return
	}
	e.add(check, CheckOK, "", "no other API group has kinds of the same names")
}

// SharedName is a name that a resource has in common with Satchel's kinds.
func SharedName(r metav1.APIResource) string {
	if strings.Contains(r.Name, "/") {
		return ""
	}
	for _, name := range append([]string{r.Name, strings.ToLower(r.Kind)}, r.ShortNames...) {
		if slices.Contains(kindNames, name) {
			return name
		}
	}
	return ""
}

// volumes checks that volumes can be provisioned for the controllers.
func (e *Examiner) volumes(ctx context.Context) {
	const check = "Volumes"
	classes, err := e.Bodies.Resource(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.add(check, CheckUnknown, "", "storage classes cannot be listed: %s", e.WhyNot(err))
		return
	}
	for _, class := range classes.Items {
		if class.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] == "true" {
			e.add(check, CheckOK, "", "the default storage class is %s", class.GetName())
			return
		}
	}
	e.add(check, CheckWarning, "Make a class the default, or name one in the PersistentVolumeClaims of config/manager.",
		"there is no default storage class, and each controller wants a volume (10 GiB and 2 GiB)")
}

// present checks whether Satchel is installed already.
func (e *Examiner) present(ctx context.Context) {
	const check = "Installed"
	crd, err := e.One(ctx, kit.DefinitionsResource, "", kit.Deployments.Resource+"."+v1alpha1.GroupVersion.Group, true)
	switch {
	case apierrors.IsNotFound(err):
		e.add(check, CheckOK, "", "Satchel is not installed yet")
	case err != nil:
		e.add(check, CheckUnknown, "", "the CRDs cannot be read: %s", e.WhyNot(err))
	default:
		e.add(check, CheckOK, "", "Satchel is installed already (%s), and would be upgraded", strings.Join(ServedVersions(crd.Body), ", "))
	}
}

// ServedVersions are the versions of a CRD that are served.
func ServedVersions(crd *unstructured.Unstructured) []string {
	var served []string
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		one, _ := v.(map[string]any)
		if isServed, _ := one["served"].(bool); isServed {
			name, _ := one["name"].(string)
			served = append(served, name)
		}
	}
	return served
}

// WhyNot is an error for people: for a missing permission, the shortest form.
func (e *Examiner) WhyNot(err error) string {
	if apierrors.IsForbidden(err) {
		return "you may not"
	}
	return view.OneLine(err.Error(), 0)
}
