// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Demand is what the API server's escalation check demands from the writer of an object that grants
// permissions, beside the permission to write it: every permission that the object grants, or one
// that stands in for all of them.
type Demand struct {
	Object    inventory.ID // that is written
	Role      inventory.ID // that grants the rules; for a Role or ClusterRole the object itself
	Namespace string       // where the permissions have to be held; empty: cluster-wide
	Rights    []Right
	// Instead is `escalate` or `bind` on the role; for a policy the permission itself.
	Instead Right
	// Unknown: the rules of the role are not in the bundle, so Rights are
	// empty, and only Instead is certain to suffice.
	Unknown bool
}

// demander reads the demands of a bundle's objects.
type demander struct {
	roles       map[inventory.ID]role
	definitions map[schema.GroupKind]crds.Definition
	left        int // of Limit
}

// role is a Role or ClusterRole of the bundle.
type role struct {
	rights     []Right
	aggregated bool
}

// Demands reads the demands of the objects that grant permissions, and names
// objects that cannot be decoded. When the rules are too many, only that error is
// returned.
func Demands(objects []plan.Object) ([]Demand, []*ObjectError) {
	d := demander{roles: map[inventory.ID]role{}, definitions: definitions(objects), left: Limit}
	var demands []Demand
	var wrong []*ObjectError
	for _, object := range objects {
		if !isRole(object.ID) || object.Desired == nil {
			continue
		}
		read, err := d.role(object.Desired)
		if err != nil {
			wrong = append(wrong, &ObjectError{Object: object.ID, Err: err})
		}
		if d.left < 0 {
			return nil, wrong[len(wrong)-1:]
		}
		d.roles[object.ID] = read
	}
	for _, object := range objects {
		demand, found, err := d.of(object)
		if err != nil {
			wrong = append(wrong, &ObjectError{Object: object.ID, Err: err})
		}
		if found {
			demands = append(demands, demand)
		}
	}
	return demands, wrong
}

// ObjectError describes an invalid object that grants permissions.
type ObjectError struct {
	Object inventory.ID
	Err    error
}

// Error implements error.
func (e *ObjectError) Error() string { return fmt.Sprintf("reading %s: %v", e.Object, e.Err) }

// Unwrap returns the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

func definitions(objects []plan.Object) map[schema.GroupKind]crds.Definition {
	var desired []*unstructured.Unstructured
	for _, object := range objects {
		if object.Desired != nil && crds.IsCRD(object.ID) {
			desired = append(desired, object.Desired)
		}
	}
	return crds.Definitions(desired)
}

func (d *demander) of(object plan.Object) (Demand, bool, error) {
	switch {
	case object.Desired == nil:
		return Demand{}, false, nil
	case isRole(object.ID):
		demand := d.granting(object.ID, object.ID)
		return demand, demand.Unknown || len(demand.Rights) > 0, nil
	case isBinding(object.ID):
		demand, err := d.binding(object)
		return demand, err == nil && (demand.Unknown || len(demand.Rights) > 0), err
	case policies[object.GroupKind()]:
		demand, found := d.parameters(object)
		return demand, found, nil
	}
	return Demand{}, false, nil
}

// granting is the demand for writing an object that grants the rules of a role:
// the role itself, or a binding of it.
func (d *demander) granting(object, of inventory.ID) Demand {
	verb := "bind"
	if object == of {
		verb = "escalate"
	}
	known, found := d.roles[of]
	demand := Demand{
		Object: object, Role: of, Namespace: object.Namespace, Rights: known.rights,
		Instead: Right{Verb: verb, Group: rbacv1.GroupName, Resource: resourceOf[of.Kind], Name: of.Name},
	}
	if !found || known.aggregated {
		demand.Rights, demand.Unknown = nil, true
	}
	return demand
}

func (d *demander) binding(object plan.Object) (Demand, error) {
	kind, _, _ := unstructured.NestedString(object.Desired.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(object.Desired.Object, "roleRef", "name")
	if resourceOf[kind] == "" || name == "" {
		return Demand{}, fmt.Errorf("its roleRef names no Role or ClusterRole")
	}
	of := inventory.ID{Group: rbacv1.GroupName, Kind: kind, Name: name}
	if kind == kindRole {
		of.Namespace = object.Namespace
	}
	return d.granting(object.ID, of), nil
}

func (d *demander) role(object *unstructured.Unstructured) (role, error) {
	var read rbacv1.ClusterRole // a Role has the same rules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"rules": object.Object["rules"], "aggregationRule": object.Object["aggregationRule"],
	}, &read); err != nil {
		return role{}, err
	}
	result := role{aggregated: read.AggregationRule != nil && len(read.AggregationRule.ClusterRoleSelectors) > 0}
	for _, rule := range read.Rules {
		if len(rule.NonResourceURLs) > 0 && object.GetKind() == kindRole {
			return role{}, errors.New("only a ClusterRole can grant URLs")
		}
		if d.left -= count(rule); d.left < 0 {
			return role{}, &TooManyError{}
		}
		for right := range each(rule) {
			result.rights = append(result.rights, right)
		}
	}
	return result, nil
}

// parameters is the demand of an admission policy with parameters: to read them all.
func (d *demander) parameters(object plan.Object) (Demand, bool) {
	version, _, _ := unstructured.NestedString(object.Desired.Object, "spec", "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(object.Desired.Object, "spec", "paramKind", "kind")
	of, err := schema.ParseGroupVersion(version)
	if kind == "" || err != nil {
		return Demand{}, false // without parameters, or refused by the API server
	}
	resource := Plural(kind)
	if definition, found := d.definitions[schema.GroupKind{Group: of.Group, Kind: kind}]; found {
		resource = definition.Plural
	}
	if !addressable(schema.GroupResource{Group: of.Group, Resource: resource}) {
		return Demand{}, false
	}
	read := Right{Verb: "get", Group: of.Group, Resource: resource}
	return Demand{Object: object.ID, Role: object.ID, Rights: []Right{read}, Instead: read}, true
}

// policies may have parameters.
var policies = map[schema.GroupKind]bool{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:   true,
}

const (
	kindRole        = "Role"
	kindClusterRole = "ClusterRole"
)

// resourceOf are the resources of the kinds that a binding may name.
var resourceOf = map[string]string{kindRole: "roles", kindClusterRole: "clusterroles"}

func isRole(id inventory.ID) bool { return id.Group == rbacv1.GroupName && resourceOf[id.Kind] != "" }

func isBinding(id inventory.ID) bool {
	return id.Group == rbacv1.GroupName && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding")
}
