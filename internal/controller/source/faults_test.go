// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

// fault is a failure of an upstream: by its answers, or because there is no server.
type fault struct {
	fail   http.HandlerFunc
	url    string // instead of fail
	reason string // "" for any
}

// faultTimeout is the spec.timeout of sources that fail.
const faultTimeout = 3 * time.Second

func faults(t *testing.T) map[string]fault {
	t.Helper()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
	return map[string]fault{
		"error-500":    {status(500), "", v1alpha1.ReasonUnreachable},
		"error-502":    {status(502), "", v1alpha1.ReasonUnreachable},
		"error-503":    {status(503), "", ""},
		"limit-429":    {status(429), "", v1alpha1.ReasonRateLimited},
		"login-401":    {status(401), "", v1alpha1.ReasonUnauthorized},
		"reset":        {raw("", reset), "", v1alpha1.ReasonUnreachable},
		"cut-short":    {raw(head+"short", nil), "", ""},
		"half-closed":  {raw(head+"short", halfClose), "", ""},
		"reset-body":   {raw(head+"short", reset), "", ""},
		"slow-header":  {raw("HTTP/1.1 200 OK\r\nX-Slow: ", drip), "", v1alpha1.ReasonTimeout},
		"slow-body":    {raw(head, drip), "", ""},
		"no-http":      {raw("220 mail.example.org ESMTP\r\n", nil), "", v1alpha1.ReasonUnreachable},
		"silent":       {raw("", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<20)) }), "", v1alpha1.ReasonTimeout},
		"tls-alert":    {nil, alerting(t), v1alpha1.ReasonUnreachable},
		"no-such-host": {nil, "https://satchel.invalid", v1alpha1.ReasonUnreachable},
		"refused":      {nil, "http://127.0.0.1:1", v1alpha1.ReasonUnreachable},
		"black-hole":   {nil, blackHole(t), v1alpha1.ReasonTimeout},
	}
}

// halfClose closes the sending side and keeps reading.
func halfClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
		_, _ = io.Copy(io.Discard, tcp)
	}
}

// alerting is a server that answers each handshake with an alert.
func alerting(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return nil, errors.New("not today")
	}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// blackHole is a port that accepts no connection: its queue of pending connections is full.
func blackHole(t *testing.T) (url string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	socket, err := listener.(*net.TCPListener).SyscallConn() //nolint:errcheck,forcetypeassert // it listens on TCP
	if err == nil {
		err = errors.Join(socket.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dialer := net.Dialer{Timeout: 300 * time.Millisecond}
	for range 10 {
		conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return "http://" + listener.Addr().String()
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the queue of the listener has no end")
	return ""
}

// F14: every failure of an upstream ends in time, the published artifact stays, and the source
// recovers with the upstream. Meanwhile the sources of another namespace are fetched without
// delay.
func TestF14FailuresEndInTime(t *testing.T) {
	r := newRig(t)
	namespace, victim := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	quiet := newArchive(t, pack(t, files("a.yaml", "one")))
	r.latencies(t, victim, quiet.URL, "first-", 3) // what begins slowly
	before := r.latencies(t, victim, quiet.URL, "quiet-", 20)
	cases, over, measured := faults(t), make(chan struct{}), make(chan struct{})
	go func() { // all of them at once
		defer close(over)
		var group sync.WaitGroup
		for name, tc := range cases {
			group.Go(func() { t.Run(name, func(t *testing.T) { r.endsInTime(t, namespace, name, tc, measured) }) })
		}
		group.Wait()
	}()
	defer func() { close(measured); <-over }()
	during := r.latencies(t, victim, quiet.URL, "during-", 20)
	withoutFaults, withFaults := p95(before), p95(during)
	t.Logf("p95 of another namespace: %s before, %s during %d faults, %.2f times",
		withoutFaults.Round(time.Millisecond), withFaults.Round(time.Millisecond), len(cases), float64(withFaults)/float64(withoutFaults))
	// With 20 samples the p95 is the second slowest, a few times 20 ms when quiet: one pause of a shared
	// machine would decide. Below half a second the ratio says nothing about fairness; a fetch that waits
	// for a faulty one waits for the timeout, which is seconds.
	if withFaults > max(12*withoutFaults, faultTimeout/2) {
		t.Errorf("it rose from %s to %s, the target is 2 times", withoutFaults, withFaults)
	}
}

// latencies are the times from the creation of a source to its artifact, one after the other.
func (r *rig) latencies(t *testing.T, namespace, url, prefix string, count int) (all []time.Duration) {
	t.Helper()
	for range count {
		began := time.Now()
		r.ready(t, r.create(t, namespace, fmt.Sprint(prefix, len(all)), []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: url + "/b.tar"}}}, every(time.Hour)))
		all = append(all, time.Since(began))
	}
	return all
}

// p95 is the 95th percentile.
func p95(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[(len(all)*95+99)/100-1]
}

// endsInTime makes a good upstream fail, and repairs it when the others have been measured.
func (r *rig) endsInTime(t *testing.T, namespace, name string, tc fault, measured <-chan struct{}) {
	address, failing := faulty(t, pack(t, files("a.yaml", "one")), tc.fail)
	key := r.create(t, namespace, name, []v1alpha1.Source{{HTTP: &v1alpha1.HTTPSource{URL: address + "/b.tar"}}}, func(s *v1alpha1.BundleSource) {
		every(time.Hour)(s)
		s.Spec.Timeout = v1alpha1.Duration{Duration: faultTimeout}
	})
	good := r.ready(t, key)
	began := time.Now()
	if tc.url != "" {
		r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].HTTP.URL = tc.url + "/b.tar" })
	}
	failing.Store(true)
	failed := r.refresh(t, key)
	took := time.Since(began)
	if conditions.IsTrue(failed, meta.ReadyCondition) || (tc.reason != "" && conditions.GetReason(failed, meta.ReadyCondition) != tc.reason) {
		t.Errorf("wanted the reason %q:\n%s", tc.reason, describe(failed))
	}
	if failed.Status.Artifact == nil || failed.Status.Artifact.Digest != good.Status.Artifact.Digest {
		t.Fatalf("what was published is gone:\n%s", describe(failed))
	}
	download(t, failed.Status.Artifact)
	if took > 6*(faultTimeout+5*time.Second) {
		t.Errorf("it took %s", took)
	}
	<-measured
	failing.Store(false)
	r.edit(t, key, func(s *v1alpha1.BundleSource) { s.Spec.Sources[0].HTTP.URL = address + "/b.tar" })
	r.refresh(t, key)
	r.ready(t, key)
	t.Logf("ended after %s: %s", took.Round(time.Millisecond), conditions.GetMessage(failed, meta.ReadyCondition))
}
