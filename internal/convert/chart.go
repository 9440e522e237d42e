// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// convertHelm renders a chart: of a folder, or the package in it that is named.
func convertHelm(e entered, o Options) (Result, error) {
	options, problems := e.withFiles(o)
	if err := manifest.AsError(problems); err != nil {
		return Result{}, err
	}
	rendered, problems := helm.Convert(e.root, e.packaged, o.InstallNamespace, options, o.Limits)
	all := slices.Clone(rendered.Manifests)
	hooks := make(map[*unstructured.Unstructured]helm.Hook, len(rendered.Hooks))
	for _, h := range rendered.Hooks {
		all = append(all, h.Manifest)
		hooks[h.Object] = h
	}
	adapted, problems := overlaid(all, problems, o, registryv1.Rendered{})
	n := normalizer{namespace: o.InstallNamespace, limits: o.Limits}
	objects := slices.DeleteFunc(slices.Clone(adapted.Manifests), func(m manifest.Manifest) bool { _, isHook := hooks[m.Object]; return isHook })
	problems = append(problems, n.run(objects)...)
	left, more := n.hooks(adapted.Manifests, hooks)
	if err := manifest.AsError(append(problems, more...)); err != nil {
		return Result{}, err
	}
	result := n.result(namespacesOf(left)...)
	result.Format = Helm
	result.Version = rendered.Version
	result.Hooks = left
	result.Warnings = warnings(rendered.Warnings, adapted.Warnings, n.warnings)
	return result, nil
}

// hooks normalizes those among the manifests, after the objects: CRDs among these decide on scopes.
func (n *normalizer) hooks(manifests []manifest.Manifest, hooks map[*unstructured.Unstructured]helm.Hook) ([]Hook, []Problem) {
	type run struct {
		id    manifest.ID
		event string
	}
	var left []Hook
	var problems []Problem
	seen := map[run]bool{}
	for _, m := range manifests {
		h, isHook := hooks[m.Object]
		metadata, ok := m.Object.Object["metadata"].(map[string]any)
		if !isHook || !ok {
			continue
		}
		problems = append(problems, n.object(m, metadata)...)
		for _, event := range h.Events {
			r := run{manifest.IDOf(m.Object), event}
			if seen[r] {
				problems = append(problems, m.Problem(manifest.RuleDuplicate, fmt.Sprintf("the same object is a hook for %s twice", event), "keep one of them"))
			}
			seen[r] = true
		}
		left = append(left, Hook{Object: m.Object, Events: h.Events, Weight: h.Weight, DeletePolicies: h.DeletePolicies})
	}
	return left, problems
}

// namespacesOf are those that hooks live in.
func namespacesOf(hooks []Hook) []string {
	names := make([]string, 0, len(hooks))
	for _, h := range hooks {
		names = append(names, h.Object.GetNamespace())
	}
	return names
}
