// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

// mark is a place in the audit log.
func (r *rig) mark(t *testing.T) controlplane.AuditMark {
	t.Helper()
	mark, err := r.CP.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	return mark
}

// writes are those of Satchel's controllers in a namespace since a mark, without dry runs,
// or everywhere for "". Leases and events do not count.
func (r *rig) writes(t *testing.T, since controlplane.AuditMark, namespace string) []string {
	t.Helper()
	events, err := r.CP.Audit(since)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range events {
		if !strings.HasPrefix(e.User, "system:serviceaccount:satchel-system:") || !isWriting(e) || namespace != "" && e.Namespace != namespace {
			continue
		}
		found = append(found, e.Time.Format(time.TimeOnly)+" "+e.String())
	}
	return found
}

func isWriting(e controlplane.AuditEvent) bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	return e.Resource != "leases" && e.Resource != "events" && !strings.HasPrefix(e.Resource, "selfsubject") && !strings.Contains(e.RequestURI, "dryRun=")
}

// quiet wants no writes for some time (I3).
func (r *rig) quiet(t *testing.T, namespace string, for_ time.Duration) {
	t.Helper()
	mark := r.mark(t)
	select {
	case <-time.After(for_):
	case <-t.Context().Done():
	}
	if written := r.writes(t, mark, namespace); len(written) > 0 {
		t.Errorf("%d writes although nothing happens:\n%s", len(written), strings.Join(written, "\n"))
	}
}

// waitForNoWrites waits until there were no writes for two seconds: a watch that was cut takes
// seconds to come up, and until then decisions are refused as stale.
func (r *rig) waitForNoWrites(t *testing.T, namespace string) {
	t.Helper()
	mark, since := r.mark(t), time.Now()
	r.Eventually(t, t.Context(), "writes to end", func(context.Context) (bool, string) {
		if written := r.writes(t, mark, namespace); len(written) > 0 {
			mark, since = r.mark(t), time.Now()
			return false, strings.Join(written, "\n")
		}
		return time.Since(since) > 2*time.Second, "waiting"
	})
}
