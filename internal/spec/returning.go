// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// Returning tells whether a deployment goes back, or went back, to a revision: it was healthy here before another one was
// tried. That holds after a rollback by the user, after one by spec.remediation, and when the source is reverted, for as long
// as the history has both.
func Returning(d *v1alpha1.BundleDeployment, revision string) bool {
	same := func(other string) bool { return contentOf(other) == contentOf(revision) }
	history := d.Status.History
	newer := slices.IndexFunc(history, func(record v1alpha1.RevisionRecord) bool { return !same(record.Revision) })
	if revision == "" || newer < 0 {
		return false
	}
	return newer == 0 && same(d.Status.Healthy.Revision) || slices.ContainsFunc(history[newer:], func(record v1alpha1.RevisionRecord) bool {
		return same(record.Revision) && record.Outcome == v1alpha1.OutcomeHealthy
	})
}

// contentOf is the part of a revision that identifies its content.
func contentOf(revision string) string {
	if _, digest, found := strings.Cut(revision, "@"); found {
		return digest
	}
	return revision
}
