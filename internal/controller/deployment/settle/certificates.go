// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// appliedState is the state of the revision that the cluster runs.
func (in *Input) appliedState() *Input {
	if in.Kept != nil {
		return in.Kept
	}
	return in
}

// certificateEnds are the expiry times of the certificates on the cluster after this
// reconcile, sorted by Secret; false if they are unknown.
func (in *Input) certificateEnds() ([]certificate.End, bool) {
	if in.Rendered.Issued == nil {
		return nil, in.Delivered.Complete
	}
	there := maps.Clone(in.Rendered.Issued.Found)
	for _, id := range in.writtenCertificates(apply.Created, apply.Updated, apply.Repaired, apply.Settled, apply.Unchanged) {
		there[id] = in.Rendered.Issued.Secret(id)
	}
	var ends []certificate.End
	for _, id := range slices.SortedFunc(maps.Keys(there), inventory.ID.Compare) {
		if end, fine := certificate.Life(there[id]); fine {
			ends = append(ends, end)
		}
	}
	return ends, len(in.Rendered.Issued.Hidden) == 0
}

// writtenCertificates are the certificate Secrets with an outcome of one of the kinds.
func (in *Input) writtenCertificates(kinds ...apply.Kind) []inventory.ID {
	var ids []inventory.ID
	if in.Delivered.Applied == nil || in.Rendered.Issued == nil {
		return nil
	}
	for _, outcome := range in.Delivered.Applied.Outcomes {
		if in.Rendered.Issued.Secret(outcome.ID) != nil && slices.Contains(kinds, outcome.Kind) {
			ids = append(ids, outcome.ID)
		}
	}
	return ids
}

// setCertificates sets when the first serving certificate expires, and warns of
// certificates with an overdue renewal.
func setCertificates(in *Input) {
	looked := in.appliedState()
	ends, known := looked.certificateEnds()
	if !known {
		setUnseen(in)
		return
	}
	var warnings []string
	in.Object.Status.CertificateExpirationTime = nil
	for _, end := range ends {
		until := metav1.NewTime(end.NotAfter)
		if first := in.Object.Status.CertificateExpirationTime; end.ID != in.AuthorityID() && (first == nil || until.Before(first)) {
			in.Object.Status.CertificateExpirationTime = &until
		}
		if end.Late(in.Now) {
			warnings = append(warnings, fmt.Sprintf("the one in %s expires on %s and could not be renewed so far", end.ID, until.UTC().Format(time.DateTime)))
		}
	}
	in.Object.Status.Warnings = withCertificateWarnings(in.Object.Status.Warnings, warnings)
}

// setUnseen warns of certificates that were not read in this reconcile, by the expiry
// time in the status.
func setUnseen(in *Input) {
	first := in.Object.Status.CertificateExpirationTime
	if first != nil && first.Sub(in.Now) < lastPart {
		warning := fmt.Sprintf("the first expires on %s and could not be renewed so far", first.UTC().Format(time.DateTime))
		in.Object.Status.Warnings = withCertificateWarnings(in.Object.Status.Warnings, []string{warning})
	}
}

// lastPart is the last part of the lifetime of a serving certificate; see
// certificate.End.Late.
const lastPart = certificate.ServingLife / 6

// certificateWarning is the prefix of warnings about certificates, which last until the
// next check.
const certificateWarning = "certificates: "

func isCertificateWarning(warning string) bool { return strings.HasPrefix(warning, certificateWarning) }

// withCertificateWarnings replaces the warnings about certificates; they come first,
// and the number stays bounded.
func withCertificateWarnings(all, about []string) []string {
	var warnings []string
	for _, text := range about {
		warnings = append(warnings, certificateWarning+text)
	}
	return ahead(bounded(warnings), slices.DeleteFunc(slices.Clone(all), isCertificateWarning))
}

// ShowExpiry publishes when the certificates on the cluster expire.
func (st *Stage) ShowExpiry(in *Input) {
	lives, known := in.appliedState().certificateEnds()
	if !known {
		return
	}
	ends := make(map[string]time.Time, len(lives))
	for _, end := range lives {
		ends[end.ID.Namespace+"/"+end.ID.Name] = end.NotAfter
	}
	st.Expiry.Show(in.Key(), ends)
}

// EmitCertificates emits an event for the issued certificates, and a warning for those
// that cannot be renewed: one event each, see emitKept.
func (st *Stage) EmitCertificates(in *Input) {
	looked := in.appliedState()
	written := looked.writtenCertificates(apply.Created, apply.Updated)
	var issued, overdue []string
	if looked.Rendered.Issued != nil {
		for _, one := range looked.Rendered.Issued.Set.Issued {
			if slices.Contains(written, one.ID) {
				issued = append(issued, one.Sentence)
			}
		}
	}
	for _, warning := range in.Object.Status.Warnings {
		if isCertificateWarning(warning) && !slices.Contains(in.Before.Status.Warnings, warning) {
			overdue = append(overdue, warning)
		}
	}
	if len(issued) > 0 {
		st.Events.Normal(in.Subject, "CertificateIssued", "Certify", strings.Join(issued, "; "))
	}
	if len(overdue) > 0 {
		st.Events.Warning(in.Subject, "CertificateNotRenewed", "Certify", strings.Join(overdue, "\n"))
	}
}

// renewal is when the certificates have to be checked next; zero when there are none.
// The first line that holds decides.
//
//	a new CA waits to be trusted        soon
//	they were checked                   as they say
//	nothing was due                     as noted last
//	there are none                      never
//	else                                when the first that is known of is due
func (in *Input) renewal() time.Time {
	looked, first := in.appliedState(), in.Object.Status.CertificateExpirationTime
	switch {
	case looked.Rendered.Issued != nil && looked.Rendered.Issued.Set.Waiting:
		return in.Now.Add(trustPause)
	case looked.Rendered.Issued != nil:
		return looked.Rendered.Issued.Set.Next
	case !in.Resolved.Due:
		return in.Note.Renew
	case first == nil:
		return time.Time{}
	}
	return first.Add(-2 * lastPart)
}

// trustPause is the interval of checks whether every object trusts a new CA, which
// takes a day at least.
const trustPause = time.Hour

// UntilRenewal shortens a pause so that it ends when certificates are due. An overdue
// renewal has just failed.
func (in *Input) UntilRenewal(pause time.Duration) time.Duration {
	switch at := in.renewal(); {
	case at.IsZero():
		return pause
	case at.After(in.Now):
		return min(pause, at.Sub(in.Now))
	}
	return min(pause, in.BackgroundRetryInterval())
}

// WarnSuspended warns of certificates that expire soon, and returns the time until that is due; zero when it was done or
// there are none.
func WarnSuspended(in *Input) time.Duration {
	first := in.Object.Status.CertificateExpirationTime
	if first == nil {
		return 0
	}
	if pause := first.Add(-lastPart).Sub(in.Now); pause > 0 {
		return pause
	}
	warning := fmt.Sprintf("the first expires on %s and is not renewed while the deployment is suspended: resume it", first.UTC().Format(time.DateTime))
	in.Object.Status.Warnings = withCertificateWarnings(in.Object.Status.Warnings, []string{warning})
	return 0
}
