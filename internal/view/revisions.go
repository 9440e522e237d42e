// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/spec/effective"
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
	return d.Status.LastAttemptedRevision
}

// FindRevision finds the revision of --to in the history: the newest healthy one with other content than the source has, or
// the named one.
func FindRevision(d *v1alpha1.BundleDeployment, newest, to string) (v1alpha1.RevisionRecord, error) {
	var found []v1alpha1.RevisionRecord
	for _, record := range d.Status.History {
		switch {
		case to == PreviousRevision && ContentOf(record.Revision) != ContentOf(newest) && record.Outcome == v1alpha1.OutcomeHealthy:
			return record, nil
		case to != PreviousRevision && MatchesRevision(record.Revision, to) && !hasContent(found, record):
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
		lines = append(lines, fmt.Sprintf("  %s  %s, since %s", ShortRevision(Inline(r.Revision)), Inline(outcome), r.StartedTime.UTC().Format("2006-01-02 15:04:05Z")))
	}
	return strings.Join(lines, "\n")
}

// shortestDigest is how many digits of a digest name a revision.
const shortestDigest = 12

// MatchesRevision tells whether a revision is the wanted one, which may be named in full, by what is before the @, or by
// the beginning of its digest.
func MatchesRevision(revision, wanted string) bool {
	name, digest, found := strings.Cut(revision, "@")
	if !found {
		name, digest = "", revision
	}
	if wanted == revision || wanted == name && name != "" {
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
	return len(digits) >= shortestDigest && strings.HasPrefix(hex, digits)
}
