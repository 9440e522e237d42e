// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"net/http"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// tolerated is how far the clock of this machine may be from that of the API server. Answers have a time in full seconds.
const tolerated = 30 * time.Second

// served is the time that the API server stated last, and when its answer came, by the monotonic clock, which setting the clock of
// the machine does not change.
type served struct {
	mu       sync.Mutex
	host     string
	date     time.Time
	received time.Duration // since the guard was made
	differs  bool
}

// Now is the time by the clock of this machine, or that of the API server where the two differ by more than half a minute. What a clock makes
// irreversible is decided by it: renewed certificates, approvals that expire, removals that are abandoned, windows. Before the first answer of
// the API server it is the clock of this machine. A nil guard has that clock, too.
func (g *Guard) Now() time.Time {
	if g == nil {
		return time.Now()
	}
	now := g.now()
	s := &g.served
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.date.IsZero() {
		return now
	}
	stated := s.date.Add(g.passed() - s.received)
	off := now.Round(0).Sub(stated) // Round removes the monotonic reading
	if differs := off.Abs() > tolerated; differs != s.differs {
		s.differs = differs
		log := ctrl.Log.WithName("clock").WithValues("machine", now.UTC().Format(time.RFC3339), "apiServer", stated.UTC().Format(time.RFC3339))
		if differs {
			log.Info("the clock of this machine differs from that of the API server, which is used instead: synchronize the clocks of the nodes")
		} else {
			log.Info("the clock of this machine agrees with that of the API server again")
		}
	}
	if s.differs {
		return stated
	}
	return now
}

// stated remembers the time of an answer of the API server itself: not of the servers of tenants, which requests through this
// transport may reach as well, nor of an aggregated or proxied one.
func (g *Guard) stated(request *http.Request, response *http.Response) {
	path := request.URL.Path
	own := strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/satchel.dev/") || strings.HasPrefix(path, "/apis/coordination.k8s.io/")
	if !own || strings.Contains(path, "/proxy") || response.Header.Get("Date") == "" {
		return
	}
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return
	}
	g.served.mu.Lock()
	defer g.served.mu.Unlock()
	if request.URL.Host == g.served.host {
		g.served.date, g.served.received = date, g.passed()
	}
}
