// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/spec/revision"
	"github.com/satchel-dev/satchel/internal/tagversion"
)

// PreviousRevision is the value of --to for the previous revision.
const PreviousRevision = "previous"

// ContentOf is the part of a revision that identifies its content.
func ContentOf(revision string) string {
	if _, digest, found := strings.Cut(revision, "@"); found {
		return digest
	}
	return revision
}

// NewestRevision is what the source has, or else what was tried last.
func NewestRevision(d *v1alpha1.BundleDeployment, source *v1alpha1.BundleSource) string {
	if source != nil && source.Status.Artifact != nil {
		return source.Status.Artifact.Revision
	}
	return d.Status.Attempted.Revision
}

// FindRevision finds the revision of --to in the history: the newest healthy one with other content than the source has, or
// the named one.
func FindRevision(d *v1alpha1.BundleDeployment, newest, to string) (v1alpha1.RevisionRecord, error) {
	var found []v1alpha1.RevisionRecord
	for _, record := range d.Status.History {
		switch {
		case to == PreviousRevision && ContentOf(record.Revision) != ContentOf(newest) && record.Outcome == v1alpha1.OutcomeHealthy:
			return record, nil
		case to != PreviousRevision && matchesRecord(record, to) && !hasContent(found, record):
			found = append(found, record)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return v1alpha1.RevisionRecord{}, fmt.Errorf("%q means several revisions of BundleDeployment %s; name one by its digest:\n%s", to, d.Name, revisionList(found))
	case len(d.Status.History) == 0:
		return v1alpha1.RevisionRecord{}, fmt.Errorf("BundleDeployment %s has no history yet, so there is nothing to go back to", d.Name)
	case to == PreviousRevision:
		return v1alpha1.RevisionRecord{}, fmt.Errorf("no other revision of BundleDeployment %s is known that was healthy; these are known:\n%s", d.Name, revisionList(d.Status.History))
	}
	return v1alpha1.RevisionRecord{}, fmt.Errorf("BundleDeployment %s has no revision %q in its history (spec.historyLimit is %d); these are known:\n%s",
		d.Name, to, effective.HistoryLimit(&d.Spec), revisionList(d.Status.History))
}

func hasContent(records []v1alpha1.RevisionRecord, wanted v1alpha1.RevisionRecord) bool {
	for _, r := range records {
		if ContentOf(r.Revision) == ContentOf(wanted.Revision) {
			return true
		}
	}
	return false
}

// revisionList lists revisions for people, the newest first.
func revisionList(records []v1alpha1.RevisionRecord) string {
	lines := make([]string, 0, len(records))
	for _, r := range records {
		outcome := string(r.Outcome)
		if outcome == "" {
			outcome = "under way"
		}
		name := ShortRevision(Inline(r.Revision))
		if r.Version != "" || r.OriginRevision != "" {
			name = shortName(revision.Name(r.Version, r.OriginRevision, r.Revision)) + "  " + name
		}
		lines = append(lines, fmt.Sprintf("  %s  %s, since %s", name, Inline(outcome), r.StartTime.UTC().Format("2006-01-02 15:04:05Z")))
	}
	return strings.Join(lines, "\n")
}

// shortestDigest is how many digits of a digest of content name a revision, and shortestOrigin how many of a commit or another
// digest in an origin revision do.
const (
	shortestDigest = 12
	shortestOrigin = 7
)

// matchesRecord tells whether a record of the history is of the wanted revision.
func matchesRecord(r v1alpha1.RevisionRecord, wanted string) bool {
	return MatchesRevision(r.Revision, wanted) || MatchesOrigin(r.Version, r.OriginRevision, wanted)
}

// MatchesOrigin tells whether a version or an origin revision is the wanted one: the version, the whole origin revision, or of
// one of its parts the tag or branch, the digest or its first digits, or both, joined by @.
func MatchesOrigin(version, originRevision, wanted string) bool {
	if wanted == "" {
		return false
	}
	if wanted == version || wanted == originRevision {
		return true
	}
	return slices.ContainsFunc(strings.Split(originRevision, ", "), func(part string) bool { return matches(part, wanted, shortestOrigin) })
}

// MatchesRevision tells whether a revision is the wanted one, which may be named in full, by what is before the @, or by
// the beginning of its digest.
func MatchesRevision(revision, wanted string) bool { return matches(revision, wanted, shortestDigest) }

// matches compares name@digest with what is wanted, of which the digest has at least the given number of digits.
func matches(revision, wanted string, shortest int) bool {
	name, digest, found := strings.Cut(revision, "@")
	if !found {
		name, digest = "", revision
	}
	if wanted == revision || name != "" && (wanted == name || wanted == tagversion.Text(name)) {
		return wanted != ""
	}
	wantedName, wantedDigest, both := strings.Cut(wanted, "@")
	if both && wantedName != name {
		return false
	}
	if !both {
		wantedDigest = wanted
	}
	_, hex, _ := strings.Cut(digest, ":")
	algorithm, digits, prefixed := strings.Cut(wantedDigest, ":")
	if !prefixed {
		digits = wantedDigest
	} else if !strings.HasPrefix(digest, algorithm+":") {
		return false
	}
	return len(digits) >= shortest && strings.HasPrefix(hex, digits)
}
