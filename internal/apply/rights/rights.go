// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/crds"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/internal/apply/plan/pruning"
)

// Request is the input of Of.
type Request struct {
	// Deployment names the BundleDeployment; its namespace is that of the account.
	Deployment inventory.Owner
	// ServiceAccount is the account's name.
	ServiceAccount string
	// InstallNamespace is where the account may read the causes of failures; empty: nowhere.
	InstallNamespace string
	// Objects are all that the deployment applies, the Secrets of certificates
	// included (see Secret). Of them only ID, Resource and, where they grant permissions,
	// Desired are read.
	Objects []plan.Object
	// Hooks are the objects that run once.
	Hooks []plan.Object
	// Applied are the objects of the revision that is applied, read like Objects: it is kept from
	// drifting until the other one is applied, and may be returned to.
	Applied []plan.Object
	// Gone are objects of an earlier version that an upgrade prunes; those that are
	// in Objects, too, are skipped.
	Gone []plan.Object
	// Pruning says how objects are deleted or released.
	Pruning pruning.Policy
	// Namespaces have to exist in addition to those of the objects.
	Namespaces []string
	// Remote: the account is on another cluster than the BundleDeployment, and has to be
	// allowed to read the identity of that cluster.
	Remote bool
	// Inputs are Secrets and ConfigMaps that the account reads by their names, and should watch.
	Inputs []inventory.ID
	// Strict limits all permissions to the objects by name. Without it, permissions survive
	// other names in the next version: see unnamed.
	Strict bool
}

// Grant is rules at a place.
type Grant struct {
	Namespace string // empty: in the cluster
	Rules     []rbacv1.PolicyRule
}

// Rights are the permissions that an account needs, and those that it should have, by place: the cluster
// first, then the namespaces in order. The rules of both are minimal: none is
// covered by the others. Permissions in a namespace that the bundle creates are needed
// cluster-wide, for no Role can exist there before.
type Rights struct {
	Required, Recommended []Grant
}

// Of computes the permissions. The error names an invalid object, or says that its
// rules are too many, or cannot be written into a role: a *TextError.
func Of(r Request) (Rights, error) {
	for _, object := range slices.Concat(r.Objects, r.Hooks, r.Applied, r.Gone) {
		if err := checkObject(object); err != nil {
			return Rights{}, fmt.Errorf("computing the permissions for %s: %w", object.ID, err)
		}
	}
	demands, err := r.demands()
	if err != nil {
		return Rights{}, err
	}
	if spread(demands) > mostHeld {
		return Rights{}, fmt.Errorf("the roles of the bundle are bound in so many places that their permissions amount to more than %d", mostHeld)
	}
	required := places{}
	recommended := places{}
	brought := r.brought()
	for _, need := range Needs(r) {
		required.need(brought.place(need.Namespace), need, r.Strict)
	}
	for _, input := range r.Inputs {
		required.at(input.Namespace).add(reading("get", input))
	}
	for i := range demands {
		demands[i].Namespace = brought.place(demands[i].Namespace)
	}
	required.hold(demands)
	r.recommend(recommended, brought)
	if err := required.check(); err != nil {
		return Rights{}, err
	}
	return Rights{Required: required.grants(places{}), Recommended: recommended.grants(required)}, nil
}

// mostHeld is the maximum number of single permissions in the demands of one bundle, each
// counted at each place. The published operator with the most permissions may be
// bound three hundred times.
const mostHeld = 10 * Limit

func spread(demands []Demand) int {
	sum := 0
	for _, demand := range demands {
		sum += len(demand.Rights)
	}
	return sum
}

// brought are the namespaces that the bundle creates.
type brought map[string]bool

func (r Request) brought() brought {
	names := brought{}
	for _, object := range r.Objects {
		if ownership.IsNamespace(object.ID) && !r.exists(object.Name) {
			names[object.Name] = true
		}
	}
	return names
}

// exists tells that a namespace exists before the bundle: that of the
// BundleDeployment, and those of every cluster.
func (r Request) exists(namespace string) bool {
	return namespace == r.Deployment.Namespace || everywhere(namespace)
}

// everywhere tells that every cluster has a namespace.
func everywhere(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// place is where permissions in a namespace can be granted before the bundle is installed.
func (b brought) place(namespace string) string {
	if b[namespace] {
		return ""
	}
	return namespace
}

// demands are those of the objects; the error joins all failures.
func (r Request) demands() ([]Demand, error) {
	demands, wrong := Demands(slices.Concat(r.Objects, r.Hooks))
	before, alsoWrong := Demands(r.Applied) // a role may have other rules there
	demands, wrong = append(demands, before...), append(wrong, alsoWrong...)
	errs := make([]error, 0, len(wrong))
	for _, err := range wrong {
		errs = append(errs, err)
	}
	return demands, errors.Join(errs...)
}

// hold adds the demanded permissions. If they together contain the permission that
// stands in for a demand, like a role that may `*` on all of RBAC, that one
// is enough: the API server then does not check the others.
func (p places) hold(demands []Demand) {
	all := places{}
	for namespace, rights := range p {
		all.at(namespace).add(slices.Collect(maps.Keys(rights))...)
	}
	for _, demand := range demands {
		all.at(demand.Namespace).add(demand.Rights...)
		if demand.Unknown {
			all.at(demand.Namespace).add(demand.Instead)
		}
	}
	for _, demand := range demands {
		if namespace, right, found := all.covering(demand.Namespace, demand.Instead); found {
			p.at(namespace).add(right)
			continue
		}
		p.at(demand.Namespace).add(demand.Rights...)
	}
}

// covering returns a permission, and its place, that covers the given one; preferably a cluster-wide
// one, which is kept in any case.
func (p places) covering(namespace string, right Right) (string, Right, bool) {
	for _, at := range []string{"", namespace} {
		widest, found := Right{}, false
		for wide := range right.wider() { // the last one is the widest
			if _, here := p[at][wide]; here {
				widest, found = wide, true
			}
		}
		if found {
			return at, widest, true
		}
	}
	return "", Right{}, false
}

// Need is a permission for one verb on one object, at the place where it has to be held.
type Need struct {
	Object    inventory.ID
	Namespace string
	Right     Right
}

// Needs are the permissions for the objects themselves: each is read, created, changed
// and, unless it is kept in the end, as CRDs mostly are, deleted.
func Needs(r Request) []Need {
	var needs []Need
	here := map[inventory.ID]bool{}
	for _, object := range r.Objects {
		here[object.ID] = true
		needs = append(needs, Lifelong(object, r.Pruning)...)
	}
	for _, object := range r.Applied {
		if !here[object.ID] {
			here[object.ID] = true
			needs = append(needs, Lifelong(object, r.Pruning)...)
		}
	}
	for _, hook := range r.Hooks {
		needs = append(needs, Hook(hook)...)
	}
	for _, object := range r.Gone {
		if !here[object.ID] {
			needs = append(needs, Ending(object, r.Pruning)...)
		}
	}
	if r.Remote {
		system := inventory.ID{Kind: "Namespace", Name: metav1.NamespaceSystem}
		needs = append(needs, Need{Object: system, Right: Right{Verb: "get", Resource: "namespaces", Name: system.Name}})
	}
	return needs
}

// Hook are the permissions for an object that runs once, and is deleted in any case.
func Hook(object plan.Object) []Need { return Verbs(object, "create", "delete", "get", "patch") }

// Lifelong are the permissions for an object over its whole life, up to its deletion or release.
func Lifelong(object plan.Object, pruning pruning.Policy) []Need {
	switch {
	case pruning.Never(), crds.IsCRD(object.ID) && !pruning.Definitions:
		return Verbs(object, "create", "get", "patch")
	case crds.IsCRD(object.ID):
		return append(Verbs(object, "create", "delete", "get", "patch"), listing(object))
	}
	return Verbs(object, "create", "delete", "get", "patch")
}

// Ending are the permissions for an object that is not desired any more: an object that cannot be
// deleted is labelled as orphaned.
func Ending(object plan.Object, pruning pruning.Policy) []Need {
	switch {
	case pruning.Never(), crds.IsCRD(object.ID) && !pruning.Definitions:
		return Verbs(object, "get", "patch")
	case crds.IsCRD(object.ID): // its resources may be in use
		return append(Verbs(object, "delete", "get", "patch"), listing(object))
	case ownership.IsNamespace(object.ID): // it may not be empty
		return Verbs(object, "delete", "get", "patch")
	}
	return Verbs(object, "delete", "get")
}

// listing is the permission to see whether any resource of a CRD is left.
func listing(crd plan.Object) Need {
	resource, group, _ := strings.Cut(crd.Name, ".") // the API server accepts no other name
	return Need{Object: crd.ID, Right: Right{Verb: "list", Group: group, Resource: resource}}
}

// Verbs are needs on one object.
func Verbs(object plan.Object, verbs ...string) []Need {
	needs := make([]Need, 0, len(verbs))
	for _, verb := range verbs {
		needs = append(needs, Need{Object: object.ID, Namespace: object.Namespace, Right: Right{
			Verb: verb, Group: object.Resource.Group, Resource: object.Resource.Resource, Name: object.Name,
		}})
	}
	return needs
}

// Secret is a Secret that a deployment writes in addition to its rendered objects.
func Secret(namespace, name string) plan.Object {
	return plan.Object{
		ID:   inventory.ID{Kind: "Secret", Namespace: namespace, Name: name},
		Kind: plan.Kind{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespaced: true},
	}
}

// recommend adds permissions with which the engine reads a kind with one request instead of one an
// object and detects drift at once, finds causes, and preserves data when a conversion
// webhook is removed. Secrets are not among them: permission to list them is permission to read them all. Neither are
// cluster-wide permissions for the sake of one namespace.
func (r Request) recommend(at places, brought brought) {
	for _, input := range r.Inputs {
		at.at(input.Namespace).add(reading("watch", input))
	}
	for _, object := range slices.Concat(r.Objects, r.Hooks, r.Applied) {
		if crds.IsCRD(object.ID) && object.Desired != nil {
			at.at("").add(migrating(object)...)
		}
		if brought[object.Namespace] {
			continue
		}
		if of := object.Resource.GroupResource(); of.Resource != "secrets" || of.Group != "" {
			at.at(object.Namespace).add(verbs(of, "", "list", "watch")...)
		}
		if object.Namespace != "" {
			at.at(object.Namespace).add(verbs(namespaces, object.Namespace, "get")...)
		}
	}
	if brought[r.InstallNamespace] || r.InstallNamespace == "" {
		return
	}
	at.at(r.InstallNamespace).add(verbs(namespaces, r.InstallNamespace, "get")...)
	for _, of := range causes {
		at.at(r.InstallNamespace).add(verbs(of, "", "get", "list")...)
	}
}

// migrating are the permissions for rewriting the resources of a CRD in one version, before
// its conversion webhook is deleted with the bundle. Without them, fields that only other versions
// have are lost.
func migrating(object plan.Object) []Right {
	strategy, _, _ := unstructured.NestedString(object.Desired.Object, "spec", "conversion", "strategy")
	if strategy != "Webhook" {
		return nil
	}
	rights := verbs(schema.GroupResource{Group: object.Resource.Group, Resource: "customresourcedefinitions/status"}, object.Name, "patch")
	for _, definition := range crds.Definitions([]*unstructured.Unstructured{object.Desired}) {
		rights = append(rights, verbs(schema.GroupResource{Group: definition.Group, Resource: definition.Plural}, "", "list", "patch")...)
	}
	return rights
}

// causes are the resources that show why a workload does not start.
var causes = []schema.GroupResource{
	{Resource: "pods"}, {Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Group: "apps", Resource: "replicasets"},
}

var namespaces = schema.GroupResource{Resource: "namespaces"}

func verbs(of schema.GroupResource, name string, verbs ...string) []Right {
	rights := make([]Right, 0, len(verbs))
	for _, verb := range verbs {
		rights = append(rights, Right{Verb: verb, Group: of.Group, Resource: of.Resource, Name: name})
	}
	return rights
}

// places are sets of permissions by namespace; "" is the cluster.
type places map[string]set

func (p places) at(namespace string) set {
	if p[namespace] == nil {
		p[namespace] = set{}
	}
	return p[namespace]
}

// grants are the minimal rules of all places, without those that are held already.
func (p places) grants(held places) []Grant {
	var grants []Grant
	for _, namespace := range slices.Sorted(maps.Keys(p)) {
		wanted := set{}
		for right := range p[namespace] {
			if !held[namespace].covers(right) && !held[""].covers(right) {
				wanted.add(right)
			}
		}
		everywhere := p[""]
		if namespace == "" {
			everywhere = nil
		}
		if minimal := wanted.minimal(everywhere); len(minimal) > 0 {
			grants = append(grants, Grant{Namespace: namespace, Rules: minimal.rules()})
		}
	}
	return grants
}
