// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/act"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func history(outcomes ...v1alpha1.RevisionRecord) *v1alpha1.BundleDeployment {
	return aDeployment(func(d *v1alpha1.BundleDeployment) { d.Status.History = outcomes })
}

func record(revision string, outcome v1alpha1.Outcome) v1alpha1.RevisionRecord {
	return v1alpha1.RevisionRecord{Revision: revision, Outcome: outcome, StartTime: ago(0)}
}

func TestFindRevision(t *testing.T) {
	healthy, failed := v1alpha1.OutcomeHealthy, v1alpha1.OutcomeFailed
	moved, named := "v1.2.0@"+digestB, record(revisionA, healthy)
	named.Version, named.OriginRevision = "1.2.0", "main@sha1:"+commit+", v9@"+digestB
	for name, tc := range map[string]struct {
		reason string
		d      *v1alpha1.BundleDeployment
		newest string
		to     string
		want   string
		wrong  string
	}{
		"previous":      {"the one before", history(record(revisionB, healthy), record(revisionA, healthy)), revisionB, view.PreviousRevision, revisionA, ""},
		"of a failure":  {"what failed is not gone back to", history(record(revisionB, failed), record("v1.2.9@sha256:99", failed), record(revisionA, healthy)), revisionB, view.PreviousRevision, revisionA, ""},
		"of a rollback": {"content counts, not its name", history(record(digestA, healthy), record(revisionB, healthy), record(revisionA, healthy)), digestA, view.PreviousRevision, revisionB, ""},
		"none":          {"nothing else was ever healthy", history(record(revisionB, healthy)), revisionB, view.PreviousRevision, "", "no other revision"},
		"no history":    {"nothing was ever installed", history(), "", view.PreviousRevision, "", "no history yet"},
		"by name":       {"also what failed", history(record(revisionB, failed), record(revisionA, failed)), revisionB, "v1.2.0", revisionA, ""},
		"by digest":     {"", history(record(revisionB, healthy), record(revisionA, healthy)), revisionB, digestA[:20], revisionA, ""},
		"moved tag":     {"the name means two contents", history(record(moved, healthy), record(revisionA, healthy)), moved, "v1.2.0", "", "means several revisions"},
		"twice":         {"the same content twice is one", history(record(revisionA, healthy), record(revisionB, healthy), record(revisionA, failed)), revisionB, "v1.2.0", revisionA, ""},
		"by version":    {"as the bundle states it", history(record(revisionB, healthy), named), revisionB, "1.2.0", revisionA, ""},
		"by commit":     {"as Git shortens it", history(record(revisionB, healthy), named), revisionB, commit[:7], revisionA, ""},
		"by both":       {"as history prints it", history(record(revisionB, healthy), named), revisionB, "main@sha1:" + commit[:7], revisionA, ""},
		"by part":       {"of a composition", history(record(revisionB, healthy), named), revisionB, "v9@" + digestB, revisionA, ""},
		"short commit":  {"which could be a name", history(record(revisionB, healthy), named), revisionB, commit[:6], "", "1.2.0 (main@sha1:" + commit[:7] + ", v9@sha256:ccccccc)  v1.2.0@sha256:aaaaaaaaaaaa  Healthy, since"},
		"other branch":  {"both have to be right", history(record(revisionB, healthy), named), revisionB, "dev@sha1:" + commit[:7], "", "has no revision"},
		"unknown":       {"what is known is listed", history(record(revisionB, healthy)), revisionB, "v9", "", "v1.3.0@sha256:cccccccccccc  Healthy, since 2026-05-04 12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := view.FindRevision(tc.d, tc.newest, tc.to)
			if got.Revision != tc.want || (tc.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: got %q, %v", tc.reason, got.Revision, err)
			}
		})
	}
}

func TestFluxPin(t *testing.T) {
	for kind, want := range map[string]string{
		"GitRepository": "spec:\n  ref:\n    commit: " + commit + "\n", "OCIRepository": "spec:\n  ref:\n    digest: " + digestA + "\n",
		"Bucket": "only has the newest files", "ExternalArtifact": "which another controller publishes",
	} {
		revision := revisionA
		if kind == "GitRepository" {
			revision = "main@sha1:" + commit
		}
		manifest, why := act.FluxPin(&v1alpha1.SourceReference{APIVersion: "source.toolkit.fluxcd.io/v1", Kind: kind, Name: "apps"}, "demo", revision)
		text, err := printer.YamlText(manifest)
		if err != nil || !strings.Contains(string(text)+why, want) {
			t.Errorf("%s: %q is missing in %s%s", kind, want, text, why)
		}
	}
}
