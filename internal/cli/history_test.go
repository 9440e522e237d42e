// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/see"
)

// tried gives a deployment a history of all outcomes.
func tried(d *v1alpha1.BundleDeployment) {
	record := func(revision string, outcome v1alpha1.Outcome, started, took time.Duration) v1alpha1.RevisionRecord {
		r := v1alpha1.RevisionRecord{Revision: revision, Digest: digestB, Generation: 2, StartTime: ago(started), Outcome: outcome, Create: 4, Update: 1}
		if revision == revisionB {
			r.OriginRevision, r.Version = originB, "1.3.0"
		}
		if outcome != "" {
			r.CompletionTime = new(ago(started - took))
		}
		return r
	}
	failed := record("v1.4.0@"+digestB, v1alpha1.OutcomeRolledBack, 2*time.Hour, 5*time.Minute)
	failed.Message, failed.Attempts, failed.Delete = "HealthFailed: Deployment demo/web: "+steering+"\nsecond line", 3, 2
	d.Status.History = []v1alpha1.RevisionRecord{
		record("v1.5.0@"+digestA, "", time.Minute, 0), failed,
		record(revisionB, v1alpha1.OutcomeHealthy, 3*time.Hour, 20*time.Second),
		record("v1.2.5@"+digestA, v1alpha1.OutcomeFailed, 4*time.Hour, 20*time.Second),
		record(revisionA, v1alpha1.OutcomeSuperseded, 5*time.Hour, time.Second),
		record(revisionB, v1alpha1.OutcomeHealthy, 30*time.Hour, 20*time.Second),
	}
	d.Status.Rejected.Revision = failed.Revision
}

func TestHistoryOutput(t *testing.T) {
	found := see.NewRevisions(aDeployment(tried))
	for name, wide := range map[string]bool{"table": false, "wide": true} {
		text := found.Table(wide, noon).Render(printer.Style{})
		golden(t, "history/"+name, text)
		if odd := hiddenIn(text); odd != "" {
			t.Errorf("%s: %s", name, odd)
		}
	}
}

func TestHistoryOfCluster(t *testing.T) {
	c := newTestCluster(t)
	c.Create(aDeployment(tried))
	c.Create(aDeployment(called("fresh"), never))
	c.Want(c.Satchel("history", "podinfo"), kit.ExitOK, "1.3.0     v1.3.0@sha256:aaaaaaa        Healthy      current", "RolledBack   rejected", "-            being tried")
	c.Want(c.Satchel("history", "podinfo", "-o", "name"), kit.ExitOK, revisionA+"\n")
	c.Want(c.Satchel("history", "podinfo", "-o", "yaml"), kit.ExitOK, `"applied": "`+revisionB+"\"\n")
	var found see.Revisions
	if got := c.Satchel("history", "podinfo", "-o", "json"); json.Unmarshal([]byte(got.Out), &found) != nil || len(found.Revisions) != 6 || found.Revisions[2].States[0] != "Applied" {
		t.Errorf("got %s", got)
	}
	c.Want(c.Satchel("history", "fresh"), kit.ExitOK, "No revision of fresh was tried yet; status says what it waits for.\n")
	c.Want(c.Satchel("history", "fresh", "-o", "json"), kit.ExitOK, `"revisions": []`)
	c.Want(c.Satchel("history"), kit.ExitError, "history needs the name of one object, got none")
}
