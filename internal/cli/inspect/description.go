// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	olmbundle "github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
	"github.com/satchel-dev/satchel/internal/lint"
)

// Description is what a bundle is. Its JSON form is what inspect -o json prints.
type Description struct {
	Bundle             string             `json:"bundle"`
	Format             string             `json:"format"`
	Name               string             `json:"name,omitempty"`
	Package            string             `json:"package,omitempty"`
	Version            string             `json:"version,omitempty"`
	Channels           []string           `json:"channels,omitempty"`
	DefaultChannel     string             `json:"defaultChannel,omitempty"`
	DisplayName        string             `json:"displayName,omitempty"`
	Description        string             `json:"description,omitempty"`
	Provider           string             `json:"provider,omitempty"`
	InstallModes       []string           `json:"installModes,omitempty"`
	SuggestedNamespace string             `json:"suggestedNamespace,omitempty"`
	MinKubeVersion     string             `json:"minKubeVersion,omitempty"`
	InstallNamespace   string             `json:"installNamespace"`
	WatchNamespaces    []string           `json:"watchNamespaces,omitempty"` // "" stands for all
	Namespaces         []string           `json:"requiredNamespaces"`
	Objects            []KindCount        `json:"objects"`
	CRDs               []CrdSummary       `json:"customResourceDefinitions"`
	Webhooks           []WebhookSummary   `json:"webhooks"`
	Certificates       []string           `json:"certificates,omitempty"`
	Permissions        []PermissionHolder `json:"permissions"`
	Images             []ImageUse         `json:"images"`
	Requirements       []string           `json:"requirements"`
	Chart              *chartSummary      `json:"chart,omitempty"`
	Warnings           []string           `json:"warnings,omitempty"`

	assumed bool // the user did not say where it is installed
}

// KindCount counts the objects of a kind.
type KindCount struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// CrdSummary is a CustomResourceDefinition of the bundle.
type CrdSummary struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Scope    string   `json:"scope"`
	Versions []string `json:"versions"`
	Owned    bool     `json:"owned"` // of a ClusterServiceVersion; those of a plain bundle all are
}

// describe describes a converted bundle; chart is the metadata of a chart.
func describe(what string, files fs.FS, o convert.Options, result convert.Result, chart helm.Description) Description {
	d := Description{
		Bundle: what, Format: string(result.Format), Package: result.Package.Name, Version: result.Package.Version,
		InstallNamespace: o.InstallNamespace, WatchNamespaces: lint.Watched(result), Namespaces: result.RequiredNamespaces, Objects: countKinds(result.Objects),
		CRDs: summarizeCRDs(result.Objects), Webhooks: admissionWebhooks(result.Objects), Permissions: PermissionsOf(result.Objects),
		Warnings: kit.InFlags(result.Warnings), Requirements: []string{},
	}
	used := images{}
	used.addWorkloads(result.Objects)
	for _, c := range result.Certificates {
		d.Certificates = append(d.Certificates, c.Namespace+"/"+c.Secret)
	}
	for _, r := range result.Requirements {
		d.Requirements = append(d.Requirements, r.String())
	}
	// It was entered before, so it cannot fail now.
	if root, _, err := convert.Enter(files, o); err == nil && result.Format == convert.RegistryV1 {
		bundle, _ := olmbundle.Parse(root, o.Limits, o.RegistryV1.LastKeys)
		d.addCSV(&bundle.CSV)
		for _, image := range bundle.CSV.Spec.RelatedImages {
			used.add(image.Image, strings.TrimSpace("related image "+image.Name))
		}
		said := olmbundle.ReadAnnotations(root, o.Limits)
		d.Channels, d.DefaultChannel = said.Channels, said.DefaultChannel
	}
	if result.Format == convert.Helm {
		d.addChart(chart, result.Hooks)
		for _, hook := range result.Hooks {
			used.addWorkloads([]*unstructured.Unstructured{hook.Object})
		}
	}
	d.Images = used.sorted()
	return d
}

// addCSV adds what only a ClusterServiceVersion says.
func (d *Description) addCSV(csv *v1alpha1.ClusterServiceVersion) {
	d.Name = csv.Name
	d.DisplayName = csv.Spec.DisplayName
	d.Description = csv.Spec.Description
	d.Provider = csv.Spec.Provider.Name
	d.MinKubeVersion = csv.Spec.MinKubeVersion
	d.SuggestedNamespace = csv.Annotations[lint.SuggestedNamespace]
	for _, mode := range csv.Spec.InstallModes {
		if mode.Supported {
			d.InstallModes = append(d.InstallModes, string(mode.Type))
		}
	}
	owned := map[string]bool{}
	for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
		owned[crd.Name] = true
	}
	for i := range d.CRDs {
		d.CRDs[i].Owned = owned[d.CRDs[i].Name]
	}
	d.Webhooks = definedWebhooks(csv.Spec.WebhookDefinitions)
}

// countKinds counts objects, the most frequent kind first.
func countKinds(objects []*unstructured.Unstructured) []KindCount {
	counts := map[KindCount]int{}
	for _, o := range objects {
		kind := o.GroupVersionKind()
		counts[KindCount{Group: kind.Group, Kind: kind.Kind}]++
	}
	found := make([]KindCount, 0, len(counts))
	for c, n := range counts {
		c.Count = n
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b KindCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	return found
}

func summarizeCRDs(objects []*unstructured.Unstructured) []CrdSummary {
	found := []CrdSummary{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		c := CrdSummary{Name: o.GetName(), Owned: true}
		c.Kind, _, _ = unstructured.NestedString(o.Object, "spec", "names", "kind")
		c.Scope, _, _ = unstructured.NestedString(o.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			c.Versions = append(c.Versions, describeVersion(v))
		}
		found = append(found, c)
	}
	return found
}

// describeVersion names a version of a CustomResourceDefinition and what is special about it.
func describeVersion(version any) string {
	fields, _ := version.(map[string]any)
	name, _ := fields["name"].(string)
	var notes []string
	if stored, _ := fields["storage"].(bool); stored {
		notes = append(notes, "stored")
	}
	if served, _ := fields["served"].(bool); !served {
		notes = append(notes, "not served")
	}
	if deprecated, _ := fields["deprecated"].(bool); deprecated {
		notes = append(notes, "deprecated")
	}
	if len(notes) == 0 {
		return name
	}
	return name + " (" + strings.Join(notes, ", ") + ")"
}
