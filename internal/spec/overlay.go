// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// Overlay returns the overlay options of a deployment. The caller fills in the variables that are read from inputs.
func Overlay(of *v1alpha1.BundleDeploymentSpec) overlay.Options {
	o := overlay.Options{NamePrefix: of.NamePrefix, NameSuffix: of.NameSuffix}
	for _, p := range of.Patches {
		o.Patches = append(o.Patches, overlay.Patch{Text: p.Patch, Target: selector(p.Target)})
	}
	for _, image := range of.Images {
		o.Images = append(o.Images, overlay.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	if of.PostBuild != nil {
		o.Substitution = &overlay.Substitution{Given: of.PostBuild.Substitute}
	}
	if of.CommonMetadata != nil {
		o.CommonLabels, o.CommonAnnotations = of.CommonMetadata.Labels, of.CommonMetadata.Annotations
	}
	for _, rewrite := range of.ImageRewrites {
		o.ImageRewrites = append(o.ImageRewrites, overlay.Rewrite{From: rewrite.From, To: rewrite.To})
	}
	return o
}

func selector(of *v1alpha1.ObjectSelector) *overlay.Selector {
	if of == nil {
		return nil
	}
	return &overlay.Selector{
		Group: of.Group, Version: of.Version, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name,
		LabelSelector: of.LabelSelector, AnnotationSelector: of.AnnotationSelector,
	}
}
