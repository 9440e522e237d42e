// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// mostRefused is how many resources are remembered that were refused, and
	// mostNamed how many of them are named to people.
	mostRefused, mostNamed = 100, 3
	// failuresBelong is the longest pause between two failures of which the later
	// one goes on with the first: what failed for a revision that was given up does
	// not make the removal of next week impatient.
	failuresBelong = time.Hour
	// abandoned is the age at which a migration is forgotten that nobody goes on with.
	abandoned = 7 * 24 * time.Hour
)

// Migrations remembers how far migrations have come, from one call to the next.
//
// Nothing of that is kept on the cluster: whoever may annotate a CRD could have its
// resources passed over, or patience end at once. What another process began this
// one begins anew, which costs time only. The zero value is ready for use.
type Migrations struct {
	// Now is the clock; time.Now by default.
	Now func() time.Time

	mu    sync.Mutex
	known map[migrationKey]progress
}

// migrationKey says whose migration of which CRD it is. The owner is part of it,
// as the UID of an object on a cluster of a tenant's own is what the tenant likes.
type migrationKey struct {
	owner Owner
	name  string
	uid   types.UID
}

// progress of a migration. What is created after it began is stored in the version
// of storage from the first, so that the order of keys is enough to go on in.
type progress struct {
	generation int64                  // of the CRD; with another one the resources begin anew
	last       types.NamespacedName   // the resource that was written last; zero: none
	ended      bool                   // there is none after the last one
	refused    []types.NamespacedName // those that cannot be written, as many as are remembered
	further    int                    // how many more of those there are
	why        string                 // the first of them was refused
	failing    time.Time              // the first failure since the last progress; zero: none
	tried      time.Time              // the last failure
	kept       time.Time
}

func (m *Migrations) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// of gives the progress of a migration. Since the specification of the CRD changed,
// resources may have been stored in another version again.
func (m *Migrations) of(key migrationKey, generation int64) progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.known[key]
	if p.generation != generation {
		return progress{generation: generation, failing: p.failing, tried: p.tried}
	}
	return p
}

// keep remembers a migration that goes on, and forgets those that nobody goes on with.
func (m *Migrations) keep(key migrationKey, p progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for other, of := range m.known {
		if now.Sub(of.kept) > abandoned {
			delete(m.known, other)
		}
	}
	if m.known == nil {
		m.known = map[migrationKey]progress{}
	}
	p.kept = now
	m.known[key] = p
}

// forget ends a migration.
func (m *Migrations) forget(key migrationKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

// fail takes one more failure in. It tells until when it is worth waiting, and
// whether that is over; the first failure is never the last.
func (p *progress) fail(now time.Time, patience time.Duration) (until time.Time, over bool) {
	if p.failing.IsZero() || p.failing.After(now) || now.Sub(p.tried) > failuresBelong {
		p.failing, p.tried = now, now
		return now.Add(patience), false
	}
	p.tried = now
	until = p.failing.Add(patience)
	return until, !now.Before(until)
}

// wrote takes in that a resource was written, or needs it no more.
func (p *progress) wrote(resource types.NamespacedName) {
	p.last, p.failing, p.tried = resource, time.Time{}, time.Time{}
}

// refuse takes in that a resource cannot be written.
func (p *progress) refuse(resource types.NamespacedName, err error) {
	p.wrote(resource)
	if len(p.refused) == 0 {
		p.why = oneLine(err.Error())
	}
	if len(p.refused) == mostRefused {
		p.further++
		return
	}
	p.refused = append(p.refused, resource)
}

// refusals says how many resources cannot be written, and names some.
func (p *progress) refusals() string {
	names := make([]string, 0, mostNamed+1)
	for _, resource := range p.refused[:min(len(p.refused), mostNamed)] {
		names = append(names, strings.TrimPrefix(resource.String(), "/"))
	}
	if len(p.refused) > mostNamed {
		names = append(names, "...")
	}
	return fmt.Sprintf("%d of its resources (%s)", len(p.refused)+p.further, strings.Join(names, ", "))
}
