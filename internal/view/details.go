// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/plural"
	"github.com/satchel-dev/satchel/internal/spec/revision"
)

// The details of the steps: what each did, for people.

func attempted(d *v1alpha1.BundleDeployment, _ time.Time) string {
	status := &d.Status
	switch {
	case status.Attempted.Revision == "":
		return ""
	case status.Attempted.Revision == status.Applied.Revision:
		return appliedName(d)
	}
	return shortName(revision.Recorded(status.History, status.Attempted.Revision))
}

func converted(d *v1alpha1.BundleDeployment, _ time.Time) string { return string(d.Status.Format) }

func planned(d *v1alpha1.BundleDeployment, _ time.Time) string {
	p := d.Status.Plan
	switch {
	case p == nil:
		return ""
	case p.Create+p.Update+p.Delete == 0:
		return "nothing to change"
	}
	return fmt.Sprintf("%d to create, %d to update, %d to delete", p.Create, p.Update, p.Delete)
}

func applied(d *v1alpha1.BundleDeployment, now time.Time) string {
	var text string
	if d.Status.Objects != nil {
		text = Plural(int(d.Status.Objects.Applied), "object")
		if skipped := d.Status.Objects.Skipped; skipped > 0 {
			text += fmt.Sprintf(" (and %d left out until their kinds are served)", skipped)
		}
	}
	if d.Status.Applied.Revision != "" {
		text += " of " + appliedName(d)
	}
	if name := PackageText(d.Status.Healthy.Package); name != "" {
		text += ", " + name
	}
	if name := BundleText(d); name != "" {
		text += ", bundle " + name
	}
	if d.Status.Applied.CompletionTime != nil {
		text += ", " + Age(now, *d.Status.Applied.CompletionTime) + " ago"
	}
	return text
}

// appliedName names the applied revision, with shortened digests.
func appliedName(d *v1alpha1.BundleDeployment) string { return shortName(revision.Applied(&d.Status)) }

// shortName shortens what package revision says; without an origin the revision of the content, as ShortRevision does.
func shortName(name string) string {
	if content, unnamed := strings.CutPrefix(Printable(name), "revision "); unnamed {
		return ShortRevision(content)
	}
	return ShortOrigin(Printable(name))
}

// BundleText says which bundle of a catalog is installed, from which channels and catalog; empty without spec.catalog.
func BundleText(d *v1alpha1.BundleDeployment) string {
	if d.Status.Catalog == nil || d.Status.Catalog.Installed == nil {
		return ""
	}
	of := d.Status.Catalog.Installed
	text := of.Bundle
	if len(of.Channels) > 0 {
		text += ", channel " + strings.Join(of.Channels, " ")
	}
	if of.Catalog != "" {
		text += ", catalog " + of.Catalog
	}
	return Printable(text)
}

// PackageText names a package and its version; empty where there is none.
func PackageText(p *v1alpha1.PackageStatus) string {
	if p == nil {
		return ""
	}
	return strings.TrimSpace(Printable(p.Name + " " + p.Version))
}

func healthy(d *v1alpha1.BundleDeployment, _ time.Time) string {
	if counts := d.Status.Objects; counts != nil && counts.Unhealthy > 0 {
		return fmt.Sprintf("all but %d", counts.Unhealthy)
	}
	return "all healthy"
}

// Plural counts things.
func Plural(n int, thing string) string {
	return plural.Of(n, thing)
}

// Requested is the reconcile that was asked for and is not handled yet.
func Requested(o Object, s Summary) string {
	if at := o.GetAnnotations()[meta.ReconcileRequestAnnotation]; at != s.Handled {
		return at
	}
	return ""
}
