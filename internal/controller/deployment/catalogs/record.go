// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/resolver"
)

const (
	// mostChannels bounds the channels in the status.
	mostChannels = 20
	// mostDeprecations bounds the deprecations in the status.
	mostDeprecations = 20
	// mostMessage bounds the message of a deprecation, in bytes.
	mostMessage = 512
)

// record writes an answer of the resolver to the status. The digest of a tag that was found before stays: what the tag points at
// now is no upgrade.
func (in *Input) record(answer resolver.Answer, all []looked) {
	status, was := in.Object.Status.Catalog, in.Object.Status.Catalog.Resolved
	now := &v1alpha1.ResolvedBundle{
		Bundle: answer.Bundle, Version: answer.Version, Release: answer.Release, Reference: answer.Image, Image: pinned(answer.Image),
		Channels: answer.Channels[:min(len(answer.Channels), mostChannels)], Catalog: answer.Catalog,
	}
	if now.Image == "" && was != nil && was.Bundle == now.Bundle && was.Reference == now.Reference {
		now.Image = was.Image
	}
	status.Newest, status.Deprecations = nil, nil
	if newest := answer.Newest; newest != nil {
		status.Newest = &v1alpha1.NewestBundle{Bundle: newest.Bundle, Version: newest.Version, Because: newest.Because()}
	}
	for _, one := range all {
		if one.object.Name != answer.Catalog {
			continue
		}
		now.CatalogDigest = one.object.Status.Content.Digest
		if one.object.Namespace != in.Object.Namespace {
			now.CatalogNamespace = one.object.Namespace
		}
		status.Deprecations = in.deprecations(one.said.Package, answer.Bundle)
	}
	status.Resolved = now
}

// deprecations are those of the package, of the channels of the spec, and of the bundle that is installed, or is going to be.
func (in *Input) deprecations(of *catalog.Package, chosen string) []v1alpha1.CatalogDeprecation {
	runs := installedName(in.Object)
	if runs == "" {
		runs = chosen
	}
	var found []v1alpha1.CatalogDeprecation
	for _, d := range of.Deprecations {
		scope := ""
		switch {
		case d.Schema == catalog.SchemaPackage:
			scope = "Package"
		case d.Schema == catalog.SchemaChannel && contains(in.Object.Spec.Catalog.Channels, d.Name):
			scope = "Channel"
		case d.Schema == catalog.SchemaBundle && d.Name == runs:
			scope = "Bundle"
		}
		if scope != "" && len(found) < mostDeprecations {
			found = append(found, v1alpha1.CatalogDeprecation{Scope: scope, Name: d.Name, Message: shorten(d.Message)})
		}
	}
	return found
}

func contains(list []string, name string) bool {
	for _, one := range list {
		if one == name {
			return true
		}
	}
	return false
}

func shorten(text string) string {
	if len(text) <= mostMessage {
		return text
	}
	return strings.ToValidUTF8(text[:mostMessage], "") + "…"
}

// pinned is an image with a digest and without its tag; "" if it has no digest.
func pinned(image string) string {
	if _, digest, found := strings.Cut(image, "@"); found {
		return repositoryOf(image) + "@" + digest
	}
	return ""
}

// repositoryOf is an image without tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		return image[:colon]
	}
	return image
}

// without leaves a bundle out of catalogs.
func without(all []resolver.Catalog, bundle string) []resolver.Catalog {
	return filtered(all, func(b catalog.Bundle) bool { return b.Name != bundle })
}

// filtered keeps some bundles of catalogs.
func filtered(all []resolver.Catalog, keeps func(catalog.Bundle) bool) []resolver.Catalog {
	var list []resolver.Catalog
	for _, one := range all {
		if one.Package != nil {
			copied := *one.Package
			copied.Bundles = nil
			for _, b := range one.Package.Bundles {
				if keeps(b) {
					copied.Bundles = append(copied.Bundles, b)
				}
			}
			one.Package = &copied
		}
		list = append(list, one)
	}
	return list
}
