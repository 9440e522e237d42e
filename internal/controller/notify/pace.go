// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// Rate limits of events for one object, and for the objects of one namespace: a burst at
// once, and then one each pause. That is enough for the actions of users, and bounds what an
// upstream with ever changing errors writes into the log, into etcd, and into the queue that
// all namespaces share.
const (
	objectBurst    = 10
	objectPause    = time.Minute
	namespaceBurst = 1000
	namespacePause = time.Second
)

// leastSwept is how many objects are remembered before quiet ones are forgotten.
const leastSwept = 4096

// Pace limits the rate of events for objects. The zero value is ready for use.
type Pace struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*rate.Limiter // of namespaces under an empty name
	sweep int                                    // number of limiters at which quiet ones are forgotten next
}

// Allow tells whether an event for an object is allowed now, and counts it.
func (p *Pace) Allow(key types.NamespacedName, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= max(p.sweep, leastSwept) {
		maps.DeleteFunc(p.known, func(_ types.NamespacedName, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) })
		p.sweep = 2 * len(p.known)
	}
	return p.limiterOf(key, objectPause, objectBurst).AllowN(now, 1) &&
		p.limiterOf(types.NamespacedName{Namespace: key.Namespace}, namespacePause, namespaceBurst).AllowN(now, 1)
}

func (p *Pace) limiterOf(key types.NamespacedName, pause time.Duration, burst int) *rate.Limiter {
	if p.known == nil {
		p.known = map[types.NamespacedName]*rate.Limiter{}
	}
	found := p.known[key]
	if found == nil {
		found = rate.NewLimiter(rate.Every(pause), burst)
		p.known[key] = found
	}
	return found
}
