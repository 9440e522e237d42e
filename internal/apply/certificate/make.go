// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// Request is a serving certificate that a deployment needs.
type Request struct {
	Namespace, Secret string
	DNSNames          []string
}

// ID is the identity of the Secret.
func (r Request) ID() inventory.ID { return secretID(r.Namespace, r.Secret) }

// Input is everything that the decision depends on.
type Input struct {
	Now     time.Time
	Entropy io.Reader
	Owner   inventory.Owner
	// Home is the namespace of the authority's Secret; that of the owner if empty.
	Home string

	// Authority is the live Secret of that ID, nil when it does not exist; Serving are the existing ones of the requests. They
	// must be known to be the owner's; their contents may be anything.
	Authority *unstructured.Unstructured
	Serving   map[inventory.ID]*unstructured.Unstructured

	// Wanted are the certificates that the deployment needs; none: the Set is empty.
	Wanted []Request

	// Trusted tells that every object that trusts the certificates Carries the bundle that belongs to this Authority. It
	// matters only where the Set that was made of it was Waiting.
	Trusted bool
}

// Set is the desired state.
type Set struct {
	// Secrets are complete: the authority first, then the serving ones by namespace and name. Those that are not due are unchanged.
	Secrets []*unstructured.Unstructured
	// Bundle holds the authorities to trust, as PEM, newest first.
	Bundle []byte
	// Issued lists the changes, and why.
	Issued []Issued
	// Stale are those of Secrets that the live ones differ from. If empty, nothing needs to be written.
	Stale []inventory.ID
	// Waiting tells that a successor may not sign before all objects trust it; see Input.Trusted.
	Waiting bool
	// Next is the latest time to decide again; zero for an empty Set. A Set that is Waiting does not wait for it.
	Next time.Time
	// Ends are the expirations of Secrets, in the same order.
	Ends []End
}

// Issued is a change, for an event.
type Issued struct {
	ID inventory.ID
	// Sentence in the past tense, without a full stop: what changed and why.
	Sentence string
}

// Make decides which certificates there should be, and issues those that are due. It fails without randomness, and where
// the requests cannot be met; never because of the contents of live Secrets.
func Make(in Input) (Set, error) {
	if len(in.Wanted) == 0 {
		return Set{}, nil
	}
	m := newMaker(in)
	if err := m.check(); err != nil {
		return Set{}, err
	}
	if err := m.chooseAuthorities(); err != nil {
		return Set{}, fmt.Errorf("choosing the certificate authority of %s: %w", in.Owner, err)
	}
	m.set.Bundle = writeCertificates(m.ca.trusted...)
	m.set.Waiting = !m.ca.next.none()
	if err := m.authoritySecret(); err != nil {
		return Set{}, err
	}
	for _, r := range m.wanted {
		if err := m.serve(r); err != nil {
			return Set{}, fmt.Errorf("issuing the certificate of %s: %w", r.ID(), err)
		}
	}
	m.schedule()
	return m.set, nil
}

// maker is the state of one decision.
type maker struct {
	issuer
	in          Input
	wanted      []Request // sorted
	domains     []string
	authorityID inventory.ID

	ca  authorities
	set Set
}

func newMaker(in Input) *maker {
	m := &maker{in: in, wanted: slices.Clone(in.Wanted), domains: domainsOf(in.Wanted), authorityID: AuthorityIn(in.Owner, cmp.Or(in.Home, in.Owner.Namespace))}
	m.issuer = issuer{now: in.Now.UTC().Truncate(time.Second), entropy: in.Entropy, owner: in.Owner} // X.509 counts seconds
	slices.SortFunc(m.wanted, func(a, b Request) int { return a.ID().Compare(b.ID()) })
	return m
}

// check refuses requests that cannot be met.
func (m *maker) check() error {
	var faults []error
	for i, r := range m.wanted {
		switch {
		case r.ID() == m.authorityID:
			faults = append(faults, fmt.Errorf("%s is wanted for serving and is that of the certificate authority", r.ID()))
		case i > 0 && r.ID() == m.wanted[i-1].ID():
			faults = append(faults, fmt.Errorf("two certificates are wanted in %s", r.ID()))
		case len(r.DNSNames) == 0:
			faults = append(faults, fmt.Errorf("the certificate of %s has no names", r.ID()))
		}
		for _, name := range r.DNSNames {
			if _, parent, found := strings.Cut(name, "."); !found || parent == "" {
				faults = append(faults, fmt.Errorf("the certificate of %s has a name outside of any namespace: %q", r.ID(), name))
			}
		}
	}
	return errors.Join(faults...)
}

// add puts a Secret into the Set.
func (m *maker) add(desired, live *unstructured.Unstructured, p pair) {
	id := inventory.IDOf(desired)
	m.set.Secrets = append(m.set.Secrets, desired)
	m.set.Ends = append(m.set.Ends, endOf(id, p))
	if !upToDate(live, desired) {
		m.set.Stale = append(m.set.Stale, id)
	}
}

func (m *maker) issued(id inventory.ID, sentence string, args ...any) {
	m.set.Issued = append(m.set.Issued, Issued{ID: id, Sentence: fmt.Sprintf(sentence, args...)})
}

// day is the date on which a certificate expires.
func day(p pair) string { return p.cert.NotAfter.Format(time.DateOnly) }

// schedule finds the next time at which the decision changes without other input.
func (m *maker) schedule() {
	moments := []time.Time{m.ca.signs.cert.NotAfter.Add(-Succession)}
	if !m.ca.next.none() {
		moments = append(moments, m.ca.next.cert.NotBefore.Add(backdated+Settling))
	}
	for _, authority := range m.ca.trusted {
		moments = append(moments, authority.NotAfter)
	}
	for _, end := range m.set.Ends[1:] {
		moments = append(moments, renewal(end), end.NotAfter)
	}
	for _, moment := range moments {
		if moment.After(m.now) && (m.set.Next.IsZero() || moment.Before(m.set.Next)) {
			m.set.Next = moment
		}
	}
}

// renewal is when two thirds of a certificate's life are over.
func renewal(e End) time.Time { return e.NotBefore.Add(e.NotAfter.Sub(e.NotBefore) / 3 * 2) }
