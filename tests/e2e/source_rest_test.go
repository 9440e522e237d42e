// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// asked is an upstream that notes when each of its paths was asked for, and how.
type asked struct {
	*httptest.Server
	mu   sync.Mutex
	head map[string][]time.Time
	gets int
}

func newAsked(t *testing.T, body []byte) *asked {
	t.Helper()
	a := &asked{head: map[string][]time.Time{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		a.mu.Lock()
		if request.Method == http.MethodHead {
			a.head[request.URL.Path] = append(a.head[request.URL.Path], time.Now())
		} else {
			a.gets++
		}
		a.mu.Unlock()
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	}))
	t.Cleanup(a.Close)
	return a
}

// reset forgets what was asked until now.
func (a *asked) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.head)
	a.gets = 0
}

// S3: sources that do not change cost one HEAD an interval, no download, and little CPU.
func TestS3UnchangedSources(t *testing.T) {
	sources, interval, during := 60, 3*time.Second, 12*time.Second
	if full() {
		sources, interval, during = 1000, time.Minute, 5*time.Minute
	}
	r := newRig(t)
	upstream := newAsked(t, tinyArchive())
	var namespaces []string
	for range 10 {
		namespaces = append(namespaces, controlplane.NewNamespace(t, r.CP))
	}
	for i := range sources {
		r.archive(t, namespaces[i%10], fmt.Sprintf("s-%d", i), fmt.Sprintf("%s/%d.tar", upstream.URL, i), interval)
	}
	for _, namespace := range namespaces {
		r.allReady(t, namespace)
	}
	settle := time.NewTimer(interval) // the first polls are not yet spread out
	<-settle.C
	upstream.reset()
	began, worked := time.Now(), r.worked(t, sourceController)
	window := time.NewTimer(during)
	<-window.C
	took, cpu := time.Since(began), r.worked(t, sourceController)-worked
	upstream.mu.Lock()
	defer upstream.mu.Unlock()
	heads, shortest := 0, time.Hour
	for _, times := range upstream.head {
		heads += len(times)
		for i := 1; i < len(times); i++ {
			shortest = min(shortest, times[i].Sub(times[i-1]))
		}
	}
	perInterval := float64(heads) / float64(sources) / took.Seconds() * interval.Seconds()
	cores := cpu.Seconds() / took.Seconds()
	t.Logf("%d sources, interval %s, %s: %.2f HEAD a source and interval (a tenth is taken off intervals), the shortest pause %s, %d downloads, %.3f cores, %d MiB resident",
		sources, interval, took.Round(time.Second), perInterval, shortest.Round(10*time.Millisecond), upstream.gets, cores, r.resident(t, sourceController)>>20)
	if upstream.gets > 0 || len(upstream.head) != sources {
		t.Errorf("%d downloads; %d of %d sources were asked for", upstream.gets, len(upstream.head), sources)
	}
	if shortest < interval*8/10 || perInterval > 1.2 || perInterval < 0.5 {
		t.Errorf("%.2f HEAD a source and interval, the shortest pause is %s", perInterval, shortest)
	}
	if cores > 6*0.2 {
		t.Errorf("%.2f cores, the target is 0.2", cores)
	}
}

// archive creates a source of an archive.
func (r *rig) archive(t *testing.T, namespace, name, url string, interval time.Duration) client.ObjectKey {
	t.Helper()
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	source.Spec.Interval = v1alpha1.Duration{Duration: interval}
	source.Spec.Sources = []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: url}}}
	if err := r.Admin.Create(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(source)
}

// allReady waits until each source of a namespace is ready.
func (r *rig) allReady(t *testing.T, namespace string) {
	t.Helper()
	deadline := time.Now().Add(10 * patience)
	for waiting := 1; waiting > 0; {
		var list v1alpha1.BundleSourceList
		if err := r.Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		waiting = 0
		for i := range list.Items {
			if !conditions.IsTrue(&list.Items[i], meta.ReadyCondition) {
				waiting++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sources of %s do not become ready; the log of the controller ends in:\n%s", waiting, namespace, r.Log(sourceController))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// worked is the processor time that a controller has taken.
func (r *rig) worked(t *testing.T, name string) time.Duration {
	t.Helper()
	fields := strings.Fields(r.proc(t, name, "stat"))
	user, err := strconv.ParseInt(fields[13], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.ParseInt(fields[14], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	const tick = time.Second / 100 // of Linux, whatever the kernel's own is
	return time.Duration(user+system) * tick
}

// resident is how many bytes of memory a controller takes.
func (r *rig) resident(t *testing.T, name string) int64 {
	t.Helper()
	pages, err := strconv.ParseInt(strings.Fields(r.proc(t, name, "statm"))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func (r *rig) proc(t *testing.T, name, file string) string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", r.Pids()[name], file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// T16: while sources of a tenant time out, and it asks for reconciles all the time, those of
// another tenant are fetched as fast as ever.
func TestT16NoisyNeighbour(t *testing.T) {
	slow, timeout, samples := 60, 5*time.Second, 15
	if full() {
		slow, timeout, samples = 500, time.Minute, 100
	}
	r := newRig(t)
	upstream := newAsked(t, tinyArchive())
	end := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-end:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(func() { close(end); silent.Close() })
	victim, hostile := controlplane.NewNamespace(t, r.CP), controlplane.NewNamespace(t, r.CP)
	quiet := r.latencies(t, victim, "quiet", upstream.URL, samples)
	for i := range slow {
		source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: hostile, Name: fmt.Sprintf("slow-%d", i)}}
		source.Spec.Timeout = v1alpha1.Duration{Duration: timeout}
		source.Spec.Sources = []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: silent.URL + "/b.tar"}}}
		if err := r.Admin.Create(t.Context(), source); err != nil {
			t.Fatal(err)
		}
	}
	stop := r.spam(t, hostile, slow)
	busy := r.latencies(t, victim, "busy", upstream.URL, samples)
	asks := stop()
	t.Logf("victim's p95 %s quiet, %s beside %d sources that time out after %s and %d requests to reconcile (%.2f times); %d MiB resident",
		quiet.Round(time.Millisecond), busy.Round(time.Millisecond), slow, timeout, asks, float64(busy)/float64(quiet), r.resident(t, sourceController)>>20)
	if busy > 12*quiet && busy > 2*time.Second {
		t.Errorf("the latency rose from %s to %s", quiet, busy)
	}
}

// latencies is the 95th percentile of the time from the creation of a source to its artifact.
func (r *rig) latencies(t *testing.T, namespace, prefix, url string, samples int) time.Duration {
	t.Helper()
	var all []time.Duration
	for i := range samples {
		began := time.Now()
		key := r.archive(t, namespace, fmt.Sprintf("%s-%d", prefix, i), fmt.Sprintf("%s/%s-%d.tar", url, prefix, i), time.Hour)
		r.sourceUntil(t, key, "ready", func(s *v1alpha1.BundleSource) bool { return conditions.IsTrue(s, meta.ReadyCondition) })
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)*95/100]
}

// spam asks for a reconcile of some source of a namespace a hundred times a second until it is
// stopped, and returns how often it did.
func (r *rig) spam(t *testing.T, namespace string, sources int) (stop func() int) {
	t.Helper()
	end, done := make(chan struct{}), make(chan int)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for count := 0; ; count++ {
			select {
			case <-end:
				done <- count
				return
			case <-ticker.C:
			}
			source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("slow-%d", count%sources)}}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, meta.ReconcileRequestAnnotation, count)
			_ = r.Admin.Patch(t.Context(), source, client.RawPatch("application/merge-patch+json", patch))
		}
	}()
	return func() int { close(end); return <-done }
}
