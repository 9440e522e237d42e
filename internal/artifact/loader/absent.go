// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"sync"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// absentFor is how long a server is not asked again for what it said it does not have, however often that is wanted.
const absentFor = 5 * time.Second

// absences remember the artifacts that servers reported as missing. An artifact that is advertised again counts as another
// one: the server that stored it again is asked at once. The zero value is ready for use.
type absences struct {
	mu    sync.Mutex
	found map[absentKey]absence
}

type absentKey struct {
	url, digest string
	advertised  time.Time
}

type absence struct {
	at  time.Time
	err error
}

func (w Wanted) absentKey() absentKey {
	return absentKey{url: w.url, digest: w.digest, advertised: w.advertised}
}

// recall gives the answer of a server that was asked a moment ago and did not have it.
func (a *absences) recall(want Wanted, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, known := a.found[want.absentKey()]
	if !known || now.Sub(found.at) >= absentFor {
		return nil
	}
	return found.err
}

// note remembers an answer that says so, and forgets those that are over.
func (a *absences) note(want Wanted, now time.Time, err error) {
	var answer *fetch.Error
	if !errors.As(err, &answer) || answer.Reason != fetch.NotFound {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found == nil {
		a.found = map[absentKey]absence{}
	}
	for key, known := range a.found {
		if now.Sub(known.at) >= absentFor {
			delete(a.found, key)
		}
	}
	a.found[want.absentKey()] = absence{at: now, err: answer}
}
