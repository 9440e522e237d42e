// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// overlaid adapts the manifests of a bundle by Options.Overlay, if they could be read, and adds what is wrong then to the
// problems. Related are the images that a registry+v1 bundle lists.
func overlaid(manifests []manifest.Manifest, problems []Problem, o Options, related ...string) (overlay.Result, []Problem) {
	if len(problems) > 0 {
		return overlay.Result{Manifests: manifests}, problems
	}
	scopes := bundleScopes(manifests)
	adapted, problems := overlay.Apply(manifests, overlay.Bundle{
		Namespace: o.InstallNamespace, RelatedImages: related, Limits: o.Limits,
		ClusterScoped: func(kind schema.GroupKind) bool {
			if scope, ok := scopes[kind]; ok {
				return scope == Cluster
			}
			return ScopeOf(kind) == Cluster
		},
	}, o.Overlay)
	if len(problems) > 0 {
		return overlay.Result{Manifests: manifests}, problems
	}
	if o.Overlay.Changes() && len(adapted.Manifests) == 0 {
		return adapted, []Problem{{Rule: overlay.Rule, Message: "spec.patches delete every object of the bundle", Remedy: "let a patch with $patch: delete select fewer objects"}}
	}
	return adapted, manifest.Identities(adapted.Manifests)
}

// warnings are those of the converter and of the overlays, sorted.
func warnings(converter, overlays []string) []string {
	if len(overlays) == 0 {
		return converter
	}
	all := slices.Concat(converter, overlays)
	slices.Sort(all)
	return all
}

// served are the certificates of Services as these are called now.
func served(certificates []Certificate, adapted overlay.Result) []Certificate {
	all := slices.Clone(certificates)
	for i := range all {
		all[i].DNSNames = slices.Clone(all[i].DNSNames)
		for j, host := range all[i].DNSNames {
			name, rest, _ := strings.Cut(host, ".")
			all[i].DNSNames[j] = adapted.Name(schema.GroupKind{Kind: "Service"}, all[i].Namespace, name) + "." + rest
		}
	}
	return all
}
