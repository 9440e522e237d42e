// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// The details of the steps: what each did, for people.

func attempted(d *v1alpha1.BundleDeployment, _ time.Time) string {
	return ShortRevision(d.Status.LastAttemptedRevision)
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
	if d.Status.LastAppliedRevision != "" {
		text += " of " + ShortRevision(d.Status.LastAppliedRevision)
	}
	if name := PackageText(d.Status.Package); name != "" {
		text += ", " + name
	}
	if d.Status.LastAppliedTime != nil {
		text += ", " + Age(now, *d.Status.LastAppliedTime) + " ago"
	}
	return text
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
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Requested is the reconcile that was asked for and is not handled yet.
func Requested(o Object, s Summary) string {
	if at := o.GetAnnotations()[meta.ReconcileRequestAnnotation]; at != s.Handled {
		return at
	}
	return ""
}
