// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/versions"
	"github.com/satchel-dev/satchel/internal/tagversion"
)

const (
	// maxVersions bounds the versions of one chart.
	maxVersions = versions.MaxCompared
	// maxVersion bounds the text of a version; a longer one is not considered.
	maxVersion = 128
	// maxNamed bounds the versions and charts that a message names.
	maxNamed = 3
)

// entry is one version of a chart, as the index says.
type entry struct {
	name    string
	version string
	digest  string
	urls    []string
	empty   bool // null stands in its place
}

// missing says why Helm leaves an entry out; "" for one that counts.
func (e *entry) missing() string {
	switch {
	case e.empty:
		return "it is empty"
	case e.name == "":
		return "it has no name"
	case e.name == "." || e.name == ".." || strings.ContainsAny(e.name, "/\\"):
		return "its name is not that of a chart"
	case e.version == "":
		return "it has no version"
	}
	return ""
}

// identity is the digest of the archive, with its algorithm. The index has it without one, which stands for SHA-256; "" if it
// has none.
func (e *entry) identity() (string, error) {
	text := e.digest
	if text == "" {
		return "", nil
	}
	if !strings.Contains(text, ":") {
		text = "sha256:" + text
	}
	digest, err := fetch.ParseDigest(text)
	if err != nil {
		return "", fetch.Errorf(fetch.InvalidContent, "version %s in the index: %w", e.version, err)
	}
	return digest.String(), nil
}

// chooser looks at the entries of an index, of which it keeps the best one, and what an error names.
type chooser struct {
	chart string
	exact string // the version as it was asked for

	newest  versions.Newest
	best    *entry // that of newest
	equal   *entry // the first that has exactly the version
	seen    []*semver.Version
	entries int // of the chart
	taken   int // the number of best, or of equal
	left    leftOut
	better  versions.Newest // of the entries that are left out, those in the range
	unread  string          // the first of them of which the version cannot be read, and its number
	unreadN int

	charts  int
	found   bool // the chart
	similar []string
}

// leftOut are the entries of the chart that are left out, as Helm leaves them out.
type leftOut struct {
	count int
	first string
}

func (l *leftOut) add(number int, version, reason string) {
	if l.count++; l.count > 1 {
		return
	}
	l.first = fmt.Sprintf("entry %d of the chart", number)
	if version != "" {
		l.first += ", version " + fetch.Quote(version)
	}
	l.first += ": " + reason
}

// String says which entries are left out; "" for none.
func (l *leftOut) String() string {
	switch l.count {
	case 0:
		return ""
	case 1:
		return "the index has an invalid entry, which is left out: " + l.first
	}
	return fmt.Sprintf("the index has %d invalid entries, which are left out; the first is %s", l.count, l.first)
}

// look takes a version of the chart into account. As for Helm, an entry with exactly the text that was asked for comes before
// every other one, and entries without a name or a valid version are left out.
func (c *chooser) look(e entry) error {
	if c.entries++; c.entries > maxVersions {
		return fetch.Errorf(fetch.LimitExceeded, "the chart has more than %d versions", maxVersions)
	}
	version, err := semver.NewVersion(e.version)
	if err != nil || len(e.version) > maxVersion {
		version = nil
	}
	reason := e.missing()
	if reason == "" && version == nil {
		reason = "its version is invalid"
	}
	if reason != "" {
		c.leaveOut(e.version, version, reason)
		return nil
	}
	c.seen = append(c.seen, version)
	if e.version == c.exact && c.equal == nil {
		c.equal = &e
		c.taken = c.entries
	}
	if c.newest.Look(e.version, version) {
		c.best = &e
		if c.equal == nil {
			c.taken = c.entries
		}
	}
	return nil
}

// leaveOut notes an entry that is left out; version is nil where it cannot be read.
func (c *chooser) leaveOut(written string, version *semver.Version, reason string) {
	c.left.add(c.entries, written, reason)
	switch {
	case version != nil:
		if c.better.Range.Empty() {
			c.better.Range = c.newest.Range
		}
		c.better.Look(reason, version)
	case c.unreadN == 0:
		c.unread, c.unreadN = reason, c.entries
	}
}

// warning says that an entry which is left out might have been chosen; "" if none might. The version of an entry may be unreadable: it
// counts if it stands before the one that is taken, since indexes begin with the newest.
func (c *chooser) warning(taken *entry) string {
	version, err := semver.NewVersion(taken.version)
	if err != nil || taken == c.equal {
		return "" // exactly that version was asked for
	}
	const end = "; ask the publisher of the repository to correct the index"
	switch {
	case c.better.Version != nil && tagversion.Compare(c.better.Version, version) > 0:
		return fmt.Sprintf("version %s of the chart is chosen, because the entry of the newer version %s in the index is invalid and left out: %s%s",
			taken.version, c.better.Version, c.better.Name, end)
	case c.unreadN > 0 && c.unreadN < c.taken:
		return fmt.Sprintf("version %s of the chart is chosen, and entry %d of the chart in the index, which stands before it, is invalid and left out: %s%s",
			taken.version, c.unreadN, c.unread, end)
	}
	return ""
}

// begin takes the name of a chart into account, and tells whether it is the one.
func (c *chooser) begin(chart string) bool {
	c.charts++
	if chart == c.chart {
		c.found = true
		return true
	}
	if len(c.similar) < maxNamed && isSimilar(chart, c.chart) {
		c.similar = append(c.similar, chart)
	}
	return false
}

// isSimilar tells whether one name contains the other.
func isSimilar(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a != "" && b != "" && len(a) <= maxVersion && (strings.Contains(a, b) || strings.Contains(b, a))
}

// choice is the entry that is taken.
func (c *chooser) choice() (*entry, error) {
	switch {
	case c.equal != nil:
		return c.equal, nil
	case c.best != nil:
		return c.best, nil
	case !c.found && len(c.similar) > 0:
		return nil, fetch.Errorf(fetch.NotFound, "the index has no such chart: similar names in it are %s", quoted(c.similar))
	case !c.found:
		return nil, fetch.Errorf(fetch.NotFound, "the index has no such chart, and %d others", c.charts)
	case len(c.seen) == 0 && c.left.count > 0:
		return nil, fetch.Errorf(fetch.NotFound, "the index has no version of the chart: %s", c.left.String())
	case len(c.seen) == 0:
		return nil, fetch.Errorf(fetch.NotFound, "the index has no version of the chart")
	}
	near, what := c.nearest()
	hint := ""
	if slices.ContainsFunc(near, func(v *semver.Version) bool { return v.Prerelease() != "" }) {
		hint = "; prereleases count only where the range names one, such as >=1.0.0-0"
	}
	names := make([]string, 0, len(near))
	for _, version := range near {
		names = append(names, version.Original())
	}
	return nil, fetch.Errorf(fetch.NotFound, "the index has no version %s of the chart: the %s of its %d versions are %s%s",
		fetch.Quote(c.newest.String()), what, len(c.seen), strings.Join(names, ", "), hint)
}

// nearest are the versions around the one that was asked for, or the newest if it was a range.
func (c *chooser) nearest() (near []*semver.Version, what string) {
	slices.SortStableFunc(c.seen, func(a, b *semver.Version) int { return cmp.Or(b.Compare(a), cmp.Compare(b.Original(), a.Original())) })
	wanted, err := semver.NewVersion(c.newest.String())
	if err != nil {
		return c.seen[:min(len(c.seen), maxNamed)], "newest"
	}
	below := slices.IndexFunc(c.seen, func(v *semver.Version) bool { return v.LessThan(wanted) })
	if below < 0 {
		below = len(c.seen)
	}
	from := max(0, below-maxNamed+1)
	return c.seen[from:min(len(c.seen), from+maxNamed)], "nearest"
}

func quoted(names []string) string {
	shown := make([]string, 0, len(names))
	for _, name := range names {
		shown = append(shown, fetch.Quote(name))
	}
	return strings.Join(shown, ", ")
}
