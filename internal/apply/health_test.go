// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/tests/workspace"
)

// The cause is found where the cluster reports it: in the Deployment that may not
// create its Pods, and in the Pod that cannot be scheduled.
func TestHealthNamesTheCause(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	tests := map[string]struct {
		manifest string
		want     string
	}{
		"account missing": {
			manifest: strings.ReplaceAll(scaled, "spec: {containers", "spec: {serviceAccountName: missing, containers"),
			want:     `serviceaccount "missing" not found`,
		},
		"unschedulable": {
			manifest: strings.ReplaceAll(scaled, "spec: {containers", "spec: {nodeSelector: {moon: full}, containers"),
			want:     "cannot be scheduled: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := strings.ReplaceAll(tc.manifest, "name: web", "name: web-"+strings.ReplaceAll(name, " ", "-"))
			w.MustApply(manifest)
			p := w.Plan(w.Objects(manifest))
			workspace.Eventually(t, "the cause", func() error {
				report, err := health.Check(t.Context(), w.Client, p.Objects(), nil)
				if err == nil && (report.Healthy() || !strings.Contains(report.Message(), tc.want)) {
					err = fmtError(report.Message())
				}
				return err
			})
		})
	}
}
