// SPDX-License-Identifier: Apache-2.0

package storageversion

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
)

const (
	// mostRefused is how many refused resources are remembered, and
	// mostNamed how many of them are named in messages.
	mostRefused, mostNamed = 100, 3
	// failuresBelong is the longest pause between two failures that count as one series:
	// failures for a revision that was dropped must not use up the patience of a removal
	// next week.
	failuresBelong = time.Hour
	// abandoned is the age at which a migration without progress is forgotten.
	abandoned = 7 * 24 * time.Hour
)

// DefaultPatience is enough for the Pod of an operator to be moved to
// another node, and its image to be pulled there.
const DefaultPatience = 10 * time.Minute

// Migrations remembers the progress of migrations, from one call to the next.
//
// None of that is stored on the cluster: users who may annotate a CRD could make a
// migration skip resources, or end patience at once. A migration that another process
// began starts again, which only costs time. The zero value is ready for use.
type Migrations struct {
	// Now is the clock; time.Now by default.
	Now func() time.Time

	mu    sync.Mutex
	known map[migrationKey]progress
}

// migrationKey identifies the migration of a CRD for an owner. The owner is part of it,
// as a tenant can choose the UIDs of objects on its own cluster.
type migrationKey struct {
	owner inventory.Owner
	name  string
	uid   types.UID
}

// progress of a migration. Resources that are created after it began are stored in the
// storage version, so that the last key is enough to continue.
type progress struct {
	generation int64                  // of the CRD; with another one the migration starts again
	last       types.NamespacedName   // the resource that was written last; zero: none
	ended      bool                   // no resource follows the last one
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

// of returns the progress of a migration. When the spec of the CRD changed, resources may
// have been stored in another version again.
func (m *Migrations) of(key migrationKey, generation int64) progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.known[key]
	if p.generation != generation {
		return progress{generation: generation, failing: p.failing, tried: p.tried}
	}
	return p
}

// keep remembers a migration that goes on, and forgets the abandoned ones.
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

// fail records a failure. It returns until when a retry is worthwhile, and
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

// wrote records that a resource was written, or does not need it any more.
func (p *progress) wrote(resource types.NamespacedName) {
	p.last = resource
	p.failing = time.Time{}
	p.tried = time.Time{}
}

// refuse records that a resource cannot be written.
func (p *progress) refuse(resource types.NamespacedName, err error) {
	p.wrote(resource)
	if len(p.refused) == 0 {
		p.why = objecterror.OneLine(err.Error())
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
