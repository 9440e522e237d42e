// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// object is what both kinds have in common.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// kind is one of Satchel's kinds as users name it.
type kind struct {
	name     string   // BundleDeployment
	word     string   // deployment
	resource string   // bundledeployments
	aliases  []string // further names that users may know
	empty    func() object
	list     func() client.ObjectList
}

// deployments and sources are the kinds.
var (
	deployments = kind{
		name: v1alpha1.BundleDeploymentKind, word: "deployment", resource: "bundledeployments",
		aliases: []string{"deployments", "bdep", "bundledeployment", "bundledeployments.satchel.dev", "bundledeployment.satchel.dev"},
		empty:   func() object { return new(v1alpha1.BundleDeployment) },
		list:    func() client.ObjectList { return new(v1alpha1.BundleDeploymentList) },
	}
	sources = kind{
		name: v1alpha1.BundleSourceKind, word: "source", resource: "bundlesources",
		aliases: []string{"sources", "bsrc", "bundlesource", "bundlesources.satchel.dev", "bundlesource.satchel.dev"},
		empty:   func() object { return new(v1alpha1.BundleSource) },
		list:    func() client.ObjectList { return new(v1alpha1.BundleSourceList) },
	}
	kinds = []kind{deployments, sources}
)

// kindNamed returns the kind that a word of the user means.
func kindNamed(word string) (kind, bool) {
	word = strings.ToLower(word)
	for _, k := range kinds {
		if word == k.word || word == k.resource || slices.Contains(k.aliases, word) {
			return k, true
		}
	}
	return kind{}, false
}

// target is one object that the user named; without a name it is all objects of the kind.
type target struct {
	kind kind
	name string
}

// parseTargets reads [KIND] [NAME...] and KIND/NAME, as kubectl does. Without a kind, deployments are meant; the word
// "all" means both kinds.
func parseTargets(args []string) []target {
	current := deployments
	if len(args) > 0 {
		if args[0] == "all" {
			return []target{{kind: deployments}, {kind: sources}}
		}
		if k, found := kindNamed(args[0]); found {
			current, args = k, args[1:]
		}
	}
	if len(args) == 0 {
		return []target{{kind: current}}
	}
	targets := make([]target, 0, len(args))
	for _, arg := range args {
		t := target{kind: current, name: arg}
		if word, name, found := strings.Cut(arg, "/"); found {
			if k, known := kindNamed(word); known {
				t = target{kind: k, name: name}
			}
		}
		targets = append(targets, t)
	}
	return targets
}
