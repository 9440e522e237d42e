// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// confirmation is how long a kind must have been missing before it counts as gone. After a
	// start of the API server discovery lacks the groups of CRDs for up to a second.
	confirmation = 5 * time.Second
	// continuity is the longest pause between two observations of a missing kind after which the
	// later one still confirms the earlier one.
	continuity = time.Minute
)

// UnconfirmedError says that a kind is missing, and not yet known to be gone.
type UnconfirmedError struct{ Kind schema.GroupKind }

// Error implements error.
func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("kind %s is not served at the moment, which is confirmed before its objects count as gone", e.Kind)
}

// IsUnconfirmed tells whether the error is an *UnconfirmedError.
func IsUnconfirmed(err error) bool {
	var unconfirmed *UnconfirmedError
	return errors.As(err, &unconfirmed)
}

// absences remember missing kinds, and how all kinds were served before.
type absences struct {
	mu    sync.Mutex
	of    map[schema.GroupKind]absence
	seen  map[schema.GroupKind]sight
	first time.Time // when discovery answered first
}

type absence struct{ since, last time.Time }

// sight is how a kind was last served, and when.
type sight struct {
	version string
	kind    Kind
	at      time.Time
}

// take stores an answer of discovery. A kind that is in it is no longer missing.
func (a *absences) take(c *catalog) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[schema.GroupKind]sight{}
		a.of = map[schema.GroupKind]absence{}
		a.first = c.asked
	}
	for kind, versions := range c.served {
		a.seen[kind] = sight{version: versions[0], kind: c.kinds[kind.WithVersion(versions[0])], at: c.asked}
		delete(a.of, kind)
	}
	for kind, was := range a.seen {
		if c.asked.Sub(was.at) > maxAge {
			delete(a.seen, kind)
		}
	}
}

// lately are the kinds that an earlier answer contained and the present one does not.
func (a *absences) lately(c *catalog) map[schema.GroupKind]sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	missing := map[schema.GroupKind]sight{}
	for kind, was := range a.seen {
		if len(c.served[kind]) == 0 {
			missing[kind] = was
		}
	}
	return missing
}

// settled tells whether an answer came so long after the first one that it is complete, even if
// the first one was not.
func (a *absences) settled(c *catalog) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return c.asked.Sub(a.first) >= confirmation
}

// look records one more observation of a missing kind, and tells whether it confirms the first one.
func (a *absences) look(kind schema.GroupKind, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[schema.GroupKind]absence{}
	}
	found := a.of[kind]
	if now.Sub(found.last) > continuity {
		found.since = now
	}
	found.last = now
	a.of[kind] = found
	return now.Sub(found.since) >= confirmation
}

// served is how a kind was served before it was missing. A kind that was never seen is guessed.
func (a *absences) served(kind schema.GroupKind, version string) schema.GroupVersionResource {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was, found := a.seen[kind]; found {
		return was.kind.Resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(version))
	return plural
}

func (a *absences) end(kind schema.GroupKind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, kind)
}

// Present records that a kind that discovery does not list is served nevertheless, and repeats discovery soon.
func (k *Cache) Present(kind schema.GroupKind) {
	k.absences.end(kind)
	k.Forget()
}

// ConfirmMissing records that a kind is missing now. It tells whether that was observed before, long enough ago.
func (k *Cache) ConfirmMissing(kind schema.GroupKind) bool { return k.absences.look(kind, k.now()) }

// LastResource is the resource that a kind was last served as, or else the usual one.
func (k *Cache) LastResource(kind schema.GroupKind, version string) schema.GroupVersionResource {
	return k.absences.served(kind, version)
}
