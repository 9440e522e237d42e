// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

// hostile makes a client of a remote cluster that gives every request the same answer.
func hostile(t *testing.T, o tenant.Options, answer http.HandlerFunc) *tenant.Client {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	return remoteClient(t, tenant.NewRemotes(dialAnywhere, o), kubeconfigOf(t, server, "a"), "shop", "")
}

func answers(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}
}

var aConfigMap = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}}}

// An answer of a remote cluster is read up to 2 MiB an object and 16 MiB a page, and up to a number of values.
func TestT22RemoteAnswersAreBounded(t *testing.T) {
	const object, list = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"`, `{"apiVersion":"v1","kind":"List","metadata":{},"items":[`
	mib := func(n int) string { return strings.Repeat(" ", n<<20) }
	cases := map[string]struct {
		reason, object, list string
		refused, refusedList bool
	}{
		"small":        {"the usual case", object + "}}", list + "]}", false, false},
		"large":        {"nothing in etcd is larger than 1.5 MiB", mib(1) + object + "}}", mib(15) + list + "]}", false, false},
		"too large":    {"60 MiB each took all memory", mib(2) + object + "}}", mib(16) + list + "]}", true, true},
		"many owners":  {"each takes a hundred bytes decoded", object + `,"ownerReferences":[` + strings.Repeat("{},", 210_000) + "{}]}}", list + `{"metadata":{"ownerReferences":[` + strings.Repeat("{},", 210_000) + "{}]}}]}", true, true},
		"many items":   {"three bytes a value become three hundred", object + "}}", list + strings.Repeat("{},", 1_100) + "{}]}", false, true},
		"many in text": {"a comma in a text is no value", object + `},"data":{"a":"` + strings.Repeat(`,{[\"`, 200_000) + `"}}`, list + `{"metadata":{"name":"` + strings.Repeat(`,{[\"`, 200_000) + `"}}]}`, false, false},
		"many values":  {"values below those levels are not decoded with metadata", object + "}}", list + `{"spec":[[[[` + strings.Repeat("1,", 500_000) + "1]]]]}]}", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reads := map[string]func(*tenant.Client) error{
				"get":      func(c *tenant.Client) error { _, err := c.Get(t.Context(), one); return err },
				"metadata": func(c *tenant.Client) error { _, err := c.Metadata(t.Context(), one); return err },
				"apply": func(c *tenant.Client) error {
					_, err := c.Apply(t.Context(), one, aConfigMap, tenant.ApplyOptions{Manager: "m"})
					return err
				},
			}
			for what, read := range reads {
				checkBound(t, tc.reason+": "+what, read(hostile(t, tenant.Options{}, answers("application/json", tc.object))), tc.refused)
			}
			_, err := hostile(t, tenant.Options{}, answers("application/json", tc.list)).ListMetadata(t.Context(), tenant.Ref{Resource: one.Resource, Namespace: one.Namespace}, metav1.ListOptions{})
			checkBound(t, tc.reason+": list", err, tc.refusedList)
		})
	}
}

func checkBound(t *testing.T, what string, err error, refused bool) {
	t.Helper()
	var large *connection.AnswerTooLargeError
	if errors.As(err, &large) != refused || !refused && err != nil {
		t.Errorf("%s: got %v, want it refused: %t", what, err, refused)
		return
	}
	if refused && (!strings.Contains(err.Error(), "127.0.0.1:") || !strings.Contains(err.Error(), "/api/v1/namespaces/shop/configmaps")) {
		t.Errorf("%s: %v does not name the server and the object", what, err)
	}
}

// Only JSON is requested and accepted: values of other encodings are not counted.
func TestT22RemoteAnswersAreJSON(t *testing.T) {
	var accept atomic.Value
	client := hostile(t, tenant.Options{}, func(w http.ResponseWriter, r *http.Request) {
		accept.Store(r.Header.Get("Accept"))
		answers("application/vnd.kubernetes.protobuf", "k8s\x00")(w, r)
	})
	if _, err := client.Metadata(t.Context(), one); err == nil || !strings.Contains(err.Error(), "in place of JSON") {
		t.Errorf("got %v", err)
	}
	if asked, _ := accept.Load().(string); strings.Contains(asked, "protobuf") || !strings.Contains(asked, "as=PartialObjectMetadata") {
		t.Errorf("asked for %q", asked)
	}
}

// An apply requests only metadata where that is enough, on any cluster.
func TestT22AppliesAskForMetadata(t *testing.T) {
	for whole, want := range map[bool]bool{true: false, false: true} {
		var accept atomic.Value
		client := hostile(t, tenant.Options{}, func(w http.ResponseWriter, r *http.Request) {
			accept.Store(r.Header.Get("Accept"))
			answers("application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`)(w, r)
		})
		if _, err := client.Apply(t.Context(), one, aConfigMap, tenant.ApplyOptions{Manager: "m", Whole: whole}); err != nil {
			t.Fatal(err)
		}
		if asked, _ := accept.Load().(string); strings.Contains(asked, "as=PartialObjectMetadata;") != want {
			t.Errorf("whole %t: asked for %q", whole, asked)
		}
	}
}

// 64 objects with answers of 60 MiB each took 1.5 GB.
func TestT22MemoryStaysFlat(t *testing.T) {
	chunk := []byte(strings.Repeat(" ", 1<<20))
	client := hostile(t, tenant.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 60 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most atomic.Int64
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				most.Store(max(most.Load(), int64(now.HeapInuse)-int64(before.HeapInuse)))
			}
		}
	}()
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for range 4 {
				_, err := client.Apply(t.Context(), one, aConfigMap, tenant.ApplyOptions{Manager: "m", Whole: true})
				checkBound(t, "apply", err, true)
			}
		})
	}
	wait.Wait()
	close(ended)
	<-watched
	t.Logf("at most %d MiB more", most.Load()>>20)
	if most.Load() > 200<<20 {
		t.Errorf("%d MiB more for answers that are refused", most.Load()>>20)
	}
}

// A server that answers after 25 seconds gets no more requests after two such answers; one slow answer alone changes nothing.
func TestT21SlowAnswersOpenTheBreaker(t *testing.T) {
	var mu sync.Mutex
	now, asked, slow := time.Unix(1_000_000, 0), 0, true
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	client := hostile(t, tenant.Options{Now: clock}, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		if slow {
			now = now.Add(25 * time.Second)
		}
		mu.Unlock()
		answers("application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`)(w, r)
	})
	get := func() error { _, err := client.Get(t.Context(), one); return err }
	for i := range 2 {
		if err := get(); err != nil {
			t.Fatalf("slow answer %d was not taken: %v", i+1, err)
		}
	}
	var unreachable *connection.UnreachableError
	if err := get(); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "longer than 10s") {
		t.Errorf("after two slow answers: %v", err)
	}
	pass(3 * time.Second)
	if err := get(); err != nil || asked != 3 {
		t.Errorf("after the pause one is tried: %v, %d were asked", err, asked)
	}
	if err := get(); !errors.As(err, &unreachable) || asked != 3 {
		t.Errorf("it was slow again: %v, %d were asked", err, asked)
	}
	pass(time.Minute)
	slow = false
	for range 3 {
		if err := get(); err != nil {
			t.Errorf("it answers fast again: %v", err)
		}
	}
	slow = true
	if err := get(); err != nil {
		t.Error(err)
	}
	slow = false
	if err := get(); err != nil {
		t.Errorf("one slow answer alone opens it: %v", err)
	}
}

// T21b: a request that ends with the end of a turn says nothing about the server. T21, T22: failures of the server are counted.
func TestT21FiguresOfRemoteClusters(t *testing.T) {
	silent, large := make(chan struct{}), strings.Repeat(" ", 3<<20)+"{}"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/large") {
			answers("application/json", large)(w, q)
			return
		}
		select {
		case <-silent:
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(silent) })
	remotes := tenant.NewRemotes(dialAnywhere, tenant.Options{RequestTimeout: 2 * time.Second})
	client := remoteClient(t, remotes, kubeconfigOf(t, server, "a"), "shop", "")
	turn, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, connection.ErrTurnOver)
	defer cancel()
	if _, err := client.Get(turn, one); err == nil {
		t.Fatal("a server that says nothing answered")
	}
	if got := remotes.Figures(); got != (tenant.Figures{}) {
		t.Errorf("the end of a turn counts: %+v", got)
	}
	big := one
	big.Name = "large"
	if _, err := client.Get(t.Context(), big); err == nil {
		t.Fatal("a large answer was taken")
	}
	if got := remotes.Figures(); got != (tenant.Figures{Refused: 1}) {
		t.Errorf("after an answer that is too large: %+v", got)
	}
	_, err := client.Get(t.Context(), one)
	if err == nil {
		t.Fatal("a server that says nothing answered")
	}
	if got := remotes.Figures(); got != (tenant.Figures{Unreachable: 1, Refused: 1}) {
		t.Errorf("after a request that ended with %v: %+v", err, got)
	}
}

// A server that begins to answer and stops counts as one that does not answer.
func TestT21AnswersThatStop(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1",`))
		_ = http.NewResponseController(w).Flush()
		<-q.Context().Done()
		panic(http.ErrAbortHandler) // returning would end the answer, perhaps before the client has closed the connection
	}))
	t.Cleanup(server.Close)
	remotes := tenant.NewRemotes(dialAnywhere, tenant.Options{RequestTimeout: time.Second})
	client := remoteClient(t, remotes, kubeconfigOf(t, server, "a"), "shop", "")
	if _, err := client.Get(t.Context(), one); err == nil {
		t.Fatal("half an answer was taken")
	}
	if got := remotes.Figures(); got != (tenant.Figures{Unreachable: 1}) {
		t.Errorf("after half an answer: %+v", got)
	}
}
