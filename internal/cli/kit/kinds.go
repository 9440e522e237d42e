// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/view"
)

// Kind is one of Satchel's kinds as users name it.
type Kind struct {
	Name     string   // BundleDeployment
	Word     string   // deployment
	Resource string   // bundledeployments
	aliases  []string // further names that users may know
	Empty    func() view.Object
	List     func() client.ObjectList
}

// The kinds.
var (
	Deployments = Kind{
		Name: v1alpha1.BundleDeploymentKind, Word: "deployment", Resource: "bundledeployments",
		aliases: []string{"deployments", "bdep", "bundledeployment", "bundledeployments.satchel.dev", "bundledeployment.satchel.dev"},
		Empty:   func() view.Object { return new(v1alpha1.BundleDeployment) },
		List:    func() client.ObjectList { return new(v1alpha1.BundleDeploymentList) },
	}
	Sources = Kind{
		Name: v1alpha1.BundleSourceKind, Word: "source", Resource: "bundlesources",
		aliases: []string{"sources", "bsrc", "bundlesource", "bundlesources.satchel.dev", "bundlesource.satchel.dev"},
		Empty:   func() view.Object { return new(v1alpha1.BundleSource) },
		List:    func() client.ObjectList { return new(v1alpha1.BundleSourceList) },
	}
	// Rollouts are optional: a cluster may lack their kind.
	Rollouts = Kind{
		Name: v1alpha1.BundleRolloutKind, Word: "rollout", Resource: "bundlerollouts",
		aliases: []string{"rollouts", "broll", "bundlerollout", "bundlerollouts.satchel.dev", "bundlerollout.satchel.dev"},
		Empty:   func() view.Object { return new(v1alpha1.BundleRollout) },
		List:    func() client.ObjectList { return new(v1alpha1.BundleRolloutList) },
	}
	Catalogs = Kind{
		Name: v1alpha1.BundleCatalogKind, Word: "catalog", Resource: "bundlecatalogs",
		aliases: []string{"catalogs", "bcat", "bundlecatalog", "bundlecatalogs.satchel.dev", "bundlecatalog.satchel.dev"},
		Empty:   func() view.Object { return new(v1alpha1.BundleCatalog) },
		List:    func() client.ObjectList { return new(v1alpha1.BundleCatalogList) },
	}
	// Kinds are those that "all" means; Known are all that a command line may name.
	Kinds = []Kind{Deployments, Sources, Catalogs}
	Known = []Kind{Deployments, Sources, Catalogs, Rollouts}
)

// KindNamed returns the kind that a word of the user means.
func KindNamed(word string) (Kind, bool) {
	word = strings.ToLower(word)
	for _, k := range Known {
		if word == k.Word || word == k.Resource || slices.Contains(k.aliases, word) {
			return k, true
		}
	}
	return Kind{}, false
}

// Target is one object that the user named; without a name it is all objects of the kind.
type Target struct {
	Kind Kind
	Name string
}

// ParseTargets reads [KIND] [NAME...] and KIND/NAME, as kubectl does. Without a kind, deployments are meant; the word
// "all" means deployments, sources and catalogs.
func ParseTargets(args []string) []Target {
	current := Deployments
	if len(args) > 0 {
		if args[0] == "all" {
			return []Target{{Kind: Deployments}, {Kind: Sources}, {Kind: Catalogs}}
		}
		if k, found := KindNamed(args[0]); found {
			current, args = k, args[1:]
		}
	}
	if len(args) == 0 {
		return []Target{{Kind: current}}
	}
	targets := make([]Target, 0, len(args))
	for _, arg := range args {
		t := Target{Kind: current, Name: arg}
		if word, name, found := strings.Cut(arg, "/"); found {
			if k, known := KindNamed(word); known {
				t = Target{Kind: k, Name: name}
			}
		}
		targets = append(targets, t)
	}
	return targets
}

// FieldManager is the name under which the command line writes.
const FieldManager = v1alpha1.CommandFieldManager
