// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// appliedState is the state of the revision that the cluster runs.
func (s *state) appliedState() *state {
	if s.kept != nil {
		return s.kept
	}
	return s
}

// certificateEnds are the expiry times of the certificates on the cluster after this
// reconcile, sorted by Secret; false if they are unknown.
func (s *state) certificateEnds() ([]certificate.End, bool) {
	if s.rendered.Issued == nil {
		return nil, s.delivered.Complete
	}
	there := maps.Clone(s.rendered.Issued.Found)
	for _, id := range s.writtenCertificates(apply.Created, apply.Updated, apply.Repaired, apply.Settled, apply.Unchanged) {
		there[id] = s.rendered.Issued.Secret(id)
	}
	var ends []certificate.End
	for _, id := range slices.SortedFunc(maps.Keys(there), inventory.ID.Compare) {
		if end, fine := certificate.Life(there[id]); fine {
			ends = append(ends, end)
		}
	}
	return ends, len(s.rendered.Issued.Hidden) == 0
}

// writtenCertificates are the certificate Secrets with an outcome of one of the kinds.
func (s *state) writtenCertificates(kinds ...apply.Kind) []inventory.ID {
	var ids []inventory.ID
	if s.delivered.Applied == nil || s.rendered.Issued == nil {
		return nil
	}
	for _, outcome := range s.delivered.Applied.Outcomes {
		if s.rendered.Issued.Secret(outcome.ID) != nil && slices.Contains(kinds, outcome.Kind) {
			ids = append(ids, outcome.ID)
		}
	}
	return ids
}

// setCertificates sets when the first serving certificate expires, and warns of
// certificates with an overdue renewal.
func setCertificates(s *state) {
	looked := s.appliedState()
	ends, known := looked.certificateEnds()
	if !known {
		setUnseen(s)
		return
	}
	var warnings []string
	s.Object.Status.CertificateExpirationTime = nil
	for _, end := range ends {
		until := metav1.NewTime(end.NotAfter)
		if first := s.Object.Status.CertificateExpirationTime; end.ID != s.AuthorityID() && (first == nil || until.Before(first)) {
			s.Object.Status.CertificateExpirationTime = &until
		}
		if end.Late(s.Now) {
			warnings = append(warnings, fmt.Sprintf("the one in %s expires on %s and could not be renewed so far", end.ID, until.UTC().Format(time.DateTime)))
		}
	}
	s.Object.Status.Warnings = withCertificateWarnings(s.Object.Status.Warnings, warnings)
}

// setUnseen warns of certificates that were not read in this reconcile, by the expiry
// time in the status.
func setUnseen(s *state) {
	first := s.Object.Status.CertificateExpirationTime
	if first != nil && first.Sub(s.Now) < lastPart {
		warning := fmt.Sprintf("the first expires on %s and could not be renewed so far", first.UTC().Format(time.DateTime))
		s.Object.Status.Warnings = withCertificateWarnings(s.Object.Status.Warnings, []string{warning})
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

// showExpiry publishes when the certificates on the cluster expire.
func (r *Reconciler) showExpiry(s *state) {
	lives, known := s.appliedState().certificateEnds()
	if !known {
		return
	}
	ends := make(map[string]time.Time, len(lives))
	for _, end := range lives {
		ends[end.ID.Namespace+"/"+end.ID.Name] = end.NotAfter
	}
	r.Expiry.Show(s.Key(), ends)
}

// emitCertificates emits events for issued certificates, and one warning for those that
// cannot be renewed.
func (r *Reconciler) emitCertificates(s *state) {
	looked := s.appliedState()
	written := looked.writtenCertificates(apply.Created, apply.Updated)
	if looked.rendered.Issued != nil {
		for _, one := range looked.rendered.Issued.Set.Issued {
			if slices.Contains(written, one.ID) {
				r.normal(s, "CertificateIssued", "Certify", one.Sentence)
			}
		}
	}
	for _, warning := range s.Object.Status.Warnings {
		if isCertificateWarning(warning) && !slices.Contains(s.Before.Status.Warnings, warning) {
			r.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, "CertificateNotRenewed", "Certify", "%s", warning)
		}
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
func (s *state) renewal() time.Time {
	looked, first := s.appliedState(), s.Object.Status.CertificateExpirationTime
	switch {
	case looked.rendered.Issued != nil && looked.rendered.Issued.Set.Waiting:
		return s.Now.Add(trustPause)
	case looked.rendered.Issued != nil:
		return looked.rendered.Issued.Set.Next
	case !s.resolved.Due:
		return s.note.Renew
	case first == nil:
		return time.Time{}
	}
	return first.Add(-2 * lastPart)
}

// trustPause is the interval of checks whether every object trusts a new CA, which
// takes a day at least.
const trustPause = time.Hour

// untilRenewal shortens a pause so that it ends when certificates are due. An overdue
// renewal has just failed.
func (s *state) untilRenewal(pause time.Duration) time.Duration {
	switch at := s.renewal(); {
	case at.IsZero():
		return pause
	case at.After(s.Now):
		return min(pause, at.Sub(s.Now))
	}
	return min(pause, s.BackgroundRetryInterval())
}
