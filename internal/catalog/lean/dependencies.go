// SPDX-License-Identifier: Apache-2.0

package lean

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/catalog"
)

// Properties of dependencies.
const (
	propertyProvidedKind    = "olm.gvk"
	propertyRequiredKind    = "olm.gvk.required"
	propertyRequiredPackage = "olm.package.required"
	propertyConstraint      = "olm.constraint"
)

// Bounds of one constraint and of one bundle.
const (
	deepestConstraint = 8
	mostRequirements  = 1000
)

// constraint is the value of olm.constraint: one of its fields is set.
type constraint struct {
	FailureMessage string
	GVK            *catalog.Kind
	Package        *requiredPackage
	All, Any, Not  *compound
	CEL            *struct{}
}

type requiredPackage struct{ PackageName, VersionRange string }

type compound struct{ Constraints []constraint }

// dependencies reads what a bundle requires and provides. A property that cannot be read is a requirement that cannot be
// met.
func dependencies(properties []property) (requires []catalog.Requirement, provides []catalog.Kind) {
	r := &reading{}
	for _, p := range properties {
		var c constraint
		var err error
		switch p.Type {
		case propertyProvidedKind:
			var kind catalog.Kind
			if Unmarshal(p.Value, &kind) == nil && kind.Kind != "" {
				provides = append(provides, kind)
			}
			continue
		case propertyRequiredKind:
			c.GVK = &catalog.Kind{}
			err = Unmarshal(p.Value, c.GVK)
		case propertyRequiredPackage:
			c.Package = &requiredPackage{}
			err = Unmarshal(p.Value, c.Package)
		case propertyConstraint:
			err = Unmarshal(p.Value, &c)
		default:
			continue
		}
		if err != nil {
			requires = append(requires, unreadable("the property %s cannot be read: %v", p.Type, err))
			continue
		}
		requires = append(requires, r.requirement(c, 1))
	}
	if r.count > mostRequirements {
		requires = []catalog.Requirement{unreadable("it has more than %d requirements", mostRequirements)}
	}
	return requires, provides
}

// reading counts the requirements of a bundle.
type reading struct{ count int }

func (r *reading) requirement(c constraint, depth int) catalog.Requirement {
	r.count++
	switch {
	case depth > deepestConstraint:
		return unreadable("a constraint is nested more than %d deep", deepestConstraint)
	case c.GVK != nil && (c.GVK.Kind == "" || c.GVK.Version == ""):
		return unreadable("a required kind lacks its version or kind")
	case c.GVK != nil:
		return catalog.Requirement{Type: catalog.RequireKind, Kind: *c.GVK}
	case c.Package != nil && c.Package.PackageName == "":
		return unreadable("a required package lacks its name")
	case c.Package != nil:
		return catalog.Requirement{Type: catalog.RequirePackage, Package: c.Package.PackageName, Range: strings.TrimSpace(c.Package.VersionRange)}
	case c.All != nil:
		return r.compound(catalog.RequireAll, *c.All, depth)
	case c.Any != nil:
		return r.compound(catalog.RequireAny, *c.Any, depth)
	case c.Not != nil:
		return r.compound(catalog.RequireNone, *c.Not, depth)
	case c.CEL != nil:
		return unchecked("a constraint in CEL", c.FailureMessage)
	}
	return unchecked("a constraint of an unknown type", c.FailureMessage)
}

func (r *reading) compound(kind catalog.RequirementType, c compound, depth int) catalog.Requirement {
	requirement := catalog.Requirement{Type: kind}
	for _, part := range c.Constraints {
		if r.count > mostRequirements {
			break // the bundle is refused
		}
		requirement.Of = append(requirement.Of, r.requirement(part, depth+1))
	}
	return requirement
}

func unchecked(what, message string) catalog.Requirement {
	if message != "" {
		what += ": " + message
	}
	return catalog.Requirement{Type: catalog.RequireUnchecked, Problem: what}
}

func unreadable(format string, args ...any) catalog.Requirement {
	return catalog.Requirement{Type: catalog.RequireUnreadable, Problem: fmt.Sprintf(format, args...)}
}
