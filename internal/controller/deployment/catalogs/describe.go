// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// describe says in words where the plan goes, and what of that goes beyond an ordinary upgrade.
func (in *Input) describe() {
	status := in.Object.Status.Catalog
	to, from := status.Resolved, status.Installed
	moves := from == nil || from.Bundle != to.Bundle || from.Image != "" && from.Image != to.Image ||
		from.Image == "" && in.changesCatalog(from, to)
	text := in.Object.Spec.Catalog.Package + " "
	if moves && from != nil && from.Version != "" {
		text += from.Version + " -> "
	}
	text += stage.FullVersion(to)
	if len(to.Channels) > 0 {
		text += ", channel " + strings.Join(to.Channels, " ")
	}
	if to.Catalog != "" {
		text += ", catalog " + stage.CatalogName(in.Object, to) + "@" + to.CatalogDigest
	}
	in.Resolved.Catalog.Head = text
	if moves {
		in.Resolved.Catalog.Escalations = in.escalations(from, to)
	}
}

// escalations are what in a move needs an approval in the mode OnEscalation.
func (in *Input) escalations(from *v1alpha1.InstalledBundle, to *v1alpha1.ResolvedBundle) []string {
	var found []string
	status := in.Object.Status.Catalog
	for _, d := range status.Deprecations {
		if d.Scope != "Bundle" || d.Name == to.Bundle {
			found = append(found, "the catalog calls "+deprecated(d)+" deprecated")
		}
	}
	if from == nil {
		return found
	}
	if in.changesCatalog(from, to) {
		found = append(found, fmt.Sprintf("the catalog changes from %s to %s", from.Catalog, stage.CatalogName(in.Object, to)))
	}
	before, err := semver.Parse(from.Version)
	after, failed := semver.Parse(to.Version)
	if err == nil && failed == nil && before.Major != after.Major {
		found = append(found, fmt.Sprintf("the major version changes from %d to %d", before.Major, after.Major))
	}
	if from.Bundle == to.Bundle && !sameDigest(from.Image, to.Image) {
		found = append(found, fmt.Sprintf("the image of bundle %s changes, and its version does not", to.Bundle))
	}
	if in.Object.Spec.Catalog.UpgradePolicy == v1alpha1.UpgradeSelfCertified {
		found = append(found, "upgradePolicy SelfCertified does not follow the upgrade edges of the catalog")
	}
	return found
}

// changesCatalog tells whether the bundle comes from another catalog than the installed one, as far as both are known.
func (in *Input) changesCatalog(from *v1alpha1.InstalledBundle, to *v1alpha1.ResolvedBundle) bool {
	return from.Catalog != "" && to.Catalog != "" && from.Catalog != stage.CatalogName(in.Object, to)
}

// deprecated names what is deprecated.
func deprecated(d v1alpha1.CatalogDeprecation) string {
	return strings.TrimSpace(strings.ToLower(d.Scope) + " " + d.Name)
}

// sameDigest tells whether two images have the same digest, or one of them is not known. A mirror has the same one.
func sameDigest(a, b string) bool {
	_, first, known := strings.Cut(a, "@")
	_, second, found := strings.Cut(b, "@")
	return !known || !found || first == second
}
