// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
)

// setDrift sets the drift found and the objects that are not watched. Drift is kept in
// the status until the next comparison, or until watches report that there is none.
func setDrift(in *Input) {
	of := in
	if in.Kept != nil {
		of = in.Kept
	}
	status := &v1alpha1.DriftStatus{}
	if was := in.Object.Status.Drift; was != nil && in.Warns() {
		status.Found = was.Found
	}
	switch {
	case of.Decided.Drift.Compared:
		status.Found = of.Decided.Drift.Found
	case of.Delivered.Drift.Compared:
		status.Found = of.Delivered.Drift.Found
	case in.Resolved.Found.Watched && len(in.Resolved.Found.Drifted) == 0 || !in.Warns():
		status.Found = nil
	}
	status.Found = slices.Concat(status.Found, in.contested())
	for _, gap := range in.Settled.Gaps {
		if len(status.AtInterval) < stage.MostDrift {
			status.AtInterval = append(status.AtInterval, gap.String())
		}
	}
	in.Object.Status.Drift = nil
	if len(status.Found)+len(status.AtInterval) > 0 {
		in.Object.Status.Drift = status
	}
}

// emitDriftFound emits an event for drift that is not corrected, once while it stays
// the same.
func (st *Stage) emitDriftFound(in *Input) {
	var before []string
	if was := in.Before.Status.Drift; was != nil {
		before = was.Found
	}
	if is := in.Object.Status.Drift; in.Warns() && is != nil && len(is.Found) > 0 && !slices.Equal(before, is.Found) {
		st.Events.Warning(in.Subject, "DriftFound", "Compare", "differs from the bundle, and is not corrected: "+strings.Join(is.Found, "; "))
	}
}

// contested lists the ongoing conflicts for the status.
func (in *Input) contested() []string {
	var list []string
	for _, f := range in.Note.Planned.Conflicts {
		if f.Who != "" {
			list = append(list, strings.TrimSuffix(f.Who, ".")+", again and again")
		}
	}
	slices.Sort(list)
	return list[:min(len(list), stage.MostDrift)]
}
