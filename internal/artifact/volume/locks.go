// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"sync"
)

// Locks serialises work on the same key. The zero value is ready for use.
type Locks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	slot  chan struct{}
	users int
}

// Lock waits until no other caller holds key, or the context ends.
func (k *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	lock := k.join(key)
	select {
	case lock.slot <- struct{}{}:
		return func() {
			<-lock.slot
			k.leave(key, lock)
		}, nil
	case <-ctx.Done():
		k.leave(key, lock)
		return nil, context.Cause(ctx)
	}
}

func (k *Locks) join(key string) *keyedLock {
	k.mu.Lock()
	defer k.mu.Unlock()
	lock := k.held[key]
	if lock == nil {
		lock = &keyedLock{slot: make(chan struct{}, 1)}
		if k.held == nil {
			k.held = map[string]*keyedLock{}
		}
		k.held[key] = lock
	}
	lock.users++
	return lock
}

func (k *Locks) leave(key string, lock *keyedLock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(k.held, key)
	}
}
