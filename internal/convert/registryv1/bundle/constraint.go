// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// constraint is OLM's olm.constraint: one of its fields is set. Its own types link CEL.
type constraint struct {
	FailureMessage string             `json:"failureMessage"`
	GVK            *gvkConstraint     `json:"gvk"`
	Package        *packageConstraint `json:"package"`
	All            *compound          `json:"all"`
	Any            *compound          `json:"any"`
	Not            *compound          `json:"not"`
	CEL            *struct{}          `json:"cel"`
}

type gvkConstraint struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// packageConstraint is written in two ways: with version as a dependency, with versionRange as a property.
type packageConstraint struct {
	PackageName  string `json:"packageName"`
	Version      string `json:"version"`
	VersionRange string `json:"versionRange"`
}

// packageVersion is the value of the property olm.package.
type packageVersion struct {
	PackageName string `json:"packageName"`
	Version     string `json:"version"`
}

type compound struct {
	Constraints []constraint `json:"constraints"`
}

const (
	deepestConstraint = 10
	longestRange      = 1000 // characters; each part of a range is a call deep
	longestMessage    = 300
)

// constraint converts one to a requirement. It returns false for one that is invalid, with a problem, and for one that
// Satchel cannot check, with a warning.
func (r *requiring) constraint(c constraint, depth int) (Requirement, bool) {
	if depth > deepestConstraint {
		r.refuse(fmt.Sprintf("a constraint is nested more than %d deep", deepestConstraint), "flatten it")
		return Requirement{}, false
	}
	var requirement Requirement
	checked := false
	switch {
	case c.GVK != nil:
		requirement, checked = r.gvk(*c.GVK)
	case c.Package != nil:
		requirement, checked = r.pkg(*c.Package)
	case c.All != nil:
		requirement, checked = r.compound(RequireAll, *c.All, depth)
	case c.Any != nil:
		requirement, checked = r.compound(RequireAny, *c.Any, depth)
	case c.Not != nil:
		requirement, checked = r.compound(RequireNone, *c.Not, depth)
	case c.CEL != nil:
		r.bundle.Warn("%s: a constraint in CEL is about a catalog, and is not checked%s", r.file, said(c.FailureMessage))
	default:
		r.bundle.Warn("%s: a constraint is of no known sort, and is not checked%s", r.file, said(c.FailureMessage))
	}
	requirement.Message = bounded(c.FailureMessage)
	return requirement, checked
}

func said(message string) string {
	if message == "" {
		return ""
	}
	return ": " + bounded(message)
}

func bounded(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + "..."
	}
	return message
}

func (r *requiring) gvk(c gvkConstraint) (Requirement, bool) {
	if c.Kind == "" || c.Version == "" {
		r.refuse("a required kind lacks its version or kind", "give group, version and kind")
		return Requirement{}, false
	}
	return Requirement{Kind: RequireGVK, GVK: schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind}}, true
}

func (r *requiring) pkg(c packageConstraint) (Requirement, bool) {
	versions := strings.TrimSpace(c.VersionRange)
	if versions == "" {
		versions = strings.TrimSpace(c.Version)
	}
	switch {
	case c.PackageName == "":
		r.refuse("a required package lacks its name", "give packageName")
		return Requirement{}, false
	case !validRange(versions):
		r.refuse(fmt.Sprintf("%.100q is no range of versions of package %.100q", versions, c.PackageName), `write one such as ">=1.0.0 <2.0.0"`)
		return Requirement{}, false
	}
	return Requirement{Kind: RequirePackage, Name: c.PackageName, Versions: versions}, true
}

func validRange(versions string) bool {
	if versions == "" {
		return true
	}
	if len(versions) > longestRange {
		return false
	}
	_, err := semver.ParseRange(versions)
	return err == nil
}

// compound reads the parts. Of those that all have to be met the others still count when one cannot be checked.
func (r *requiring) compound(kind RequirementKind, c compound, depth int) (Requirement, bool) {
	requirement, checked := Requirement{Kind: kind}, true
	for _, part := range c.Constraints {
		if r.count++; r.count > maxRequirements {
			return requirement, false // refused in the end
		}
		of, known := r.constraint(part, depth+1)
		if known {
			requirement.Of = append(requirement.Of, of)
		}
		checked = checked && (known || kind == RequireAll)
	}
	return requirement, checked && len(requirement.Of) > 0
}
