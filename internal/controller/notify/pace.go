// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// How often something is told of one object, and of the objects of one namespace: at once as
// often as burst says, and then one each pause. It suits what people do, and bounds what an
// upstream that fails in another way each second writes into the log, into etcd, and into
// the queue that all namespaces share.
const (
	objectBurst    = 10
	objectPause    = time.Minute
	namespaceBurst = 1000
	namespacePause = time.Second
)

// leastSwept is how many objects are remembered at least before those that have been quiet
// for long are forgotten.
const leastSwept = 4096

// Pace bounds how much is told of objects. The zero value is ready for use.
type Pace struct {
	mu    sync.Mutex
	known map[types.NamespacedName]*rate.Limiter // of namespaces under an empty name
	sweep int                                    // how many there are when the next ones are forgotten
}

// Allow tells whether something may be told of an object now, and counts it.
func (p *Pace) Allow(key types.NamespacedName, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= max(p.sweep, leastSwept) {
		maps.DeleteFunc(p.known, func(_ types.NamespacedName, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) })
		p.sweep = 2 * len(p.known)
	}
	return p.of(key, objectPause, objectBurst).AllowN(now, 1) &&
		p.of(types.NamespacedName{Namespace: key.Namespace}, namespacePause, namespaceBurst).AllowN(now, 1)
}

func (p *Pace) of(key types.NamespacedName, pause time.Duration, burst int) *rate.Limiter {
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
