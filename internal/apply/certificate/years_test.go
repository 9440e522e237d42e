// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// The worst failures in a simulated world. With more than that no guarantee is possible: a serving
// certificate is renewed eight months before it expires, and a successor is made three years before it is needed.
const (
	longestGap     = 150 * day1 // between two looks: the controller is down
	longestSuspend = year       // trusting objects are not written, Secrets are
	longestLag     = 10 * day1  // of Pods that serve what they loaded
	simulated      = 25 * year
)

// world is a cluster with clients and servers of certificates.
type world struct {
	*cluster
	t        *testing.T
	dice     *rand.Rand
	trusting []*unstructured.Unstructured
	pods     map[inventory.ID]*loaded
	resumes  time.Time // suspended until then
	expected Set       // of the last look
	whole    bool      // the last look was written in full
	events   []string
	changes  [3]int                       // of certificates: authority, audit, hook
	roots    map[string]*x509.Certificate // who vouches for what, found before
}

// loaded is what the Pods of a Service serve.
type loaded struct {
	cert  *x509.Certificate
	since time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{cluster: newCluster(hook, audit), t: t, dice: rand.New(rand.NewPCG(seed, seed)), pods: map[inventory.ID]*loaded{}, roots: map[string]*x509.Certificate{},
		trusting: []*unstructured.Unstructured{webhooks("hook"), definition("audit")}}
	w.expected = w.make(t, false)
	w.write(w.expected)
	for i := range w.trusting {
		w.trusting[i] = Inject(w.trusting[i], w.expected.Bundle)
	}
	for _, r := range w.wanted {
		w.pods[r.ID()] = &loaded{certOf(t, w.serving[r.ID()], certFile), w.now}
	}
	w.whole = true
	return w
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.dice.Int64N(int64(most-least)))
}

// pass advances the clock to the next reconcile.
func (w *world) pass() {
	switch roll := w.dice.IntN(8); {
	case !w.whole: // what failed is tried again soon
		w.now = w.now.Add(w.between(time.Minute, time.Hour))
	case roll == 0:
		w.now = w.now.Add(w.between(30*day1, longestGap))
	case roll < 3:
		w.now = w.now.Add(w.between(time.Minute, time.Hour))
	default:
		w.now = w.now.Add(w.between(time.Hour, 30*day1))
	}
	if w.now.After(w.resumes) && w.dice.IntN(40) == 0 {
		w.resumes = w.now.Add(w.between(day1, longestSuspend))
	}
	for _, r := range w.wanted {
		cert := certOf(w.t, w.serving[r.ID()], certFile)
		pod := w.pods[r.ID()]
		if pod.cert.Equal(cert) {
			pod.since = w.now
		} else if w.now.Sub(pod.since) > longestLag || w.dice.IntN(2) == 0 {
			pod.cert, pod.since = cert, w.now
		}
	}
}

// look decides and writes, as the controller does; it may die at any point.
func (w *world) look() {
	carried := func(object *unstructured.Unstructured) bool { return Carries(object, contents(w.authority)[trustFile]) }
	trusted := !slices.ContainsFunc(w.trusting, func(o *unstructured.Unstructured) bool { return !carried(o) }) && w.dice.IntN(3) > 0
	set := w.make(w.t, trusted)
	w.reasons(set)
	w.events = append(w.events, sentences(set)...)
	w.expected, w.whole = set, true
	for _, at := range w.dice.Perm(len(set.Secrets)) {
		if w.dice.IntN(10) == 0 {
			w.whole = false
			continue
		}
		w.store(at, set.Secrets[at])
		w.check("while Secrets are written")
	}
	if w.now.Before(w.resumes) || !w.whole {
		return // stages: who trusts is written after all Secrets were
	}
	for i, object := range w.trusting {
		if w.dice.IntN(10) > 0 {
			w.trusting[i] = Inject(object, set.Bundle)
		}
		w.check("while trusting objects are written")
	}
}

// store writes one Secret, and counts new certificates.
func (w *world) store(at int, secret *unstructured.Unstructured) {
	live := w.authority
	if at > 0 {
		live = w.serving[inventory.IDOf(secret)]
	}
	if !certOf(w.t, live, certFile).Equal(certOf(w.t, secret, certFile)) {
		w.changes[at]++
	}
	if at == 0 {
		w.authority = secret
	} else {
		w.serving[inventory.IDOf(secret)] = secret
	}
}

// reasons asserts that each write has a reason: something was issued, an authority expired, or the last reconcile was
// not written in full.
func (w *world) reasons(set Set) {
	w.t.Helper()
	if len(set.Stale) == 0 || !w.whole {
		return
	}
	if w.now.Before(w.expected.Next) && !w.expected.Waiting {
		w.t.Fatalf("%s: due before %s: %v %v", w.now, w.expected.Next, set.Stale, sentences(set))
	}
	if len(set.Issued) == 0 && slices.Equal(set.Bundle, w.expected.Bundle) {
		w.t.Fatalf("%s: rewritten without a reason: %v", w.now, set.Stale)
	}
}

// check asserts what must hold at every moment: all clients trust the certificates that Pods serve or may load.
func (w *world) check(when string) {
	w.t.Helper()
	for _, r := range w.wanted {
		stored := certOf(w.t, w.serving[r.ID()], certFile)
		for what, cert := range map[string]*x509.Certificate{"served": w.pods[r.ID()].cert, "stored": stored} {
			for _, object := range w.trusting {
				if err := w.verify(cert, Bundle(object), r.DNSNames); err != nil {
					w.t.Fatalf("%s, %s: what is %s for %s is not trusted by %s: %v\n%s", w.now, when, what, r.DNSNames[0], object.GetName(), err, strings.Join(w.events, "\n"))
				}
			}
		}
		w.outlives(stored)
	}
}

// verify is what a client that trusts the bundle does; verified signatures are cached.
func (w *world) verify(cert *x509.Certificate, bundle []byte, names []string) error {
	seen := string(cert.Raw) + string(bundle)
	if root := w.roots[seen]; root != nil && w.now.Before(root.NotAfter) && w.now.Before(cert.NotAfter) {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	for _, name := range names {
		chains, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: w.now})
		if err != nil {
			return err
		}
		w.roots[seen] = rootOf(chains[0])
	}
	return nil
}

// outlives asserts that the authority that signed a certificate lives at least as long.
func (w *world) outlives(cert *x509.Certificate) {
	w.t.Helper()
	root := w.roots[string(cert.Raw)+string(Bundle(w.trusting[0]))]
	if root == nil || cert.NotAfter.After(root.NotAfter) {
		w.t.Fatalf("%s: a certificate that ends on %s outlives its authority", w.now, cert.NotAfter)
	}
}

// TestYears steps a clock through twenty-five years, with missed reconciles, suspended deployments, writes that fail one by one
// and Pods that are slow to load.
func TestYears(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			looks := 0
			for w.now.Before(start.Add(simulated)) {
				w.pass()
				w.check("before a look")
				w.look()
				looks++
			}
			t.Logf("%d looks, certificates changed %v times (authority, audit, hook)", looks, w.changes)
			// 25 years are three periods of 7 years, the third ending in the 24th with a year to spare for trust, and eighteen of
			// 16 months, of which late looks make fewer.
			if signed, one, other := w.changes[0], w.changes[1], w.changes[2]; signed < 3 || signed > 4 || min(one, other) < 13 || max(one, other) > 20 {
				t.Errorf("certificates changed %v times:\n%s", w.changes, strings.Join(w.events, "\n"))
			}
			if foreign := count(w.events, "Issued the serving"); foreign > 0 {
				t.Errorf("%d certificates were not renewed in time:\n%s", foreign, strings.Join(w.events, "\n"))
			}
		})
	}
}

func count(events []string, part string) int {
	n := 0
	for _, event := range events {
		if strings.Contains(event, part) {
			n++
		}
	}
	return n
}
