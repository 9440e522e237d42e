// SPDX-License-Identifier: Apache-2.0

package githubapp

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
)

const (
	// tokenReserve is how long before its end a token is no longer used.
	tokenReserve = time.Minute
	// maxTokens bounds how many are kept.
	maxTokens = 1000
)

// Tokens keeps the tokens that were bought until a minute before they end, in memory only. It is safe for concurrent use.
type Tokens struct {
	// Now is the clock.
	Now func() time.Time

	mutex sync.Mutex
	kept  map[[sha256.Size]byte]*kept
}

// kept is a token, or the place where one will be.
type kept struct {
	buying chan struct{} // holds one value while a caller gets the token
	token  string
	until  time.Time
}

// NewTokens returns an empty store.
func NewTokens() *Tokens {
	return &Tokens{Now: time.Now, kept: map[[sha256.Size]byte]*kept{}}
}

// get returns the token under a key. The first caller that finds none buys it, and others with the same key wait for that.
func (t *Tokens) get(ctx context.Context, key [sha256.Size]byte, buy func() (string, time.Time, error)) (string, error) {
	place := t.place(key)
	select {
	case place.buying <- struct{}{}:
		defer func() { <-place.buying }()
	case <-ctx.Done():
		return "", fetch.NetworkError(context.Cause(ctx))
	}
	if token, valid := t.valid(place); valid {
		return token, nil
	}
	token, end, err := buy()
	if err != nil {
		return "", err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	place.token, place.until = token, end.Add(-tokenReserve)
	return token, nil
}

func (t *Tokens) valid(place *kept) (string, bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return place.token, t.Now().Before(place.until)
}

// place returns where the token under a key is, and makes room for it.
func (t *Tokens) place(key [sha256.Size]byte) *kept {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if found, known := t.kept[key]; known {
		return found
	}
	for other, place := range t.kept {
		if len(t.kept) >= maxTokens || !t.Now().Before(place.until) && len(place.buying) == 0 {
			delete(t.kept, other)
		}
	}
	t.kept[key] = &kept{buying: make(chan struct{}, 1)}
	return t.kept[key]
}

// forget drops a token that was refused.
func (t *Tokens) forget(key [sha256.Size]byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.kept, key)
}
