// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// exportOptions are the flags of export.
type exportOptions struct {
	kit.Selection
	output printer.Output
}

// ExportCommand returns the command export.
func ExportCommand(a *kit.App) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export [deployment|source|catalog] NAME...",
		GroupID: kit.GroupAct,
		Short:   "Print manifests to commit to Git",
		Long: `Prints BundleDeployments, BundleSources and BundleCatalogs as manifests: without status, without fields that the API
server sets, and without the labels and annotations of the tool that applied them. The BundleSource of an inline
spec.source is part of its BundleDeployment and not printed by itself. Secrets, ServiceAccounts and ConfigMaps that
they refer to are not exported; they are named on standard error.

Exit codes:

    0    printed
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.Example(`
# One deployment
satchel export podinfo > podinfo.yaml

# Everything of the namespace
satchel export all --all > namespace.yaml`),
		ValidArgsFunction: a.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.Targets(cmd, args)
			if err != nil {
				return err
			}
			return export(cmd.Context(), a, o, targets)
		},
	}
	o.Flags(cmd)
	a.OutputFlag(cmd, &o.output, printer.OutputYAML, printer.OutputJSON)
	return cmd
}

func export(ctx context.Context, a *kit.App, o exportOptions, targets []kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := toExport(ctx, c, o, targets)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		a.NothingChosen(c, o.Selection)
	}
	manifests, needed := make([]any, 0, len(found)), map[string]bool{}
	for _, raw := range found {
		exported := exported(raw)
		manifests = append(manifests, exported)
		references(exported["spec"], needed)
	}
	if len(needed) > 0 {
		fmt.Fprintf(a.Streams.ErrOut, "Not exported, but referred to: %s\n", strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
	}
	return printManifests(a, o.output, manifests)
}

// toExport reads the objects to export. An inline source is refused by its name, and left out of all objects.
func toExport(ctx context.Context, c *kit.Cluster, o exportOptions, targets []kit.Target) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, t := range targets {
		found, err := c.Find(ctx, kit.GetOptions{Selector: o.Selector}, t)
		if err != nil {
			return nil, err
		}
		for _, raw := range found {
			owner := metav1.GetControllerOf(raw)
			inline := t.Kind.Name == kit.Sources.Name && owner != nil && owner.Kind == v1alpha1.BundleDeploymentKind
			switch {
			case inline && t.Name != "":
				return nil, fmt.Errorf("%s is spec.source of the BundleDeployment %s: export that", t, owner.Name)
			case !inline:
				all = append(all, raw)
			}
		}
	}
	return all, nil
}

// printManifests writes YAML documents, or JSON.
func printManifests(a *kit.App, o printer.Output, manifests []any) error {
	switch {
	case o == printer.OutputJSON && len(manifests) == 1:
		return printer.PrintValue(a.Streams.Out, o, manifests[0])
	case o == printer.OutputJSON:
		return printer.PrintValue(a.Streams.Out, o, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": manifests})
	}
	for i, manifest := range manifests {
		if i > 0 {
			fmt.Fprintln(a.Streams.Out, "---")
		}
		if err := printer.PrintValue(a.Streams.Out, o, manifest); err != nil {
			return err
		}
	}
	return nil
}

// passing are the prefixes of labels and annotations that record which tool applied an object, or that request something.
var passing = []string{
	"kubectl.kubernetes.io/last-applied-configuration", meta.ReconcileRequestAnnotation,
	"kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/", "argocd.argoproj.io/instance", "argocd.argoproj.io/tracking-id",
	"argocd.argoproj.io/installation-id", "meta.helm.sh/", "fleet.cattle.io/", "objectset.rio.cattle.io/",
}

// exported is the manifest of an object.
func exported(raw *unstructured.Unstructured) map[string]any {
	metadata := map[string]any{"name": raw.GetName(), "namespace": raw.GetNamespace()}
	for field, values := range map[string]map[string]string{"labels": raw.GetLabels(), "annotations": raw.GetAnnotations()} {
		kept := map[string]any{}
		for key, value := range values {
			if !slices.ContainsFunc(passing, func(begin string) bool { return strings.HasPrefix(key, begin) }) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			metadata[field] = kept
		}
	}
	return map[string]any{"apiVersion": raw.GetAPIVersion(), "kind": raw.GetKind(), "metadata": metadata, "spec": raw.Object["spec"]}
}

// references collects the objects that a spec names, as KIND/NAME.
func references(value any, found map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			references(item, found)
		}
	case map[string]any:
		for key, item := range value {
			if kind := referenceKind(key); kind != "" {
				if name := referenceName(item); name != "" {
					found[view.Inline(kind+"/"+name)] = true
					continue
				}
			}
			references(item, found)
		}
	}
}

// referenceKind is the kind that a field of the spec names.
func referenceKind(field string) string {
	switch {
	case strings.HasSuffix(strings.ToLower(field), "secretref"):
		return "Secret"
	case field == "serviceAccountName":
		return "ServiceAccount"
	case field == "configMap":
		return "ConfigMap"
	}
	return ""
}

func referenceName(value any) string {
	if reference, isObject := value.(map[string]any); isObject {
		name, _ := reference["name"].(string)
		return name
	}
	name, _ := value.(string)
	return name
}
