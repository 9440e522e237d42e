// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/convert/overlay"
)

// Overlay returns the processors of a deployment. The caller fills in the variables that are read from inputs.
func Overlay(of *v1alpha1.BundleDeploymentSpec) overlay.Options {
	var o overlay.Options
	for i := range of.Processors {
		o.Processors = append(o.Processors, processor(&of.Processors[i]))
	}
	return o
}

func processor(of *v1alpha1.Processor) overlay.Processor {
	var p overlay.Processor
	if of.Patch != nil {
		p.Patch = &overlay.Patch{Text: of.Patch.Patch, Target: selector(of.Patch.Target)}
	}
	if of.Names != nil {
		p.Names = &overlay.Names{Prefix: of.Names.Prefix, Suffix: of.Names.Suffix}
	}
	for _, image := range of.Images {
		p.Images = append(p.Images, overlay.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	for _, rewrite := range of.ImageRewrites {
		p.ImageRewrites = append(p.ImageRewrites, overlay.Rewrite{From: rewrite.From, To: rewrite.To})
	}
	if of.Variables != nil {
		p.Variables = &overlay.Variables{Given: of.Variables.Values}
	}
	if of.Metadata != nil {
		p.Metadata = &overlay.Metadata{Labels: of.Metadata.Labels, Annotations: of.Metadata.Annotations}
	}
	return p
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
