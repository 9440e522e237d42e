// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// silent is a server that accepts requests and never answers, until the test ends.
func silent(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	end := make(chan struct{})
	asked = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		select {
		case <-end:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end); server.Close() })
	return server.URL, asked
}

// latency is the median time from the creation of a source to its artifact.
func (r *rig) latency(t *testing.T, namespace, url, prefix string) time.Duration {
	t.Helper()
	var all []time.Duration
	for i := range 7 {
		began := time.Now()
		r.ready(t, r.create(t, namespace, fmt.Sprint(prefix, i), []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: url}}}, every(time.Hour)))
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// TestT16OtherTenantsSourcesTimeOut: more sources than workers wait for a server that never answers, and those of another
// namespace are fetched without delay.
func TestT16OtherTenantsSourcesTimeOut(t *testing.T) {
	r := newRig(t)
	hostile, victim := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	server := newArchive(t, pack(t, files("a.yaml", "one")))
	quiet := r.latency(t, victim, server.URL+"/b.tar", "quiet-")
	url, asked := silent(t)
	for i := range 100 {
		r.create(t, hostile, fmt.Sprint("slow-", i), []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: url + "/b.tar"}}},
			func(s *v1alpha1.BundleSource) { s.Spec.Timeout = v1alpha1.Duration{Duration: time.Minute} })
	}
	deadline := time.Now().Add(patience)
	const share = 4 // half of the rig's workers, though 5 are asked for
	for asked.Load() < share && time.Now().Before(deadline) {
		r.latency(t, victim, server.URL+"/b.tar", fmt.Sprint("between-", asked.Load(), "-", time.Now().UnixNano(), "-"))
	}
	if got := asked.Load(); got != share {
		t.Errorf("%d of the hostile sources are fetched at once, want %d", got, share)
	}
	busy := r.latency(t, victim, server.URL+"/b.tar", "busy-")
	t.Logf("median latency of the victim: %s quiet, %s beside 100 sources that time out (%.2f times)",
		quiet.Round(time.Millisecond), busy.Round(time.Millisecond), float64(busy)/float64(quiet))
	if busy > 12*quiet && busy > 2*time.Second {
		t.Errorf("the latency rose from %s to %s", quiet, busy)
	}
}

// TestF14RetryAfterIsHonoured: a server that sends Retry-After gets no requests, and other sources are polled.
func TestF14RetryAfterIsHonoured(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "not so fast", http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	key := r.create(t, namespace, "limited", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}, every(time.Second))
	failed := r.unready(t, key, v1alpha1.ReasonRateLimited)
	if conditions.IsTrue(failed, meta.StalledCondition) {
		t.Error("it is stalled")
	}
	// Another source of the same interval is polled several times meanwhile.
	other := newArchive(t, pack(t, files("a.yaml", "one")))
	polled := r.create(t, namespace, "polled", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: other.URL + "/b.tar"}}}, every(time.Second))
	r.ready(t, polled)
	for deadline := time.Now().Add(patience); other.heads.Load() < 5 && time.Now().Before(deadline); {
		r.ready(t, polled)
	}
	if got := asked.Load(); got != 1 {
		t.Errorf("%d requests after being told to wait an hour", got)
	}
}

// TestT16WaitingSourcesMayGo: sources that are deleted or suspended while they wait for
// their turn release it.
func TestT16WaitingSourcesMayGo(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	url, asked := silent(t)
	slow := func(name string) client.ObjectKey {
		return r.create(t, namespace, name, []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: url + "/b.tar"}}},
			func(s *v1alpha1.BundleSource) { s.Spec.Timeout = v1alpha1.Duration{Duration: 5 * time.Second} })
	}
	var busy, waiting []client.ObjectKey
	for i := range 5 {
		busy = append(busy, slow(fmt.Sprint("busy-", i)))
	}
	for deadline := time.Now().Add(patience); asked.Load() < 5 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	for i := range 12 {
		waiting = append(waiting, slow(fmt.Sprint("waiting-", i)))
	}
	for i, key := range waiting {
		if i%2 == 0 {
			r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true })
			continue
		}
		if err := r.admin.Delete(t.Context(), &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range busy {
		r.unready(t, key, v1alpha1.ReasonTimeout)
		r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Suspend = true })
	}
	server := newArchive(t, pack(t, files("a.yaml", "one")))
	r.ready(t, r.create(t, namespace, "last", []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: server.URL + "/b.tar"}}}, nil))
}
