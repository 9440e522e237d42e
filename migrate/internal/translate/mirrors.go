// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/imagepolicy"
)

// Limits of a BundleImagePolicy.
const (
	mostRules   = 128
	mostMirrors = 8
)

// placePattern is that of prefixes and mirrors in the CRD of BundleImagePolicy.
var placePattern = regexp.MustCompile(`^([a-z0-9-]+([.][a-z0-9-]+)+|localhost|[a-z0-9-]+([.][a-z0-9-]+)*:[1-9][0-9]{0,4}|[[][0-9a-f:.]+[]](:[1-9][0-9]{0,4})?|` +
	`[a-z0-9-]+([.][a-z0-9-]+)+:[1-9][0-9]{0,4})(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$`)

// migrateDigestMirrors makes a BundleImagePolicy of an ImageDigestMirrorSet of OpenShift.
func migrateDigestMirrors(_ *input, r *reading) { r.mirrors("imageDigestMirrors", false) }

// migrateTagMirrors makes one of an ImageTagMirrorSet.
func migrateTagMirrors(_ *input, r *reading) {
	r.note("tags: true lets the mirrors resolve tags; they are asked for images with a digest, too")
	r.mirrors("imageTagMirrors", true)
}

// migrateContentPolicy makes one of an ImageContentSourcePolicy, the predecessor of ImageDigestMirrorSet.
func migrateContentPolicy(_ *input, r *reading) { r.mirrors("repositoryDigestMirrors", false) }

// mirrors translates the entries of a set of mirrors. Those of the same source are one rule.
func (r *reading) mirrors(key string, tags bool) {
	var rules []v1alpha1.ImageRule
	for _, entry := range r.spec.list(key) {
		rule := r.mirrorRule(entry)
		entry.rest()
		same := slices.IndexFunc(rules, func(other v1alpha1.ImageRule) bool { return other.Prefix == rule.Prefix })
		if same < 0 {
			rules = append(rules, rule)
			continue
		}
		for _, mirror := range rule.Mirrors {
			if !contains(rules[same].Mirrors, mirror) {
				rules[same].Mirrors = append(rules[same].Mirrors, mirror)
			}
		}
		if rule.Source == v1alpha1.ImageSourceNever {
			rules[same].Source = v1alpha1.ImageSourceNever
		}
	}
	rules = slices.DeleteFunc(rules, r.withoutEffect)
	for i := range rules {
		r.bounded(&rules[i], tags)
	}
	if len(rules) == 0 {
		r.refuse(ruleMissing, "it has no mirrors ("+r.spec.at(key)+")", "leave it out")
		return
	}
	r.policies(rules)
}

// mirrorRule reads one entry.
func (r *reading) mirrorRule(entry fields) v1alpha1.ImageRule {
	rule := v1alpha1.ImageRule{Prefix: r.place(entry.at("source"), entry.text("source"))}
	for _, mirror := range entry.texts("mirrors") {
		rule.Mirrors = append(rule.Mirrors, r.place(entry.at("mirrors"), mirror))
	}
	switch policy := entry.text("mirrorSourcePolicy"); policy {
	case "", "AllowContactingSource":
	case "NeverContactSource":
		rule.Source = v1alpha1.ImageSourceNever
	default:
		r.refuse(ruleValue, fmt.Sprintf("%s is %s, not AllowContactingSource or NeverContactSource", entry.at("mirrorSourcePolicy"), quoted(policy)), "correct it")
	}
	return rule
}

// place returns a prefix or a mirror in the spelling of a BundleImagePolicy.
func (r *reading) place(field, written string) string {
	lower := strings.ToLower(written)
	place := imagepolicy.FullPrefix(lower)
	host, _, _ := strings.Cut(lower, "/")
	server, err := endpoint.Parse(host)
	switch {
	case strings.HasPrefix(place, "*."):
		r.refuse(ruleSource, field+" is "+quoted(written)+": a BundleImagePolicy has no wildcards", "write an entry for each host")
	case len(place) > 255 || !placePattern.MatchString(place) || err != nil || server.Port == endpoint.HTTP:
		r.refuse(ruleValue, field+" is "+quoted(written)+", not the host of a registry with path components, without a tag", "correct it")
	}
	return place
}

// withoutEffect tells whether a rule changes nothing: without mirrors the source is contacted, unless that is never.
func (r *reading) withoutEffect(rule v1alpha1.ImageRule) bool {
	without := len(rule.Mirrors) == 0 && rule.Source != v1alpha1.ImageSourceNever
	if without {
		r.note("the entry of %s has no mirrors, and no effect: it is left out", quoted(rule.Prefix))
	}
	return without
}

// bounded finishes a rule.
func (r *reading) bounded(rule *v1alpha1.ImageRule, tags bool) {
	if len(rule.Mirrors) == 0 {
		rule.Source = ""
		rule.Deny = true
		r.note("NeverContactSource without mirrors becomes deny: images of %s are refused", quoted(rule.Prefix))
		return
	}
	rule.Tags = tags
	if len(rule.Mirrors) > mostMirrors {
		r.refuse(ruleValue, fmt.Sprintf("%s has %d mirrors, and a BundleImagePolicy at most %d for a prefix", quoted(rule.Prefix), len(rule.Mirrors), mostMirrors), "remove some")
	}
}

// policies adds BundleImagePolicies with the rules.
func (r *reading) policies(rules []v1alpha1.ImageRule) {
	namespace := r.sharedNamespace()
	r.note("the mirrors count for images of bundles and catalogs, not for those of Pods: keep it for those. Logins and authorities of nodes are not used: " +
		"name them in secretRef and certSecretRef")
	first := r.metadata(namespace)
	for i := 0; len(rules) > 0; i++ {
		part := rules[:min(len(rules), mostRules)]
		rules = rules[len(part):]
		p := &v1alpha1.BundleImagePolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.BundleImagePolicyKind},
			ObjectMeta: *first.DeepCopy(),
			Spec:       v1alpha1.BundleImagePolicySpec{Images: part},
		}
		if i > 0 {
			p.Name = fmt.Sprintf("%s-%d", first.Name, i+1)
		}
		r.made = append(r.made, p)
	}
}
