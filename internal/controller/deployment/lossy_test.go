// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// lossy are connections on which a share of the requests fails: half of these were carried out before.
type lossy struct {
	// status of the answer; 0 breaks the connection.
	status     int
	retryAfter string
	share      float64

	mu              sync.Mutex
	random          *rand.Rand
	asked, failures int
}

func (l *lossy) draw() (fails, afterwards bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.random.Float64() >= l.share {
		return false, false
	}
	l.failures++
	return true, l.random.IntN(2) == 0
}

func (l *lossy) counts() (asked, failures int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked, l.failures
}

func (l *lossy) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		fails, afterwards := l.draw()
		if !fails || afterwards {
			response, err := next.RoundTrip(request)
			if err != nil || !fails {
				return response, err
			}
			_ = response.Body.Close()
		}
		if l.status == 0 {
			return nil, &closedError{}
		}
		answer := &http.Response{StatusCode: l.status, Status: http.StatusText(l.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("the proxy timed out"))}
		if l.retryAfter != "" {
			answer.Header.Set("Retry-After", l.retryAfter)
		}
		return answer, nil
	})
}

// closedError is what a connection that the other side ended returns.
type closedError struct{}

func (*closedError) Error() string { return "connection reset by peer" }
func (*closedError) Unwrap() error { return errors.Join(syscall.ECONNRESET) }

// F59: where 30 % of the requests fail, of the controller itself and of its tenants, an installation and an upgrade that prunes complete.
func TestF59UpgradeThroughFaults(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string]*lossy{
		"none":          {status: 504},
		"504":           {status: 504, share: 0.3},
		"503":           {status: 503, share: 0.3},
		"429":           {status: 429, share: 0.3},
		"429 with time": {status: 429, share: 0.3, retryAfter: "1"},
		"broken":        {share: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			namespace := r.namespace(t)
			faults.random = rand.New(rand.NewPCG(37, 59)) //nolint:gosec // the same each time
			bundle := func(prefix, value string) fstest.MapFS {
				files := manyMaps(prefix, 20)
				for path, content := range many("m", 60) {
					files[path] = content
				}
				files["w.yaml"] = workload("web", "example.org/web:"+value)
				return files
			}
			r.publish(t, namespace, "app", "v1", bundle("old", "1"))
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				rarely(d)
				d.Labels = map[string]string{driven: ""}
			})
			t.Cleanup(func() { r.undrive(t, key) })
			d := r.drive(t, key, faults.wrap)
			began := time.Now()
			d.ready(t)
			installed := time.Since(began)
			second := r.publish(t, namespace, "app", "v2", bundle("new", "2"))
			began = time.Now()
			r.eventually(t, t.Context(), "the upgrade completes", func(context.Context) (bool, string) {
				d.reconcile(t)
				found := d.deployment(t)
				return isReady(found) && found.Status.Healthy.Revision == second.Revision && found.Status.Inventory.Count == 81, describe(found)
			})
			asked, failures := faults.counts()
			t.Logf("installed in %s, upgraded in %s: %d of %d requests failed", installed.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), failures, asked)
			if faults.share > 0 && failures == 0 {
				t.Error("no request failed")
			}
		})
	}
}
