// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// Demand is what the API server asks of whoever writes an object that grants
// rights, beside the right to write it: to hold what the object grants, or one
// right that stands in for all of them.
type Demand struct {
	Object    inventory.ID // that is written
	Role      inventory.ID // whose rules are granted; of a Role or ClusterRole the object itself
	Namespace string       // where the rights have to be held; empty: in the cluster
	Rights    []Right
	// Instead is `escalate` or `bind` on the role; of a policy the right itself.
	Instead Right
	// Unknown: nobody can tell from the bundle what the role grants, so Rights are
	// empty, and only Instead is sure to do.
	Unknown bool
}

// demander reads what the objects of a bundle demand.
type demander struct {
	roles       map[inventory.ID]role
	definitions map[schema.GroupKind]plan.Definition
	left        int // of Limit
}

// role is a Role or ClusterRole of the bundle.
type role struct {
	rights     []Right
	aggregated bool
}

// Demands reads what the objects demand that grant rights, and names those that
// are not what their kind says. When the rules are too many, that is all that is
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

// ObjectError says what is wrong with an object that grants rights.
type ObjectError struct {
	Object inventory.ID
	Err    error
}

// Error implements error.
func (e *ObjectError) Error() string { return fmt.Sprintf("reading %s: %v", e.Object, e.Err) }

// Unwrap gives what is wrong.
func (e *ObjectError) Unwrap() error { return e.Err }

func definitions(objects []plan.Object) map[schema.GroupKind]plan.Definition {
	var desired []*unstructured.Unstructured
	for _, object := range objects {
		if object.Desired != nil {
			desired = append(desired, object.Desired)
		}
	}
	return plan.Definitions(desired)
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

// granting is what writing an object demands that hands out the rules of a role:
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

// parameters is what an admission policy with parameters demands: to read them all.
func (d *demander) parameters(object plan.Object) (Demand, bool) {
	version, _, _ := unstructured.NestedString(object.Desired.Object, "spec", "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(object.Desired.Object, "spec", "paramKind", "kind")
	of, err := schema.ParseGroupVersion(version)
	if kind == "" || err != nil {
		return Demand{}, false // without, or refused by the API server
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

// resourceOf the kinds that a binding may name.
var resourceOf = map[string]string{kindRole: "roles", kindClusterRole: "clusterroles"}

func isRole(id inventory.ID) bool { return id.Group == rbacv1.GroupName && resourceOf[id.Kind] != "" }

func isBinding(id inventory.ID) bool {
	return id.Group == rbacv1.GroupName && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding")
}
