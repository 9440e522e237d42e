// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is why no bundle was chosen.
type Reason string

// Reasons.
const (
	InvalidRange        Reason = "InvalidRange"
	InstalledUnreadable Reason = "InstalledUnreadable" // the installed version is none
	CatalogNotReady     Reason = "CatalogNotReady"
	NoBundles           Reason = "NoBundles"
	Ambiguous           Reason = "Ambiguous"         // catalogs of the same priority offer bundles
	VersionUnreadable   Reason = "VersionUnreadable" // the chosen bundle has no version
)

// RefusalError is why no bundle was chosen.
type RefusalError struct {
	Reason Reason
	// Text is OLM v1's text for the same refusal.
	Text string
	// Funnel has the catalogs up to the one that refused.
	Funnel []Funnel
	// Nearest is the bundle that fails the fewest filters.
	Nearest *Miss
	// Remedy says what to do. It names fields of spec.catalog.
	Remedy string
}

// Error is the text of OLM v1.
func (r *RefusalError) Error() string { return r.Text }

// Details are the lines that say more than the text: the funnel, the nearest bundle and the remedy.
func (r *RefusalError) Details() []string {
	lines := make([]string, 0, len(r.Funnel)+2)
	for _, f := range r.Funnel {
		lines = append(lines, f.String())
	}
	if r.Nearest != nil {
		lines = append(lines, "nearest: "+r.Nearest.String())
	}
	return append(lines, "remedy: "+r.Remedy)
}

// refuse returns the refusal with its details.
func (r *resolution) refuse(reason Reason, text string) *RefusalError {
	refusal := &RefusalError{Reason: reason, Text: text, Funnel: r.funnel}
	switch reason {
	case InvalidRange:
		refusal.Remedy = `give a range such as ">=1.2.0 <2.0.0", "~1.2", "1.2.x" or "1.2.3"`
	case InstalledUnreadable:
		refusal.Remedy = "give the installed version as three numbers, such as 1.2.3 or 1.2.3-rc.1"
	case CatalogNotReady:
		refusal.Remedy = "correct the catalog, or list in catalogs the ones that are to be used"
	case Ambiguous:
		refusal.Remedy = "give one of the catalogs a higher priority, or list in catalogs the one that is to be used"
	case VersionUnreadable:
		refusal.Remedy = "set version to a range, which leaves out bundles without a version"
	case NoBundles:
		refusal.Nearest = r.nearest()
		refusal.Remedy = r.remedy(refusal.Nearest)
	}
	return refusal
}

// text is OLM v1's text for no bundles, or for bundles of several catalogs (R9).
func (r *resolution) text(found []string) string {
	var text strings.Builder
	if r.query.Installed != nil {
		fmt.Fprintf(&text, "error upgrading from currently installed version %q: ", r.query.Installed.Version)
	}
	outcome := "no bundles found"
	if len(found) > 0 {
		outcome = "found bundles"
	}
	fmt.Fprintf(&text, "%s for package %q ", outcome, r.query.Package)
	if r.query.Range != "" {
		fmt.Fprintf(&text, "matching version %q ", r.query.Range)
	}
	if len(r.query.Channels) > 0 {
		fmt.Fprintf(&text, "in channels %v ", r.query.Channels)
	}
	if len(found) > 0 {
		fmt.Fprintf(&text, "in multiple catalogs with the same priority %v ", slices.Sorted(slices.Values(found)))
	}
	return strings.TrimSpace(text.String())
}

// String is the funnel in one line, such as: catalog a: 41 bundles, 12 in the channels, 3 of them in the range.
func (f Funnel) String() string {
	if !f.Found {
		return fmt.Sprintf("catalog %s: does not have the package", f.Catalog)
	}
	text := fmt.Sprintf("catalog %s: %s", f.Catalog, plural(f.Bundles, "bundle"))
	for _, step := range f.Steps {
		text += fmt.Sprintf(", %d %s", step.Left, kept[step.Filter])
	}
	if f.Candidate == "" {
		return text
	}
	text += ": " + f.Candidate
	if f.Deprecated {
		text += " (deprecated)"
	}
	return fmt.Sprintf("%s, priority %d", text, f.Priority)
}

// kept are the words for what each filter keeps.
var kept = map[Filter]string{
	FilterChannels:  "in the channels",
	FilterRange:     "in the range",
	FilterSuccessor: "with an edge from the installed version, or equal to it",
	FilterDowngrade: "not lower than the installed version",
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
