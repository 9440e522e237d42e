// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
)

// gate is the API server of a tenant: a proxy before the shared one that may handle each request.
type gate struct {
	*httptest.Server
	mu sync.Mutex
	// before sees each request, and may answer in place of the API server; it returns true then.
	before func(w http.ResponseWriter, q *http.Request) bool
	// applied counts the writes of each path that the API server answered, dry runs apart.
	applied map[string]int
	tried   map[string]int
}

// newGate starts a proxy before the API server, and sends the deployments of a namespace there.
func (a *abroad) newGate(t *testing.T, before func(w http.ResponseWriter, q *http.Request) bool) *gate {
	t.Helper()
	config := a.cp.RESTConfig()
	authority := config.CAData
	if len(authority) == 0 {
		var err error
		if authority, err = os.ReadFile(config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{before: before, applied: map[string]int{}, tried: map[string]int{}}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(q *httputil.ProxyRequest) { q.SetURL(target) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		ErrorLog:  log.New(io.Discard, "", 0), // clients that went away
	}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		g.mu.Lock()
		before := g.before
		g.mu.Unlock()
		if before != nil && before(w, q) {
			return
		}
		if q.Method == http.MethodPatch {
			g.mu.Lock()
			if q.URL.Query().Get("dryRun") == "" {
				g.applied[q.URL.Path]++
			} else {
				g.tried[q.URL.Path]++
			}
			g.mu.Unlock()
		}
		proxy.ServeHTTP(w, q)
	}))
	g.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.EnableHTTP2 = true
	g.StartTLS()
	t.Cleanup(g.Close)
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", func(cluster, _ map[string]any) {
		cluster["server"] = g.URL
		cluster["certificate-authority-data"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw})
	})})
	return g
}

// becomes replaces what is in front of the API server.
func (g *gate) becomes(before func(w http.ResponseWriter, q *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = before
}

// writes are the objects that were written in a namespace, and how often in all.
func (g *gate) writes() (objects, writes, tries int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.applied {
		objects, writes = objects+1, writes+n
	}
	for _, n := range g.tried {
		tries += n
	}
	return objects, writes, tries
}

// later passes a request on after a while, unless its client is gone before.
func later(after time.Duration) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, q *http.Request) bool {
		select {
		case <-time.After(after):
			return false
		case <-q.Context().Done():
			return true
		}
	}
}

func isPatch(q *http.Request) bool { return q.Method == http.MethodPatch }

// slowWrites delays writes alone: what a turn begins with is quick on a machine under load as well.
func slowWrites(after time.Duration) func(http.ResponseWriter, *http.Request) bool {
	wait := later(after)
	return func(w http.ResponseWriter, q *http.Request) bool { return isPatch(q) && wait(w, q) }
}

// parts is a bundle of so many ConfigMaps.
func parts(count int, value string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := range count {
		name := fmt.Sprintf("part-%03d", i)
		files[name+".yaml"] = configMap(name, value)
	}
	return files
}

// ofTurns is a driver of a deployment to a slow cluster, with short turns.
func (a *abroad) ofTurns(t *testing.T, key client.ObjectKey, turn time.Duration) *driver {
	t.Helper()
	t.Cleanup(func() { a.undrive(t, key) })
	d := a.drive(t, key, nil)
	d.Change(func(deps *deployment.Deps) { deps.Remotes, deps.OwnCluster, deps.RemoteTurn = remotes(t), true, turn })
	return d
}

// turns reconciles until the deployment is Ready, and counts the turns. Every one of them ends in time, and none is a failure.
// On a machine with so much load that nothing can be confirmed in turns of this length, they are made longer.
func (d *driver) turns(t *testing.T, each func(*v1alpha1.BundleDeployment)) int {
	t.Helper()
	began := time.Now()
	for count := 1; ; count++ {
		start := time.Now()
		result := d.reconcile(t)
		if took := time.Since(start); took > 6*d.RemoteTurn+10*time.Second {
			t.Errorf("turn %d took %s", count, took)
		}
		found := d.deployment(t)
		if isReady(found) {
			return count
		}
		if conditions.GetReason(found, meta.ReadyCondition) == v1alpha1.ReasonClusterTooSlow && d.RemoteTurn < 40*time.Second {
			d.RemoteTurn *= 2
			t.Logf("nothing was confirmed in three turns: they last %s from now on", d.RemoteTurn)
			continue
		}
		if result.RequeueAfter > 5*time.Second || conditions.IsFalse(found, meta.ReadyCondition) {
			t.Fatalf("turn %d is no progress, and the next is in %s:\n%s", count, result.RequeueAfter, describe(found))
		}
		each(found)
		if time.Since(began) > 4*time.Minute {
			t.Fatalf("not Ready after %d turns:\n%s", count, describe(found))
		}
	}
}

// T21b: a deployment to a slow server is applied in several turns. Confirmed writes are kept, so that each object is written
// once, except those in flight when a turn ended.
func TestT21bSlowClustersAreAppliedInTurns(t *testing.T) {
	t.Parallel()
	const objects, turn, atOnce = 100, 5 * time.Second, 16
	r := newRig(t)
	a := r.newAbroad(t)
	g := a.newGate(t, slowWrites(1500*time.Millisecond))
	r.publish(t, a.namespace, "app", "v1", parts(objects, "one"))
	key := r.deploy(t, a.namespace, "app", both(a.goes, left))
	d := a.ofTurns(t, key, turn)
	said := ""
	took := d.turns(t, func(now *v1alpha1.BundleDeployment) {
		if reason := conditions.GetReason(now, meta.ReadyCondition); reason != v1alpha1.ReasonProgressing && reason != v1alpha1.ReasonHealthProgressing {
			t.Errorf("it is %s:\n%s", reason, describe(now))
		}
		said += conditions.GetMessage(now, meta.ReadyCondition) + "\n"
	})
	if several := took >= 3 || d.RemoteTurn > turn; !several {
		t.Errorf("it took %d turns: the test shows nothing", took)
	}
	if !strings.Contains(said, fmt.Sprintf("of %d objects are applied, and the next turn goes on", objects)) {
		t.Errorf("nothing said how far it came:\n%s", said)
	}
	written, writes, before := g.writes()
	if written != objects || writes > objects+(took-1)*atOnce {
		t.Errorf("%d objects were written %d times in %d turns", written, writes, took)
	}
	t.Logf("%d turns, %d writes of %d objects", took, writes, written)

	// An upgrade is tried before it is written, and what was accepted is not tried again.
	r.publish(t, a.namespace, "app", "v2", parts(objects, "two"))
	took = d.turns(t, func(*v1alpha1.BundleDeployment) {})
	_, all, tries := g.writes()
	tries -= before
	if upgrade := all - writes; took < 3 && d.RemoteTurn == turn || upgrade > objects+(took-1)*atOnce || tries > objects+(took-1)*atOnce {
		t.Errorf("the upgrade took %d turns, %d writes and %d dry runs", took, upgrade, tries)
	}
	if got := r.value(t, t.Context(), a.there, "part-099"); got != "two" {
		t.Errorf("the last object is %q", got)
	}
	t.Logf("upgrade: %d turns, %d writes, %d dry runs", took, all-writes, tries)

	// So is its removal.
	g.becomes(func(w http.ResponseWriter, q *http.Request) bool {
		return q.Method == http.MethodDelete && later(1500*time.Millisecond)(w, q)
	})
	r.startRemoval(t, key)
	for count := 1; ; count++ {
		if _, err := d.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		var left v1alpha1.BundleDeployment
		if err := r.admin.Get(t.Context(), key, &left); err != nil {
			if count < 3 && d.RemoteTurn == turn {
				t.Errorf("the removal took %d turns", count)
			}
			return
		}
		if conditions.GetReason(&left, meta.ReadyCondition) != v1alpha1.ReasonRemoving {
			t.Fatalf("removal, turn %d:\n%s", count, describe(&left))
		}
		if count > 100 {
			t.Fatalf("not removed:\n%s", describe(&left))
		}
	}
}

// T21b: a server that confirms nothing for three turns is a failure, which counts for remediation; until then the status
// stays unchanged, and progress ends the failure.
func TestT21bThreeIdleTurnsAreAFailure(t *testing.T) {
	t.Parallel()
	const turn = 5 * time.Second
	r := newRig(t)
	a := r.newAbroad(t)
	g := a.newGate(t, nil)
	first := r.publish(t, a.namespace, "app", "v1", parts(3, "one"))
	key := r.deploy(t, a.namespace, "app", both(a.goes, func(d *v1alpha1.BundleDeployment) {
		left(d)
		d.Spec.Remediation = &v1alpha1.RemediationOptions{Strategy: v1alpha1.RemediationRollback, Retries: 5}
	}))
	d := a.ofTurns(t, key, time.Minute)
	d.ready(t)
	d.RemoteTurn = turn
	stuck := func(_ http.ResponseWriter, q *http.Request) bool {
		if isPatch(q) {
			<-q.Context().Done()
			return true
		}
		return false
	}
	g.becomes(stuck)
	r.publish(t, a.namespace, "app", "v2", parts(3, "two"))
	for i := range 3 {
		result := d.reconcile(t)
		found := d.deployment(t)
		failed := conditions.IsFalse(found, meta.ReadyCondition)
		if failed != (i == 2) || !failed && result.RequeueAfter > 5*time.Second {
			t.Fatalf("turn %d, the next in %s:\n%s", i+1, result.RequeueAfter, describe(found))
		}
	}
	found := d.deployment(t)
	message := conditions.GetMessage(found, meta.ReadyCondition)
	if conditions.GetReason(found, meta.ReadyCondition) != v1alpha1.ReasonClusterTooSlow || !strings.Contains(message, "nothing was confirmed in 3 turns of 5s") || !strings.Contains(message, "--remote-turn") {
		t.Errorf("want %s:\n%s", v1alpha1.ReasonClusterTooSlow, describe(found))
	}
	if record := found.Status.History[0]; record.Attempts != 1 {
		t.Errorf("want one failed attempt of v2: %+v", record)
	}
	if found.Status.Applied.Revision != first.Revision {
		t.Errorf("the applied revision is %s", found.Status.Applied.Revision)
	}
	d.reconcile(t) // one more idle turn changes nothing of what is told
	if now := d.deployment(t); describe(now) != describe(found) {
		t.Errorf("an idle turn changed what is told:\n%s", describe(now))
	}
	g.becomes(nil)
	d.RemoteTurn = time.Minute
	d.ready(t)
	if got := r.value(t, t.Context(), a.there, "part-000"); got != "two" {
		t.Errorf("the value is %q", got)
	}
}

// T22: a server of a tenant's own that answers 60 MiB to each write is read up to the bound alone, which the condition says.
func TestT22HugeAnswersAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	chunk := []byte(strings.Repeat(" ", 1<<20))
	var read atomic.Int64
	a.newGate(t, func(w http.ResponseWriter, q *http.Request) bool {
		if !isPatch(q) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		for range 60 {
			n, err := w.Write(chunk)
			if read.Add(int64(n)); err != nil {
				return true
			}
		}
		return true
	})
	const objects, most = 32, 8 << 20 // of an answer: what is read, and what is on its way in buffers
	r.publish(t, a.namespace, "app", "v1", parts(objects, "one"))
	key := r.deploy(t, a.namespace, "app", both(a.goes, left))
	d := a.ofTurns(t, key, time.Minute)
	d.reconcile(t)
	found := d.deployment(t)
	if message := conditions.GetMessage(found, meta.ReadyCondition); !conditions.IsFalse(found, meta.ReadyCondition) || !strings.Contains(message, "MiB") || !strings.Contains(message, "configmaps/part-000") {
		t.Errorf("it does not name the bound and the object:\n%s", describe(found))
	}
	if got := read.Load(); got > objects*most {
		t.Errorf("%d MiB of %d answers were sent", got>>20, objects)
	}
}

// T21, T21b: while deployments of one tenant wait for their own slow server, those of another are applied without
// delay.
func TestT21SlowClustersDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	a.newGate(t, later(25*time.Second))
	elsewhere := r.namespace(t)
	local := r.publish(t, elsewhere, "local", "v0", fstest.MapFS{"a.yaml": configMap("a", "0")})
	key := r.deploy(t, elsewhere, "local", nil)
	r.ready(t, key, local.Revision)
	quiet := r.upgrades(t, key, 1)
	for i := range 6 { // more than the workers of a namespace, each with as many values as are held at once for other clusters
		name := fmt.Sprintf("big-%d", i)
		r.publish(t, a.namespace, name, "v1", fstest.MapFS{"a.yaml": bigConfigMap(name, 60_000)})
		r.deploy(t, a.namespace, name, a.goes)
	}
	r.until(t, client.ObjectKey{Namespace: a.namespace, Name: "big-0"}, "some wait for the server", func(*v1alpha1.BundleDeployment) bool { return true })
	if loud := r.upgrades(t, key, 2); loud > 6*quiet+5*time.Second {
		t.Errorf("a deployment of another namespace took %s, and %s before", loud, quiet)
	} else {
		t.Logf("applied within %s, and %s before", loud, quiet)
	}
}

// upgrades publishes another revision five times, and gives the longest time until it was Ready.
func (r *rig) upgrades(t *testing.T, key client.ObjectKey, round int) time.Duration {
	t.Helper()
	longest := time.Duration(0)
	for i := range 5 {
		value := fmt.Sprintf("%d-%d", round, i)
		began := time.Now()
		published := r.publish(t, key.Namespace, key.Name, "v"+value, fstest.MapFS{"a.yaml": configMap("a", value)})
		r.ready(t, key, published.Revision)
		longest = max(longest, time.Since(began))
	}
	return longest
}

// bigConfigMap has so many values.
func bigConfigMap(name string, values int) *fstest.MapFile {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n", name)
	for i := range values {
		fmt.Fprintf(&text, "  k%d: \"\"\n", i)
	}
	return &fstest.MapFile{Data: []byte(text.String())}
}
