// SPDX-License-Identifier: Apache-2.0

// Package imagepolicy decides by BundleImagePolicies how an image is fetched. It is pure: it reads no cluster and no registry.
//
// Two sets of policies are evaluated, each by itself: those of the shared namespace, then those of the namespace of the image.
// What the shared ones demand always holds:
//
//	deny           one of the two sets denies
//	verify         all demands of both sets
//	source: Never  one of the two sets says so; with the shared one, mirrors of the other one are not used
//	mirrors        the shared ones, then the local ones that the shared policies do not deny
package imagepolicy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Policies are the BundleImagePolicies that count in a namespace.
type Policies struct {
	// Namespace is that of the images, and SharedNamespace the one with policies for all; "" for none.
	Namespace, SharedNamespace string
	// Shared are the policies of the shared namespace, and Local those of Namespace. In the shared namespace itself, Local is empty.
	Shared, Local []v1alpha1.BundleImagePolicy
}

// Rule is an item of a policy that counts for an image.
type Rule struct {
	*v1alpha1.ImageRule
	// Namespace and Policy name the policy. The Secrets of the rule are in Namespace.
	Namespace, Policy string
	// Login permits the login in secretRef and the client certificate in certSecretRef.
	Login bool
	// Mirrors are those of the item for this image. Mirrors that do not count are left out.
	Mirrors []string
}

// Decision is how an image is fetched.
type Decision struct {
	// Denied is the rule that refuses the image; nil if it may be fetched.
	Denied *Rule
	// MirrorsOnly says that the registry in the name of the image is not contacted.
	MirrorsOnly bool
	// Rules count for the image: shared ones, then local ones.
	Rules []Rule
}

// Decide returns how an image is fetched. The name is a full one (image.FullName), without tag and digest.
func (p Policies) Decide(name string) Decision {
	shared, local := longest(p.Shared, name), longest(p.Local, name)
	var d Decision
	for _, r := range shared {
		r.Login = p.Namespace == p.SharedNamespace || slices.Contains(r.Tenants, v1alpha1.AllTenants) || slices.Contains(r.Tenants, p.Namespace)
		d.add(r)
	}
	sharedOnly := d.MirrorsOnly
	for _, r := range local {
		r.Login = true
		r.Mirrors = slices.DeleteFunc(r.Mirrors, func(mirror string) bool { return sharedOnly || p.closed(mirror) })
		d.add(r)
	}
	return d
}

// add has a rule count.
func (d *Decision) add(r Rule) {
	if r.Deny && d.Denied == nil {
		d.Denied = &r
	}
	d.MirrorsOnly = d.MirrorsOnly || r.Source == v1alpha1.ImageSourceNever
	d.Rules = append(d.Rules, r)
}

// closed tells whether the shared policies keep a place from being contacted: what has its name is denied, or comes from mirrors
// only.
func (p Policies) closed(place string) bool {
	return slices.ContainsFunc(longest(p.Shared, fullName(place)), func(r Rule) bool { return r.Deny || r.Source == v1alpha1.ImageSourceNever })
}

// DemandsSignature tells whether a rule demands a signature.
func (d Decision) DemandsSignature() bool {
	return slices.ContainsFunc(d.Rules, func(r Rule) bool { return r.Verify != nil })
}

// longest returns the rules with the longest prefix of a name, in the order of the names of their policies.
func longest(policies []v1alpha1.BundleImagePolicy, name string) []Rule {
	var rules []Rule
	best := -1
	for i := range policies {
		policy := &policies[i]
		for j := range policy.Spec.Images {
			item := &policy.Spec.Images[j]
			prefix := FullPrefix(item.Prefix)
			if !within(prefix, name) || len(prefix) < best {
				continue
			}
			if len(prefix) > best {
				best, rules = len(prefix), nil
			}
			rules = append(rules, Rule{ImageRule: item, Namespace: policy.Namespace, Policy: policy.Name, Mirrors: mirrorsOf(item, prefix, name)})
		}
	}
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(a.Policy, b.Policy) })
	return rules
}

// within tells whether a name is that of the prefix, or lies below it.
func within(prefix, name string) bool {
	return prefix == "" || name == prefix || strings.HasPrefix(name, prefix+"/")
}

// mirrorsOf are the places of the mirrors for a name.
func mirrorsOf(item *v1alpha1.ImageRule, prefix, name string) []string {
	if prefix == "" {
		return nil // the CRD refuses mirrors for all images
	}
	var places []string
	for _, mirror := range item.Mirrors {
		places = append(places, mirror+strings.TrimPrefix(name, prefix))
	}
	return places
}

// Concerns tells whether one of the rules of a policy is about an image, with whatever effect.
func Concerns(policy *v1alpha1.BundleImagePolicy, name string) bool {
	return slices.ContainsFunc(policy.Spec.Images, func(item v1alpha1.ImageRule) bool { return within(FullPrefix(item.Prefix), name) })
}
