// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// errUnread says that an input was not read yet.
var errUnread = errors.New("it was not read yet")

// Digests remembers the digests of the inputs that single clusters have. The zero value is empty; several goroutines may use it.
type Digests struct {
	mu    sync.Mutex
	known map[identity]reading
	// asked are those that were asked for since they were read last.
	asked map[identity]revision.FrozenInput
}

// identity names an input. An optional one is another than one that is required: where it is missing, only the first one can be used.
type identity struct {
	kind, name string
	required   bool
}

func identityOf(one revision.FrozenInput) identity { return identity{one.Kind, one.Name, one.Required} }

// reading is how an input was read last.
type reading struct {
	digest string
	err    error
	at     time.Time
}

// Of are the digests of inputs as they were read last, in their order; empty for optional ones that do not exist. MissingError: one
// cannot be read.
func (d *Digests) Of(wanted []revision.FrozenInput) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var digests []string
	var problems []error
	for _, one := range wanted {
		if d.asked == nil {
			d.asked = map[identity]revision.FrozenInput{}
		}
		d.asked[identityOf(one)] = one
		known, isKnown := d.known[identityOf(one)]
		switch {
		case !isKnown:
			problems = append(problems, errUnread)
		case known.err != nil:
			problems = append(problems, known.err)
		}
		digests = append(digests, known.digest)
	}
	return digests, errors.Join(problems...)
}

// readAtOnce is how many inputs are read at once, and readPerSecond how many of them in a second, on average.
const (
	readAtOnce    = 16
	readPerSecond = 20
)

// Read reads those that were asked for since the last call and that are new, or that were read long ago, and forgets all others.
func (d *Digests) Read(ctx context.Context, keeper Keeper, now time.Time, pause time.Duration) error {
	as, err := keeper.client(ctx)
	lacks := (*MissingError)(nil)
	if err != nil && !errors.As(err, &lacks) {
		return err
	}
	d.mu.Lock()
	asked, known := d.asked, d.known
	d.asked = nil
	d.mu.Unlock()
	pause = max(pause, time.Duration(len(asked))*time.Second/readPerSecond)

	var mu sync.Mutex
	fresh := make(map[identity]reading, len(asked))
	var group errgroup.Group
	group.SetLimit(readAtOnce)
	for id, one := range asked {
		if last, isKnown := known[id]; isKnown && now.Before(last.at.Add(pause)) {
			fresh[id] = last
			continue
		}
		if lacks != nil {
			fresh[id] = reading{err: lacks, at: now}
			continue
		}
		group.Go(func() error {
			read, err := keeper.readOne(ctx, as, one)
			if missing := (*MissingError)(nil); err != nil && !errors.As(err, &missing) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			fresh[id] = reading{digest: read.Digest, err: err, at: now}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = fresh
	return nil
}

// Note remembers inputs that were read for a start.
func (d *Digests) Note(read []Input, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[identity]reading{}
	}
	for i := range read {
		d.known[identityOf(read[i].FrozenInput)] = reading{digest: read[i].Digest, at: now}
	}
}

// Forget has inputs read again for the next decision.
func (d *Digests) Forget(some []revision.FrozenInput) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range some {
		delete(d.known, identityOf(one))
	}
}
