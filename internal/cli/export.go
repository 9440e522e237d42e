// SPDX-License-Identifier: Apache-2.0

package cli

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
)

// exportOptions are the flags of export.
type exportOptions struct {
	selection
	output output
}

func (a *app) exportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export [deployment|source] NAME...",
		GroupID: groupAct,
		Short:   "Print manifests to commit to Git",
		Long: `Prints BundleDeployments and BundleSources as manifests: without status, without fields that the API server sets, and
without the labels and annotations of the tool that applied them. The BundleSource of an inline spec.source is part of its
BundleDeployment and not printed by itself. Secrets, ServiceAccounts and ConfigMaps that they refer to are not exported;
they are named on standard error.

Exit codes:

    0    printed
    2    failed: not found, no access
    130  interrupted by Ctrl-C`,
		Example: a.example(`
# One deployment
satchel export podinfo > podinfo.yaml

# Everything of the namespace
satchel export all --all > namespace.yaml`),
		ValidArgsFunction: a.completeTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := o.targets(cmd, args)
			if err != nil {
				return err
			}
			return a.export(cmd.Context(), o, targets)
		},
	}
	o.flags(cmd)
	a.outputFlag(cmd, &o.output, outputYAML, outputJSON)
	return cmd
}

func (a *app) export(ctx context.Context, o exportOptions, targets []target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	found, err := c.toExport(ctx, o, targets)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		a.nothingChosen(c, o.selection)
	}
	manifests, needed := make([]any, 0, len(found)), map[string]bool{}
	for _, raw := range found {
		exported := exported(raw)
		manifests = append(manifests, exported)
		references(exported["spec"], needed)
	}
	if len(needed) > 0 {
		fmt.Fprintf(a.streams.ErrOut, "Not exported, but referred to: %s\n", strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
	}
	return a.printManifests(o.output, manifests)
}

// toExport reads the objects to export. An inline source is refused by its name, and left out of all objects.
func (c *cluster) toExport(ctx context.Context, o exportOptions, targets []target) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, t := range targets {
		found, err := c.find(ctx, getOptions{selector: o.selector}, t)
		if err != nil {
			return nil, err
		}
		for _, raw := range found {
			owner := metav1.GetControllerOf(raw)
			inline := t.kind.name == sources.name && owner != nil && owner.Kind == v1alpha1.BundleDeploymentKind
			switch {
			case inline && t.name != "":
				return nil, fmt.Errorf("%s is spec.source of the BundleDeployment %s: export that", t, owner.Name)
			case !inline:
				all = append(all, raw)
			}
		}
	}
	return all, nil
}

// printManifests writes YAML documents, or JSON.
func (a *app) printManifests(o output, manifests []any) error {
	switch {
	case o == outputJSON && len(manifests) == 1:
		return printValue(a.streams.Out, o, manifests[0])
	case o == outputJSON:
		return printValue(a.streams.Out, o, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": manifests})
	}
	for i, manifest := range manifests {
		if i > 0 {
			fmt.Fprintln(a.streams.Out, "---")
		}
		if err := printValue(a.streams.Out, o, manifest); err != nil {
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
					found[inline(kind+"/"+name)] = true
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
