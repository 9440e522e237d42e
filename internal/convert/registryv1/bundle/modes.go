// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Modes are the install modes that a bundle supports.
type Modes struct{ All, Own, Single, Multi bool }

// SupportedModes are the install modes that the CSV says it supports.
func (b *Bundle) SupportedModes() Modes {
	var m Modes
	for _, mode := range b.CSV.Spec.InstallModes {
		if !mode.Supported {
			continue
		}
		switch mode.Type {
		case v1alpha1.InstallModeTypeAllNamespaces:
			m.All = true
		case v1alpha1.InstallModeTypeOwnNamespace:
			m.Own = true
		case v1alpha1.InstallModeTypeSingleNamespace:
			m.Single = true
		case v1alpha1.InstallModeTypeMultiNamespace:
			m.Multi = true
		}
	}
	return m
}

// String lists the modes by name, sorted.
func (m Modes) String() string {
	var names []string
	for _, mode := range []struct {
		name      v1alpha1.InstallModeType
		supported bool
	}{
		{v1alpha1.InstallModeTypeAllNamespaces, m.All},
		{v1alpha1.InstallModeTypeMultiNamespace, m.Multi},
		{v1alpha1.InstallModeTypeOwnNamespace, m.Own},
		{v1alpha1.InstallModeTypeSingleNamespace, m.Single},
	} {
		if mode.supported {
			names = append(names, string(mode.name))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
