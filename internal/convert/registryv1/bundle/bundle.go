// SPDX-License-Identifier: Apache-2.0

// Package bundle reads registry+v1 trees: manifests, annotations, properties and requirements, and answers questions about
// what was read. It does not judge a bundle, see package validate, and renders nothing.
package bundle

import (
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// Bundle is a registry+v1 tree as it was read.
type Bundle struct {
	// Package is the name of the OLM package, from the annotations.
	Package string
	// CSV describes the operator; its annotations hold the merged properties.
	CSV v1alpha1.ClusterServiceVersion
	// CRDs are apiextensions.k8s.io/v1, whatever they were written in, without status.
	CRDs []manifest.Manifest
	// Others are all other objects, as written.
	Others []manifest.Manifest
	// Requirements are what the bundle needs and does not bring itself, sorted.
	Requirements []Requirement
	// Warnings say what was left out or inferred.
	Warnings []string
	// Source is where the CSV was read; HasCSV tells that it could be.
	Source manifest.Manifest
	HasCSV bool

	properties []property                   // of the CSV and of the file
	byName     map[string]manifest.Manifest // CRDs, made when first asked for
}

// Problem is one of the CSV.
func (b *Bundle) Problem(rule, remedy, message string, args ...any) manifest.Problem {
	return b.Source.Problem(rule, fmt.Sprintf(message, args...), remedy)
}

// Warn adds a warning.
func (b *Bundle) Warn(message string, args ...any) {
	b.Warnings = append(b.Warnings, fmt.Sprintf(message, args...))
}
