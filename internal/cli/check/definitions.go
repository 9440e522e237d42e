// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// definedType is the Go type of a kind that a CRD defines.
type definedType struct {
	Resource string
	Spec     reflect.Type
	Status   reflect.Type
}

// DefinedTypes are the Go types of the kinds.
var DefinedTypes = []definedType{
	{kit.Deployments.Resource, reflect.TypeFor[v1alpha1.BundleDeploymentSpec](), reflect.TypeFor[v1alpha1.BundleDeploymentStatus]()},
	{kit.Sources.Resource, reflect.TypeFor[v1alpha1.BundleSourceSpec](), reflect.TypeFor[v1alpha1.BundleSourceStatus]()},
	{"bundleapprovals", reflect.TypeFor[v1alpha1.BundleApprovalSpec](), reflect.TypeFor[v1alpha1.BundleApprovalStatus]()},
	{"bundlecatalogs", reflect.TypeFor[v1alpha1.BundleCatalogSpec](), reflect.TypeFor[v1alpha1.BundleCatalogStatus]()},
	{"bundleimagepolicies", reflect.TypeFor[v1alpha1.BundleImagePolicySpec](), reflect.TypeFor[struct{}]()}, // it has no status
}

// definitions compares the CRDs in the cluster with the Go types of this program.
func (e *Examiner) definitions(ctx context.Context) {
	const check, apply = "CRDs", "Apply config/crd of the release that you use."
	var problems, versions []string
	state := CheckOK
	for _, t := range DefinedTypes {
		name := t.Resource + "." + v1alpha1.GroupVersion.Group
		crd, err := e.One(ctx, kit.DefinitionsResource, "", name, true)
		switch {
		case apierrors.IsNotFound(err):
			state, problems = CheckFailed, append(problems, name+" is missing")
			continue
		case err != nil:
			e.add(check, CheckUnknown, "", "%s cannot be read: %s", name, e.WhyNot(err))
			return
		}
		versions = ServedVersions(crd.Body)
		for _, p := range CRDProblems(crd.Body, t.Spec, t.Status) {
			problems = append(problems, name+" "+p.Text)
			if state != CheckFailed {
				state = p.State
			}
		}
	}
	if len(problems) > 0 {
		e.add(check, state, apply, "%s", strings.Join(problems, "; "))
		return
	}
	e.add(check, CheckOK, "", "%s kinds, served in %s, as this program knows them", fmt.Sprint(len(DefinedTypes)), strings.Join(versions, ", "))
}

// Difference is a problem of a CRD.
type Difference struct {
	State State
	Text  string
}

// CRDProblems compares one CRD.
func CRDProblems(crd *unstructured.Unstructured, spec, status reflect.Type) []Difference {
	if !ConditionTrue(crd, "Established") {
		return []Difference{{CheckFailed, "is not established"}}
	}
	schema := schemaOf(crd, v1alpha1.GroupVersion.Version)
	if schema == nil {
		return []Difference{{CheckFailed, "does not serve " + v1alpha1.GroupVersion.Version}}
	}
	var found []Difference
	for part, known := range map[string]reflect.Type{"spec": spec, "status": status} {
		properties, _, _ := unstructured.NestedMap(schema, "properties", part, "properties")
		fields := jsonFields(known)
		for _, field := range fields {
			if _, defined := properties[field]; !defined {
				found = append(found, Difference{CheckFailed, "is older than this program: it lacks " + part + "." + field})
			}
		}
		for field := range properties {
			if !slices.Contains(fields, field) {
				found = append(found, Difference{CheckWarning, "is newer than this program, which does not know " + part + "." + field})
			}
		}
	}
	slices.SortFunc(found, func(a, b Difference) int { return strings.Compare(a.Text, b.Text) })
	return found
}

// schemaOf is the schema of a served version of a CRD; nil when it is not served.
func schemaOf(crd *unstructured.Unstructured, version string) map[string]any {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		one, _ := v.(map[string]any)
		if served, _ := one["served"].(bool); !served || one["name"] != version {
			continue
		}
		schema, _, _ := unstructured.NestedMap(one, "schema", "openAPIV3Schema")
		return schema
	}
	return nil
}

// jsonFields are the fields of a type as JSON names them.
func jsonFields(t reflect.Type) []string {
	var fields []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields = append(fields, name)
		}
	}
	return fields
}

// ConditionTrue tells whether a condition of an object is True.
func ConditionTrue(o *unstructured.Unstructured, kind string) bool {
	status, _, _ := ConditionOf(o, kind)
	return status == "True"
}

// ConditionOf reads a condition of any object.
func ConditionOf(o *unstructured.Unstructured, kind string) (status, reason, message string) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range all {
		one, _ := c.(map[string]any)
		if one["type"] == kind {
			status, _ = one["status"].(string)
			reason, _ = one["reason"].(string)
			message, _ = one["message"].(string)
			return status, reason, message
		}
	}
	return "", "", ""
}
