// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// overlaid adapts the manifests of a bundle by Options.Overlay, if they could be read, and adds what is wrong then to the
// problems. The identities of the manifests have to be checked before. about is what a registry+v1 bundle says beside its objects.
func overlaid(manifests []manifest.Manifest, problems []Problem, o Options, about registryv1.Rendered) (overlay.Result, []Problem) {
	if len(problems) > 0 || !o.Overlay.Changes() {
		return overlay.Result{Manifests: manifests}, problems
	}
	scopes := bundleScopes(manifests)
	var companions []manifest.ID
	for _, name := range about.Secrets {
		companions = append(companions, manifest.ID{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: o.InstallNamespace, Name: name})
	}
	adapted, problems := overlay.Apply(manifests, overlay.Bundle{
		Namespace: o.InstallNamespace, RelatedImages: about.RelatedImages, Companions: companions, Limits: o.Limits,
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
	if len(adapted.Manifests) == 0 {
		return adapted, []Problem{{Rule: overlay.Rule, Message: "the patches of spec.processors delete every object of the bundle", Remedy: "let a patch with $patch: delete select fewer objects"}}
	}
	return adapted, manifest.Identities(adapted.Manifests)
}

// warnings are those of the converter and of the overlays, sorted.
func warnings(converter []string, others ...[]string) []string {
	more := slices.Concat(others...)
	if len(more) == 0 {
		return converter
	}
	all := slices.Concat(converter, more)
	slices.Sort(all)
	return all
}

// served are the certificates of Services, in Secrets, as these are called now.
func served(certificates []Certificate, adapted overlay.Result) []Certificate {
	all := slices.Clone(certificates)
	for i := range all {
		all[i].Secret = adapted.Name(schema.GroupKind{Kind: "Secret"}, all[i].Namespace, all[i].Secret)
		all[i].DNSNames = slices.Clone(all[i].DNSNames)
		for j, host := range all[i].DNSNames {
			name, rest, _ := strings.Cut(host, ".")
			all[i].DNSNames[j] = adapted.Name(schema.GroupKind{Kind: "Service"}, all[i].Namespace, name) + "." + rest
		}
	}
	slices.SortFunc(all, func(a, b Certificate) int { return strings.Compare(a.Secret, b.Secret) })
	return all
}
